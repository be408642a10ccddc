"""The stored runs of a workspace, to be found and looked at. Everything that drives a run is in `runs/runtime`."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar
from weakref import WeakKeyDictionary

from quire.errors import BrokenSeal, NoSuchRun
from quire.stores import DEFAULT_PATH, is_server, open_store
from quire.trust.seal import seal_source, user_seal
from quire.values import clean
from quire.wording import did_you_mean, nearest
from quire.workspace.configuration import load_settings
from quire.workspace.locate import current_folder, find_workspace

if TYPE_CHECKING:
    import asyncio

    from quire.engine.ports import Store
    from quire.engine.records import Event, RunRow
    from quire.stores.shared import Sharing
    from quire.workspace.settings import Settings

T = TypeVar("T")

_READ_ALONE = 50
"""Records that are read one by one; beyond that the whole journal is read."""

_LOOKED_AT = 200
"""Runs among which the last one of the user's own is looked for."""


class StoredRuns:
    """The runs in the store of one workspace. `release` is called at the end instead of closing the store."""

    def __init__(self, settings: Settings, store: Store, release: Callable[[], Awaitable[None]] | None = None) -> None:
        self.settings = settings
        self.store = store
        self._release = release or store.close

    @classmethod
    def around(cls) -> StoredRuns:
        """Return the stored runs of the workspace around the current folder. Nothing is opened yet."""
        settings = settings_of(None, os.environ)
        return StoredRuns(settings, store_of(settings, os.environ))

    async def close(self) -> None:
        """Close the store, unless others share it, and end the servers of runs that did not start."""
        if servers := sys.modules.get("quire.tools.mcp_session"):
            await servers.end_kept_sessions()
        await self._release()

    async def is_sealed(self, run: str) -> bool:
        """Tell whether a stored run is as this user wrote it."""
        try:
            await self.store.check_seal(run)
        except BrokenSeal:
            return False
        return True

    async def find(self, prefix: str) -> str:
        """Return the one run whose id begins with `prefix`; `last` is the newest that no other run has launched, and
        that is not a try."""
        prefix = clean(prefix)
        if prefix == "last":
            newest = await self.store.list(limit=_LOOKED_AT)
            if not newest:
                raise NoSuchRun("no runs exist yet")
            return next((row.id for row in newest if not row.pins.get("reply_to") and not row.until), newest[0].id)
        ids = await self.store.find(prefix)
        if not ids:
            close = nearest(prefix, [row.id for row in await self.store.list(limit=200)])
            raise NoSuchRun(f"unknown run {prefix}" + did_you_mean(close, lead=": "))
        if len(ids) > 1 and prefix not in ids:
            raise NoSuchRun(f"{prefix} stands for several runs: {', '.join(ids[:5])}")
        return prefix if prefix in ids else ids[0]

    async def only(self, verb: Literal["answer", "resume"]) -> str:
        """Return the run that a verb means without a name: the only one that it is for. Raises `NoSuchRun`."""
        if verb == "answer":
            from quire.stores.contract import MOST_QUESTIONS

            runs = [question.run for question in (await self.store.oldest_questions(MOST_QUESTIONS))[0]]
        else:
            states = ("paused", "awaiting_input", "failed", "cancelled", "interrupted")
            runs = [row.id for row in await self.store.list(limit=_LOOKED_AT) if row.status in states]
        runs = list(dict.fromkeys(runs))
        if len(runs) == 1:
            return runs[0]
        several = f"several runs could be meant to {verb}, say which: {', '.join(runs[:_LOOKED_AT])}"
        raise NoSuchRun(several if runs else f"there are no runs to {verb}")

    async def row(self, run: str) -> RunRow:
        row = await self.store.get(run)
        if row is None:
            raise NoSuchRun(f"unknown run {run}")
        return row

    async def broken_seal(self, run: str) -> BrokenSeal | None:
        """Return the reason why the run cannot be continued: its seal is not this user's, or does not match."""
        try:
            await self.store.check_seal(run, whole=False)
        except BrokenSeal as broken:
            return broken
        return None

    async def events(self, row: RunRow, after: int = 0) -> Sequence[Event]:
        """Return the kept events of a run. Those of a thread or an agent carry the records of their effects, because
        these contain the replies and calls."""
        events = await self.store.events(row.id, after)
        replies = [event for event in events if event.type == "effect" and _is_of_model(row, event)]
        if not replies:
            return events
        if len(replies) <= _READ_ALONE:
            journal = self.store.journal()
            for event in replies:
                event.record = await journal.effect(row.id, event.path)
            return events
        records = {record.path: record for record in await self.store.effects(row.id)}
        for event in replies:
            event.record = records.get(event.path)
        return events


def _is_of_model(row: RunRow, event: Event) -> bool:
    """Tell whether an effect may be a reply with tool calls, or a call of an agent."""
    return row.format == "directive" or event.data.get("kind") == "model" or "/turn[" in event.path


def settings_of(start: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the settings of the workspace around `start`. Raises `Untrusted` for a store that was not agreed to."""
    settings = load_settings(find_workspace(start or current_folder(), environ), environ)
    if settings.store_url and "store" in settings.requested:
        from quire.workspace.consent import require_trusted

        require_trusted(settings)
    return settings


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str | None], Settings]] = WeakKeyDictionary()
_guard = threading.Lock()


def settings_of_turn(start: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the settings once for all tasks that begin a run in the same turn of the running event loop, as a thousand
    do that a program starts at once. A task that comes later reads them anew."""
    import asyncio  # not for verbs that only read

    loop = asyncio.get_running_loop()
    with _guard:
        settings = _turns.get(loop)
        if settings is None:
            settings = _turns[loop] = {}
            loop.call_soon(_turns.pop, loop, None)
    key = (str(start or current_folder()), environ.get("QUIRE_HOME"))
    if key not in settings:
        settings[key] = settings_of(start, environ)
    return settings[key]


def store_of(settings: Settings, environ: Mapping[str, str]) -> Store:
    seal = user_seal(settings.user, environ)
    return open_store(store_place(settings), durability=settings.runs.durability, seal=seal)


def shared_store_of(settings: Settings, environ: Mapping[str, str]) -> Sharing:
    from quire.stores.shared import share_store

    durability, seal = settings.runs.durability, user_seal(settings.user, environ)
    source = seal_source(settings.user, environ)
    return share_store(store_place(settings), durability=durability, seal=seal, seal_source=source)


def store_place(settings: Settings) -> str | Path:
    return settings.store_url or settings.workspace.folder / DEFAULT_PATH


def finish_reading(work: Coroutine[object, object, T], place: str | Path) -> T:
    """Run a coroutine to its end that only reads the store at a place.

    Reading a file never waits: then no event loop is needed, whose import takes longer than most reads."""
    if is_server(place):
        import asyncio

        return asyncio.run(work)
    return run_without_loop(work)


def run_without_loop(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine without an event loop: it computes or reads files, and at most lets other tasks go first."""
    try:
        while (waits := work.send(None)) is None:
            pass
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        work.close()
    raise AssertionError(f"{work} waits for {waits!r}")
