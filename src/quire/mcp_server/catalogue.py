"""The catalogue that is offered to clients (documents as tools, their grammars as resources, prompts that ask for a
document), and how clients are told about steps and asked questions, in either generation of the protocol.

The documents are registered pipelines, playbooks that have a name, signed directives, and documents that the user
named. The list is read again for every request. A file that cannot be read is reported and left out; the others are
still offered.

Up to protocol version 2025-11-25 a server asks the client while the call is open (`elicitation/create`). Since
2026-07-28 it cannot: it answers the call with the questions, and the client calls again with the answers and with the
state that the server gave it. A waiting run is a row in the store, so the state contains only the run and the
questions that were shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import ValidationError

from quire.engine.interpreter.playbook.steps import MOST_UNFIT, WrongAnswer, checked_answer
from quire.errors import QuireError
from quire.formats import format_of
from quire.formats.grammars import GRAMMARS, Grammar
from quire.library.document import Document, read
from quire.library.interface import declared_schema, pipeline_schema
from quire.library.library import Library
from quire.library.registered import (
    PIPELINES_FOLDER,
    SUFFIX,
    Registered,
    RegisteredPipelines,
    files_below,
    read_pipelines,
)
from quire.source import Source, read_source
from quire.values import clean
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from quire.engine.events import Listener
    from quire.engine.records import Event, Question
    from quire.values import Value
    from quire.workspace.settings import Settings


LONGEST_NAME = 64
"""Longest tool name. Clients pass tool names to models, which accept only this many letters, digits, `_` and `-`."""

_ODD = re.compile(r"[^A-Za-z0-9_-]")


class Offered(Struct, frozen=True):
    """One document under the name of its tool."""

    tool: str
    title: str
    description: str
    document: Document
    schema: Mapping[str, Value]
    required: tuple[str, ...]
    """The inputs that the document cannot run without."""


class Listing(Struct, frozen=True):
    """The offered tools."""

    tools: Mapping[str, Offered]
    problems: tuple[str, ...]
    """A line for each document that is left out."""


class Catalogue:
    """Reads the offered documents. `named` are documents that the user named at the start of the server; `report` gets
    each problem once."""

    def __init__(self, settings: Settings, named: Sequence[Path] = (), report: Callable[[str], None] = print) -> None:
        self._library = Library(settings)
        self._named = tuple(named)
        self._report = report
        self._reported: tuple[str, ...] = ()

    def load(self) -> Listing:
        listing = self._read()
        if listing.problems != self._reported:
            for problem in listing.problems:
                if problem not in self._reported:
                    self._report(f"left out: {problem}")
            self._reported = listing.problems
        return listing

    def stamp(self) -> tuple[tuple[str, int, int], ...]:
        """Return a value that changes when a file is added, removed or written. Costs one `stat` per file."""
        stamps = []
        for path in sorted({*self._files(), *self._named}):
            with contextlib.suppress(OSError):
                status = path.stat()
                stamps.append((str(path), status.st_mtime_ns, status.st_size))
        return tuple(stamps)

    def _read(self) -> Listing:
        registry = self._library.registry()
        problems = list(registry.problems)
        tools: dict[str, Offered] = {}
        pipelines = map(_pipeline, registry.pipelines.values())
        for offered in (*pipelines, *self._documents(registry, problems), *self._directives(problems)):
            other = tools.get(offered.tool)
            if other is None:
                tools[offered.tool] = offered
            elif other.document.name != offered.document.name or other.title != offered.title:
                problems.append(f"{offered.document.name}: {offered.tool} is the tool of {other.document.name} already")
        return Listing(tools, tuple(problems))

    def _documents(self, registry: RegisteredPipelines, problems: list[str]) -> Iterator[Offered]:
        taken = {Path(pipeline.source.name).resolve() for pipeline in registry.pipelines.values()}
        playbooks = self._library.playbooks()
        problems += playbooks.problems
        named = (
            (path.name.removesuffix(SUFFIX) if path.name.endswith(SUFFIX) else path.stem, path) for path in self._named
        )
        for name, path in (*playbooks.paths.items(), *named):
            if path.resolve() in taken:
                continue
            taken.add(path.resolve())
            try:
                source = read_source(path)
                if format_of(source) == "pipeline":
                    pipelines, wrong = read_pipelines(path.stem, source)
                    problems += wrong
                    yield from map(_pipeline, pipelines)
                else:
                    # Under its whole name: the last part alone could mean another playbook after a file is added.
                    yield _document("playbook", name, read(source))
            except QuireError as error:
                problems.append(str(error))

    def _directives(self, problems: list[str]) -> Iterator[Offered]:
        """Yield the directives of the project and of the user that are signed by a trusted key, with everything they
        are composed from.

        A signature is required under all settings of the workspace, because no user is present at a tool call who could
        be warned.
        """
        from quire.library.directives import BundleBuilder
        from quire.library.verify import VerifiedItems

        settings, spaces = self._library.settings, self._library.spaces
        try:
            entries = [entry for entry in spaces.entries("directive") if entry.space != "system"]
            items = replace(VerifiedItems.of(settings), mode="require")
        except QuireError as error:
            problems.append(str(error))
            return
        names = [entry.name for entry in entries]
        for entry in entries:
            try:
                item = spaces.read(entry)
                BundleBuilder(settings, items, {}, model=False).gathered(item)
                name = entry.name if names.count(entry.name) == 1 else entry.id
                yield _document("directive", name, read(Source.of(item.text, str(entry.path))))
            except QuireError as error:
                problems.append(str(error))

    def _files(self) -> Iterator[Path]:
        settings = self._library.settings
        folder = settings.workspace.folder
        yield from (folder / entry.path for entry in settings.pipelines.values())
        yield from files_below(folder / PIPELINES_FOLDER)
        yield from self._library.playbooks().paths.values()
        yield from (folder / ".ai" / "directives").rglob("*.md")
        yield from (settings.user / ".ai" / "directives").rglob("*.md")


def tool_name(kind: str, name: str) -> str:
    """Return the name of a tool. A dot, which occurs only between a file's key and a pipeline's name, becomes two
    underscores."""
    text = f"{kind}__{_ODD.sub('_', name.replace('.', '__'))}"
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[: LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _pipeline(pipeline: Registered) -> Offered:
    description = pipeline.description or f"Runs the pipeline {pipeline.name}."
    schema = pipeline_schema(pipeline.plan, pipeline.tree)
    return _offered(tool_name("pipeline", pipeline.name), pipeline.name, description, pipeline.document, schema)


def _document(kind: str, name: str, document: Document) -> Offered:
    plan = document.runnable()
    description = plan.description or f"Runs the {kind} {plan.title}."
    return _offered(tool_name(kind, name), plan.title, description, document, declared_schema(plan))


def _offered(tool: str, title: str, description: str, document: Document, schema: Mapping[str, Value]) -> Offered:
    required = schema.get("required", [])
    assert isinstance(required, list)  # noqa: S101  # as `input_schema` writes it
    return Offered(tool, title, description, document, schema, tuple(map(str, required)))


GRAMMAR_SCHEME = "quire://grammar/"
MARKDOWN = "text/markdown"
_VERB = "write_"
_TASK = "task"
_BY_URI = {f"{GRAMMAR_SCHEME}{grammar.key}": grammar for grammar in GRAMMARS}
_BY_PROMPT = {f"{_VERB}{grammar.key.replace('/', '_')}": grammar for grammar in GRAMMARS}

RESOURCES = tuple(
    types.Resource(uri=uri, name=f"{grammar.key} grammar", description=grammar.about, mime_type=MARKDOWN)
    for uri, grammar in _BY_URI.items()
)
PROMPTS = tuple(
    types.Prompt(
        name=name,
        title=f"Write a {grammar.name}",
        description=f"Asks for a {grammar.name} that does a task, and says how one is written.",
        arguments=[types.PromptArgument(name=_TASK, description=f"The task of the {grammar.name}.", required=True)],
    )
    for name, grammar in _BY_PROMPT.items()
)


def grammar_resource(uri: str) -> types.ReadResourceResult | None:
    """Return the text of a grammar, or None if the address is not one of a grammar. Raises `MCPError` for an unknown
    grammar."""
    if not uri.startswith(GRAMMAR_SCHEME):
        return None
    grammar = _BY_URI.get(uri)
    if grammar is None:
        raise MCPError(types.INVALID_PARAMS, _unknown("grammar", uri, _BY_URI))
    text = types.TextResourceContents(uri=uri, text=grammar.text, mime_type=MARKDOWN)
    return types.ReadResourceResult(contents=[text])


def written_prompt(name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Return the messages of a prompt. Raises `MCPError` for an unknown one, and for wrong arguments."""
    grammar = _BY_PROMPT.get(name)
    if grammar is None:
        raise MCPError(types.INVALID_PARAMS, _unknown("prompt", name, _BY_PROMPT))
    if unknown := next((argument for argument in arguments if argument != _TASK), ""):
        hint = did_you_mean(nearest(unknown, [_TASK]), f"it takes {_TASK}")
        raise MCPError(types.INVALID_PARAMS, f"{name} has no argument {unknown!r}: {hint}")
    task = arguments.get(_TASK, "").strip()
    if not task:
        raise MCPError(types.INVALID_PARAMS, f"{name} needs {_TASK}: the task of the {grammar.name}")
    text = types.TextContent(text=request(grammar, task))
    return types.GetPromptResult(description=grammar.about, messages=[types.PromptMessage(role="user", content=text)])


