"""Tools for what comes after a call: answering, resuming, reading the whole inbox; and arguments that do not exist."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from tests.mcp_server.serving import MODES, NAME, Serving, envelope, text, write

from quire.engine.records import Batch, Letter, NewRun, Status
from quire.models.scripted import ScriptedModel

Serve = Callable[..., Serving]
both = pytest.mark.parametrize("mode", MODES)

AGENT = "pipeline: agent\nsteps:\n  - transform: {value: '1', output: one}\n  - agent: {prompt: 'Say {ctx.one}.'}\n"


@both
async def test_a_client_answers_by_a_tool_if_the_user_says_so(serve: Serve, mode: str) -> None:
    """security N4: questions for a text or a choice, and never a yes or no."""
    serving = serve(answers=True)
    async with serving.client(mode) as client:
        waiting = await client.call_tool("pipeline__approve", {})
        run = envelope(waiting)["data"]["run_id"]
        for value in ("yes", "no", "maybe"):
            refused = await client.call_tool("pipeline_answer", {"run_id": run, "answer": value})
            assert refused.is_error and "asks a person for a yes or no" in text(refused)
        await serving.runtime.answer(run, None, "yes")
        asks_again = await client.call_tool("pipeline_resume", {"run_id": run})
        assert [one["prompt"] for one in envelope(asks_again)["data"]["questions"]] == ["Which?"]
        step = envelope(asks_again)["data"]["questions"][0]["step"]
        wrong = await client.call_tool("pipeline_answer", {"run_id": run, "answer": "c"})
        assert wrong.is_error and "answer" in text(wrong)
        done = await client.call_tool("pipeline_answer", {"run_id": run, "answer": "a", "step": step})
        assert text(done) == "yes a"
        late = await client.call_tool("pipeline_answer", {"run_id": run, "answer": "a"})
        assert late.is_error and "asks nothing" in text(late)
    assert [one.by for one in await serving.runtime.store.effects(run)] == ["python", f"mcp:{NAME} (tool)"]


@both
async def test_no_text_for_models_names_a_tool_that_answers(serve: Serve, mode: str) -> None:
    """security N4: over MCP the model answered the human gate, and was told how."""
    serving = serve()
    async with serving.client(mode) as client:
        tools = await client.list_tools()
        waiting = await client.call_tool("pipeline__approve", {})
        result = await client.call_tool("pipeline_result", {"run_id": envelope(waiting)["data"]["run_id"]})
        for said in (tools, waiting, result, serving.host.server.instructions):
            assert "pipeline_answer" not in str(said)
        with pytest.raises(MCPError, match="unknown tool pipeline_answer"):
            await client.call_tool("pipeline_answer", {"run_id": "x", "answer": "yes"})


@both
async def test_a_client_resumes_a_run_that_failed(serve: Serve, folder: Path, mode: str) -> None:
    write(folder, agent=AGENT)
    serving = serve(model=ScriptedModel([{"error": "overloaded"}, {"reply": "One."}]))
    async with serving.client(mode) as client:
        failed = await client.call_tool("pipeline__agent", {})
        run = envelope(failed)["data"]["run_id"]
        assert envelope(failed)["status"] == "error"
        done = await client.call_tool("pipeline_resume", {"run_id": run})
        assert (text(done), envelope(done)["data"]["run_id"]) == ("One.", run)
        assert text(await client.call_tool("pipeline_resume", {"run_id": run})) == "One."


@both
async def test_resuming_a_run_that_asks_asks_again(serve: Serve, mode: str) -> None:
    answers = iter([None, "yes", "a"])
    async with serve().client(mode, lambda message, field: next(answers)) as client:
        run = envelope(await client.call_tool("pipeline__approve", {}))["data"]["run_id"]
        assert envelope(await client.call_tool("pipeline_result", {"run_id": run}))["status"] == "started"
        resumed = await client.call_tool("pipeline_resume", {"run_id": run})
        if mode == "legacy":  # nothing is driven, so nobody is asked while the call is open
            assert envelope(resumed)["data"]["questions"][0]["prompt"] == "Go?"
        else:
            assert text(resumed) == "yes a"


@pytest.mark.parametrize("tool", ["pipeline_resume", "pipeline_answer", "pipeline_result"])
async def test_runs_of_the_user_are_out_of_reach(serve: Serve, tool: str) -> None:
    serving = serve(answers=True)
    await serving.runtime.store.create(NewRun("mine", "mine", "pipeline", "x.yaml", 1.0, {}, {}))
    arguments = {"run_id": "mine", **({"answer": "yes"} if tool == "pipeline_answer" else {})}
    async with serving.client("auto") as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error and "unknown run mine that was launched from here" in text(result)


async def test_the_inbox_is_read_page_by_page(serve: Serve) -> None:
    serving = serve()
    store = serving.runtime.store
    await store.create(NewRun("r", "r", "pipeline", "x.yaml", 1.0, {}, {}))
    lease = await store.acquire("r")
    letters = tuple(Letter(f"mcp:{NAME}", "r", f"letter {number}", float(number)) for number in range(250))
    await store.write(lease, Batch(letters=letters))
    await store.release(lease)
    pages: list[list[str]] = []
    async with serving.client("auto") as client:
        arguments: dict[str, Any] = {}
        while True:
            result = await client.call_tool("pipeline_inbox", arguments)
            page = envelope(result)
            pages.insert(0, [letter["text"] for letter in page["letters"]])
            if not page["earlier"]:
                break
            assert text(result).endswith(f"{page['earlier']} earlier: call again with before={page['earlier']}")
            arguments = {"before": page["earlier"]}
        few = envelope(await client.call_tool("pipeline_inbox", {"limit": 2, "before": 10}))
    assert [len(page) for page in pages] == [50, 100, 100]
    assert [one for page in pages for one in page] == [letter.text for letter in letters]
    assert [letter["text"] for letter in few["letters"]] == ["letter 8", "letter 9"] and few["earlier"] == 8


WRONG = [
    ("run_pipeline", {"name": "greet", "inputs": {"name": "Ann"}}, "has no argument 'inputs': did you mean input? it"),
    ("run_pipeline_async", {"name": "greet", "zzz": 1}, "has no argument 'zzz': it takes name and input"),
    ("run_pipeline_inline", {"definitoin": "x"}, "did you mean definition?"),
    ("pipeline_result", {"run": "x"}, "has no argument 'run': it takes run_id"),
    ("pipeline_resume", {}, "pipeline_resume needs run_id"),
    ("pipeline_answer", {"run_id": "x"}, "pipeline_answer needs answer"),
    ("pipeline_answer", {"run_id": "x", "answer": True}, "answer must be a text"),
    ("pipeline_inbox", {"limit": 0}, "limit must be a whole number, 1 or more"),
    ("pipeline_inbox", {"before": "x"}, "before must be a whole number, 0 or more"),
]


@pytest.mark.parametrize(("tool", "arguments", "said"), WRONG)
async def test_wrong_arguments_are_refused(serve: Serve, tool: str, arguments: dict[str, Any], said: str) -> None:
    """Nothing has run: an input under a wrong name would be lost."""
    serving = serve(inline=True, answers=True)
    async with serving.client("auto") as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error and said in text(result)
    assert not await serving.runtime.store.list(status=Status.COMPLETED)
