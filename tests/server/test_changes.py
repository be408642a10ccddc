"""A server notices what other processes change in the store and in the folder, and when they die."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.served import Served, served

from quire.engine.records import Batch, RunUpdate, Status
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.server import hub
from quire.server.hub import Changed

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKS = '# Ask\n\n## STEP 1: Decide\n\n@elicit(confirm, "Go on?")\n'


@pytest.fixture(autouse=True)
def always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "SECONDS_BETWEEN_ROWS", 0.0)
    monkeypatch.setattr(hub, "SECONDS_BETWEEN_DOCUMENTS", 0.0)


async def look(server: Served) -> Changed:
    return await server.site.hub._changes.since_last(())


def statuses(changed: Changed) -> dict[str, str]:
    return {run: str(row.status) for run, row in changed.runs.items()}


async def test_runs_and_questions_of_another_process(tmp_path: Path, settings: str) -> None:
    async with served(tmp_path / "team", {"ask.playbook.md": ASKS}, settings=settings) as server:
        await look(server)
        assert await look(server) == Changed()
        other = server.other()
        run = await other.start(load(server.folder / "ask.playbook.md"), {}, RunOptions())
        assert statuses(await look(server)) == {run: "pending"}
        await other.drive(run)
        changed = await look(server)
        assert (statuses(changed), changed.questions) == ({run: "awaiting_input"}, True)
        await other.answer(run, "1/ask", "yes")
        assert (await look(server)).questions
        await other.drive(run)
        assert statuses(await look(server)) == {run: "completed"}
        assert await look(server) == Changed()
        await other.close()


async def test_a_process_that_dies_while_it_drives_a_run(tmp_path: Path, settings: str) -> None:
    async with served(tmp_path / "team", {"ask.playbook.md": ASKS}, settings=settings) as server:
        other = server.other()
        run = await other.start(load(server.folder / "ask.playbook.md"), {}, RunOptions())
        lease = await other.store.acquire(run)
        await other.store.write(lease, Batch(update=RunUpdate(status=Status.RUNNING)))
        assert statuses(await look(server)) == {run: "running"}
        await other.close()
        assert statuses(await look(server)) == {run: "interrupted"}


async def test_runs_that_are_removed_and_documents_that_are_written(tmp_path: Path, settings: str) -> None:
    async with served(tmp_path / "team", {"ask.playbook.md": ASKS}, settings=settings) as server:
        other = server.other()
        run = await other.start(load(server.folder / "ask.playbook.md"), {}, RunOptions(answers={"1": "yes"}))
        await other.drive(run)
        assert statuses(await look(server)) == {run: "completed"}
        await other.store.prune(2e9 + 1e9, [Status.COMPLETED], dry_run=False, vacuum=False)
        assert (await look(server)).gone == (run,)
        assert not (await look(server)).documents
        server.write("new.playbook.md", ASKS)
        assert (await look(server)).documents
        assert not (await look(server)).documents
        await other.close()