def request(grammar: Grammar, task: str) -> str:
    """Return the message that asks a model for a document."""
    order = f"Write a {grammar.name} that does this:\n\n{task}\n\nReply with it and nothing else."
    return f"{grammar.text}\n## Task\n\n{order}\n"


def _unknown(what: str, name: str, grammars: Mapping[str, Grammar]) -> str:
    hint = did_you_mean(nearest(name, grammars), f"there are {', '.join(grammars)}")
    return f"unknown {what} {name}: {hint}"


Context: TypeAlias = ServerRequestContext[Any, Any]

RECIPIENT = "mcp:"
"""Prefix of the ids of clients as recipients of letters."""

_LONGEST_NAME = 80


class Client(Struct, frozen=True):
    """The client of one request."""

    session: ServerSession
    request: types.RequestId | None
    recipient: str
    modern: bool
    elicits: bool
    logs: bool
    """True if the client wants messages about the steps: it asked for progress or log messages."""
    key: str = ""
    """The `idempotency_key` in the request's `_meta`: a call that is sent again under it means the same run."""
    trace: str = ""
    """The `traceparent` there."""

    @classmethod
    def of(cls, context: Context) -> Client:
        session = context.session
        capabilities = session.client_capabilities
        return cls(
            session=session,
            request=context.request_id,
            recipient=RECIPIENT + _name(session),
            modern=context.protocol_version in MODERN_PROTOCOL_VERSIONS,
            elicits=_can_show_forms(capabilities.elicitation if capabilities else None),
            logs=any(key in (context.meta or {}) for key in ("progress_token", types.LOG_LEVEL_META_KEY)),
            key=str((context.meta or {}).get("idempotency_key") or ""),
            trace=str((context.meta or {}).get("traceparent") or ""),
        )

    @property
    def form(self) -> str:
        """Return the author of an answer that the client's user gave in a form."""
        return f"{self.recipient} (form)"


