"""What a client gets: results, progress, late results, refusals. The official client in both generations."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from tests.given import given
from tests.mcp_server.serving import GREET, MODES, NAME, THINK, TOPIC, Gated, Serving, envelope, text, write

from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import NewRun, Status
from quire.errors import Parked
from quire.formats.grammars import GRAMMARS
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions

Serve = Callable[..., Serving]
RESOURCES = [f"quire://grammar/{one.key}" for one in GRAMMARS]
INLINE = "pipeline: x\nsteps:\n  - tool: {name: TOOL, args: {path: quire.toml}}\n"

both = pytest.mark.parametrize("mode", MODES)


@both
async def test_a_pipeline_is_a_tool_and_its_envelope_the_result(serve: Serve, mode: str) -> None:
    async with serve().client(mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        result = await client.call_tool("pipeline__greet", {"name": "Ann", "unknown": [1]})
    assert tools["pipeline__greet"].description == "Greets somebody."
    assert {"run_pipeline", "run_pipeline_async", "pipeline_result", "pipeline_inbox"} < set(tools)
    assert not any("inline" in name for name in tools)
    assert (text(result), result.is_error) == ("Hello, Ann!", False)
    found = envelope(result)
    run = found["data"].pop("run_id")
    stores = {"name": "Ann", "unknown": [1], "text": "Hello, Ann", "said": "Hello, Ann!"}
    assert run and found == {"status": "ok", "data": {"output": "Hello, Ann!", "named_stores": stores}}


@both
async def test_a_run_that_waits_for_a_service_is_left_to_a_process_of_its_own(
    serve: Serve, folder: Path, mode: str
) -> None:
    class Busy(Gated):
        async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
            wait = Parked("later", transient=True)
            wait.wake_at = time.time() + 600
            raise wait

    write(folder, think=THINK)
    serving = serve(model=Busy())
    async with serving.client(mode) as client:
        started = envelope(await client.call_tool("pipeline__think", {}))
        (run,) = serving.handed_over
        assert started == {"status": "started", "data": {"run_id": run}}
        assert envelope(await client.call_tool("pipeline_result", {"run_id": run})) == started
        assert envelope(await client.call_tool("pipeline_resume", {"run_id": run})) == started
    assert serving.handed_over == [run] * 2


@both
async def test_a_call_with_a_key_is_one_run(serve: Serve, mode: str) -> None:
    meta: Any = {"idempotency_key": "k"}
    async with serve().client(mode) as client:
        first = await client.call_tool("pipeline__greet", {"name": "Ann"}, meta=meta)
        again = await client.call_tool("pipeline__greet", {"name": "Ann"}, meta=meta)
        launched = await client.call_tool("run_pipeline_async", {"name": "greet", "input": {"name": "Ann"}}, meta=meta)
        other = await client.call_tool("pipeline__greet", {"name": "Bob"}, meta=meta)
    assert envelope(again) == envelope(first)
    assert envelope(launched) == {"status": "started", "data": {"run_id": envelope(first)["data"]["run_id"]}}
    assert other.is_error and "the key k was used for another request" in text(other)


@both
async def test_declared_inputs_are_checked_before_a_run_starts(serve: Serve, folder: Path, mode: str) -> None:
    inputs = "{n: {type: number, minimum: 1}, tone: {type: enum, values: [warm, dry], default: dry}}"
    step = "transform: {value: '[n, tone]'}"
    write(folder, count=f"pipeline: count\ndialect: quire\ninput: {inputs}\nsteps:\n  - {step}\n")
    async with serve().client(mode) as client:
        result = await client.call_tool("pipeline__count", {"n": 2})
        wrong = await client.call_tool("pipeline__count", {"n": 0, "tone": "x"})
        missing = await client.call_tool("pipeline__count", {"tone": "x"})
        named = await client.call_tool("run_pipeline", {"name": "count", "input": {"m": 1}})
    assert envelope(result)["data"]["output"] == [2, "dry"]
    assert wrong.is_error and "input n must be at least 1, not 0" in text(wrong) and "input tone" in text(wrong)
    assert "missing input n (number (at least 1))" in text(missing) and "input tone must be" in text(missing)
    assert named.is_error and "unknown input m" in text(named) and "missing input n" in text(named)


@both
async def test_a_playbook_is_a_tool(serve: Serve, folder: Path, mode: str) -> None:
    page = folder / "page.playbook.md"
    page.write_text(TOPIC.replace('@elicit(input, "More about {{topic}}?")', "Say {{topic}}.\n\n@output(word)"))
    serving = serve(model=ScriptedModel(["tea time"]), documents=[page])
    async with serving.client(mode) as client:
        result = await client.call_tool("playbook__page", {"topic": "tea", "length": 2})
        refused = await client.call_tool("playbook__page", {"topic": "tea", "colour": "green"})
    assert text(result) == "tea time"
    assert envelope(result)["data"]["named_stores"] == {"word": "tea time"}
    assert refused.is_error and "unknown input colour" in text(refused)


@both
async def test_what_goes_wrong_is_an_error_in_the_envelope(serve: Serve, folder: Path, mode: str) -> None:
    write(folder, fails="pipeline: fails\nsteps:\n  - transform: {value: ctx.x.y}\n")
    serving = serve()
    async with serving.client(mode) as client:
        missing = await client.call_tool("pipeline__greet", {"mark": "?"})
        failed = await client.call_tool("pipeline__fails", {"x": 1})
        unknown = await client.call_tool("run_pipeline", {"name": "nobody"})
        with pytest.raises(MCPError, match="unknown tool pipeline__nobody"):
            await client.call_tool("pipeline__nobody", {})
        with pytest.raises(MCPError, match="unknown tool run_pipeline_inline"):
            await client.call_tool("run_pipeline_inline", {"definition": INLINE})
    assert envelope(missing) == {"status": "error", "data": {"error": "missing input: name"}}
    assert failed.is_error and envelope(failed)["data"]["run_id"] in text(failed)
    assert unknown.is_error and "not registered" in text(unknown)
    assert [row.status for row in await serving.runtime.store.list()] == [Status.FAILED]


async def test_values_that_no_run_can_hold_are_refused(serve: Serve) -> None:
    deep: Any = "x"
    for _ in range(250):
        deep = [deep]
    serving = serve()
    async with serving.client("auto") as client:
        results = [
            await client.call_tool("pipeline__greet", {"name": deep}),
            await client.call_tool("run_pipeline", {"name": "greet", "input": {"name": deep}}),
        ]
    assert all(result.is_error and "the input cannot be used" in text(result) for result in results)
    assert await serving.runtime.store.list() == []


@both
async def test_steps_are_told_as_progress_and_messages(serve: Serve, mode: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []
    logged: list[Any] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        logged.append(params.data)

    async with serve().client(mode, logging_callback=log, log_level="info") as client:
        result = await client.call_tool("pipeline__greet", {"name": "Ann"}, progress_callback=hear)
    assert heard == [
        (0.5, 2.0, "step 1 (text) started"),
        (1.0, 2.0, "step 1 (text) completed"),
        (1.5, 2.0, "step 2 (said) started"),
        (2.0, 2.0, "step 2 (said) completed"),
    ]
    assert [event["event"] for event in logged] == ["pipeline_step_started", "pipeline_step_completed"] * 2
    assert {event["run_id"] for event in logged} == {envelope(result)["data"]["run_id"]}


async def test_a_client_that_wants_no_messages_gets_none(serve: Serve) -> None:
    logged: list[Any] = []

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        logged.append(params.data)

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        pass

    async with serve().client("legacy", logging_callback=log) as client:
        await client.session.send_request(
            types.SetLevelRequest(params=types.SetLevelRequestParams(level="error")), types.EmptyResult
        )
        await client.call_tool("pipeline__greet", {"name": "Ann"}, progress_callback=hear)
        assert logged == []
        await client.session.send_request(
            types.SetLevelRequest(params=types.SetLevelRequestParams(level="info")), types.EmptyResult
        )
        await client.call_tool("pipeline__greet", {"name": "Ann"})
    assert len(logged) == 4


@both
async def test_an_async_launch_gives_its_result_later(serve: Serve, mode: str) -> None:
    serving = serve()
    async with serving.client(mode) as client:
        started = envelope(await client.call_tool("run_pipeline_async", {"name": "greet", "input": {"name": "Bo"}}))
        run = started["data"]["run_id"]
        assert started == {"status": "started", "data": {"run_id": run}}
        await serving.host.calls.close()
        result = await client.call_tool("pipeline_result", {"run_id": run})
        (letter,) = envelope(await client.call_tool("pipeline_inbox", {}))["letters"]
        *_, resource = (await client.list_resources()).resources
        (page,) = (await client.read_resource(resource.uri)).contents
    assert (text(result), envelope(result)["data"]["run_id"]) == ("Hello, Bo!", run)
    assert letter["run_id"] == run and letter["text"].startswith(f"[pipeline] run {run} ")
    assert isinstance(page, types.TextResourceContents)
    assert json.loads(page.text)["data"]["output"] == "Hello, Bo!"
    assert [one.run for one in await serving.runtime.store.letters(f"mcp:{NAME}")] == [run]


async def test_many_runs_of_the_user_hide_no_launched_run(serve: Serve) -> None:
    serving = serve()
    async with serving.client(MODES[0]) as client:
        started = envelope(await client.call_tool("run_pipeline_async", {"name": "greet", "input": {"name": "Bo"}}))
        await serving.host.calls.close()
        for number in range(60):
            await serving.runtime.store.create(
                NewRun(f"mine-{number}", "Mine", "pipeline", "mine", 9e9 + number, {}, {})
            )
        listed = [one.uri for one in (await client.list_resources()).resources]
    assert listed == [*RESOURCES, f"quire://runs/{started['data']['run_id']}"]


@both
async def test_runs_of_others_are_out_of_reach(serve: Serve, folder: Path, mode: str) -> None:
    serving = serve()
    mine = await serving.runtime.start(load(folder / "pipelines" / "greet.yaml"), {"name": "me"}, RunOptions())
    async with serving.client(mode) as client:
        result = await client.call_tool("pipeline_result", {"run_id": mine})
        assert [one.uri for one in (await client.list_resources()).resources] == RESOURCES
        with pytest.raises(MCPError, match="unknown run"):
            await client.read_resource(f"quire://runs/{mine}")
    assert result.is_error and "unknown run" in text(result)


@both
async def test_inline_launches_go_through_the_gate(serve: Serve, mode: str) -> None:
    serving = serve(inline=True)
    async with serving.client(mode) as client:
        fine = await client.call_tool("run_pipeline_inline", {"definition": INLINE.replace("TOOL", "file__read")})
        unknown = await client.call_tool("run_pipeline_inline", {"definition": INLINE.replace("TOOL", "nope")})
        nested = await client.call_tool("run_pipeline_inline", {"definition": INLINE.replace("TOOL", "run_pipeline")})
        # reliability S5: it exists, of the wrong type.
        parsed = await client.call_tool("run_pipeline_inline", {"definition": {"pipeline": "x", "steps": []}})
    assert envelope(fine)["status"] == "ok"
    assert 'the tool "nope" does not resolve' in text(unknown) and "refused; nothing was started" in text(unknown)
    assert "launches or delegates" in text(nested)
    assert "definition must be one text, a pipeline written in YAML or JSON" in text(parsed)
    assert len(await serving.runtime.store.list()) == 1


@both
async def test_the_list_is_read_anew(serve: Serve, folder: Path, mode: str) -> None:
    serving = serve()
    async with serving.client(mode, cache=None) as client:
        before = {tool.name for tool in (await client.list_tools()).tools}
        write(folder, new=GREET.replace("pipeline: greet", "pipeline: new"), greet="pipeline: [")
        after = {tool.name for tool in (await client.list_tools()).tools}
        assert text(await client.call_tool("pipeline__new", {"name": "Ann"})) == "Hello, Ann!"
    assert (before - after, after - before) == ({"pipeline__greet"}, {"pipeline__new"})
    assert [report for report in serving.reports if "greet.yaml" in report]


@pytest.mark.parametrize("place", ["new.yaml", "new.yml", "below/new.yaml"])
async def test_older_clients_are_told_that_the_list_has_changed(serve: Serve, folder: Path, place: str) -> None:
    told = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with serve(watch_seconds=0.01).client("legacy", message_handler=hear) as client:
        assert client.server_capabilities.tools and client.server_capabilities.tools.list_changed
        await client.list_tools()
        given({f"pipelines/{place}": GREET.replace("pipeline: greet", "pipeline: new")}, folder)
        await asyncio.wait_for(told.wait(), 30)


async def test_newer_clients_are_told_if_they_listen(serve: Serve, folder: Path) -> None:
    async with serve(watch_seconds=0.01).client("auto") as client, client.listen(tools_list_changed=True) as events:
        write(folder, new=GREET.replace("pipeline: greet", "pipeline: new"))
        with anyio.fail_after(30):
            async for event in events:
                assert type(event).__name__ == "ToolsListChanged"
                break


@both
async def test_a_call_that_is_cancelled_stops_at_the_next_boundary(serve: Serve, folder: Path, mode: str) -> None:
    write(folder, think=THINK)
    model = Gated()
    serving = serve(model=model)
    async with serving.client(mode) as client:
        calling = asyncio.create_task(client.call_tool("pipeline__think", {}))
        await asyncio.wait_for(model.asked.wait(), 30)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        # The next request is read after the cancellation.
        await client.list_tools()
        model.go.set()
    (row,) = await serving.runtime.store.list()
    assert row.status is Status.PAUSED
    assert len(model.calls) == 1
    assert [one.path for one in await serving.runtime.store.effects(row.id)] == ["1/model"]
    await serving.runtime.drive(row.id)
    (letter,) = await serving.runtime.store.letters(f"mcp:{NAME}")
    assert len(model.calls) == 2 and letter.run == row.id


@pytest.mark.parametrize("at_once", [False, True])
async def test_what_nobody_waits_for_goes_on_when_the_server_ends(serve: Serve, folder: Path, at_once: bool) -> None:
    write(folder, think=THINK)
    model = Gated()
    serving = serve(model=model)
    async with serving.client("auto") as client:
        run = envelope(await client.call_tool("run_pipeline_async", {"name": "think"}))["data"]["run_id"]
        await asyncio.wait_for(model.asked.wait(), 30)
        if at_once:
            await serving.host.calls.stop()
        else:
            closing = asyncio.create_task(serving.host.calls.close())
            await asyncio.sleep(0)
            model.go.set()
            await closing
        stopped = envelope(await client.call_tool("pipeline_result", {"run_id": run}))
    assert serving.handed_over == [run]
    assert stopped["status"] == "cancelled" and f"quire resume {run}" in stopped["data"]["error"]
    assert len(model.calls) == 1
