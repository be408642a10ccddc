"""Forks: what was recorded before a step is taken over to the letter, the rest is asked for anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.travel import DIRECTIVE_SCRIPT, PIPELINE_SCRIPT, Travel, use

from quire.engine.records import Status
from quire.errors import BadInputs, CannotStart, QuireError, Refused, RunState
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.export import export_lines, write_export
from quire.runs.fork import Changes, fork
from quire.runs.imports import import_run, read_export
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.stores import open_store
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace


async def forked(
    travel: Travel, run: str, step: str, script: list[Value], changes: Changes | None = None
) -> tuple[str, list[str], Value]:
    """The new run, the prompts that its model got, and its result."""
    async with travel.runtime(script) as runtime:
        made = await fork(runtime, run, step, changes or Changes())
        ended = await runtime.drive(made.run)
        assert ended.status is Status.COMPLETED, ended.failure
        model = runtime.models.given
        assert isinstance(model, ScriptedModel)
        return made.run, [call.messages[-1].content for call in model.calls], ended.result


@pytest.mark.parametrize(
    ("step", "asked"),
    [
        ("1", ["The gist of", "Deepen", "Shorten", "All of it"]),
        ("4", ["Deepen", "Shorten", "All of it"]),
        ("4a", ["Deepen", "Shorten", "All of it"]),
        ("4b", ["Shorten", "All of it"]),
        ("5", ["All of it"]),
        ("6", ["All of it"]),
    ],
)
async def test_a_playbook_goes_on_from_a_step(travel: Travel, step: str, asked: list[str]) -> None:
    run = await travel.everything()
    before = await travel.effects(run)
    replies: list[Value] = [{"contains": "gist of", "reply": '{"gist": "rust"}'}, {"default": "new"}]
    async with travel.runtime(replies) as runtime:
        made = await fork(runtime, run, step, Changes())
        ended = await runtime.drive(made.run)
        while ended.status in (Status.PAUSED, Status.AWAITING_INPUT):
            if ended.status is Status.AWAITING_INPUT:
                await runtime.answer(made.run, None, "yes")
            ended = await runtime.drive(made.run)
        model = runtime.models.given
        assert isinstance(model, ScriptedModel)
        assert all(want in call.messages[-1].content for call, want in zip(model.calls, asked, strict=True))
        assert ended.status is Status.COMPLETED
        row = await runtime.row(made.run)
    assert row.pins["origin"] == {"run": run, "step": step, "path": dict(PATHS)[step]}
    after = await travel.effects(made.run)
    assert await travel.effects(run) == before
    taken = {path for path in before if path in after and after[path] == before[path]}
    assert taken == {path for path in before if _earlier(path, dict(PATHS)[step])}


PATHS = [("1", "1"), ("4", "4"), ("4a", "4/case[1]/1"), ("4b", "4/case[1]/2"), ("5", "5"), ("6", "6")]


def _earlier(path: str, step: str) -> bool:
    """By hand, for this document: one digit for a step, and `4/case[1]/n` below the fourth."""
    top, inner = int(path[0]), int(path.split("]/")[1][0]) if "]/" in path else 0
    wanted, wanted_inner = int(step[0]), int(step.split("]/")[1]) if "]/" in step else 0
    return top < wanted or (top == wanted and 0 < inner < wanted_inner)


async def test_values_that_are_set_hold_from_the_step_on(travel: Travel) -> None:
    run = await travel.everything()
    new, prompts, result = await forked(travel, run, "6", ["END"], Changes({"topic": "speed again", "twice": "7"}))
    assert prompts == ["All of it, 7 times, about speed again."]
    assert isinstance(result, dict) and result["named"]["twice"] == "7"
    effects = await travel.effects(new)
    assert effects["5/break"].value == {"topic": "speed again", "twice": "7"}
    assert effects["2/break"].value == {"topic": "safety"}


async def test_before_the_first_step_a_value_is_an_input(travel: Travel) -> None:
    run, _ = await travel.run("board.yaml", {"papers": ["one", "two"]}, PIPELINE_SCRIPT)
    async with travel.runtime() as runtime:
        made = await fork(runtime, run, "1", Changes({"papers": ["three"]}))
        assert (await runtime.row(made.run)).pins["inputs"] == {"papers": ["three"]}
        with pytest.raises(BadInputs, match=r"no input tpic \(did you mean topic\?\)"):
            await fork(runtime, await travel.everything(), "1", Changes({"tpic": "x"}))


async def test_a_pipeline_goes_on_between_its_steps(travel: Travel) -> None:
    run = await travel.board()
    new, prompts, result = await forked(travel, run, "4", list(PIPELINE_SCRIPT), Changes({"loud": ["x!"]}))
    assert sorted(prompts) == [
        'Sum up {"found": {"best": "two"}, "errors": {"lost": "gone"}} and 4 for Bo.',
        'Which of ["x!"] is best?',
        'Which of ["x!"] is lost?',
    ]
    assert isinstance(result, dict) and result["stores"]["marks"] == [{"grade": "good"}, {"grade": "poor"}]
    before, after = await travel.effects(run), await travel.effects(new)
    kept = {path for path in before if int(path[0]) < 4}
    assert {path: after[path] for path in kept} == {path: before[path] for path in kept}


async def test_a_directive_goes_on_from_a_turn(travel: Travel) -> None:
    run = await travel.parent()
    script: list[Value] = [DIRECTIVE_SCRIPT[0], use(("directive_return", {"said": "hi again"}))]
    new, prompts, result = await forked(travel, run, "turn 3", script, Changes({"note": "be kind"}))
    assert isinstance(result, dict) and result["output"] == {"said": "hi again"}
    assert prompts == ["A person adds:\nnote: be kind"]
    before, after = await travel.effects(run), await travel.effects(new)
    kept = [path for path in before if "turn[3]" not in path and "turn[4]" not in path]
    assert len(kept) == 11 and {path: after[path] for path in kept} == {path: before[path] for path in kept}


async def test_what_is_taken_over_costs_nothing_again_and_is_told_again(travel: Travel) -> None:
    run = await travel.everything()
    new, _, _ = await forked(travel, run, "6", ["END"])
    async with travel.runtime() as runtime:
        assert ((await runtime.row(run)).cost, (await runtime.row(new)).cost) == (0.25, 0.0)
        events = await runtime.store.events(new)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert {event.run for event in events} == {new}
    told = [(event.type, event.path) for event in events]
    assert told.count(("step_completed", "2")) == 1
    at = told.index(("run_forked", ""))
    assert all(path.split("/")[0] < "6" for _, path in told[:at])
    assert told[at + 1 : at + 3] == [("run_started", ""), ("step_started", "6")]


async def test_another_model_is_asked_for_whatever_a_request_names(travel: Travel) -> None:
    """The requests before go on naming theirs, so that their records still fit."""
    run = await travel.parent()
    travel.write("replies.json", '[{"tool_calls": [{"name": "directive_return", "input": {"said": "other"}}]}]')
    store = open_store(travel.folder / ".quire" / "quire.db", durability="process")
    runtime = Runtime(load_settings(Workspace(travel.folder), travel.environ), store, environ=travel.environ)
    try:
        spec = f"script:{travel.folder / 'replies.json'}"
        made = await fork(runtime, run, "turn 4", Changes(model=spec))
        ended = await runtime.drive(made.run)
        assert isinstance(ended.result, dict) and ended.result["output"] == {"said": "other"}
        assert (await runtime.row(made.run)).pins["model"] == spec
    finally:
        await runtime.close()


@pytest.mark.parametrize(
    ("step", "sets", "error", "message"),
    [
        ("9", {}, CannotStart, "unknown step 9: the steps are 1, 2, 3, 4, 4a, 4b, 4c, 5, 6"),
        ("4d", {}, CannotStart, "unknown step 4d"),
        ("4c", {}, RunState, "has not come to step 4c"),
        ("4a", {"gist": "x"}, RunState, "first of its branch"),
        ("6", {"tpoic": "x"}, BadInputs, r"never mentions tpoic \(did you mean topic\?\)"),
    ],
)
async def test_a_place_that_cannot_be_forked_from(
    travel: Travel, step: str, sets: dict[str, Value], error: type[QuireError], message: str
) -> None:
    run = await travel.everything()
    async with travel.runtime() as runtime:
        with pytest.raises(error, match=message):
            await fork(runtime, run, step, Changes(sets))
        assert len(await runtime.store.list()) == 1


async def test_a_name_that_a_pipeline_never_mentions(travel: Travel) -> None:
    run = await travel.board()
    async with travel.runtime() as runtime:
        with pytest.raises(BadInputs, match="--set papres: the document never mentions papres"):
            await fork(runtime, run, "3", Changes({"papres": []}))
        assert len(await runtime.store.list()) == 1


async def test_a_step_that_was_never_reached(travel: Travel) -> None:
    run, _ = await travel.run("board.yaml", {"papers": ["one"]}, PIPELINE_SCRIPT)
    async with travel.runtime() as runtime:
        with pytest.raises(RunState, match="has not come to step 3"):
            await fork(runtime, run, "3", Changes())
        with pytest.raises(CannotStart, match="inside of step 3"):
            await fork(runtime, run, "3/for_each", Changes())
        thread = await travel.parent()
        for turn in ("turn 5", "9"):
            with pytest.raises(RunState, match="has not come to turn"):
                await fork(runtime, thread, turn, Changes())
        with pytest.raises(CannotStart, match="is not a turn of a directive"):
            await fork(runtime, thread, "first", Changes())


async def test_an_expired_run_is_forked_where_it_stood(travel: Travel) -> None:
    options = RunOptions(breakpoints=("2",))
    travel.write("quire.toml", '[runs]\nexpiry = "1s"\n')
    given: dict[str, Value] = {"topic": "speed", "depth": "quick"}
    run, ended = await travel.run("everything.playbook.md", given, ['{"gist": "g"}'], options)
    assert ended.status is Status.PAUSED
    async with travel.runtime(["a", "b", "c"]) as runtime:
        store = open_store(
            travel.folder / ".quire" / "quire.db", now=lambda: runtime.clock.now() + 10, durability="process"
        )
        later = Runtime(runtime.settings, store, environ=travel.environ, model=ScriptedModel(["a", "b", "c"]))
        try:
            assert (await later.row(run)).status is Status.EXPIRED
            with pytest.raises(RunState, match="fork it instead"):
                await later.drive(run)
            made = await fork(later, run, "3", Changes())
            assert (await later.drive(made.run)).status is Status.AWAITING_INPUT
        finally:
            await later.close()


async def test_an_imported_run_brings_no_grants_and_no_model(travel: Travel, tmp_path: Path) -> None:
    run, _ = await travel.run(
        "everything.playbook.md",
        {"topic": "t", "depth": "quick"},
        ['{"gist": "g"}', "a", "b", "c"],
        RunOptions(allow=("shell",), unattended=True),
    )
    async with travel.runtime() as runtime:
        write_export(await export_lines(runtime, run), tmp_path / "run.jsonl")
    other = Travel(tmp_path / "other" / "work")
    async with other.runtime(["END"]) as runtime:
        await import_run(runtime, read_export(tmp_path / "run.jsonl"))
        made = await fork(runtime, run, "6", Changes())
        pins = (await runtime.row(made.run)).pins
        assert (pins["allow"], pins["unattended"], pins["imported"]) == ([], False, {})
        assert not any("bash" in str(grant) for grant in pins["grants"] or [])  # type: ignore[union-attr]
        assert (await runtime.drive(made.run)).status is Status.COMPLETED


async def test_an_imported_directive_goes_on_only_where_its_text_is_trusted(travel: Travel, tmp_path: Path) -> None:
    run = await travel.parent()
    async with travel.runtime() as runtime:
        write_export(await export_lines(runtime, run), tmp_path / "run.jsonl")
    other = Travel(tmp_path / "other" / "work")
    script: list[Value] = [use(("directive_return", {"said": "here"}))]
    async with other.runtime(script) as runtime:
        await import_run(runtime, read_export(tmp_path / "run.jsonl"))
        with pytest.raises(Refused, match="differs here"):
            await fork(runtime, run, "turn 4", Changes())
    same = (travel.folder / ".ai/directives/demo/parent.md").read_text()
    other.write(".ai/directives/demo/parent.md", same)
    async with other.runtime(script) as runtime:
        with pytest.raises(Refused):  # signed by a key that nobody trusts here
            await fork(runtime, run, "turn 4", Changes())


def test_the_documents_here_are_in_order(travel: Travel) -> None:
    for name in ("everything.playbook.md", "board.yaml"):
        assert not load(travel.folder / name).errors
