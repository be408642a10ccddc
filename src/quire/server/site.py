"""The site: one workspace as one server, and everything that the handlers of requests need."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.operations.host import Caller
from quire.operations.problems import Problem
from quire.operations.shelf import Shelf
from quire.runs.live_views import LiveViews
from quire.runs.ticker import Ticker
from quire.server.handlers.language_sessions import LanguageSessions
from quire.server.hub import Changes, Hub
from quire.server.markup import Renderer
from quire.server.own_runs import MOST_RUNS, OwnRuns
from quire.server.run_index import RunIndexer
from quire.server.webhooks import Webhooks
from quire.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime

ANSWERED_BY = "web"
DOOR = "serve"
"""The mark of runs that a server has started, in their pins."""
LOG_LINES = 200


class SiteOptions(Struct, frozen=True):
    """The options that the user starts the server with."""

    allow: tuple[str, ...] = ()
    """Tools that runs may be granted, besides those of the settings."""
    edit: bool = False
    base: str = ""
    """The path below which the server is reached, such as `/quire`; empty for the root."""
    place: str = ""
    """The address of the server, as a URL without the token."""
    debug: bool = False
    """Requests are reported, and a mistake of ours is answered with its traceback."""
    model: str | None = None
    budget: float | None = None
    """The model and the budget of runs whose request names none."""
    webhooks: bool = False
    """Events are sent to the addresses of the user's settings."""


class Site:
    def __init__(
        self,
        runtime: Runtime,
        options: SiteOptions,
        *,
        hand_over: Callable[[str], None],
        report: Callable[[str], None],
    ) -> None:
        self.runtime = runtime
        self.options = options
        self.started_at = time.time()
        self.log: deque[tuple[float, str]] = deque(maxlen=LOG_LINES)
        """The last lines for the user, each with its time."""
        self._report = report
        self.caller = Caller(
            DOOR,
            ANSWERED_BY,
            person=True,
            allow=options.allow,
            edits=options.edit,
            model=options.model,
            budget=options.budget,
        )
        self.shelf = Shelf(runtime)
        self.hub = Hub(Changes(runtime, self.shelf.stamp), self.report, runtime.settings.serve.listeners)
        self.views = LiveViews(runtime)
        self.renderer = Renderer()
        self.languages = LanguageSessions()
        self.runs = OwnRuns(
            runtime,
            self.views,
            listen=self.hub.listen,
            written=self.hub.written,
            hand_over=hand_over,
            report=self.report,
        )
        self.ticker = Ticker(runtime, "serve", self.drive, self.report, MOST_RUNS, lambda: len(self.runs))
        self.indexer = RunIndexer(runtime)
        self.metrics = Metrics(runtime.store, self.folder)
        self.webhooks = (
            Webhooks(runtime, link=options.place, allow=options.allow, report=self.report) if options.webhooks else None
        )

    @property
    def folder(self) -> Path:
        return self.runtime.settings.workspace.folder

    def report(self, text: str) -> None:
        """Print a line for the user, and keep it for the page."""
        self.note(text)
        self._report(text)

    def note(self, text: str) -> None:
        """Keep a line for the page."""
        self.log.append((time.time(), text))

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Watch the store and continue what the last server has left, until the server ends."""
        tasks = [
            asyncio.create_task(self.hub.watch()),
            # A large workspace takes seconds to read; the first list should not wait for that.
            asyncio.create_task(asyncio.to_thread(self.shelf.all)),
            asyncio.create_task(self.ticker.sweep(time.time(), age=0.0)),
        ]
        ticking = asyncio.create_task(self.ticker.run())
        if self.webhooks is not None:
            self.webhooks.open()
            tasks.append(asyncio.create_task(self.webhooks.run()))
        try:
            yield
        finally:
            self.ticker.be("leaving")
            self.languages.close()
            await self.renderer.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.indexer.close()
            await self.runs.close()
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)

    def leave(self) -> None:
        """End the streams and the requests that wait for a run, because the server stops."""
        self.hub.close()
        self.runs.leave()

    async def drive(self, run: str) -> None:
        """Continue a run, if there is room for it."""
        with contextlib.suppress(Problem):  # no room is left, or the server is stopping
            await self.runs.go_on(run)
