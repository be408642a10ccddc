"""Watching a document changes nothing about its walks; a replay of a journal takes what the run took."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.depth import depth
from tests.documents import draw_scenario
from tests.documents.draw import Draw
from tests.simulator.scenario import Scenario
from tests.testing.coverage.measured import taken, walk_of
from tests.testing.scripted import Scripted, down
from tests.walks.answers import WalkEnd
from tests.walks.pure_walk import run_pure
from tests.walks.runs import run_of
from tests.walks.test_pure_walk import INPUTS, REPLIES, TAGLINE

from quire.engine.interpreter.callees import Environment
from quire.engine.interpreter.thread.compose import Bundle
from quire.engine.records import Status
from quire.library.document import read
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.source import Source
from quire.stores.sqlite.in_memory import MemoryStore
from quire.testing.coverage.decisions import decisions_of
from quire.testing.coverage.taken import decisions_taken
from quire.testing.coverage.watched_documents import watched
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

RETRIED = """pipeline: p
dialect: quire
steps:
- agent: {prompt: "Read {doc}.", on_error: retry(1), output: a}
- tool: {name: ask, args: {prompt: Sure, type: confirm, default: 'no'}, output: sure}
- transform: {value: a, when: sure == 'yes'}
"""


def environment_of(scenario: Scenario) -> Environment:
    """The texts of all directives of a scenario, by their ids."""
    ids = {name: name.removeprefix(".ai/directives/").removesuffix(".md") for name in scenario.files}
    texts = {ids[name]: text for name, text in scenario.files.items() if name.startswith(".ai/directives/")}
    return Environment(bundles={"": Bundle(ids[scenario.document], texts)} if texts else {})


def seen(end: WalkEnd) -> object:
    asked = {path: repr(getattr(request, "content", lambda: "")()) for path, request in end.asked.items()}
    return end.status, end.result, end.failure, asked, [(one.type, one.path, one.data) for one in end.events]


@pytest.mark.parametrize("format", ["playbook", "pipeline", "dialect", "directive"])
@pytest.mark.parametrize("seed", range(depth(25, 250)))
def test_a_watched_walk_is_the_same_walk(format: str, seed: int) -> None:
    scenario = draw_scenario(Draw.seeded(f"coverage {seed}"), format)
    source = Source.of(scenario.files[scenario.document], scenario.document)
    document = read(source)
    if document.plan is None:
        pytest.skip("a registered file of several pipelines")
    start = run_of(document.plan, scenario.inputs, environment_of(scenario))
    labels = [step.label for _, step in document.plan.steps()]
    people = dict.fromkeys(labels, "yes")
    replies = {label: down() for number, label in enumerate(labels, seed) if number % 4 == 0}
    plain = run_pure(start.walk, Scripted(replies, people=people))
    watching = watched(document.plan)
    watching.begin()
    same = run_pure(partial(walk_of, watching, start), Scripted(replies, people=people))
    assert seen(same) == seen(plain)
    assert watching.taken <= {one.id for one in decisions_of(document.plan, source)}
    if format == "directive":
        assert "steps:thread" in watching.taken
        return
    began, skipped = (
        {one.path for one in plain.events if one.type == f"step_{word}"} for word in ("started", "skipped")
    )
    assert {f"steps:{path}" for path in began - skipped} <= watching.taken
    assert {f"steps:{path}" for path in skipped}.isdisjoint(watching.taken)


async def run(
    text: str, name: str, folder: Path, inputs: dict[str, Value], script: list[Value], options: RunOptions
) -> tuple[Status, frozenset[str]]:
    settings = load_settings(Workspace(folder), {"QUIRE_HOME": str(folder / "user")})
    runtime = Runtime(settings, MemoryStore(), environ={}, model=ScriptedModel(script))
    document = read(Source.of(text, name))
    made = await runtime.start(document, inputs, options)
    ended = await runtime.drive(made)
    held = await runtime.stored(await runtime.row(made))
    records = await runtime.store.effects(made)
    return ended.status, await decisions_taken(watched(document.runnable()), held, records)


@pytest.mark.parametrize("answer", ["yes", "no"])
async def test_the_replay_of_a_run_takes_what_its_walk_takes(answer: str, tmp_path: Path) -> None:
    script: list[Value] = [{"step": step, "reply": reply} for step, reply in REPLIES.items()]
    options = RunOptions(answers={"2": answer})
    status, found = await run(TAGLINE, "t.playbook.md", tmp_path, dict(INPUTS), script, options)
    assert status is Status.COMPLETED
    assert found == taken(TAGLINE, (INPUTS, Scripted(REPLIES, people={"2": answer})))


async def test_a_run_without_a_person_takes_the_default_of_its_question(tmp_path: Path) -> None:
    script: list[Value] = [{"error": {"kind": "bad", "message": "no"}}, {"reply": "text"}]
    status, found = await run(RETRIED, "p.yaml", tmp_path, {"doc": "x"}, script, RunOptions(unattended=True))
    assert status is Status.COMPLETED
    assert "answers:2:ask=unattended" in found and "answers:2:ask=no" in found
    assert "errors:1:on_error=again" in found
    assert "conditions:3:when[1]=false" in found and "steps:3" not in found


async def test_a_run_that_waits_has_taken_what_came_before(tmp_path: Path) -> None:
    status, found = await run(TAGLINE, "t.playbook.md", tmp_path, dict(INPUTS), [REPLIES["1"]], RunOptions())
    assert status is Status.AWAITING_INPUT
    assert found == {"steps:1", "steps:2"}
