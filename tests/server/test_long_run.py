"""A long run in the page: what is shown of it, the most nodes, and what stays where it is while events arrive.

`python -m bench page` measures how long it takes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from tests.browser import Pages
from tests.server.long_run import COUNT, MANY, burst, stream, ten_thousand
from tests.server.served import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def long(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Served, str]]:
    async with served(tmp_path_factory.mktemp("budgets") / "team", {"many.yaml": MANY}) as server:
        yield server, await ten_thousand(server)


async def nodes(page: Page) -> int:
    return int(await page.evaluate("document.querySelectorAll('*').length"))


async def test_ten_thousand_effects_are_shown_and_scroll(pages: Pages, long: tuple[Served, str]) -> None:
    server, run = long
    page = await pages.open(server.url)
    await page.goto(server.at(f"/runs/{run}"))
    await expect(page.get_by_role("tree")).to_contain_text(f"{COUNT:,} / {COUNT:,}")
    assert await nodes(page) <= 3000
    await page.get_by_role("link", name="Journal").click()
    await expect(page.get_by_text(f"{COUNT:,} of {COUNT:,}")).to_be_visible()
    rows = page.get_by_label("Effects")
    await rows.evaluate("box => { box.scrollTop = box.scrollHeight; }")
    await expect(rows).to_contain_text(f"[{COUNT - 1}]")
    assert await nodes(page) <= 3000


async def test_a_burst_of_events_is_shown_as_it_comes(pages: Pages, long: tuple[Served, str]) -> None:
    server, _ = long
    run = await ten_thousand(server, 1)
    page = await pages.open(server.at(f"/runs/{run}"))
    await expect(page.get_by_role("tree")).to_contain_text("1 / 1")
    await burst(server, run, 5000)
    await expect(page.get_by_role("tree")).to_contain_text("5,001 / 1", timeout=30_000)
    assert await nodes(page) <= 3000


async def test_the_end_of_a_long_reply_is_shown_while_it_is_written(pages: Pages, long: tuple[Served, str]) -> None:
    server, _ = long
    run = await ten_thousand(server, 1)
    page = await pages.open(server.at(f"/runs/{run}"))
    await expect(page.get_by_role("tree")).to_contain_text("1 / 1")
    await stream(server, run, 5000)
    await expect(page.locator(".streaming")).to_contain_text("word 4999", timeout=30_000)
    assert await nodes(page) <= 3000


STATE = """() => ({
  scroll: scrollY,
  open: [...document.querySelectorAll('details')].map((one) => one.open),
  selected: String(getSelection()),
  focus: document.activeElement?.textContent,
  tree: document.querySelector('.step-tree').scrollTop,
  row: document.querySelector('[aria-selected=true]')?.textContent?.slice(0, 8),
})"""


async def test_what_a_person_looks_at_stays_while_events_arrive(pages: Pages, long: tuple[Served, str]) -> None:
    server, _ = long
    run = await ten_thousand(server, 60)
    page = await pages.open(server.at(f"/runs/{run}/steps/1"), height=500)
    cards = page.locator("details.effect")
    await expect(cards).to_have_count(40)
    await cards.nth(6).locator("> summary").click()
    await cards.nth(6).locator("details.sent > summary").click()
    await cards.nth(6).locator(".message .source").select_text()
    await page.evaluate("scrollTo(0, 400)")
    before = await page.evaluate(STATE)
    assert before["selected"] == "Say 6"
    assert before["scroll"] == 400
    assert sum(before["open"]) == 3
    await burst(server, run, 500)
    await expect(page.get_by_role("tree")).to_contain_text("560 / 60", timeout=30_000)
    # The server knows nothing of these events: its own head takes them back, and that changes nothing else either.
    server.site.hub.touch(run)
    await expect(page.get_by_role("tree")).to_contain_text("60 / 60", timeout=30_000)
    assert await page.evaluate(STATE) == before
