"""Two workspaces of one user on one store: each has the triggers and the runs of its own folder, and its own files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.runs.trigger_place import Place, nothing

from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.runs.ticker import Ticker
from quire.runs.triggers import Triggers
from quire.stores import open_store
from quire.trust.seal import user_seal

LATER = 86_405.0


class Two:
    """The workspaces `a` and `b`, with documents of the same names. `noon` is in the settings of their user."""

    def __init__(self, base: Path) -> None:
        self.a, self.b = Place(base / "a"), Place(base / "b")
        self.b.home, self.b.clock = self.a.home, self.a.clock
        self.b.environ["QUIRE_HOME"] = str(self.a.home)
        self.a.configure(noon='cron = "0 12 * * *"')
        self.of_a, self.of_b = self.runtime(self.a), self.runtime(self.b)

    def runtime(self, place: Place) -> Runtime:
        seal = user_seal(self.a.home, self.a.environ)
        return place.runtime(open_store(self.a.base / "runs.db", seal=seal, now=self.a.clock.now))

    async def aclose(self) -> None:
        await self.of_a.close()
        await self.of_b.close()


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Two]:
    async with aclosing(Two(tmp_path)) as two:
        yield two


async def test_a_trigger_starts_nothing_in_another_workspace(two: Two) -> None:
    triggers = await two.a.enabled(two.of_a, "noon")
    two.a.clock.time += LATER
    others = Triggers(two.of_b)
    assert await others.tick(two.a.clock.now(), nothing) == []
    assert "another user or folder" in (await others.rows())["noon"][2]
    (run,) = await triggers.tick(two.a.clock.now(), nothing)
    assert (await two.of_a.row(run)).pins["folder"] == str(two.a.work)
    driven: list[str] = []

    async def drive(run: str) -> None:
        driven.append(run)

    assert await others.tick(two.a.clock.now(), drive) == driven == []


async def test_the_oldest_process_of_each_workspace_starts_its_triggers(two: Two) -> None:
    await two.a.enabled(two.of_a, "noon")
    tickers = []
    for runtime in (two.of_b, two.of_a, two.of_a):
        tickers.append(Ticker(runtime, "serve", nothing, print, 1, lambda: 0))
        two.a.clock.time += 1
    for ticker in [*tickers, *tickers]:
        await ticker.beat()
    assert [ticker.is_oldest() for ticker in tickers] == [True, True, False]


async def test_no_process_continues_or_removes_a_run_of_another_workspace(two: Two) -> None:
    (two.a.home / "quire.toml").write_text('[runs]\nkeep = "1h"\n')
    library = two.a.home / "playbooks"
    library.mkdir()
    options = RunOptions(source="nightly", model=f"script:{two.a.work}/script.json")
    runs, driven = list[str](), list[str]()
    for folder in (two.a.work, two.b.work, library):
        (folder / "hello.playbook.md").write_text("# Hello\n\n## STEP 1: Say\n\nSay hello.\n")
        runs.append(await two.of_a.start(load(folder / "hello.playbook.md"), {}, options))

    async def drive(run: str) -> None:
        driven.append(run)
        await two.of_b.drive(run)

    ticker = Ticker(two.runtime(two.b), "serve", drive, print, 1, lambda: 0)
    await ticker.sweep(two.a.clock.now() + LATER)
    assert sorted(driven) == sorted(runs[1:])
    await two.of_a.drive(runs[0])
    await ticker.prune(two.a.clock.now() + LATER)
    assert [row.id for row in await two.of_a.store.list()] == runs[:1]
    await ticker._runtime.close()
