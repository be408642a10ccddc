"""Questions of a run as forms for the user of an MCP client.

Up to protocol version 2025-11-25 a server asks the client while the call is open (`elicitation/create`). Since
2026-07-28 it cannot: it answers the call with the questions, and the client calls again with the answers and with the
state that the server gave it. A waiting run is a row in the store, so the state contains only the run and the
questions that were shown.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import mcp_types as types
from mcp.shared.exceptions import MCPError
from msgspec import Struct, field
from pydantic import ValidationError

from quire.engine.interpreter.playbook.steps import MOST_UNFIT, WrongAnswer, checked_answer

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from quire.engine.records import Question
    from quire.values import Value

ANSWER = "answer"


def form(question: Question) -> dict[str, Value]:
    """Return a form with one field. Yes or no is a choice of two and not a checkbox: an untouched box would be a
    silent no."""
    field: dict[str, Value] = {"type": "string", "title": question.title or "Answer"}
    if question.kind == "confirm":
        field["enum"] = ["yes", "no"]
    elif question.kind == "select" and question.options:
        field["enum"] = list(question.options)
    if question.default is not None:
        field["default"] = question.default
    return {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}


def message(question: Question, problem: str = "") -> str:
    text = question.prompt.strip() or question.title
    return f"{problem}\n\n{text}" if problem else text


def answer_of(question: Question, result: types.ElicitResult) -> str | None:
    """Return the answer; None if the user declined or dismissed the form."""
    if result.action != "accept":
        return None
    given = (result.content or {}).get(ANSWER)
    if isinstance(given, bool):
        return "yes" if given else "no"
    if given is None or isinstance(given, list):
        return question.default
    return str(given)


class Elicited:
    """The `People` of a call in the older generation. After the client has left, questions wait in the inbox."""

    def __init__(
        self, session: ServerSession, request: types.RequestId | None, left: asyncio.Event, by: str = ""
    ) -> None:
        self.by = by
        self._session = session
        self._request = request
        self._left = left

    async def ask(self, question: Question, problem: str) -> str | None:
        if self._left.is_set():
            return None
        asking = asyncio.create_task(
            self._session.elicit_form(message(question, problem), form(question), related_request_id=self._request)
        )
        leaving = asyncio.create_task(self._left.wait())
        try:
            await asyncio.wait([asking, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not asking.done():
                asking.cancel()
        try:
            return answer_of(question, await asking)
        except asyncio.CancelledError:
            if self._left.is_set():
                return None
            raise
        except (MCPError, ValidationError):
            # A client that cannot ask, or sends something else, counts as not having answered.
            return None


class Asked(Struct, frozen=True):
    """The state of a call that waits for answers."""

    run: str
    shown: Mapping[str, str]
    """The hash of each question that was shown, by path."""
    declined: tuple[str, ...] = ()
    """The paths of the questions that were declined."""
    unfit: Mapping[str, int] = field(default_factory=dict)
    """How many answers to each question did not fit."""

    def as_state(self) -> str:
        stored = {"run": self.run, "shown": dict(self.shown), "declined": list(self.declined)}
        return json.dumps({**stored, "unfit": dict(self.unfit)})

    @classmethod
    def of(cls, state: str) -> Asked:
        """Read a text that this server wrote; the seal around it has already been checked."""
        stored = json.loads(state)
        return cls(stored["run"], stored["shown"], tuple(stored["declined"]), stored.get("unfit", {}))


def input_required(
    run: str,
    questions: Sequence[Question],
    declined: Sequence[str] = (),
    problems: Mapping[str, str] | None = None,
    unfit: Mapping[str, int] | None = None,
) -> types.InputRequiredResult:
    """Return the answer to a call of the newer generation whose run waits for people."""
    wrong = problems or {}
    requests: types.InputRequests = {
        question.path: types.ElicitRequest(
            params=types.ElicitRequestFormParams(
                message=message(question, wrong.get(question.path, "")), requested_schema=form(question)
            )
        )
        for question in questions
    }
    asked = Asked(run, {question.path: question.hash for question in questions}, tuple(declined), unfit or {})
    return types.InputRequiredResult(input_requests=requests, request_state=asked.as_state())


class Answers(Struct, frozen=True):
    """The answers that a client sent."""

    given: Mapping[str, str]
    """Answers that count, by path."""
    declined: tuple[str, ...]
    """The paths of the questions that were declined."""
    problems: Mapping[str, str]
    """The reasons why the other answers do not count, by path."""
    unfit: Mapping[str, int] = field(default_factory=dict)
    """How many answers to each question did not fit so far."""


def read_answers(asked: Asked, open_questions: Sequence[Question], responses: types.InputResponses | None) -> Answers:
    """Check the answers of a client. Only questions that are still open, exactly as they were shown, are answered.

    A question with too many unfit answers counts as declined: it waits in the inbox.
    """
    given: dict[str, str] = {}
    unfit = dict(asked.unfit)
    declined, problems = list(asked.declined), {}
    for question in open_questions:
        if asked.shown.get(question.path) != question.hash:
            continue
        response = (responses or {}).get(question.path)
        text = answer_of(question, response) if isinstance(response, types.ElicitResult) else None
        if text is None:
            declined.append(question.path)
            continue
        try:
            given[question.path] = checked_answer(question.kind, question.options, text)
        except WrongAnswer as wrong:
            unfit[question.path] = unfit.get(question.path, 0) + 1
            if unfit[question.path] >= MOST_UNFIT:
                declined.append(question.path)
            else:
                problems[question.path] = str(wrong)
    return Answers(given, tuple(dict.fromkeys(declined)), problems, unfit)
