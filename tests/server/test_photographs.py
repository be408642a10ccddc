"""Photographs of every screen in an empty, an ordinary and a huge workspace: light, dark, and on a phone.

`QUIRE_SCREENSHOTS=FOLDER pytest tests/server/test_photographs.py` keeps them, to be looked at. Without a folder every
screen is visited at one look: it must show its heading, and nothing may fail.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.browser import Pages, each_look, picture
from tests.depth import LONG as LONG_SUITE
from tests.server.served import Served, served
from tests.server.team_workspace import ordinary_day, triage, write_documents
from tests.server.test_every_screen import WEEKLY, Team, forgive, go, ready

from quire.server.site import SiteOptions

pytestmark = pytest.mark.asyncio(loop_scope="session")

WHOLE = ("/", "/documents", "/runs", "/artifacts", "/search?q=export", "/trust", "/health", "/api")
"""Screens about the whole workspace: those that an empty one has."""
KEEPS = "QUIRE_SCREENSHOTS" in os.environ
MANY_DOCUMENTS, MANY_RUNS, MANY_ITEMS = (400, 300, 1000) if KEEPS or LONG_SUITE else (60, 40, 200)
LONG = "A title that is much longer than a list can show, " * 6
SMALL = "# Note {at}: {long}\n\n## STEP 1: Write\n\nWrite.\n"
STEPS = "".join(f"## STEP {at}: Part {at}\n\nWrite part {at} of {{{{topic}}}}.\n\n" for at in range(1, 301))
BOOK = f"# Handbook\n\n## INPUTS\n\n- `topic` (string): {LONG}\n\n{STEPS}"


async def _photograph(pages: Pages, server: Served, screens: Mapping[str, str], kind: str) -> None:
    page = await pages.open(server.url)
    await ready(page)
    for name, path in screens.items():
        await go(page, path)
        # A screen that cannot show its data says so in a box; only the run that does not exist has one.
        assert await page.locator(".problem").count() == (name == "no such run"), name
        if KEEPS:
            await each_look(page, f"{kind}-{name.strip('/').replace('/', '-') or 'now'}", picture)
    forgive(pages)


async def test_an_empty_workspace(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "empty", {}) as server:
        await _photograph(pages, server, {path.partition("?")[0]: path for path in WHOLE}, "empty")


async def test_an_ordinary_workspace(pages: Pages, tmp_path: Path) -> None:
    folder = tmp_path / "team"
    folder.mkdir()
    write_documents(folder)
    async with served(folder, {}, options=SiteOptions(edit=True), settings=WEEKLY) as server, server.client() as client:
        runs = await ordinary_day(server.site.runtime)
        question = (await client.get("/questions")).json()["items"][0]
        team = Team(server, {**runs, "waiting": question["run"]}, question["path"])
        await _photograph(pages, server, team.screens(), "ordinary")


async def test_a_huge_workspace(pages: Pages, tmp_path: Path) -> None:
    folder = tmp_path / "huge"
    folder.mkdir()
    write_documents(folder)
    documents = {
        f"notes/{at // 50}/note-{at}.playbook.md": SMALL.format(at=at, long=LONG) for at in range(MANY_DOCUMENTS)
    }
    async with served(folder, {**documents, "book.playbook.md": BOOK}) as server:
        runs = await ordinary_day(server.site.runtime)
        fan = await triage(server.site.runtime, MANY_ITEMS)
        model = server.script("note.json", [{"default": "A note. " * 400}])
        for at in range(MANY_RUNS):
            await server.start(f"notes/{at // 50}/note-{at}.playbook.md", model=model)
        book = await server.start("book.playbook.md", inputs={"topic": "x" * 5000}, model=model)
        screens = {
            **{path.partition("?")[0]: path for path in WHOLE},
            "run": f"/runs/{book['id']}",
            "graph": f"/runs/{book['id']}?view=graph",
            "values": f"/runs/{book['id']}?tab=values",
            "fork": f"/runs/{book['id']}/fork",
            "fan": f"/runs/{fan}?step=2",
            "compare": f"/compare/{fan}/{runs['triage']}",
            "read": "/documents/book.playbook.md",
            "source": "/documents/book.playbook.md?tab=source",
            "form": "/documents/book.playbook.md?run=1",
        }
        await _photograph(pages, server, screens, "huge")
