"""A new run takes the replies of an earlier one where path, request and model are the same, and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from tests.runs.test_repair import asked_of
from tests.runs.travel import Travel, use

import quire
from quire.display.copies_json import reuse_data, reuse_lines
from quire.engine.driver.drive import DriveResult
from quire.engine.records import EffectRecord, Status, Usage
from quire.engine.reused_replies import saved_by
from quire.errors import CannotStart, NoSuchRun, Refused
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.export import export_lines, write_export
from quire.runs.fork import Changes, fork
from quire.runs.imports import import_run, read_export
from quire.runs.options import RunOptions
from quire.runs.reuse import reuse_of
from quire.runs.runtime import Runtime
from quire.values import Value

PIPELINE = """
pipeline: p
steps:
- agent: {prompt: "First.", output: x}
- agent: {prompt: "Second.", output: y}
- agent: {prompt: "%s of {x} and {y}."}
"""
USED: Value = {"input_tokens": 10, "output_tokens": 2, "cost": 0.5}
SCRIPT: Sequence[Value] = [{"reply": word, "usage": USED} for word in ("one", "two", "three", "four")]
PLAYBOOK = """# Asking

## STEP 1: Read

@tool(quire, file__read, {"path": "notes.txt"})

## STEP 2: Think

Think of it.

## STEP 3: Ask

@elicit(input, "Whom?")

## STEP 4: End

