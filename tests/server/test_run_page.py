"""The page of one run in a real browser: what it shows, and what it lets a person do."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.browser import Pages, check_looks
from tests.server.served import served
from tests.server.test_stories import DOCUMENTS, REPLIES

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_watch_a_run_and_answer_it(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        model = server.script("s.json", REPLIES)
        run = await server.start("release.playbook.md", inputs={"version": "2.0"}, model=model)
        page = await pages.open(server.at(f"/runs/{run['id']}"))
        await expect(page.get_by_role("heading", level=1)).to_have_text("Release notes")
        await expect(page.get_by_text("Waits for an answer since")).to_be_visible()
        await expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
        await check_looks(page, "run-waiting")
        await page.set_viewport_size({"width": 1280, "height": 900})
        await page.get_by_role("button", name="yes").click()
        await expect(page.locator(".run-words")).to_contain_text("Completed")
        await expect(page.get_by_text("by this page")).to_be_visible()
