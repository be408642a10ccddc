"""Calls of clients as runs: one that the client waits for, one that is left running, one that continues with answers.

A run belongs to the server and not to the request. If the client cancels or leaves, the run is told to stop: it rests
at its next boundary, with everything that it did recorded, and can be resumed.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import mcp_types as types
from msgspec.structs import replace

from quire.engine.driver.drive import Drive
from quire.engine.events import Listener
from quire.engine.ports import People
from quire.engine.records import FINAL, Status
from quire.errors import QuireError, RunBusy
from quire.formats.pipeline.inline import LAUNCHING
from quire.mcp_server.catalogue import Asked, Elicited, input_required, read_answers, reporting
from quire.mcp_server.launch_tools import LaunchedRuns, failed, result_of, waiting
from quire.runs.launch import ASYNC, INLINE, KnownTools, Launcher, Launching, LaunchResult
from quire.runs.runtime import Runtime
from quire.trust.capabilities import Grants
from quire.values import InvalidValue, Value, encode
from quire.workspace.grants import default_grants

if TYPE_CHECKING:
    from quire.mcp_server.catalogue import Client, Offered
    from quire.runs.options import RunOptions

Result: TypeAlias = types.CallToolResult | types.InputRequiredResult
Work: TypeAlias = Callable[[People | None, Listener, Callable[[Drive], None]], Awaitable[LaunchResult]]
Reopen: TypeAlias = Callable[[Runtime, str], Awaitable[Runtime]]

MOST_RUNS = 32
"""Limit for the concurrent runs of all clients."""

MOST_TAKEN_OVER = 8
"""Limit for concurrent runs among these that are taken over from a previous server."""

GRANTS = Grants.of(["rye.execute.pipeline.*"])
"""The user grants launching by starting the server; these grants do not decide what a run may do."""


class AttachedDrive:
    """A drive, and the client that waits for it. `left` is set when no client waits any more."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        # A weak reference: the driving code holds the drive, and one that has ended must not be kept alive here.
        self._drive: weakref.ref[Drive] | None = None

    @property
    def ended(self) -> bool:
        return self._drive is not None and self._drive() is None

    def began(self, drive: Drive) -> None:
        self._drive = weakref.ref(drive)
        if self.left.is_set():
            drive.stop()

    def leave(self) -> None:
        self.left.set()
        drive = self._drive() if self._drive else None
        if drive is not None:
            drive.stop()


