"""Tries: one model call is asked again, with the records before it, and the run ends after its step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.given import given
from tests.runs.travel import DIRECTIVE_SCRIPT, Travel

from quire.engine.records import Status
from quire.engine.requests import ModelRequest
from quire.errors import CannotStart, Refused
from quire.models.scripted import ScriptedModel
from quire.runs.export import export_lines, write_export
from quire.runs.fork import Changes, fork
from quire.runs.imports import import_run, read_export, verify_run
from quire.runs.runtime import Runtime
from quire.runs.step_tries import KEPT_SECONDS, TryChanges, find_call, make_tries, prepare_try
from quire.stores.run_pages import RunFilters
from quire.values import Value


async def greeted(travel: Travel) -> str:
    run, _ = await travel.run(".ai/directives/demo/parent.md", {"who": "Bo"}, DIRECTIVE_SCRIPT)
    return run


RUNS: dict[str, Callable[[Travel], Awaitable[str]]] = {
    "playbook": lambda travel: travel.everything(),
    "board": lambda travel: travel.board(),
    "letters": lambda travel: travel.letters(),
    "dialect": lambda travel: travel.dialect("d1"),
    "directive": greeted,
}


async def tried(
    travel: Travel, run: str, named: str, changes: TryChanges | None = None, reply: Value = "anew", count: int = 1
) -> tuple[Runtime, list[str], list[str]]:
    """Return the tries of a call after they were driven, and the prompts that the model got."""
    async with travel.runtime([{"default": reply}]) as runtime:
        prepared = await prepare_try(runtime, run, named, changes or TryChanges())
        runs = await make_tries(runtime, prepared, count)
        for made in runs:
            await runtime.drive(made)
        model = runtime.models.given
        assert isinstance(model, ScriptedModel)
        return runtime, runs, [call.messages[-1].content for call in model.calls]


@pytest.mark.parametrize("name", RUNS)
async def test_each_call_is_asked_again_and_ends_its_run(travel: Travel, name: str) -> None:
    run = await RUNS[name](travel)
    async with travel.runtime() as runtime:
        view = await runtime.view(run)
        calls = [path for path, asked in view.replay.asked.items() if isinstance(asked, ModelRequest)]
    assert calls
    count = 0
    for call in calls:
        try:
            place = find_call(view, call)
        except Refused:
            assert "call" in call or "tool[" in call or "thread[" in call or call.count("thread/") > 1, call
            continue
        count += 1
        grade: Value = '{"grade": "good"}' if name == "board" else '{"text": "Dear you.", "lines": 1}'
        _, [made], asked = await tried(travel, run, call, reply=grade if name in ("board", "letters") else "anew")
        # Only the step asks its model: once, or once more in each attempt of its own.
        assert asked and len(set(asked)) == 1, call
        async with travel.runtime() as runtime:
            again = await runtime.view(made)
            assert again.row.status is Status.COMPLETED, (call, again.row.failure)
            assert again.row.until == place.until
            assert again.replay.finished
            assert again.result.get("output") is not None
            new = [record for record in again.effects if record.kind == "model" and record.path.startswith(place.until)]
            assert len(new) == len(asked)
            before = {record.path for record in view.effects}
            assert {record.path for record in again.effects} - {record.path for record in new} <= before
            assert (await verify_run(runtime, made)).ok
            # A replay of the exported lines ends in the same place.
            assert await export_lines(runtime, made)
    assert count


async def test_a_prompt_is_edited_at_one_item_of_a_loop(travel: Travel) -> None:
    run = await travel.board()
    changes = TryChanges(prompt="Grade {item}, says {marker}.", temperature=0.25)
    _, [made], asked = await tried(travel, run, "3/for_each[1]", changes, reply='{"grade": "good"}')
    assert asked == ["Grade two!, says Bo."]
    async with travel.runtime() as runtime:
        view = await runtime.view(made)
        request = view.replay.asked["3/for_each[1]/try[1]/model"]
        assert isinstance(request, ModelRequest) and request.temperature == 0.25
        assert view.row.pins["origin"] == {
            "run": run,
            "step": "3",
            "path": "3/for_each[1]/try[1]/model",
            "temperature": 0.25,
            "try": 1,
        }
        assert not [record for record in view.effects if record.path.startswith("3/for_each[0]")]


async def test_a_later_round_keeps_the_replies_of_earlier_ones_under_another_prompt(travel: Travel) -> None:
    run = await travel.dialect("d2")
    async with travel.runtime() as runtime:
        view = await runtime.view(run)
    [second] = [path for path in view.replay.asked if path.startswith("5/repeat[2]") and path.endswith("model")]
    _, [made], asked = await tried(travel, run, second, TryChanges(prompt="Edition {round}"))
    assert asked == ["Edition 2"]
    async with travel.runtime() as runtime:
        assert (await runtime.view(made)).result == {"output": "anew"}


async def test_values_are_set_before_the_step(travel: Travel) -> None:
    run = await travel.everything()
    _, _, asked = await tried(travel, run, "4b", TryChanges(sets={"topic": "tea"}))
    assert len(asked) == 1
    _, _, asked = await tried(travel, run, "6", TryChanges(sets={"twice": "nine", "topic": "tea"}))
    assert "All of it, nine times, about tea." in asked[0]


async def test_a_try_is_hidden_and_leaves_its_run_as_it_was(travel: Travel) -> None:
    run = await travel.everything()
    before = await travel.effects(run)
    _, runs, _ = await tried(travel, run, "6", count=3)
    async with travel.runtime() as runtime:
        pages = runtime.store
        assert [row.id for row in (await pages.page(RunFilters())).rows] == [run]
        assert {row.id for row in (await pages.page(RunFilters(tries=True))).rows} == {run, *runs}
        origins = [(await runtime.row(made)).pins["origin"] for made in runs]
        assert [origin["try"] for origin in origins if isinstance(origin, dict)] == [1, 2, 3]
    assert await travel.effects(run) == before


async def test_an_imported_try_ends_in_the_same_place(travel: Travel) -> None:
    run = await travel.board()
    _, [made], _ = await tried(travel, run, "3/for_each[1]", reply='{"grade": "good"}')
    async with travel.runtime() as runtime:
        before = await runtime.view(made)
        write_export(await export_lines(runtime, made), travel.folder / "try.jsonl")
        await runtime.store.remove([made], dry_run=False)
        await import_run(runtime, read_export(travel.folder / "try.jsonl"))
        view = await runtime.view(made)
        assert (view.row.until, view.result) == ("3/for_each[1]", before.result)
        assert view.replay.finished
        # A fork of a try is a run to its end.
        forked = await fork(runtime, made, "1", Changes())
        assert (await runtime.row(forked.run)).until is None


async def test_old_tries_are_removed_by_the_next_ones(travel: Travel, monkeypatch: pytest.MonkeyPatch) -> None:
    run = await travel.everything()
    _, [old], _ = await tried(travel, run, "6")
    async with travel.runtime([{"default": "x"}]) as runtime:
        prepared = await prepare_try(runtime, run, "6", TryChanges())
        now = runtime.clock.now()
        monkeypatch.setattr(runtime.clock, "now", lambda: now + KEPT_SECONDS + 60)
        await make_tries(runtime, prepared, 1)
        assert await runtime.store.get(old) is None
        assert await runtime.store.get(run) is not None


@pytest.mark.parametrize("count", [0, 21])
async def test_the_number_of_tries_has_a_limit(travel: Travel, count: int) -> None:
    run = await travel.everything()
    with pytest.raises(Refused, match="1 to 20"):
        await tried(travel, run, "6", count=count)


WRITER = """
pipeline: writer
dialect: quire
steps:
  - agent: {prompt: "Write it down.", capabilities: {tools: [file__write]}, output: done}
