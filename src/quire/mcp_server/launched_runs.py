"""Results of runs after their call has ended, and the letters about them.

A client sees the runs that clients of this server have launched, and no other runs of the user.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.driver.drive import DriveResult
from quire.engine.records import RunRow, Status
from quire.errors import NoSuchRun
from quire.mcp_server.clients import RECIPIENT
from quire.mcp_server.launch_tools import MOST_LETTERS
from quire.mcp_server.results import waiting
from quire.plan.ways import last_label
from quire.runs.launch import LaunchResult, envelope_of

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime
    from quire.values import Value

SCHEME = "quire://runs/"
MOST_RUNS = 50
MOST_LOOKED_AT = 1000


class LaunchedRuns:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def row(self, run: str) -> RunRow:
        """Return a run. Raises `NoSuchRun`, also for a run that was not launched by a client."""
        row = await self._runtime.store.get(run)
        if row is None or not _launched_here(row):
            raise NoSuchRun(f"there is no run {run} that was launched from here")
        return row

    async def envelope(self, run: str) -> LaunchResult:
        """Return the current state of a run, with the warnings of the checks before its start."""
        envelope = await self._envelope(run)
        warnings = await self._runtime.warnings(run)
        return replace(envelope, data={**envelope.data, "warnings": list(warnings)}) if warnings else envelope

    async def _envelope(self, run: str) -> LaunchResult:
        row = await self.row(run)
        match row.status:
            case Status.COMPLETED:
                return envelope_of(run, (await self._runtime.view(run)).rest)
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
        return waiting(run, await self._runtime.store.questions(run))

    async def letters(self, recipient: str, arguments: Mapping[str, Value]) -> tuple[list[dict[str, Value]], int]:
        """Return a page of the letters to one client, the oldest first, and the number of letters before it."""
        letters = await self._runtime.store.letters(recipient)
        limit, before = arguments.get("limit", MOST_LETTERS), arguments.get("before", len(letters))
        end = min(int(str(before)), len(letters))
        start = max(end - min(int(str(limit)), MOST_LETTERS), 0)
        return [{"run_id": one.run, "at": one.at, "text": one.text} for one in letters[start:end]], start

    async def runs(self) -> list[RunRow]:
        """Return the launched runs, the newest first. Runs of the user may be among them in the store."""
        launched = [row for row in await self._runtime.store.list(limit=MOST_LOOKED_AT) if _launched_here(row)]
        return launched[:MOST_RUNS]

    async def left_behind(self) -> list[RunRow]:
        """Return the runs that a server had begun when it was killed, the oldest first."""
        rows = [
            row
            for status in (Status.PENDING, Status.INTERRUPTED)
            for row in await self._runtime.store.list(status=status, limit=MOST_LOOKED_AT)
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
