"""Pictures of runs in a real browser: graph, timeline, fan-out strip, history."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.browser import Pages, check_looks
from tests.server.retold import retold
from tests.server.served import Served, served
from tests.server.team_workspace import ordinary_day, write_documents

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def team(folder: Path) -> AsyncIterator[tuple[Served, dict[str, str]]]:
    """The workspace of the team after an ordinary day."""
    folder.mkdir()
    write_documents(folder)
    async with served(folder, {}) as server:
        yield server, await ordinary_day(server.site.runtime)


async def test_a_graph_shows_the_states_of_a_run(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team") as (server, runs):
        page = await pages.open(server.at(f"/runs/{runs['waiting']}/graph"))
        gate = page.get_by_role("link", name="Step 4 - Review gate, asks yes or no, waits for you")
        await expect(gate).to_be_visible()
        await check_looks(page, "run-graph")
        await page.goto(server.at(f"/runs/{runs['triage']}/graph"))
        await expect(page.get_by_text("40 / 40, 6 failed").first).to_be_visible()
        await check_looks(page, "run-graph-fan")


async def test_a_timeline_shows_steps_and_collapses_waits(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team") as (server, runs):
        waits = {"4/ask": 7860.0, "6/case[1]/1/ask": 5400.0}
        run = await retold(server.site.runtime, runs["done"], "retold", waits)
        page = await pages.open(server.at(f"/runs/{run}/timeline"))
        await expect(page.get_by_text("Collapse 3 h 41 min of waiting")).to_be_visible()
        await check_looks(page, "run-timeline")


async def test_a_fan_shows_its_items(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team") as (server, runs):
        page = await pages.open(server.at(f"/runs/{runs['triage']}/fans/2"))
        await expect(page.get_by_text("Payments by card").first).to_be_visible()
        await check_looks(page, "run-fan")
