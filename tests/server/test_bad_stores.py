"""A store that is locked, read-only, full or gone: API and page say so in the words of the command line, and go on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import expect
from tests.browser import Pages
from tests.server.served import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKS = '# Ask\n\n## STEP 1: Decide\n\n@elicit(confirm, "Go on?")\n'


def connection_of(server: Served) -> sqlite3.Connection:
    connection: sqlite3.Connection = server.site.runtime.store._database.connection()  # type: ignore[attr-defined]
    return connection


@contextmanager
def locked(server: Served) -> Iterator[None]:
    """Another connection holds the write lock."""
    connection_of(server).execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(server.folder / ".quire" / "quire.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def full(server: Served) -> Iterator[None]:
    """The file cannot grow."""
    (pages,) = connection_of(server).execute("PRAGMA page_count").fetchone()
    connection_of(server).execute(f"PRAGMA max_page_count = {pages}")
    yield
    connection_of(server).execute("PRAGMA max_page_count = 1000000")


@contextmanager
def read_only(server: Served) -> Iterator[None]:
    connection_of(server).execute("PRAGMA query_only = ON")
    yield
    connection_of(server).execute("PRAGMA query_only = OFF")


Trouble = Callable[[Served], AbstractContextManager[None]]


async def answer(client: httpx2.AsyncClient, run: str) -> httpx2.Response:
    question = (await client.get("/questions", params={"run": run})).json()["items"][0]
    body = {"value": "yes", "hash": question["hash"]}
    return await client.post(f"/questions/{run}/{question['path']}/answer", json=body)


@pytest.mark.parametrize(
    ("trouble", "code", "said"),
    [
        (locked, "store-locked", "is locked by another process: try again when it has finished"),
        (read_only, "store", "is read-only: make the file and its folder writable"),
        (full, "store", "no room left on the disk"),
    ],
    ids=["locked", "read-only", "full"],
)
async def test_what_cannot_be_written_is_said_in_the_page_and_works_later(
    pages: Pages, tmp_path: Path, trouble: Trouble, code: str, said: str
) -> None:
    documents = {"ask.playbook.md": ASKS, "long.playbook.md": f"# Long\n\n{'word ' * 10_000}\n\n{ASKS[7:]}"}
    async with served(tmp_path / "team", documents) as server, server.client() as client:
        run = (await server.start("ask.playbook.md"))["id"]
        await server.site.runs.ended(run, 30)
        page = await pages.open(server.url)
        await expect(page.get_by_text("Go on?")).to_be_visible()
        with trouble(server):
            started = await client.post("/runs", json={"document": "long.playbook.md"})
            assert (started.status_code, started.json()["code"]) == (503, code), started.text
            assert said in started.json()["detail"] and started.headers["retry-after"] == "2"
            if trouble is not full:  # an answer is so short that it finds room
                refused = await answer(client, run)
                assert (refused.status_code, refused.json()["code"]) == (503, code), refused.text
                await page.get_by_role("button", name="yes").click()
                await expect(page.get_by_text(said)).to_be_visible()
                await expect(page.get_by_text("Go on?")).to_be_visible()
            assert (await client.get(f"/runs/{run}")).json()["status"] == "awaiting_input"
        await page.get_by_role("button", name="yes").click()
        await expect(page.get_by_role("heading", name="Ended")).to_be_visible()
        assert (await client.get(f"/runs/{run}")).json()["status"] == "completed"
    pages.faults[:] = [fault for fault in pages.faults if "503" not in fault]


async def test_a_store_that_was_removed_is_said(pages: Pages, tmp_path: Path) -> None:
    gone = "was removed or replaced while it was in use: start Quire again"
    async with served(tmp_path / "team", {"ask.playbook.md": ASKS}) as server, server.client() as client:
        run = (await server.start("ask.playbook.md"))["id"]
        await server.site.runs.ended(run, 30)
        page = await pages.open(server.url)
        await expect(page.get_by_text("Go on?")).to_be_visible()
        folder = server.folder / ".quire"
        folder.rename(server.folder / "elsewhere")
        await expect(page.locator(".bar", has_text=gone)).to_be_visible()
        await expect(page.get_by_text("Go on?")).to_be_visible()
        for request in (client.get("/runs"), client.post("/runs", json={"document": "ask.playbook.md"})):
            told = await request
            assert (told.status_code, told.json()["code"]) == (503, "store"), told.text
            assert gone in told.json()["detail"]
        assert not folder.exists()
        assert (await client.get("/documents")).status_code == 200
        (server.folder / "elsewhere").rename(folder)
        await expect(page.locator(".bar", has_text=gone)).to_be_hidden()
        await page.get_by_role("button", name="yes").click()
        await expect(page.get_by_role("heading", name="Ended")).to_be_visible()
    pages.faults[:] = [fault for fault in pages.faults if "503" not in fault]