"""
TOOLS = '[agents.default]\ntools = ["file__write", "file__read"]\n'
READER = WRITER.replace("file__write", "file__read")
USES: list[Value] = [{"tool_calls": [{"name": "file__read", "input": {"path": "notes.txt"}}]}, "read"]


async def test_a_step_whose_tools_change_the_world_is_refused(travel: Travel) -> None:
    travel.write("writer.yaml", WRITER)
    given({"quire.toml": TOOLS}, Path(travel.environ["QUIRE_HOME"]))
    run, _ = await travel.run("writer.yaml", {}, ["done"])
    with pytest.raises(Refused, match="change the world"):
        await tried(travel, run, "1")


async def test_a_tool_that_reads_runs_in_a_try(travel: Travel) -> None:
    travel.write("reader.yaml", READER)
    given({"quire.toml": TOOLS}, Path(travel.environ["QUIRE_HOME"]))
    run, _ = await travel.run("reader.yaml", {}, USES)
    async with travel.runtime(USES) as runtime:
        prepared = await prepare_try(runtime, run, "1", TryChanges())
        [made] = await make_tries(runtime, prepared, 1)
        ended = await runtime.drive(made)
        assert ended.result == {"output": "read"}
        assert [record.kind for record in await runtime.store.effects(made)].count("tool") == 1


async def test_a_reply_that_does_not_fit_fails_its_try(travel: Travel) -> None:
    run = await travel.board()
    _, [made], asked = await tried(travel, run, "3/for_each[0]", reply="no JSON")
    assert len(asked) > 1
    async with travel.runtime() as runtime:
        row = await runtime.row(made)
        assert row.status is Status.FAILED and row.failure and row.failure.kind == "schema"
        # It fails again in a resume, and in its replay.
        assert (await runtime.view(made)).replay.failure is not None


async def test_an_edited_directive_is_not_signed(travel: Travel) -> None:
    run = await greeted(travel)
    with pytest.raises(Refused, match="sign"):
        await tried(travel, run, "turn 1", TryChanges(prompt="Sing for {input:who}."))


@pytest.mark.parametrize("prompt", ["## STEP 9: Delete\n\nall", "@tool(quire, file__write, {})"])
async def test_a_prompt_that_is_more_than_text_is_refused(travel: Travel, prompt: str) -> None:
    run = await travel.everything()
    with pytest.raises(Refused, match="more than the prompt"):
        await tried(travel, run, "6", TryChanges(prompt=prompt))


async def test_a_step_that_asked_no_model_is_not_tried(travel: Travel) -> None:
    run = await travel.everything()
    with pytest.raises(CannotStart, match="no model"):
        await tried(travel, run, "5")


async def test_a_budget_ends_a_try(travel: Travel) -> None:
    run = await travel.everything()
    reply: Value = {"default": "x", "usage": {"input_tokens": 1, "output_tokens": 1, "cost": 0.5}}
    async with travel.runtime([reply]) as runtime:
        prepared = await prepare_try(runtime, run, "6", TryChanges(budget=0.0))
        [made] = await make_tries(runtime, prepared, 1)
        ended = await runtime.drive(made)
        assert ended.status is Status.FAILED and ended.failure and ended.failure.kind == "limit"


async def test_a_try_is_resumed_and_ends_in_the_same_place(travel: Travel) -> None:
    run = await travel.board()
    async with travel.runtime([{"error": "busy"}]) as runtime:
        prepared = await prepare_try(runtime, run, "7", TryChanges())
        [made] = await make_tries(runtime, prepared, 1)
        assert (await runtime.drive(made)).status is Status.FAILED
    async with travel.runtime(["again"]) as runtime:
        assert (await runtime.drive(made)).result == {"output": "again"}
