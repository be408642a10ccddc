"""Documents that are made to keep an analysis busy: the work is bounded, and what is given up is said, never low."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import pytest

from quire.analysis import pipeline_walk
from quire.analysis.costs import Cost
from quire.analysis.facts import EffectFact
from quire.analysis.labels import Integrity, Label
from quire.analysis.proof import Proof
from quire.analysis.walk import MOST_NESTED, MOST_NOTES, MOST_WALKS, Walk
from quire.library.check import DocumentCheck
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.plan.nodes import Plan
from quire.source import Source
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

AGENT: dict[str, object] = {"agent": {"prompt": "look"}}
COLLECT = {"transform": {"value": "pipe"}}


class Counter:
    """Counts documents that are walked over, and terms that are multiplied."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.documents = self.terms = 0
        document, times = Walk.document, Cost.times

        def walked(walk: Walk, *given: object) -> object:
            self.documents += 1
            return document(walk, *given)  # type: ignore[arg-type]

        def multiplied(cost: Cost, *given: object) -> Cost:
            found = times(cost, *given)  # type: ignore[arg-type]
            self.terms += sum(map(len, found.terms.values()))
            return found

        monkeypatch.setattr(Walk, "document", walked)
        monkeypatch.setattr(Cost, "times", multiplied)


def pipeline(*steps: object) -> Plan:
    lines = "".join(f"- {json.dumps(step)}\n" for step in steps)
    plan = read(Source.of(f"pipeline: p\ndialect: quire\nsteps:\n{lines}", "p.yaml")).plan
    assert plan is not None
    return plan


def fan(over: str, do: object) -> dict[str, object]:
    return {"for_each": {"over": over, "on_error": "abort", "do": do, "collect": COLLECT}}


def nested(kind: str, depth: int) -> dict[str, object]:
    step: dict[str, object] = AGENT
    for level in range(depth):
        match kind:
            case "for_each":
                step = fan(f"ctx.a{level} + ctx.b{level}", step)
            case "fold":
                step = {"fold": {"over": f"ctx.a{level}", "init": "0", "do": step, "output": f"o{level}"}}
            case "repeat":
                step = {"repeat": {"do": step, "max": 9, "until": "false", "on_max": "keep", "init": "0"}}
            case "parallel":
                branches = {"left": step, "right": step} if level < 8 else {"only": step}
                step = {"parallel": {"branches": branches, "on_error": "abort", "collect": COLLECT}}
    return step


