"""Operations of the API as tools: the same entry behind both doors, with the rights of each door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.mcp_server.serving import MODES, NAME, Serving, envelope, text

from quire.engine.records import Status
from quire.mcp_server import launch_tools, server
from quire.operations import OPERATIONS

Serve = Callable[..., Serving]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [one for one in OPERATIONS if one.name in ("answer_question", "list_runs")]
    tools = {**launch_tools.TOOLS, **{one.name: replace(one, mcp=one.name) for one in both}}
    monkeypatch.setattr(launch_tools, "TOOLS", tools)
    monkeypatch.setattr(server, "TOOLS", tools)


@pytest.mark.usefixtures("offered")
@pytest.mark.parametrize("mode", MODES)
async def test_a_question_is_answered_through_the_entry_of_the_api(serve: Serve, mode: str) -> None:
    serving = serve()
    store = serving.runtime.store
    async with serving.client(mode) as client:
        run = envelope(await client.call_tool("pipeline__approve", {}))["data"]["run_id"]

        async def answer(value: str, **rest: object) -> Any:
            (question,) = await store.questions(run)
            arguments = {"run": run, "path": question.path, "hash": question.hash, "value": value, **rest}
            return await client.call_tool("answer_question", arguments)

        refused = await answer("yes")
        assert refused.is_error and "asks a person for a yes or no" in text(refused)
        await serving.runtime.answer(run, None, "yes")
        await client.call_tool("pipeline_resume", {"run_id": run})
        changed = await answer("a", hash="other")
        assert changed.is_error and "worded differently now" in text(changed)
        unfit = await answer("zzz")
        assert unfit.is_error
        odd = await answer("a", drvie=True)
        assert odd.is_error and "did you mean drive?" in text(odd)
        done = await answer("a")
        assert (done.is_error, done.structured_content["run"]) == (False, run)
        assert (await serving.runtime.row(run)).status is Status.COMPLETED
        odd = await client.call_tool("list_runs", {"status": ["finished"]})
        assert odd.is_error and text(odd).startswith('status/0: "finished" is not one of')
        listed = (await client.call_tool("list_runs", {"limit": 50_000})).structured_content
        assert [(row["id"], row["status"]) for row in listed["items"]] == [(run, "completed")]
        hints = {
            tool.name: tool.annotations and tool.annotations.read_only_hint
            for tool in (await client.list_tools()).tools
        }
        assert (hints["list_runs"], hints["answer_question"]) == (True, None)
    assert [one.by for one in await store.effects(run)] == ["python", f"mcp:{NAME} (tool)"]
