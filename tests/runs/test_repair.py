"""G3: a run goes on with its edited document. What the document still asks for is not asked for again."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import pytest
from tests.directives import directive
from tests.runs.travel import Travel, use

from quire.engine.driver.drive import DriveResult
from quire.engine.records import Batch, RunUpdate, Status
from quire.errors import BadDocument, CannotStart, Refused, RunState
from quire.models.scripted import ScriptedModel
from quire.runs.fork import Changes
from quire.runs.repair import Repaired, repair
from quire.runs.runtime import Runtime
from quire.values import Value

PIPELINE = """
pipeline: p
steps:
- agent: {prompt: "First about {topic}.", output: x}
- agent: {prompt: "Second.", output: y}
- transform: {value: "%s", output: z}
- agent: {prompt: "Third about {z}."}
"""
PLAYBOOK = """# P

## INPUTS

- `topic` (string: tea): Topic

## STEP 1: A

First about {{topic}}.

## STEP 2: B

%s

## STEP 3: C

@tool(quire, file__read, %s)

## STEP 4: D

Last.
"""
DIRECTIVE = directive(
    "d",
    "<execute><tool>rye.file-system.*</tool></execute>",
    "Say it.",
    meta='<limits turns="%s" tokens="100000" spend="5" spawns="0" />',
    more='<outputs><output name="said" required="true">What was said</output></outputs>',
)
ITEM = ".ai/directives/demo/d.md"
SAY: Sequence[Value] = [{"default": "said"}]


async def repaired(
    travel: Travel, run: str, file: str, script: Sequence[Value] = SAY, step: str = "", changes: Changes | None = None
) -> tuple[Repaired, list[str], DriveResult]:
    """The new run, the last messages that its model got, and how it ended."""
    async with travel.runtime(script) as runtime:
        made = await repair(runtime, run, str(travel.folder / file), changes or Changes(), step)
        ended = await runtime.drive(made.run)
        view = await runtime.view(made.run)
        assert view.replay.finished is (ended.status is Status.COMPLETED)
        return made, asked_of(runtime), ended


def asked_of(runtime: Runtime) -> list[str]:
    model = runtime.models.given
    assert isinstance(model, ScriptedModel)
    return [call.messages[-1].content for call in model.calls]


async def failed_pipeline(travel: Travel, inputs: dict[str, Value] | None = None) -> str:
    travel.write("p.yaml", PIPELINE % "y.nope")
    run, ended = await travel.run("p.yaml", inputs or {"topic": "tea"}, SAY)
    assert ended.status is Status.FAILED
    return run


async def test_a_pipeline_pays_only_for_what_comes_after_the_mistake(travel: Travel) -> None:
    run = await failed_pipeline(travel)
    before = await travel.effects(run)
    travel.write("p.yaml", PIPELINE % "y")
    made, asked, ended = await repaired(travel, run, "p.yaml")
    assert (ended.status, asked) == (Status.COMPLETED, ["Third about said."])
    assert (made.kept, made.recorded, made.misfit, made.next) == (2, 2, ("", ""), ("4", "4/model"))
    after = await travel.effects(made.run)
    assert {path: after[path] for path in before} == before == await travel.effects(run)


async def test_the_first_that_does_not_fit_is_named_and_done_again_with_all_after_it(travel: Travel) -> None:
    run = await failed_pipeline(travel)
    travel.write("p.yaml", (PIPELINE % "y").replace("Second.", "Another."))
    made, asked, ended = await repaired(travel, run, "p.yaml")
    assert (made.kept, made.misfit) == (1, ("2", "2/model"))
    assert asked == ["Another.", "Third about said."]
    assert ended.status is Status.COMPLETED


async def test_a_step_keeps_less(travel: Travel) -> None:
    run = await failed_pipeline(travel)
    travel.write("p.yaml", PIPELINE % "y")
    made, asked, _ = await repaired(travel, run, "p.yaml", step="2")
    assert (made.kept, made.misfit) == (1, ("", ""))
    assert asked == ["Second.", "Third about said."]


async def test_branches_beside_a_changed_one_keep_theirs(travel: Travel) -> None:
    text = """
pipeline: fan
steps:
- parallel:
    branches:
      a: {agent: {prompt: "A."}}
      b: {agent: {prompt: "B."}}
    collect: {transform: {value: pipe}}