@pytest.mark.parametrize("kind", ["for_each", "fold", "repeat", "parallel"])
def test_loops_in_each_other(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Counter(monkeypatch)
    found = Foresight(None).proof(pipeline(nested(kind, 20))).bound("model_calls").most
    assert counter.terms < 20_000
    if kind == "repeat":
        assert found.as_number == 9**20
    elif kind == "parallel":
        assert found.as_number == 2**8
    else:
        assert found.is_endless and "too many parts" in found.reasons[0].why


@pytest.mark.parametrize(("depth", "most"), [(1, 90), (3, 120_000), (8, 180_000)])
def test_values_that_move_on_slowly(depth: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that takes twenty rounds to pass through a loop, in loops in each other, is followed for a while only."""
    walked = 0
    step = pipeline_walk._step

    def counted(*given: Any) -> None:
        nonlocal walked
        walked += 1
        step(*given)

    monkeypatch.setattr(pipeline_walk, "_step", counted)
    names = [f"a{number}" for number in range(20)]
    init = "{" + ", ".join(f"{name}: ''" for name in names) + "}"
    moved = ", ".join(f"{to}: acc.{name}" for to, name in itertools.pairwise(names))
    body: dict[str, object] = AGENT
    for _ in range(depth):
        steps = [body, {"transform": {"value": f"{{{moved}, {names[-1]}: pipe}}"}}]
        body = {"repeat": {"init": init, "do": {"steps": steps}, "until": "false", "max": 9, "on_max": "keep"}}
    proof = Foresight(None).proof(pipeline(body))
    assert proof.result.label.integrity == Integrity.MODEL
    assert walked < most


def test_thousands_of_places_in_one_prompt_take_linear_time() -> None:
    def seconds(places: int) -> float:
        plan = read(Source.of("# N\n\n## STEP 1: A\n\n" + "{{a}} " * places, "n.playbook.md")).runnable()
        times = []
        for _ in range(3):
            began = time.process_time()
            Foresight(None).proof(plan)
            times.append(time.process_time() - began)
        return min(times)

    assert seconds(24_000) < 8 * seconds(6_000)


def test_thousands_of_arms() -> None:
    arms = {f"c{number}": {"steps": [AGENT, {"tool": {"name": f"t{number}", "args": {}}}]} for number in range(1_000)}
    proof = Foresight(None).proof(pipeline({"match": {"on": "ctx.x", "cases": arms, "default": "null"}}))
    assert (str(proof.bound("model_calls").most), str(proof.bound("tool_calls").most)) == ("1", "1")
    assert len(proof.effects) == 1_000


@pytest.mark.parametrize("grow", ["v + v", "map(v, x -> v)", "[v, v, ctx.b, ctx.c]", "flatten(map(v, x -> v))"])
def test_values_that_explode(grow: str) -> None:
    steps = [{"transform": {"value": grow.replace("v", f"v{n}"), "output": f"v{n + 1}"}} for n in range(80)]
    first = {"transform": {"value": "ctx.a", "output": "v0"}}
    proof = Foresight(None).proof(pipeline(first, *steps, fan("flatten(v80)", AGENT)))
    most = proof.bound("model_calls").most
    # More items than these fail the step. A formula of sizes is larger.
    assert most.as_number in (None, 10_000)
    assert all(len(product) <= 8 and count < 10**41 for product, count in most.terms.items())


def workspace(folder: Path, *documents: list[object]) -> Foresight:
    (folder / "pipelines").mkdir()
    (folder / "quire.toml").write_text("")
    for number, steps in enumerate(documents):
        lines = "".join(f"- {json.dumps(step)}\n" for step in steps)
        (folder / f"pipelines/c{number}.yaml").write_text(f"pipeline: c{number}\nsteps:\n{lines}")
    return Foresight(load_settings(Workspace(folder), {"QUIRE_HOME": str(folder / "user")}))


def call(number: int, given: str) -> object:
    return {"call": {"pipeline": f"c{number}", "pass": {"v": given}}}


def test_a_chain_of_calls_that_are_all_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call has arguments of its own, so 3 to the power of 60 walks would be needed."""
    counter = Counter(monkeypatch)
    chain: list[list[object]] = [[call(n + 1, f"[ctx.v, {m}]") for m in range(3)] for n in range(60)]
    foresight = workspace(tmp_path, *chain, [AGENT])
    proof = foresight.proof(foresight.called["c0"])
    assert counter.documents <= MOST_WALKS + MOST_NESTED
    assert proof.bound("model_calls").most.is_endless
    assert proof.unknown


def test_a_chain_of_calls_that_are_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Walked over once for each value of the pipe; the facts of all calls together are too many to be listed."""
    counter = Counter(monkeypatch)
    chain: list[list[object]] = [[call(n + 1, "1"), call(n + 1, "1")] for n in range(60)]
    last: list[object] = [{"tool": {"name": f"t{number}", "args": {}}} for number in range(20)]
    foresight = workspace(tmp_path, *chain, last)
    noted: list[EffectFact] = []
    note = Walk.note_effect

    def counted(walk: Walk, effect: EffectFact, *given: Label, again: bool = False) -> None:
        noted.append(effect)
        note(walk, effect, *given, again=again)

    monkeypatch.setattr(Walk, "note_effect", counted)
    proof = foresight.proof(foresight.called["c0"])
    assert counter.documents <= 2 * 61
    assert proof.bound("tool_calls").most.as_number == 20 * 2**60
    assert proof.incomplete
    assert MOST_NOTES // 2 < len(noted) <= MOST_NOTES + 1


def test_a_callee_with_many_facts_that_is_called_with_different_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its facts count where they are found too, not only where a call repeats them."""
    monkeypatch.setattr("quire.analysis.walk.MOST_NOTES", 90)
    tools: list[object] = [{"tool": {"name": f"t{number}", "args": {}}} for number in range(20)]
    foresight = workspace(tmp_path, [call(1, f"'{'x' * number}'") for number in range(5)], tools)
    proof = foresight.proof(foresight.called["c0"])
    assert proof.bound("tool_calls").most.as_number == 100
    assert (proof.incomplete, len(proof.effects)) == (True, 40)


def test_documents_that_call_each_other(tmp_path: Path) -> None:
    foresight = workspace(tmp_path, [AGENT, call(1, "1")], [call(0, "2")])
    plan = read(Source.of('pipeline: top\nsteps:\n- call: {pipeline: c0, pass: {v: "1"}}\n', "top.yaml")).plan
    assert plan is not None
    proof: Proof = foresight.proof(plan)
    assert proof.bound("model_calls").most.is_endless


ASKED = '@elicit(select, "Which?", "x", "last")'


@pytest.mark.parametrize("before", [5, 300])
@pytest.mark.parametrize("source, codes", [("Say which.", ["GA101"]), (ASKED, [])], ids=["a model", "a person"])
def test_an_arm_after_many_others_is_judged_like_one_after_few(before: int, source: str, codes: list[str]) -> None:
    """The tests of all arms before an arm are not kept, and what is not known is possible."""
    arms = "".join(f'```elif kind == "k{at}"```\nGo.\n' for at in range(before))
    text = (
        f'# T\n\n## STEP 1: A\n\n{source}\n@output(kind)\n\n## STEP 2: B\n\n```if kind == "x"```\nGo.\n{arms}'
        '```elif kind == "last"```\n### STEP 2z: Send\n@tool(mail, send, {"to": "{{kind}}"})\n```endif```\n'
    )
    found = DocumentCheck().of(Source.of(text, "x.playbook.md"))
    sending = [one.code.id for one in found if one.span.start >= text.index("### STEP 2z")]
    assert [code for code in sending if code != "PB225"] == codes