End it.
"""


async def again(
    travel: Travel, document: str, script: Sequence[Value], options: RunOptions, inputs: dict[str, Value] | None = None
) -> tuple[str, list[str], DriveResult]:
    """The new run, the last messages that its model got, and how it ended."""
    async with travel.runtime(script) as runtime:
        run = await runtime.start(load(travel.folder / document), inputs or {}, options)
        ended = await runtime.drive(run)
        return run, asked_of(runtime), ended


async def told_of(travel: Travel, run: str) -> list[str]:
    async with travel.runtime() as runtime:
        return [str(one.data["message"]) for one in await runtime.store.events(run) if one.type == "warning"]


async def test_only_the_edited_step_is_asked_and_paid_for(travel: Travel) -> None:
    travel.write("p.yaml", PIPELINE % "Sum")
    first, _ = await travel.run("p.yaml", {}, SCRIPT)
    travel.write("p.yaml", PIPELINE % "Essence")
    run, asked, ended = await again(travel, "p.yaml", SCRIPT, RunOptions(reuse=first))
    assert ended.status is Status.COMPLETED
    # The entries of a script are used up by replies that are taken: the third call gets the third.
    assert (asked, ended.result) == (["Essence of one and two."], {**result_of(ended), "output": "three"})
    then, now = await travel.effects(first), await travel.effects(run)
    for path in ("1/model", "2/model"):
        taken = now[path]
        assert (taken.by, taken.request, text_of(taken)) == (first, then[path].request, text_of(then[path]))
        assert taken.usage == Usage(0, 0, 0.0)
        assert (saved_by(taken).input_tokens, saved_by(taken).cost) == (10, 0.5)
    assert now["3/model"].by == ""
    async with travel.runtime() as runtime:
        view = await runtime.view(run)
        row = view.row
        assert (row.cost, row.input_tokens, row.output_tokens) == (0.5, 10, 2)
        told = [one for one in await runtime.store.events(run) if one.type == "effect"]
        assert [one.data.get("reused") for one in told] == [first, first, None]
        assert all("by" not in one.data for one in told)
        found = reuse_data(view.reuse)
    assert (found["run"], found["replies"], found["asked"]) == (first, 2, 1)
    assert cast("dict[str, Value]", found["saved"])["cost"] == 1.0


def text_of(record: EffectRecord) -> Value:
    return cast("dict[str, Value]", record.value)["text"]


def result_of(ended: DriveResult) -> dict[str, Value]:
    assert isinstance(ended.result, dict)
    return dict(ended.result)


async def test_the_table_says_what_was_saved_and_why_the_rest_was_asked(travel: Travel) -> None:
    travel.write("p.yaml", PIPELINE % "Sum")
    script: list[Value] = [SCRIPT[0], {"reply": "tw", "finish_reason": "length", "usage": USED}, SCRIPT[2]]
    first, _ = await travel.run("p.yaml", {}, script)
    run, asked, _ = await again(travel, "p.yaml", SCRIPT, RunOptions(reuse="last"))
    assert asked == ["Second.", "Sum of one and two."]
    async with travel.runtime() as runtime:
        earlier = await runtime.store.effects(first)
        view = await runtime.view(run)
        found = reuse_of(first, view.effects, view.progress, earlier)
    assert found.reasons == {"cut off before": 1, "changed": 1}
    header, step, saved, anew = reuse_lines(found)
    assert header.split()[:3] == ["REUSED", "FROM", first]
    assert step.split()[:4] == ["step", "1", "1", "10+2"]
    assert saved.split()[:4] == ["saved", "1", "10+2", "$0.5000"]
    assert anew == "asked anew: 2 calls (1 cut off before, 1 changed)"


async def test_the_reuse_of_a_reuse_counts_what_was_paid_in_the_beginning(travel: Travel) -> None:
    travel.write("p.yaml", PIPELINE % "Sum")
    first, _ = await travel.run("p.yaml", {}, SCRIPT)
    second, asked, _ = await again(travel, "p.yaml", [], RunOptions(reuse=first))
    assert asked == []
    third, asked, _ = await again(travel, "p.yaml", [], RunOptions(reuse="last"))
    assert asked == []
    taken = (await travel.effects(third))["1/model"]
    assert (taken.by, saved_by(taken).cost) == (second, 0.5)


async def test_it_goes_on_without_the_other_run(travel: Travel) -> None:
    travel.write("p.yaml", PIPELINE % "Sum")
    first, _ = await travel.run("p.yaml", {}, SCRIPT)
    run, asked, ended = await again(travel, "p.yaml", [], RunOptions(reuse=first, breakpoints=("1",)))
    assert (asked, ended.status) == ([], Status.PAUSED)
    async with travel.runtime([SCRIPT[1], SCRIPT[2]]) as runtime:
        assert (await runtime.store.remove([first], dry_run=False)).runs == (first,)
        ended = await runtime.drive(run)
        assert ended.status is Status.COMPLETED
        assert asked_of(runtime) == ["Second.", "Sum of one and two."]
    (warning,) = await told_of(travel, run)
    assert warning == f"no more replies are reused: unknown run {first}"


async def test_a_resumed_run_takes_the_rest(travel: Travel) -> None:
    travel.write("p.yaml", PIPELINE % "Sum")
    first, _ = await travel.run("p.yaml", {}, SCRIPT)
    run, _, _ = await again(travel, "p.yaml", [], RunOptions(reuse=first, breakpoints=("1",)))
    async with travel.runtime() as runtime:
        assert (await runtime.drive(run)).status is Status.COMPLETED
    assert {one.by for one in (await travel.effects(run)).values() if one.kind == "model"} == {first}


async def test_tools_are_called_and_people_are_asked_again(travel: Travel) -> None:
    travel.write("a.playbook.md", PLAYBOOK)
    first, _, _ = await again(travel, "a.playbook.md", ["thought", "end"], RunOptions(answers={"3": "Ann"}))
    run, asked, ended = await again(travel, "a.playbook.md", [], RunOptions(reuse=first))
    assert (asked, ended.status) == ([], Status.AWAITING_INPUT)
    records = await travel.effects(run)
    assert records["1/tool"].by == "" and records["2/model"].by == first
    # What a tool gives now is part of what the model is asked.
    travel.write("notes.txt", "Rust is slow.")
    _, asked, _ = await again(travel, "a.playbook.md", ["anew"], RunOptions(reuse=first))
    assert asked == ["Think of it."]


async def test_another_model_is_asked_itself(travel: Travel) -> None:
    travel.write("p.yaml", PIPELINE % "Sum")
    first, _ = await travel.run("p.yaml", {}, SCRIPT)
    async with travel.runtime() as runtime:
        other = ScriptedModel(list(SCRIPT), name="other:model")
        asking = Runtime(runtime.settings, runtime.store, environ=travel.environ, model=other)
        run = await asking.start(load(travel.folder / "p.yaml"), {}, RunOptions(reuse=first))
        await asking.drive(run)
        assert len(other.calls) == 3
        view, earlier = await asking.view(run), await asking.store.effects(first)
        found = reuse_of(first, view.effects, view.progress, earlier)
    assert found.reasons == {"of another model": 3}
    assert reuse_lines(found) == [f"no reply of {first} was reused: asked anew: 3 calls (3 of another model)"]


async def test_replies_that_are_taken_use_neither_budget_nor_spawns(travel: Travel) -> None:
    travel.write("quire.toml", "[safety.spawn]\nmax_pipeline_spawns = 3\n")
    travel.write("p.yaml", PIPELINE % "Sum")
    first, ended = await travel.run("p.yaml", {}, SCRIPT)
    assert ended.status is Status.COMPLETED
    travel.write("quire.toml", "[safety.spawn]\nmax_pipeline_spawns = 1\n")
    travel.write("p.yaml", PIPELINE % "Essence")
    _, asked, ended = await again(travel, "p.yaml", SCRIPT, RunOptions(reuse=first, budget=0.6))
    assert (len(asked), ended.status) == (1, Status.COMPLETED)
    _, asked, ended = await again(travel, "p.yaml", [], RunOptions(reuse="last", budget=0.0))
    assert (asked, ended.status) == ([], Status.COMPLETED)


async def test_items_and_branches_and_repairs(travel: Travel) -> None:
    first = await travel.board()
    options = RunOptions(reuse=first, answers={"2": "Bo"})
    run, asked, ended = await again(travel, "board.yaml", [{"default": "gone"}], options, {"papers": ["one", "two"]})
    assert ended.status is Status.COMPLETED
    # The branch that failed before is asked again, and so is the step that reads its reply.
    assert [one[:12] for one in asked] == ['Which of ["o', 'Sum up {"fou']
    records = await travel.effects(run)
    assert records["3/for_each[0]/try[1]/model/repair[1]"].by == first


READ: Value = use(("rye_file_system_read", {"path": "notes.txt"}))
SAID: Value = use(("directive_return", {"said": "hello Cy"}))


async def test_a_thread_is_taken_as_long_as_its_beginning_is_the_same(travel: Travel) -> None:
    document = ".ai/directives/demo/child.md"
    who: dict[str, Value] = {"who": "Cy"}
    first, _, _ = await again(travel, document, [READ, SAID], RunOptions(), who)
    run, asked, ended = await again(travel, document, [], RunOptions(reuse=first), who)
    assert (asked, ended.status) == ([], Status.COMPLETED)
    text = (travel.folder / document).read_text().replace("Whisper to", "Whisper softly to")
    travel.sign(travel.write(document, text))
    run, asked, ended = await again(travel, document, [READ, SAID], RunOptions(reuse=first), who)
    assert ended.status is Status.COMPLETED
    then, now = await travel.effects(first), await travel.effects(run)
    # The second turn says the same as before, but after another beginning.
    assert now["thread/turn[2]/model"].request == then["thread/turn[2]/model"].request
    assert [now[f"thread/turn[{turn}]/model"].by for turn in (1, 2)] == ["", ""]


async def test_a_fork_asks_for_itself(travel: Travel) -> None:
    travel.write("p.yaml", PIPELINE % "Sum")
    first, _ = await travel.run("p.yaml", {}, SCRIPT)
    second, _, _ = await again(travel, "p.yaml", [], RunOptions(reuse=first))
    async with travel.runtime(SCRIPT) as runtime:
        made = await fork(runtime, second, "2", Changes())
        await runtime.drive(made.run)
        assert len(asked_of(runtime)) == 2


@pytest.mark.parametrize("other", ["q.yaml", "a.playbook.md"])
async def test_a_run_of_another_document_is_refused(travel: Travel, other: str) -> None:
    travel.write("p.yaml", PIPELINE % "Sum")
    travel.write("q.yaml", (PIPELINE % "Sum").replace("pipeline: p", "pipeline: q"))
    travel.write("a.playbook.md", PLAYBOOK)
    first, _ = await travel.run("p.yaml", {}, SCRIPT)
    with pytest.raises(CannotStart, match="nothing of it can be reused"):
        await again(travel, other, SCRIPT, RunOptions(reuse=first))
    with pytest.raises(NoSuchRun, match="no reply can be reused"):
        await again(travel, other, SCRIPT, RunOptions(reuse="last"))
    async with travel.runtime() as runtime:
        assert len(await runtime.store.list()) == 1


async def test_a_renamed_and_a_moved_document_is_the_same(travel: Travel) -> None:
    travel.write("p.yaml", PIPELINE % "Sum")
    first, _ = await travel.run("p.yaml", {}, SCRIPT)
    travel.write("p.yaml", (PIPELINE % "Sum").replace("pipeline: p", "pipeline: renamed"))
    assert (await again(travel, "p.yaml", [], RunOptions(reuse=first)))[1] == []
    travel.write("sub/moved.yaml", PIPELINE % "Sum")
    assert (await again(travel, "sub/moved.yaml", [], RunOptions(reuse=first)))[1] == []


async def test_a_run_that_others_wrote_or_changed_is_refused(travel: Travel, tmp_path: Path) -> None:
    travel.write("p.yaml", PIPELINE % "Sum")
    first, _ = await travel.run("p.yaml", {}, SCRIPT)
    async with travel.runtime() as runtime:
        file = tmp_path / "run.jsonl"
        write_export(await export_lines(runtime, first), file)
    database = sqlite3.connect(travel.folder / ".quire" / "quire.db")
    database.execute("UPDATE journal SET value = replace(value, 'one', 'evil') WHERE path = '1/model'")
    database.commit()
    database.close()
    with pytest.raises(Refused, match=f"run {first} is not as you left it, .*: nothing of it can be reused"):
        await again(travel, "p.yaml", SCRIPT, RunOptions(reuse=first))
    other = Travel(tmp_path / "elsewhere" / "work")
    other.write("p.yaml", PIPELINE % "Sum")
    async with other.runtime() as runtime:
        imported = await import_run(runtime, read_export(file))
    with pytest.raises(Refused, match="imported, and its replies came from elsewhere"):
        await again(other, "p.yaml", SCRIPT, RunOptions(reuse=imported))
    with pytest.raises(NoSuchRun):
        await again(other, "p.yaml", SCRIPT, RunOptions(reuse="last"))


async def test_a_run_that_was_changed_meanwhile_gives_nothing_more(travel: Travel) -> None:
    travel.write("p.yaml", PIPELINE % "Sum")
    first, _ = await travel.run("p.yaml", {}, SCRIPT)
    run, _, _ = await again(travel, "p.yaml", [], RunOptions(reuse=first, breakpoints=("1",)))
    database = sqlite3.connect(travel.folder / ".quire" / "quire.db")
    database.execute("UPDATE journal SET value = replace(value, 'two', 'evil') WHERE path = '2/model'")
    database.commit()
    database.close()
    async with travel.runtime([SCRIPT[1], SCRIPT[2]]) as runtime:
        ended = await runtime.drive(run)
        assert asked_of(runtime) == ["Second.", "Sum of one and two."]
    assert ended.status is Status.COMPLETED
    assert "is not as you left it" in (await told_of(travel, run))[0]


async def test_programs_can_reuse_too(travel: Travel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_HOME", travel.environ["QUIRE_HOME"])
    travel.write("p.yaml", PIPELINE % "Sum")
    first = await quire.run(travel.folder / "p.yaml", model=ScriptedModel(list(SCRIPT)), workspace=travel.folder)
    silent = ScriptedModel([])
    second = await quire.run(travel.folder / "p.yaml", model=silent, workspace=travel.folder, reuse=first.run)
    assert (second.output, silent.calls, second.cost) == (first.output, [], 0.0)
    with pytest.raises(NoSuchRun):
        await quire.run(travel.folder / "p.yaml", model=silent, workspace=travel.folder, reuse="nothing")