- transform: {value: "pipe.nope"}
"""
    travel.write("fan.yaml", text)
    run, _ = await travel.run("fan.yaml", {}, SAY)
    travel.write("fan.yaml", text.replace("B.", "Better.").replace("pipe.nope", "pipe.a"))
    made, asked, ended = await repaired(travel, run, "fan.yaml")
    assert (made.kept, asked, ended.status) == (1, ["Better."], Status.COMPLETED)


async def test_a_callee_that_was_edited_is_taken_too(travel: Travel) -> None:
    travel.write("pipelines/sub.yaml", 'pipeline: sub\nsteps:\n- transform: {value: "ctx.n.nope"}\n')
    caller = "pipeline: c\nsteps:\n- agent: {prompt: One., output: x}\n- call: {pipeline: sub, pass: {n: ctx.x}}\n"
    travel.write("c.yaml", caller)
    run, ended = await travel.run("c.yaml", {}, SAY)
    assert ended.status is Status.FAILED
    travel.write("pipelines/sub.yaml", 'pipeline: sub\nsteps:\n- transform: {value: "ctx.n"}\n')
    _, asked, ended = await repaired(travel, run, "c.yaml")
    assert (ended.status, asked) == (Status.COMPLETED, [])


async def test_a_playbook_pays_only_for_what_comes_after_the_mistake(travel: Travel) -> None:
    travel.write("p.playbook.md", PLAYBOOK % ("Second.", "{{topic}}"))
    run, ended = await travel.run("p.playbook.md", {"topic": "ink"}, SAY)
    assert ended.status is Status.FAILED
    travel.write("p.playbook.md", PLAYBOOK % ("Second.", '{"path": "notes.txt"}'))
    made, asked, ended = await repaired(travel, run, "p.playbook.md")
    assert (made.kept, asked, ended.status) == (2, ["Last."], Status.COMPLETED)
    travel.write("p.playbook.md", PLAYBOOK % ("Two.", '{"path": "notes.txt"}'))
    made, asked, _ = await repaired(travel, run, "p.playbook.md")
    assert (made.kept, made.misfit, asked) == (1, ("2", "2/model"), ["Two.", "Last."])


async def test_a_directive_pays_only_for_what_comes_after_the_mistake(travel: Travel) -> None:
    travel.sign(travel.write(ITEM, DIRECTIVE % 1))
    look, done = use(("rye_file_system_read", {"path": "notes.txt"})), use(("directive_return", {"said": "hello"}))
    run, ended = await travel.run(ITEM, {}, [look, done])
    assert ended.status is Status.FAILED
    travel.write(ITEM, DIRECTIVE % 9)
    async with travel.runtime([done]) as runtime:
        with pytest.raises(Refused):
            await repair(runtime, run, str(travel.folder / ITEM), Changes())
    travel.sign(travel.folder / ITEM)
    made, asked, ended = await repaired(travel, run, ITEM, [done])
    assert (ended.status, len(asked)) == (Status.COMPLETED, 1)
    assert made.kept


async def test_inputs_can_be_set_and_those_that_are_gone_are_dropped(travel: Travel) -> None:
    travel.write("p.playbook.md", PLAYBOOK % ("Second.", "{{topic}}"))
    run, _ = await travel.run("p.playbook.md", {"topic": "ink"}, SAY)
    edited = (PLAYBOOK % ("About {{other}}.", '{"path": "notes.txt"}')).replace("- `topic` (string: tea): Topic", "")
    edited = edited.replace("about {{topic}}", "about ink").replace("## STEP 1", "- `other` (string): O\n\n## STEP 1")
    travel.write("p.playbook.md", edited)
    made, asked, _ = await repaired(travel, run, "p.playbook.md", changes=Changes({"other": "wine"}))
    assert (made.kept, asked) == (1, ["About wine.", "Last."])


async def test_what_ended_the_run_is_done_again_though_its_request_is_the_same(travel: Travel) -> None:
    travel.write("p.yaml", "pipeline: p\nsteps:\n- agent: {prompt: A.}\n- agent: {prompt: B.}\n")
    run, _ = await travel.run("p.yaml", {}, ["a", {"error": "busy"}])
    _, asked, ended = await repaired(travel, run, "p.yaml")
    assert (asked, ended.status) == (["B."], Status.COMPLETED)


async def test_a_survived_failure_is_kept(travel: Travel) -> None:
    text = """
pipeline: p
steps:
- for_each:
    over: "[1, 2]"
    on_error: continue
    do: {agent: {prompt: "Item {item}."}}
    collect: {transform: {value: pipe}}
- transform: {value: "pipe.nope"}
"""
    travel.write("p.yaml", text)
    run, _ = await travel.run("p.yaml", {}, [{"contains": "Item 1", "error": "no"}, {"default": "said"}])
    travel.write("p.yaml", text.replace("pipe.nope", "pipe"))
    made, asked, _ = await repaired(travel, run, "p.yaml")
    assert (made.kept, asked) == (2, [])


async def test_a_run_from_elsewhere_lends_its_records_and_not_its_grants(travel: Travel) -> None:
    run = await failed_pipeline(travel)
    database = sqlite3.connect(travel.folder / ".quire" / "quire.db")
    with database:
        database.execute('UPDATE pins SET value = replace(value, \'"allow":[]\', \'"allow":["shell=unsandboxed"]\')')
    database.close()
    travel.write("p.yaml", PIPELINE % "y")
    async with travel.runtime(SAY) as runtime:
        made = await repair(runtime, run, str(travel.folder / "p.yaml"), Changes())
        pins = (await runtime.row(made.run)).pins
        assert pins["allow"] == []
        assert not any("unsandboxed" in str(one) for one in pins["grants"])  # type: ignore[union-attr]
        await runtime.store.check_seal(made.run)


async def test_what_cannot_be_repaired_says_so_and_makes_no_run(travel: Travel) -> None:
    run = await failed_pipeline(travel)
    travel.write("p.yaml", "pipeline: p\nsteps:\n- nothing: {}\n")
    async with travel.runtime(SAY) as runtime:
        for file, error in (("p.yaml", BadDocument), ("everything.playbook.md", CannotStart)):
            with pytest.raises(error):
                await repair(runtime, run, str(travel.folder / file), Changes())
        (travel.folder / "p.yaml").unlink()
        with pytest.raises(CannotStart, match="--document FILE"):
            await repair(runtime, run, "", Changes())
        assert len(await runtime.store.list()) == 1


async def test_a_run_that_is_being_driven_is_not_taken_over(travel: Travel) -> None:
    run = await failed_pipeline(travel)
    async with travel.runtime(SAY) as runtime:
        lease = await runtime.store.acquire(run)
        await runtime.store.write(lease, Batch(update=RunUpdate(Status.RUNNING)))
        with pytest.raises(RunState, match="is being driven"):
            await repair(runtime, run, "", Changes(), instead=True)
        await runtime.store.release(lease)