def connection_of(context: Context) -> str:
    """Return the connection that a request came from; empty for stdio."""
    request = context.request
    headers = getattr(request, "headers", None)
    return str(headers.get("mcp-session-id", "")) if headers is not None else ""


def _name(session: ServerSession) -> str:
    params = session.client_params
    name = clean(params.client_info.name).strip() if params else ""
    return "".join(part for part in name if part.isprintable())[:_LONGEST_NAME] or "client"


def _can_show_forms(capability: types.ElicitationCapability | None) -> bool:
    """Return True if the client can show forms. Clients from before there were modes do not name any, and show
    forms."""
    return capability is not None and (capability.form is not None or capability.url is None)


LOGGER = "quire"
_STEPS = {"step_started": "pipeline_step_started", "step_completed": "pipeline_step_completed"}


@contextlib.asynccontextmanager
async def reporting(session: ServerSession, request: types.RequestId | None, *, log: bool) -> AsyncIterator[Listener]:
    """Yield a listener for a drive; all its notifications have been sent when the context ends.

    Only steps of the document itself are reported, and no replayed ones.
    """
    heard: asyncio.Queue[Event | None] = asyncio.Queue()

    def listen(event: Event) -> None:
        if event.type in _STEPS and event.path.isdecimal() and not event.replayed:
            heard.put_nowait(event)

    async def send() -> None:
        while (event := await heard.get()) is not None:
            # A client that is gone misses its notifications; that does not affect the run.
            with contextlib.suppress(Exception):
                await _send(session, request, event, log)

    sending = asyncio.create_task(send())
    try:
        yield listen
    finally:
        heard.put_nowait(None)
        await asyncio.gather(sending, return_exceptions=True)


async def _send(session: ServerSession, request: types.RequestId | None, event: Event, log: bool) -> None:
    number, started = int(event.path), event.type == "step_started"
    total = event.data.get("total")
    title = str(event.data.get("title", ""))
    # Progress has to grow with each notification: a step that has started counts half.
    done = number - 0.5 if started else float(number)
    text = f"step {event.label} ({event.data.get('name', title)}) {'started' if started else 'completed'}"
    await session.report_progress(done, float(total) if isinstance(total, int) else None, text)
    if not log:
        return
    data: dict[str, Value] = {
        "event": _STEPS[event.type],
        "run_id": event.run,
        "step": event.label,
        "title": title,
        "total": total,
    }
    with warnings.catch_warnings():
        # Logging is deprecated in the newest protocol and still how older clients show what happens.
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        message = session.send_log_message("info", data, LOGGER, related_request_id=request)
    await message


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
    value = (result.content or {}).get(ANSWER)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return question.default if value is None or isinstance(value, list) else str(value)


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
