"""Fills the index of runs, a little at each request: the newest runs first, each when it has ended or comes to rest.

A request waits a fraction of a second at most; the rest goes on behind it. A run is replayed for its prompts and its
artifact, unless its journal is long: then its replies and answers are found, and its prompts are not.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import sqlite3
import time
from typing import TYPE_CHECKING

from quire.display.transcript import prompt_text
from quire.engine.records import Status
from quire.engine.requests import HumanRequest, ModelRequest
from quire.errors import QuireError
from quire.operations.shelf import pinned_file
from quire.server.run_index import HEAD, LONGEST_TEXT, Artifact, RunIndex, RunText
from quire.stores.contract import Watchable
from quire.stores.run_list import Lister, RunFilters
from quire.values import encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from quire.engine.records import EffectRecord, RunRow
    from quire.runs.runtime import Runtime
    from quire.runs.view import RunView

SECONDS_TO_WAIT = 0.4
"""The longest that a request waits for the index."""
SECONDS_BETWEEN = 1.0
OVERLAP_SECONDS = 10.0
MOST_RUNS = 5000
"""The newest runs that are indexed."""
MOST_REPLAYED = 500
"""Effects of a run up to which it is replayed for its prompts."""
MOST_OF_RUN = 400_000
"""Characters of one run that are indexed."""
PAGE = 100


class RunIndexer:
    """The index of one workspace, and the task that fills it. All calls belong to one event loop."""

    def __init__(self, runtime: Runtime) -> None:
        folder = hashlib.sha256(os.fsencode(runtime.settings.workspace.folder)).hexdigest()[:24]
        self.index = RunIndex(runtime.settings.user / "serve" / f"{folder}.index.db")
        self._runtime = runtime
        self._task: asyncio.Task[None] | None = None
        self._stamps: dict[str, str] | None = None
        self._filled_at = 0.0
        self._looked_at = 0.0
        self.problem = ""
        """Says why the index cannot be used; empty if it can."""

    @property
    def runs(self) -> int:
        """The number of runs in the index."""
        return len(self._stamps or ())

    @property
    def whole(self) -> bool:
        """Tell whether all runs that the index is to hold are in it."""
        return self._task is None or self._task.done()

    async def ready(self) -> None:
        """Bring the index up to date, as far as a request can wait for it."""
        if self.whole and time.monotonic() > self._filled_at + SECONDS_BETWEEN:
            self._task = asyncio.create_task(self._fill())
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=SECONDS_TO_WAIT)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.index.close()

    async def forget(self, run: str) -> None:
        """Remove a run that no longer exists."""
        (self._stamps or {}).pop(run, None)
        with contextlib.suppress(sqlite3.Error):
            await asyncio.to_thread(self.index.remove, run)

    async def _fill(self) -> None:
        try:
            if self._stamps is None:
                self._stamps = await asyncio.to_thread(self.index.stamps)
                await self._fill_all()
            else:
                await self._fill_changed()
            self.problem = ""
        except (sqlite3.Error, OSError, QuireError) as error:
            self._stamps = None
            self.problem = f"the index of texts cannot be used: {error}"
        self._filled_at = time.monotonic()

    async def _fill_all(self) -> None:
        """Index the newest runs, page by page."""
        self._looked_at = time.time()
        store, after, seen = self._runtime.store, None, 0
        if not isinstance(store, Lister):
            for row in await store.list(limit=PAGE):
                await self._take(row)
            return
        while seen < MOST_RUNS:
            page = await store.page(RunFilters(), after, PAGE)
            for row in page.rows:
                await self._take(row)
            seen, after = seen + len(page.rows), page.next
            if after is None:
                return

    async def _fill_changed(self) -> None:
        """Index the runs that changed since the last look."""
        store = self._runtime.store
        since, self._looked_at = self._looked_at - OVERLAP_SECONDS, time.time()
        rows = await store.written_since(since) if isinstance(store, Watchable) else await store.list(limit=PAGE)
        for row in rows:
            await self._take(row)

    async def _take(self, row: RunRow) -> None:
        stamp = f"{row.status} {row.updated_at!r}"
        if self._stamps is None or self._stamps.get(row.id) == stamp or row.status is Status.RUNNING:
            return
        effects = await self._runtime.store.effects(row.id)
        view = None
        if len(effects) <= MOST_REPLAYED or row.status is Status.COMPLETED:
            with contextlib.suppress(QuireError):  # A run of another version: its replies are found all the same.
                view = await self._runtime.view(row.id)
        texts = list(_bounded(_texts(row, effects, view if len(effects) <= MOST_REPLAYED else None)))
        await asyncio.to_thread(
            self.index.put, row.id, stamp, texts, _artifact(row, view, self._runtime.settings.workspace.folder)
        )
        self._stamps[row.id] = stamp


def _texts(row: RunRow, effects: Sequence[EffectRecord], view: RunView | None) -> Iterator[RunText]:
    if inputs := row.pins.get("inputs"):
        yield RunText("input", "", encode(inputs))
    if row.failure:
        yield RunText("error", row.ended_by[0] if row.ended_by else "", row.failure.message)
    for record in effects:
        value = record.value
        if record.kind == "model" and isinstance(value, dict):
            yield RunText("reply", record.path, str(value.get("text", "")))
        elif record.kind == "ask" and isinstance(value, str):
            yield RunText("answer", record.path, value)
    for path, request in view.replay.asked.items() if view else ():
        if isinstance(request, ModelRequest):
            yield RunText("prompt", path, prompt_text(request))
        elif isinstance(request, HumanRequest):
            yield RunText("question", path, request.prompt)


def _bounded(texts: Iterator[RunText]) -> Iterator[RunText]:
    left = MOST_OF_RUN
    for text in texts:
        left -= min(len(text.body), LONGEST_TEXT)
        if left < 0:
            return
        yield text


def _artifact(row: RunRow, view: RunView | None, folder: Path) -> Artifact | None:
    if view is None or not view.replay.finished or not view.artifact:
        return None
    text = view.artifact
    kind = view.file_type or "text"
    file = pinned_file(folder, row)
    document = file.id if file else row.document
    return Artifact(row.id, row.title, document, kind, len(text), text[:HEAD], row.updated_at)
