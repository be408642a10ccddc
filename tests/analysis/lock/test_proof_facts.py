"""Facts of proofs as texts of a lock."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from tests.plan.test_bounds import pipeline

from quire.analysis.flow_paths import MOST_FLOWS
from quire.analysis.lock.compare import amount_of
from quire.analysis.proof import Proof, prove
from quire.engine.premises import Premises
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.library.lock_facts import locked_bounds, locked_flows, locked_gates, rounded_up
from quire.library.proof_world import WorkspaceWorld
from quire.models.prices import ModelRate, Rate, Unpriced
from quire.source import Source
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

GET = "tool: {name: http__get, args: {url: 'https://example.org/'}, output: page}"


def proof(*steps: str) -> Proof:
    foresight = Foresight(None)
    return prove(pipeline(*steps), WorkspaceWorld(foresight, None))


def priced(model: str) -> Rate:
    return ModelRate(model, Decimal(3), Decimal(15), context=200_000)


def unpriced(model: str) -> Rate:
    return Unpriced(model, "why")


@pytest.mark.parametrize(
    ("count", "digits", "found"),
    [(0, 1, 0), (7, 1, 7), (74, 1, 80), (99, 1, 100), (741, 2, 750), (7_401, 2, 7_500), (123_456, 1, 200_000)],
)
def test_rounding_never_makes_a_bound_lower(count: int, digits: int, found: int) -> None:
    assert rounded_up(count, digits) == found >= count


def test_bounds() -> None:
    step = "agent: {prompt: 'Read {doc}', capabilities: {tools: []}}"
    fan = f"for_each: {{over: ctx.readers, on_error: abort, do: {{{step}}}, collect: {{transform: {{value: pipe}}}}}}"
    found = locked_bounds(proof(fan, step), Premises(), priced)
    assert found["model_calls"] == "|readers| + 1"
    assert found["output_tokens"] == "16,384·|readers| + 16,384"
    assert found["minutes"] == "60·|readers| + 60"
    money = amount_of("money", found["money"])
    assert money is not None and "|readers|" in money.sizes
    assert all(amount_of(name, text) is not None for name, text in found.items())
    assert locked_bounds(proof(step), Premises(), unpriced)["money"] == "unpriced"


def test_a_longer_prompt_has_the_same_bound() -> None:
    texts = ["word " * count for count in (100, 103)]
    bounds = [
        locked_bounds(proof(f"agent: {{prompt: '{text}', capabilities: {{tools: []}}}}"), Premises(), priced)
        for text in texts
    ]
    assert bounds[0] == bounds[1]


def test_flows() -> None:
    found = locked_flows(
        proof(
            GET,
            "agent: {prompt: 'Read {page}', capabilities: {tools: []}, output: text}",
            "shell: {command: !expr \"['sh', text]\"}",
            "tool: {name: file__write, args: {path: a, content: !expr text}}",
        )
    )
    assert found == (
        "1 http__get → page → 2 model (no tools)",
        "1 http__get → page → 2 model → 3 shell stdin",
        "1 http__get → page → 2 model → text → 3 shell argv[1]",
        "1 http__get → page → 2 model → text → 4 file__write content",
    )
    assert locked_flows(proof("shell: {command: ls}")) == ()


def test_flows_name_each_tool_of_a_model_and_each_decision(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text('[agents.default]\ntools = ["http__get", "file__write"]\n')
    steps = (GET, "agent: {prompt: 'Do {page}'}", "shell: {command: [publish], when: ctx.page == 'yes'}")
    text = "".join(["pipeline: p\ndialect: quire\nsteps:\n", *(f"  - {step}\n" for step in steps)])
    plan = read(Source.of(text, "p.yaml")).runnable()
    assert locked_flows(Foresight(load_settings(find_workspace(tmp_path))).proof(plan)) == (
        "1 http__get → page → 2 model with file__write, http__get",
        "1 http__get → page → 3 shell runs or not",
    )


def test_a_lock_has_all_flows() -> None:
    writes = [f"tool: {{name: file__write, args: {{path: {at}.md, content: !expr page}}}}" for at in range(210)]
    assert len(locked_flows(proof(GET, *writes))) > MOST_FLOWS


def test_gates() -> None:
    ask = "tool: {name: ask, args: {prompt: Do it?, type: confirm, show: !expr text}, output: ok}"
    write = "tool: {name: file__write, args: {path: a, content: !expr text}}"
    assert locked_gates(proof("transform: {value: '1', output: text}", ask, write)) == {"3 file__write": "none"}
    assert locked_gates(proof("transform: {value: '1'}", "tool: {name: file__read, args: {path: a}}")) == {}


@pytest.mark.parametrize(
    ("question", "condition", "gate"),
    [
        ("type: confirm", "ok == 'yes'", "1 confirm"),
        ('type: confirm, default: "no"', "ok == 'yes'", "1 confirm"),
        ('type: confirm, default: "yes"', "ok == 'yes'", "1 confirm, opens unattended"),
        ("type: confirm, default: !expr ctx.word", "ok == 'yes'", "1 confirm, opens unattended"),
        ("type: select, options: [send, keep]", "ok == 'send'", "1 select, opens unattended without a default"),
        ("type: select, options: [keep, send]", "ok == 'send'", "1 select, stays shut unattended"),
        ("type: select, options: [keep, send], default: send", "ok == 'send'", "1 select, opens unattended"),
        ("type: input", "ok == 'DELETE'", "1 input"),
    ],
)
def test_a_gate_says_what_it_does_without_a_person(question: str, condition: str, gate: str) -> None:
    ask = f"tool: {{name: ask, args: {{prompt: Do it?, {question}}}, output: ok}}"
    write = f'tool: {{when: "{condition}", name: file__write, args: {{path: a, content: b}}}}'
    text = f"pipeline: p\ndialect: quire\nsteps:\n  - {ask}\n  - {write}\n"
    plan = read(Source.of(text, "p.yaml")).runnable()
    assert locked_gates(Foresight(None).proof(plan)) == {"2 file__write": gate}


@pytest.mark.parametrize(
    ("default", "gate"),
    [
        ("", "1 confirm, opens unattended without a default"),
        (', default:"no"', "1 confirm, stays shut unattended"),
        (', default:"yes"', "1 confirm, opens unattended"),
    ],
)
def test_a_gate_of_a_playbook_says_what_it_does_without_a_person(default: str, gate: str) -> None:
    text = (
        f'# P\n\n## SYSTEM\n\nYou write.\n\n## STEP 1: Ask\n\n@elicit(confirm, "Go on?"{default})\n\n## STEP 2: Go\n\n'
        '```if __elicit_step_1 == "yes"```\n\n### STEP 2a: Send\n\n'
        '@tool(quire, shell, {"command": ["send"]})\n\n```endif```\n'
    )
    plan = read(Source.of(text, "p.playbook.md")).runnable()
    assert locked_gates(Foresight(None).proof(plan)) == {"2a shell": gate}
