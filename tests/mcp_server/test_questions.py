"""A run that asks: through the client where it can, in the inbox otherwise, and never for somebody else's run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from tests.mcp_server.serving import GREET, MODES, NAME, TOPIC, Serving, envelope, text, write

from quire.engine.records import Question, Status
from quire.mcp_server.catalogue import Asked, answer_of, form, read_answers

Serve = Callable[..., Serving]
FAN = """
pipeline: fan
steps:
  - for_each:
      items: [x, y]
      on_error: abort
      do: {tool: {name: ask, args: {prompt: !expr "'About ' + item", type: input}}}
      collect: {transform: {value: pipe}}
"""

both = pytest.mark.parametrize("mode", MODES)


def question(**fields: Any) -> Question:
    known = {"kind": "input", "options": (), "default": None, **fields}
    return Question("r", "1/ask", "1", "Title", prompt="What?", hash="h", asked_at=0.0, **known)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"type": "string", "title": "Title"}),
        ({"default": "d"}, {"type": "string", "title": "Title", "default": "d"}),
        ({"kind": "confirm"}, {"type": "string", "title": "Title", "enum": ["yes", "no"]}),
        ({"kind": "select", "options": ("a", "b")}, {"type": "string", "title": "Title", "enum": ["a", "b"]}),
        ({"kind": "select"}, {"type": "string", "title": "Title"}),
    ],
)
def test_each_kind_of_question_is_a_form_with_one_field(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert form(question(**fields)) == {"type": "object", "properties": {"answer": expected}, "required": ["answer"]}


@pytest.mark.parametrize(
    ("action", "content", "expected"),
    [
        ("accept", {"answer": "x"}, "x"),
        ("accept", {"answer": True}, "yes"),
        ("accept", {"answer": False}, "no"),
        ("accept", {"answer": 3}, "3"),
        ("accept", {}, "d"),
        ("accept", None, "d"),
        ("decline", {"answer": "x"}, None),
        ("cancel", None, None),
    ],
)
def test_what_counts_as_an_answer(action: Any, content: Any, expected: str | None) -> None:
    assert answer_of(question(default="d"), types.ElicitResult(action=action, content=content)) == expected


@both
async def test_the_person_at_the_client_is_asked(serve: Serve, mode: str) -> None:
    shown: list[tuple[str, Any]] = []

    def answer(message: str, field: Mapping[str, Any]) -> str:
        shown.append((message, field["enum"]))
        return str(field["enum"][1])

    serving = serve()
    async with serving.client(mode, answer) as client:
        result = await client.call_tool("pipeline__approve", {})
    assert shown == [("Go?", ["yes", "no"]), ("Which?", ["a", "b"])]
    assert text(result) == "no b"
    (row,) = await serving.runtime.store.list()
    assert row.status is Status.COMPLETED
    answered = [record.by for record in await serving.runtime.store.effects(row.id) if record.kind == "ask"]
    assert len(answered) == 2 and all(by.startswith("mcp:") and len(by) > 4 for by in answered)
    assert await serving.runtime.store.letters() == []


@both
async def test_a_playbook_asks_as_well(serve: Serve, folder: Path, mode: str) -> None:
    page = folder / "topic.playbook.md"
    page.write_text(TOPIC)
    async with serve(documents=[page]).client(mode, lambda message, field: message.upper()) as client:
        result = await client.call_tool("playbook__topic", {"topic": "tea"})
    assert text(result) == "MORE ABOUT TEA?"


@both
@pytest.mark.parametrize("can_ask", [True, False])
async def test_what_nobody_answers_waits(serve: Serve, mode: str, can_ask: bool) -> None:
    serving = serve()
    async with serving.client(mode, (lambda message, field: None) if can_ask else None) as client:
        result = await client.call_tool("pipeline__approve", {})
        found = envelope(result)
        run = found["data"]["run_id"]
        assert found["status"] == "started" and not result.is_error
        assert found["data"]["answer"] == f"quire answer {run} VALUE"
        assert [one["prompt"] for one in found["data"]["questions"]] == ["Go?"]
        assert envelope(await client.call_tool("pipeline_result", {"run_id": run})) == found
        for value in ("yes", "a"):
            await serving.runtime.answer(run, None, value)
            await serving.runtime.drive(run)
        assert text(await client.call_tool("pipeline_result", {"run_id": run})) == "yes a"
        (letter,) = envelope(await client.call_tool("pipeline_inbox", {}))["letters"]
    assert letter["run_id"] == run and '"yes a"' in letter["text"]
    assert [one.recipient for one in await serving.runtime.store.letters()] == [f"mcp:{NAME}"]


@both
async def test_a_wrong_answer_is_asked_for_again(serve: Serve, mode: str) -> None:
    shown: list[str] = []

    def answer(message: str, field: Mapping[str, Any]) -> str:
        shown.append(message)
        return {1: "maybe", 2: "yes", 3: "a"}[len(shown)]

    async with serve().client(mode, answer) as client:
        result = await client.call_tool("pipeline__approve", {})
    assert text(result) == "yes a"
    assert shown == ["Go?", "answer yes or no\n\nGo?", "Which?"]


@both
async def test_branches_ask_side_by_side(serve: Serve, folder: Path, mode: str) -> None:
    write(folder, fan=FAN)
    async with serve().client(mode, lambda message, field: message[-1]) as client:
        result = await client.call_tool("pipeline__fan", {})
    assert envelope(result)["data"]["output"] == ["x", "y"]


@both
async def test_one_of_two_questions_declined(serve: Serve, folder: Path, mode: str) -> None:
    write(folder, fan=FAN)
    shown: list[str] = []

    def answer(message: str, field: Mapping[str, Any]) -> str | None:
        shown.append(message)
        return "x" if message.endswith("x") else None

    async with serve().client(mode, answer) as client:
        result = await client.call_tool("pipeline__fan", {})
    assert sorted(shown) == ["About x", "About y"]
    assert [one["prompt"] for one in envelope(result)["data"]["questions"]] == ["About y"]


async def test_a_call_that_is_cancelled_while_it_asks_leaves_its_question(serve: Serve) -> None:
    asked, serving = asyncio.Event(), serve()

    async def never(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with Client(serving.host.server, mode="legacy", elicitation_callback=never) as client:
        calling = asyncio.create_task(client.call_tool("pipeline__approve", {}))
        await asyncio.wait_for(asked.wait(), 30)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        await client.list_tools()
        await asyncio.wait_for(serving.host.calls.close(), 30)
    (question,) = await serving.runtime.store.questions()
    assert question.prompt == "Go?"
    assert (await serving.runtime.row(question.run)).status is Status.AWAITING_INPUT


async def asked(client: Client, tool: str = "pipeline__approve") -> types.InputRequiredResult:
    result = await client.session.call_tool(tool, {}, allow_input_required=True)
    assert isinstance(result, types.InputRequiredResult)
    return result


def yes(required: types.InputRequiredResult) -> types.InputResponses:
    accepted = types.ElicitResult(action="accept", content={"answer": "yes"})
    return dict.fromkeys(required.input_requests or {}, accepted)


async def test_the_state_is_good_for_its_own_call_only(serve: Serve, folder: Path) -> None:
    write(folder, other=GREET.replace("pipeline: greet", "pipeline: other"))
    serving = serve()
    async with serving.client("auto", lambda message, field: "yes") as client:
        required = await asked(client)
        (row,) = await serving.runtime.store.list()
        state = required.request_state
        assert state and row.id not in state
        forged = [("pipeline__approve", {}, row.id), ("pipeline__approve", {"x": 1}, state)]
        changed = f"{state[:-9]}{'B' if state[-9] == 'A' else 'A'}{state[-8:]}"
        forged += [("pipeline__other", {}, state), ("pipeline__approve", {}, changed)]
        for tool, arguments, wrong in forged:
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await client.session.call_tool(
                    tool, arguments, input_responses=yes(required), request_state=wrong, allow_input_required=True
                )
        assert (await serving.runtime.row(row.id)).status is Status.AWAITING_INPUT
        again = await client.session.call_tool(
            "pipeline__approve", {}, input_responses=yes(required), request_state=state, allow_input_required=True
        )
    assert isinstance(again, types.InputRequiredResult) and "2/ask" in (again.input_requests or {})


async def test_a_server_that_was_started_again_knows_the_state(serve: Serve, folder: Path) -> None:
    async with serve().client("auto", lambda message, field: "yes") as client:
        required = await asked(client)
    # The document may even be gone by now: the run holds on to it.
    (folder / "pipelines" / "approve.yaml").unlink()
    async with serve().client("auto", lambda message, field: "b") as client:
        result = await client.call_tool(
            "pipeline__approve", {}, input_responses=yes(required), request_state=required.request_state
        )
    assert text(result) == "yes b"


async def test_a_question_that_somebody_else_has_answered(serve: Serve) -> None:
    serving = serve()
    async with serving.client("auto", lambda message, field: "a") as client:
        required = await asked(client)
        (row,) = await serving.runtime.store.list()
        await serving.runtime.answer(row.id, None, "no")
        await serving.runtime.drive(row.id)
        still = await client.session.call_tool(
            "pipeline__approve",
            {},
            input_responses=yes(required),
            request_state=required.request_state,
            allow_input_required=True,
        )
        assert isinstance(still, types.CallToolResult)
        assert [one["prompt"] for one in envelope(still)["data"]["questions"]] == ["Which?"]
        await serving.runtime.answer(row.id, None, "a")
        await serving.runtime.drive(row.id)
        result = await client.call_tool(
            "pipeline__approve", {}, input_responses=yes(required), request_state=required.request_state
        )
    assert text(result) == "no a"


def test_a_question_whose_answers_never_fit_waits_in_the_inbox() -> None:
    """G10: a client that answers in vain again and again is not asked for ever."""
    asked, one = Asked("r", {"1/ask": "h"}), question(kind="confirm")
    responses: dict[str, Any] = {"1/ask": types.ElicitResult(action="accept", content={"answer": "maybe"})}
    times = 0
    while not (answers := read_answers(asked, [one], responses)).declined:
        times += 1
        assert answers.problems == {"1/ask": "answer yes or no"} and times < 10
        asked = Asked.of(Asked("r", {"1/ask": "h"}, answers.declined, answers.unfit).as_state())
    assert (times, answers.declined, answers.problems) == (4, ("1/ask",), {})
