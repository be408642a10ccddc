"""Runs of documents with scripted replies, through the real runtime and a real store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quire.engine.driver.drive import DriveResult
from quire.engine.ports import Model
from quire.engine.records import Event, RunRow
from quire.library.document import Document, load
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.outcome import RunView
from quire.runs.runtime import Runtime
from quire.values import Value

FINE: Sequence[Value] = ({"default": "fine"},)


@dataclass
class Played:
    """A run that was driven until it rested, and the events of that drive."""

    run: str
    ended: DriveResult
    row: RunRow
    runtime: Runtime
    events: list[Event] = field(default_factory=list)

    async def view(self) -> RunView:
        return await self.runtime.view(self.run)


class Play:
    """Start and drive documents of a folder. The script of the last `open` answers, at first with `fine` always."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runtimes: list[Runtime] = []

    def open(self, replies: Sequence[Value] = FINE, model: Model | None = None) -> Runtime:
        """Open the workspace as another process would, with another model than the scripted one if it is given."""
        self.model = ScriptedModel(list(replies))
        self._runtimes.append(Runtime.open(self.folder, model=model or self.model))
        return self.runtime

    @property
    def runtime(self) -> Runtime:
        return self._runtimes[-1] if self._runtimes else self.open()

    async def start(
        self, document: Document | Path | str, inputs: Mapping[str, Value] | None = None, **options: Any
    ) -> str:
        """Start a run and return its id. The options are those of `RunOptions`."""
        read = document if isinstance(document, Document) else load(self.folder / document)
        return await self.runtime.start(read, inputs or {}, RunOptions(**options))

    async def __call__(
        self,
        document: Document | Path | str,
        replies: Sequence[Value] | None = None,
        inputs: Mapping[str, Value] | None = None,
        **options: Any,
    ) -> Played:
        """Start a run and drive it until it rests; `answers` by the label of a step are among the options."""
        if replies is not None:
            self.open(replies)
        run = await self.start(document, inputs, **options)
        events: list[Event] = []
        ended = await self.runtime.drive(run, listen=events.append)
        return Played(run, ended, await self.runtime.row(run), self.runtime, events)

    async def close(self) -> None:
        for runtime in self._runtimes:
            await runtime.close()
