"""Tools besides those of documents: launch a pipeline by name or by definition, and the operations that have a tool:
results of runs whose call has ended, notices about them, resuming, and answers. Results of tools are envelopes: the
envelope itself for programs, and its output or error as text.

Answering questions is for people; the tool for it is offered only if the user says so. A client sees the runs that
clients of this server have launched, and no other runs of the user.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import mcp_types as types
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from quire.engine.driver.drive import DriveResult
from quire.engine.records import RunRow, Status
from quire.errors import NoSuchRun, QuireError
from quire.formats.pipeline.inline import as_list
from quire.mcp_server.catalogue import RECIPIENT
from quire.operations import OPERATIONS, Operation
from quire.operations.field_types import Input, Object, errors_of, operation, schema_of, shape
from quire.operations.host import Caller, Host
from quire.operations.problems import Problem
from quire.plan.vocabulary import last_label
from quire.runs.launch import ASYNC, INLINE, LaunchResult, definition_help, envelope_of, unknown_argument
from quire.stores.run_pages import RunFilters
from quire.values import Value, copy, pretty

if TYPE_CHECKING:
    from quire.engine.records import Question
    from quire.mcp_server.catalogue import Client
    from quire.mcp_server.client_calls import Calls, Result
    from quire.runs.runtime import Runtime


TOOLS: Mapping[str, Operation] = {operation.mcp: operation for operation in OPERATIONS if operation.mcp}
_INPUT: dict[str, Value] = {
    "type": "object",
    "description": "The inputs that the pipeline declares, or reads as ctx.NAME.",
}
_LATER = "Returns at once with the id of the run; the result comes later (pipeline_result, pipeline_inbox)."
_NOW = "Waits for the result."
_TYPES = {"string": (str, "a text"), "integer": (int, "a whole number")}


def operation_tool(name: str) -> types.Tool:
    """Return the tool of an operation."""
    work = TOOLS[name].work
    return types.Tool(
        name=name,
        description=work.summary,
        input_schema=schema_of(work.input),
        output_schema=schema_of(work.result),
        annotations=types.ToolAnnotations(read_only_hint=True) if TOOLS[name].cost == "FREE" else None,
    )


async def call_operation(
    name: str, arguments: Mapping[str, Value], host: Host
) -> types.CallToolResult | types.InputRequiredResult:
    """Call the tool of an operation. Errors are returned, because a client shows no error of the protocol. A
    number above the most that a tool takes counts as the most."""
    work = TOOLS[name].work
    schema = schema_of(work.input)
    members = schema["properties"]
    values = {member: _at_most(members.get(member, {}), value) for member, value in arguments.items()}
    if problem := _wrong_argument(name, schema, values):
        return failed(problem)
    try:
        answer = await work.run(host, work.read(values))
    except (Problem, QuireError) as error:
        return failed(error)
    if isinstance(answer, types.CallToolResult | types.InputRequiredResult):
        return answer
    return types.CallToolResult(content=[types.TextContent(text=pretty(answer))], structured_content=answer)


def _wrong_argument(tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Value]) -> str:
    """Return the first thing that is wrong with the arguments of a tool, in words for a model; empty if nothing is."""
    if unknown := unknown_argument(tool, arguments, list(schema["properties"])):
        return unknown
    for name, member in schema["properties"].items():
        if name in schema["required"] and not arguments.get(name):
            return f"{tool} needs {name}"
        if name not in arguments or str(member.get("type")) not in _TYPES:
            continue
        kind, words = _TYPES[member["type"]]
        least, value = member.get("minimum"), arguments[name]
        if not isinstance(value, kind) or isinstance(value, bool) or (least is not None and value < least):
            return f"{name} must be {words}" + (f", {least} or more" if least is not None else "")
    errors = ((place.lstrip("/"), message) for place, message in errors_of(schema, dict(arguments)))
    # A message quotes the value, which may be huge, and ends with what is wrong with it.
    return "; ".join(f"{place}: {message if len(message) < 400 else f'…{message[-200:]}'}" for place, message in errors)


def _at_most(member: Mapping[str, Any], value: Value) -> Value:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return min(value, member["maximum"]) if is_number and "maximum" in member else value


def launch_tool(name: str) -> types.Tool:
    inline, later = INLINE in name, name.endswith(ASYNC)
    subject = "definition" if inline else "name"
    explained = "A pipeline as YAML text." if inline else "The name under which the pipeline is registered."
    what = "Launches a pipeline that is given as text." if inline else "Launches a registered pipeline."
    how = f" {definition_help(name)}" if inline else ""
    schema = {
        "type": "object",
        "properties": {subject: {"type": "string", "description": explained}, "input": _INPUT},
        "required": [subject],
        "additionalProperties": False,
    }
    return types.Tool(
        name=name,
        description=f"{what} {_LATER if later else _NOW}{how}",
        input_schema=schema,
        output_schema=dict(ENVELOPE),
    )


ENVELOPE: dict[str, Value] = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["ok", "error", "cancelled", "started"]},
        "data": {
            "type": "object",
            "description": "run_id; output and named_stores when it is ok; error; questions while people are asked; "
            "warnings, what was found before the start that may not work.",
        },
    },
    "required": ["status", "data"],
}


def result_of(envelope: LaunchResult) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=text) for text in (_text(envelope), *_warnings(envelope))],
        structured_content={"status": envelope.status, "data": copy(dict(envelope.data))},
        is_error=envelope.status == "error",
    )


def failed(problem: object, run: str = "") -> types.CallToolResult:
    """Return the result of a call that could not be carried out."""
    return result_of(LaunchResult("error", {**({"run_id": run} if run else {}), "error": str(problem)}))


def waiting(run: str, questions: Sequence[Question]) -> LaunchResult:
    """Return the envelope of a run that continues later: after an answer, or by itself."""
    data: dict[str, Value] = {"run_id": run}
    if questions:
        several = len(questions) > 1
        data["questions"] = [
            {
                "step": question.label,
                "way": question.way,
                "path": question.path,
                "kind": question.kind,
                "prompt": question.prompt,
                "options": list(question.options),
            }
            for question in questions
        ]
        data["answer"] = f"quire answer {run} {'STEP ' if several else ''}VALUE"
    return LaunchResult("started", data)


def _warnings(envelope: LaunchResult) -> list[str]:
    """Return the warnings as a separate block, because the first block contains only the output."""
    warnings = envelope.data.get("warnings")
    return ["\n".join(f"warning: {warning}" for warning in warnings)] if isinstance(warnings, list) and warnings else []


def _text(envelope: LaunchResult) -> str:
    data = envelope.data
    if envelope.status == "ok":
        return pretty(data.get("output"))
    if envelope.status == "started":
        text = f"Run {data.get('run_id')} has started; its result comes later: pipeline_result, pipeline_inbox."
        if "answer" in data:
            text = f"Run {data.get('run_id')} waits for a person, who answers in the page or with: {data['answer']}"
        return text
    errors = data.get("errors")
    if isinstance(errors, list) and errors:
        return as_list(str(data.get("error", "")), errors)
    run = f" (run {data['run_id']})" if "run_id" in data else ""
    return f"{data.get('error', '')}{run}"


ANSWER = "pipeline_answer"
RUN_SCHEME = "quire://runs/"
MOST_LETTERS = 100
MOST_RUNS = 50
MOST_LOOKED_AT = 1000


class LaunchedRuns:
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    async def row(self, run: str) -> RunRow:
        """Return a run. Raises `NoSuchRun`, also for a run that was not launched by a client."""
        row = await self.runtime.store.get(run)
        if row is None or not _launched_here(row):
            raise NoSuchRun(f"unknown run {run} that was launched from here")
        return row

    async def envelope(self, run: str) -> LaunchResult:
        """Return the current state of a run, with the warnings of the checks before its start."""
        envelope = await self._envelope(run)
        warnings = await self.runtime.warnings(run)
        return replace(envelope, data={**envelope.data, "warnings": list(warnings)}) if warnings else envelope

    async def _envelope(self, run: str) -> LaunchResult:
        row = await self.row(run)
        match row.status:
            case Status.COMPLETED:
                return envelope_of(run, (await self.runtime.view(run)).rest)
            case Status.FAILED:
                return envelope_of(run, DriveResult(row.status, failure=row.failure))
            case Status.EXPIRED:
                return LaunchResult("error", {"run_id": run, "error": "no answer came in time: the run has expired"})
            case status if status is Status.INTERRUPTED or row.wake_at is not None:
                # It continues by itself: the next server takes it over, or its time comes.
                return LaunchResult("started", {"run_id": run})
            case Status.PAUSED | Status.CANCELLED:
                how = f"it is {row.status.words}; to continue: pipeline_resume, or quire resume {run}"
                return LaunchResult("cancelled", {"run_id": run, "error": how})
        return waiting(run, await self.runtime.store.questions(run))

    async def runs(self) -> list[RunRow]:
        """Return the launched runs, the newest first. Runs of the user may be among them in the store."""
        launched = [row for row in await self.runtime.store.list(limit=MOST_LOOKED_AT) if _launched_here(row)]
        return launched[:MOST_RUNS]

    async def left_behind(self) -> list[RunRow]:
        """Return the runs that a server had begun when it was killed, the oldest first."""
        filters = RunFilters((Status.PENDING, Status.INTERRUPTED))
        page = await self.runtime.store.page(filters, limit=MOST_LOOKED_AT)
        return [row for row in reversed(page.rows) if _launched_here(row)]

    async def page(self, uri: str) -> str:
        """Return a run as a resource, in JSON. Raises `NoSuchRun`."""
        run = uri.removeprefix(RUN_SCHEME) if uri.startswith(RUN_SCHEME) else ""
        row = await self.row(run)
        page: dict[str, Value] = {
            "run_id": run,
            "title": row.title,
            "state": str(row.status),
            "step": last_label(row.position),
            "way": row.position,
            **(await self.envelope(run)).as_json(),
        }
        return json.dumps(page, indent=2, ensure_ascii=False)


def _launched_here(row: RunRow) -> bool:
    return str(row.pins.get("reply_to", "")).startswith(RECIPIENT)


class ToolHost(Host):
    """The door of one tool call. A model calls tools, so it cannot say yes or no."""

    def __init__(self, client: Client, calls: Calls, late: LaunchedRuns) -> None:
        super().__init__(late.runtime, Caller("mcp", f"{client.recipient} (tool)"))
        self.client = client
        self.calls = calls
        self.late = late


class OfLaunched(Input, frozen=True, kw_only=True):
    run_id: Annotated[str, Meta(description="The run_id of a run that was launched from here.")]


@operation(
    "The state of a run that was launched from here: its output, its error, or the questions that it waits for.",
    OfLaunched,
    ENVELOPE,
)
async def pipeline_result(host: ToolHost, given: OfLaunched) -> Result:
    return result_of(await host.late.envelope(given.run_id))


@operation(
    "Continues a run that was launched from here and was stopped or has failed, and waits for its result. Recorded "
    "steps are not done again.",
    OfLaunched,
    ENVELOPE,
)
async def pipeline_resume(host: ToolHost, given: OfLaunched) -> Result:
    return await host.calls.resume(host.client, given.run_id)


class AnswerLaunched(OfLaunched, frozen=True, kw_only=True):
    answer: Annotated[str, Meta(description="One of the options, or a text.")]
    step: Annotated[str, Meta(description="The step or the path of the question, where several wait.")] | UnsetType = (
        UNSET
    )


@operation(
    "Answers a question a run is waiting for (a text or a choice), continues the run and waits for its result. "
    "The question is for a person: ask the person. Yes or no is not answered here.",
    AnswerLaunched,
    ENVELOPE,
)
async def pipeline_answer(host: ToolHost, given: AnswerLaunched) -> Result:
    """Store an answer that a tool call brings and continue the run. If the run is already being driven, its driver
    takes the answer."""
    run, caller = given.run_id, host.caller
    try:
        await host.late.row(run)
        step = None if isinstance(given.step, UnsetType) else given.step
        await host.runtime.answer(run, step, given.answer, by=caller.by, person=caller.person)
    except QuireError as error:
        return failed(error, run)
    return await host.calls.resume(host.client, run)


class ReadInbox(Input, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MOST_LETTERS, description="The most notices to return.")] = MOST_LETTERS
    before: (
        Annotated[
            int,
            Meta(ge=0, description="The number that `earlier` had in the page before: gives the page before that one."),
        ]
        | UnsetType
    ) = UNSET


@operation(
    "Lists the notices for this client: one for each run that ended while it was away, the oldest first. Without "
    "arguments the newest of them; `earlier` says how many come before.",
    ReadInbox,
    shape(letters=list[Object], earlier=int),
)
async def pipeline_inbox(host: ToolHost, given: ReadInbox) -> Result:
    letters = await host.runtime.store.letters(host.client.recipient)
    end = len(letters) if isinstance(given.before, UnsetType) else min(given.before, len(letters))
    start = max(end - given.limit, 0)
    text = "\n\n".join(letter.text for letter in letters[start:end]) or "nothing has come in"
    if start:
        text += f"\n\n{start} earlier: call again with before={start}"
    page = [{"run_id": letter.run, "at": letter.at, "text": letter.text} for letter in letters[start:end]]
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content={"letters": page, "earlier": start}
    )
