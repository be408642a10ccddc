"""Tell the user's own program (`[notify] command`) that a run waits, is complete or has failed.

The process that drove the run tells it, once, after the run has come to rest: a run never waits for the program, and
never fails because of it. If that process is killed in between, nothing is told. The program is started without a
shell, in the user folder, and gets the event as JSON on its stdin, without secrets.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import signal
import tempfile
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from quire.engine.records import Status
from quire.errors import QuireError
from quire.plan.vocabulary import is_named, typed_way
from quire.values import InvalidValue, encode

if TYPE_CHECKING:
    from quire.engine.driver.drive import DriveResult
    from quire.engine.records import Question, RunRow
    from quire.runs.pins import PinnedState
    from quire.runs.runtime import Runtime
    from quire.trust.secrets import Redactor
    from quire.values import Value
    from quire.workspace.settings import NotifySettings

SECONDS = 10.0
"""Time that the program has; then it is ended."""
LONGEST_TEXT = 2000
_LONGEST_PROBLEM = 300
_AT_ONCE = 4
"""Programs that one process runs side by side."""

_ENDS = {Status.COMPLETED: "run.completed", Status.FAILED: "run.failed"}
_WAITING = "run.waiting"

Asked = frozenset[tuple[str, str]]
"""Open questions, each by its path and its hash."""

_under_way: set[asyncio.Task[None]] = set()


async def asked_before(runtime: Runtime, row: RunRow) -> Asked:
    """Return the open questions of a run that is about to be driven: the user was told of them before."""
    if row.status is not Status.AWAITING_INPUT:
        return frozenset()
    return frozenset((question.path, question.hash) for question in await runtime.store.questions(row.id))


async def announce(
    runtime: Runtime, row: RunRow, pins: PinnedState, ended: DriveResult, before: Asked = frozenset()
) -> None:
    """Start the user's program, if the rest of a run is an event that it is to be told of. Does not wait for it, and
    does not raise: the run has come to rest in any case."""
    settings = runtime.settings.notify
    if settings is None:
        return
    try:
        await _announce(runtime, settings, row, pins, ended, before)
    except (QuireError, InvalidValue, OSError) as error:
        runtime.notice(f"warning: [notify]: {error}")


async def _announce(
    runtime: Runtime, settings: NotifySettings, row: RunRow, pins: PinnedState, ended: DriveResult, before: Asked
) -> None:
    questions = await runtime.store.questions(row.id) if ended.status is Status.AWAITING_INPUT else ()
    type = _type(ended, pins.breakpoints, questions, before)
    if type not in settings.events or (type != _WAITING and await _is_launched(runtime, pins)):
        return
    from quire.runs.workspace_gate import redactor_of

    redactor = redactor_of(runtime.settings, runtime.environ)
    latest = await runtime.store.get(row.id) or row
    event = redactor.value(_event(type, latest, ended, questions, str(runtime.settings.workspace.folder)))
    task = asyncio.create_task(_run(runtime, settings.command, encode(event).encode(), redactor))
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)


async def all_told() -> None:
    """Wait for the programs that this event loop has started; each of them has a time limit."""
    mine = [task for task in _under_way if task.get_loop() is asyncio.get_running_loop()]
    if mine:
        await asyncio.gather(*mine, return_exceptions=True)


def _type(ended: DriveResult, breakpoints: Iterable[str], questions: Iterable[Question], before: Asked) -> str:
    """Return the type of the event; empty if the rest is not one, such as that of a run which its user stopped."""
    if ended.status is Status.AWAITING_INPUT:
        return _WAITING if any((question.path, question.hash) not in before for question in questions) else ""
    if ended.status is Status.PAUSED:
        return _WAITING if is_named(ended.position, [typed_way(name) for name in breakpoints]) else ""
    return _ENDS.get(ended.status, "")


async def _is_launched(runtime: Runtime, pins: PinnedState) -> bool:
    """Tell whether another run has launched this one: its end is a matter of that run."""
    return bool(pins.reply_to) and await runtime.store.get(pins.reply_to) is not None


def _event(
    type: str, row: RunRow, ended: DriveResult, questions: Collection[Question], folder: str
) -> Mapping[str, Value]:
    failure = ended.failure
    event: dict[str, Value] = {
        "type": type,
        "timestamp": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "summary": _summary(type, row, ended, questions),
        "run": row.id,
        "title": row.title[:LONGEST_TEXT],
        "subject": row.label,
        "status": str(ended.status),
        "document": row.document,
        "workspace": folder,
        "step": ended.position,
        "cost": row.cost,
    }
    if questions:
        event["questions"] = [
            {
                "step": question.way,
                "path": question.path,
                "kind": question.kind,
                "prompt": question.prompt[:LONGEST_TEXT],
                "options": list(question.options),
                "expires_at": question.expires_at,
            }
            for question in list(questions)[:100]
        ]
    if failure is not None:
        event["error"] = {"kind": failure.kind, "message": failure.message[:LONGEST_TEXT]}
    return event


def _summary(type: str, row: RunRow, ended: DriveResult, questions: Collection[Question]) -> str:
    """Return one line for people. It holds no text that a model or a person has written while the run continued."""
    name = " ".join((row.title or row.id).split())[:200]
    where = f" at step {ended.position}" if ended.position else ""
    if type == "run.completed":
        return f"{name}: complete"
    if type == "run.failed":
        kind = f" ({ended.failure.kind})" if ended.failure else ""
        return f"{name}: failed{where}{kind}"
    if len(questions) > 1:
        return f"{name}: {len(questions)} questions wait for an answer"
    return f"{name}: waits for an answer{where}" if questions else f"{name}: paused{where}"


def announce_refusal(runtime: Runtime, trigger: str, reason: str) -> None:
    """Start the user's program, if it is to be told that a trigger was refused."""
    settings = runtime.settings.notify
    if settings is None or "trigger.refused" not in settings.events:
        return
    from quire.runs.workspace_gate import redactor_of

    redactor = redactor_of(runtime.settings, runtime.environ)
    event: dict[str, Value] = {
        "type": "trigger.refused",
        "timestamp": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "summary": f"trigger {trigger} is refused",
        "trigger": trigger,
        "reason": redactor.text(reason)[:LONGEST_TEXT],
        "workspace": str(runtime.settings.workspace.folder),
    }
    task = asyncio.create_task(_run(runtime, settings.command, encode(event).encode(), redactor))
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)