class Calls:
    """Runs the calls of clients. `reopen` returns the runtime that continues a run; `hand_over` leaves a run to a
    separate process."""

    def __init__(
        self,
        runtime: Runtime,
        options: RunOptions,
        *,
        inline: bool,
        report: Callable[[str], None],
        reopen: Reopen,
        hand_over: Callable[[str], None],
    ) -> None:
        self._runtime = runtime
        self._inline = inline
        self._report = report
        self._reopen = reopen
        self._hand_over = hand_over
        self._known = known = KnownTools(runtime.settings, default_grants(runtime.settings, options.allow))
        self._options = options
        self._launching = Launching(
            runtime, known, shell=known.shell, hint=known.hint, options=options, hand_over=hand_over
        )
        self._late = LaunchedRuns(runtime)
        self._waited_for: dict[asyncio.Task[LaunchResult], AttachedDrive] = {}
        self._detached: dict[str, AttachedDrive] = {}

    def launchers(self) -> list[str]:
        """Return the launch tools that a client may use."""
        return sorted(tool for tool in LAUNCHING if self._inline or INLINE not in tool)

    async def launch(self, caller: Client, tool: str, arguments: Mapping[str, Value]) -> Result:
        """Call one of the four launch tools."""
        if problem := self._too_many() or _no_values(arguments):
            return failed(problem)
        if INLINE in tool:
            try:
                await self._known.learn(arguments.get("definition"))
            except QuireError as error:
                return failed(error)
        launcher = self._launcher(caller)
        if tool.endswith(ASYNC):
            self._detached = {run: drive for run, drive in self._detached.items() if not drive.ended}
            attached = AttachedDrive()
            envelope = await self._launching.launch(tool, arguments, launcher, began=attached.began)
            if envelope.status == "started":
                self._detached[str(envelope.data["run_id"])] = attached
            return result_of(envelope)

        def work(people: People | None, listen: Listener, began: Callable[[Drive], None]) -> Awaitable[LaunchResult]:
            return self._launching.launch(tool, arguments, launcher, people=people, listen=listen, began=began)

        return await self._answered(caller, await self._attend(caller, work))

    async def run(self, caller: Client, offered: Offered, arguments: Mapping[str, Value]) -> Result:
        """Call the tool of one document."""
        missing = [name for name in offered.required if arguments.get(name) is None]
        # Declared inputs of a pipeline are checked at the start, with all that is wrong at once.
        is_declared = offered.document.runnable().declared is not None
        lacks = f"missing input: {', '.join(missing)}" if missing and not is_declared else ""
        if problem := lacks or self._too_many() or _no_values(arguments):
            return failed(problem)

        def work(people: People | None, listen: Listener, began: Callable[[Drive], None]) -> Awaitable[LaunchResult]:
            return self._launching.launch_document(
                offered.document, arguments, self._launcher(caller), people=people, listen=listen, began=began
            )

        return await self._answered(caller, await self._attend(caller, work))

    async def go_on(self, caller: Client, state: str, responses: types.InputResponses | None) -> Result:
        """Continue a call that was made again, with answers to the questions of its run."""
        asked = Asked.of(state)
        if problem := self._too_many():
            return failed(problem, asked.run)
        try:
            row = await self._late.row(asked.run)
            if row.status is not Status.AWAITING_INPUT:
                return result_of(await self._late.envelope(asked.run))
            questions = await self._runtime.store.questions(asked.run)
            answers = read_answers(asked, questions, responses)
            for path, value in answers.given.items():
                await self._runtime.answer(asked.run, path, value, by=caller.form)
        except QuireError as error:
            return failed(error, asked.run)
        if answers.problems:
            again = [question for question in questions if question.path in answers.problems]
            return input_required(asked.run, again, answers.declined, answers.problems, answers.unfit)
        if not await self._runtime.store.answers(asked.run):
            return result_of(waiting(asked.run, questions))
        return await self._drive(caller, asked.run, answers.declined)

    async def resume(self, caller: Client, run: str) -> Result:
        """Continue a run that stopped, failed or was answered elsewhere; for a run that has ended, return its
        result."""
        try:
            row = await self._late.row(run)
            asks = row.status is Status.AWAITING_INPUT and not await self._runtime.store.answers(run)
            if asks or row.status in (*FINAL, Status.RUNNING):
                return await self._answered(caller, await self._late.envelope(run))
        except QuireError as error:
            return failed(error)
        return await self._drive(caller, run)

    async def _drive(self, caller: Client, run: str, declined: tuple[str, ...] = ()) -> Result:
        if problem := self._too_many():
            return failed(problem, run)

        async def work(people: People | None, listen: Listener, began: Callable[[Drive], None]) -> LaunchResult:
            runtime = await self._reopen(self._runtime, run)
            try:
                ended = await runtime.drive(run, people=people, listen=listen, began=began, attached=True)
            except RunBusy:
                return LaunchResult("started", {"run_id": run})
            return await self._launching.envelope(run, ended)

        return await self._answered(caller, await self._attend(caller, work, run), declined)

    async def take_over(self) -> None:
        """Continue the runs that a previous server had begun when it was killed."""
        under_way: set[asyncio.Task[None]] = set()
        for row in await self._late.left_behind():
            if len(under_way) >= MOST_TAKEN_OVER:
                _, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            attached = AttachedDrive()
            try:
                runtime = await self._reopen(self._runtime, row.id)
            except QuireError as error:
                self._report(f"the run {row.id} cannot continue: {error}")
                continue
            self._detached[row.id] = attached
            under_way.add(self._launching.go_on(row.id, attached.began, runtime=runtime, failed=self._report))

    def _too_many(self) -> str:
        under_way = len(self._waited_for) + sum(not drive.ended for drive in self._detached.values())
        if under_way < MOST_RUNS:
            return ""
        return f"{under_way} runs are under way, and no more than {MOST_RUNS} may be: try again when one has ended"

    def leave(self) -> None:
        """Tell every run to stop at its next boundary."""
        for attached in (*self._waited_for.values(), *self._detached.values()):
            attached.leave()

    async def close(self) -> None:
        """Bring every run to rest at its next boundary; a run that no client waits for continues in a separate
        process."""
        self.leave()
        await asyncio.gather(*self._waited_for, return_exceptions=True)
        while True:
            try:
                await self._launching.settled()
                break
            except QuireError as error:
                self._report(str(error))
        await self._leave_to_themselves()

    async def stop(self) -> None:
        """Do the same at once."""
        waited_for = list(self._waited_for)
        for task in waited_for:
            task.cancel()
        await asyncio.gather(*waited_for, return_exceptions=True)
        await self._launching.interrupt()
        await self._leave_to_themselves()

    async def _leave_to_themselves(self) -> None:
        while self._detached:
            run, _ = self._detached.popitem()
            row = await self._runtime.store.get(run)
            if row is not None and row.status in (Status.PENDING, Status.PAUSED, Status.INTERRUPTED):
                self._hand_over(run)

    def _launcher(self, caller: Client) -> Launcher:
        options = replace(self._options, key=caller.key, trace=caller.trace)
        return Launcher(caller.recipient, self._runtime.identity, GRANTS, options=options)

    async def _attend(self, caller: Client, work: Work, run: str = "") -> LaunchResult:
        """Drive a run in its own task while the client waits; if the client stops waiting, the run is stopped."""
        attached = AttachedDrive()
        asks = caller.elicits and not caller.modern
        people = Elicited(caller.session, caller.request, attached.left, caller.form) if asks else None

        async def whole() -> LaunchResult:
            try:
                async with reporting(caller.session, caller.request, log=caller.logs) as listen:
                    return await work(people, listen, attached.began)
            except QuireError as error:
                return LaunchResult("error", {**({"run_id": run} if run else {}), "error": str(error)})

        task = asyncio.create_task(whole())
        self._waited_for[task] = attached
        task.add_done_callback(self._forget)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            attached.leave()
            raise

    def _forget(self, task: asyncio.Task[LaunchResult]) -> None:
        attached = self._waited_for.pop(task)
        if attached.left.is_set() and not task.cancelled() and (error := task.exception()):
            self._report(f"a run that its client left has failed: {error}")

    async def _answered(self, caller: Client, envelope: LaunchResult, declined: tuple[str, ...] = ()) -> Result:
        """Return the result of a call; for a run that rests because it asks, its questions in the form of the client's
        protocol generation."""
        if envelope.status != "started":
            return result_of(envelope)
        run = str(envelope.data["run_id"])
        questions = await self._runtime.store.questions(run)
        open_questions = [question for question in questions if question.path not in declined]
        if caller.modern and caller.elicits and open_questions:
            return input_required(run, open_questions, declined)
        return result_of(await self._launching.warned(run, waiting(run, questions)))


def _no_values(arguments: Mapping[str, Value]) -> str:
    """Return why the arguments cannot be values of a run (JSON that is too deep, or a number that JSON does not have);
    empty if they can."""
    try:
        encode(dict(arguments))
    except InvalidValue as error:
        return f"the input cannot be used: {error}"
    return ""
