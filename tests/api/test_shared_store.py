"""Runs of one workspace that are under way in one event loop share a store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from quire.runs.runtime import Runtime
from quire.stores import shared
from quire.stores.sqlite.database import Database
from quire.trust.seal import PUBLIC_SEAL

PIPELINE = "pipeline: five\nsteps:\n" + "".join(
    f"  - transform: {{value: '{number}', output: s{number}}}\n" for number in range(5)
)


pytestmark = pytest.mark.usefixtures("workspace")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The files that were opened. Nothing stays shared afterwards."""
    files: list[Path] = []
    whole = Database._open

    def counted(self: Database) -> object:
        files.append(self.path)
        return whole(self)

    monkeypatch.setattr(Database, "_open", counted)
    yield files
    assert not any(shared._loops.values())


async def test_runs_side_by_side_open_the_file_once(opened: list[Path]) -> None:
    results = await asyncio.gather(*(quire.run(PIPELINE) for _ in range(20)))
    assert {result.status for result in results} == {quire.Status.COMPLETED}
    assert len({result.run for result in results}) == 20
    assert len(opened) == 1


async def test_launches_share_it_too(opened: list[Path]) -> None:
    envelopes = await asyncio.gather(*(quire.launch(PIPELINE, inline=True) for _ in range(5)))
    assert [envelope["status"] for envelope in envelopes] == ["ok"] * 5
    assert len(opened) == 1


async def test_a_run_that_is_stopped_leaves_the_store_to_the_others(opened: list[Path]) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def wait(seconds: float) -> None:
        asked.set()
        await go_on.wait()

    playbook = "# A\n\n## STEP 1: Say\n\nSay.\n"
    stopped, going = (
        asyncio.ensure_future(
            quire.run(playbook, model=quire.ScriptedModel([{"reply": "x", "delay_ms": 1}], sleep=wait))
        )
        for _ in range(2)
    )
    await asked.wait()
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    go_on.set()
    assert (await going).output == "x"
    assert len(opened) == 1


async def test_other_workspaces_and_keys_have_stores_of_their_own(
    opened: list[Path], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = workspace / "other"
    other.mkdir()
    (other / "quire.toml").touch()
    here = Runtime.open(shared=True)
    same = Runtime.open(shared=True)
    elsewhere = Runtime.open(other, shared=True)
    monkeypatch.setenv("QUIRE_SEAL_KEY", "k" * 32)
    sealed = Runtime.open(shared=True)
    assert here.store is same.store
    assert len({id(one.store) for one in (here, elsewhere, sealed)}) == 3
    for runtime in (here, same, elsewhere, sealed):
        await runtime.close()
        await runtime.close()


def test_loops_in_several_threads(opened: list[Path]) -> None:
    """A store belongs to one thread and one loop."""
    statuses: list[str] = []

    def loop() -> None:
        async def several() -> None:
            statuses.extend(result.status for result in await asyncio.gather(*(quire.run(PIPELINE) for _ in range(3))))

        asyncio.run(several())

    threads = [threading.Thread(target=loop) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == ["completed"] * 9
    assert len(opened) == 3


async def test_a_store_is_opened_anew_for_the_next_user(opened: list[Path], workspace: Path) -> None:
    place = workspace / "x.db"
    first = shared.share_store(place, durability="process", seal=PUBLIC_SEAL, seal_source="")
    await first.release()
    second = shared.share_store(place, durability="process", seal=PUBLIC_SEAL, seal_source="")
    assert first.store is not second.store
    await second.release()
