"""Runs after their call has ended: results, letters about them, going on, and answers.

Answering questions is for people; the tool for it is offered only if the user says so. A client sees the runs that
clients of this server have launched, and no other runs of the user.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import mcp_types as types
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from quire.engine.driver.drive import DriveResult
from quire.engine.records import RunRow, Status
from quire.errors import NoSuchRun, QuireError
from quire.mcp_server.clients import RECIPIENT
from quire.mcp_server.launch_tools import ENVELOPE, result_of, waiting
from quire.operations.fields import Input, Object, operation, shape
from quire.operations.host import Caller, Host
from quire.plan.ways import last_label
from quire.runs.launch import LaunchResult, envelope_of

if TYPE_CHECKING:
    from quire.mcp_server.calls import Calls, Result
    from quire.mcp_server.clients import Client
    from quire.runs.runtime import Runtime
    from quire.values import Value

ANSWER = "pipeline_answer"
SCHEME = "quire://runs/"
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
            raise NoSuchRun(f"there is no run {run} that was launched from here")
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
            case Status.INTERRUPTED:
                # The server that drove it was killed; the next server continues it.
                return LaunchResult("started", {"run_id": run})
            case Status.PAUSED | Status.CANCELLED:
                how = f"it is {row.status.words}; to go on: pipeline_resume, or quire resume {run}"
                return LaunchResult("cancelled", {"run_id": run, "error": how})
        return waiting(run, await self.runtime.store.questions(run))

    async def runs(self) -> list[RunRow]:
        """Return the launched runs, the newest first. Runs of the user may be among them in the store."""
        launched = [row for row in await self.runtime.store.list(limit=MOST_LOOKED_AT) if _launched_here(row)]
        return launched[:MOST_RUNS]

    async def left_behind(self) -> list[RunRow]:
        """Return the runs that a server had begun when it was killed, the oldest first."""
        rows = [
            row
            for status in (Status.PENDING, Status.INTERRUPTED)
            for row in await self.runtime.store.list(status=status, limit=MOST_LOOKED_AT)
        ]
        return sorted((row for row in rows if _launched_here(row)), key=lambda row: row.created_at)

    async def page(self, uri: str) -> str:
        """Return a run as a resource, in JSON. Raises `NoSuchRun`."""
        run = uri.removeprefix(SCHEME) if uri.startswith(SCHEME) else ""
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
    "How a run stands that was launched from here: its output, what went wrong, or what it waits for.",
    OfLaunched,
    ENVELOPE,
)
async def pipeline_result(host: ToolHost, given: OfLaunched) -> Result:
    return result_of(await host.late.envelope(given.run_id))


@operation(
    "Goes on with a run that was launched from here and was stopped or has failed, and waits for its result. What it "
    "has done already is not done again.",
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
    "Answers a question for a text or a choice that a run waits with, goes on with the run and waits for its result. "
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
        return result_of(LaunchResult("error", {"run_id": run, "error": str(error)}))
    return await host.calls.resume(host.client, run)


class ReadInbox(Input, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MOST_LETTERS, description="How many letters at most.")] = MOST_LETTERS
    before: (
        Annotated[
            int,
            Meta(ge=0, description="The number that `earlier` had in the page before: gives the page before that one."),
        ]
        | UnsetType
    ) = UNSET


@operation(
    "The letters to this client: one for each run that has ended without it, the oldest first. Without arguments the "
    "newest of them; `earlier` says how many come before.",
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
    page = [{"run_id": one.run, "at": one.at, "text": one.text} for one in letters[start:end]]
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content={"letters": page, "earlier": start}
    )