_places: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


async def _run(runtime: Runtime, command: tuple[str, ...], event: bytes, redactor: Redactor) -> None:
    loop = asyncio.get_running_loop()
    for gone in [place for place in _places if place.is_closed()]:
        del _places[gone]
    async with _places.setdefault(loop, asyncio.Semaphore(_AT_ONCE)):
        try:
            problem = await _told(runtime, command, event)
        except (OSError, ValueError) as error:
            problem = f"cannot be started: {error}"
    if problem:
        reason = " ".join(redactor.text(problem).split())[:_LONGEST_PROBLEM]
        runtime.notice(f"warning: [notify] {command[0]}: {reason}")


async def _told(runtime: Runtime, command: tuple[str, ...], event: bytes) -> str:
    """Run the program, and return its error, or an empty text. Raises `OSError` or `ValueError` if it cannot be
    started.

    Its stdin and stderr are files: it need not read the one, and a child of it may keep the other open.
    """
    with tempfile.TemporaryFile() as random, tempfile.TemporaryFile() as errors:
        random.write(event)
        random.seek(0)
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=random,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=errors,
            # Not in the workspace: a relative name must not find a program there.
            cwd=runtime.settings.user,
            env=dict(runtime.environ),
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(SECONDS):
                status = await process.wait()
        except TimeoutError:
            return f"took longer than {SECONDS:g} s and was ended"
        finally:
            if process.returncode is None:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if status == 0:
            return ""
        errors.seek(0)
        output = errors.read(LONGEST_TEXT).decode("utf-8", "replace").strip()
        return f"ended with status {status}" + (f": {output}" if output else "")
