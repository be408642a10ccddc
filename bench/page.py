"""How soon the page shows a long run, and how it keeps up with events: a server and a real browser on this machine.

python -m bench.page
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.rows import Row, show

if TYPE_CHECKING:
    from playwright.async_api import Page
    from tests.browser import Pages
    from tests.server.served import Served

LONGEST = """() => {
  globalThis.longest = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, task.duration);
  }).observe({ type: "longtask", buffered: true });
}"""
DELTAS = 5000


def measure() -> list[Row]:
    from tests.browser import WITHOUT_BROWSER, find_browser

    program = find_browser()
    if program is None:
        print(f"page: skipped, {WITHOUT_BROWSER}", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_in_a_browser(program, Path(folder)))


async def _in_a_browser(program: str, folder: Path) -> list[Row]:
    from playwright.async_api import async_playwright
    from tests.browser import FLAGS, Pages
    from tests.server.long_run import MANY
    from tests.server.served import served

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        pages = Pages(browser)
        async with served(folder / "team", {"many.yaml": MANY}) as server:
            rows = await _long_run(pages, server)
            rows += await _events_in_a_burst(pages, server)
            rows += await _streaming_reply(pages, server)
            await pages.close()
        await browser.close()
    return rows


async def _long_run(pages: Pages, server: Served) -> list[Row]:
    from playwright.async_api import expect
    from tests.server.long_run import COUNT, ten_thousand

    run = await ten_thousand(server)
    page = await pages.open(server.url)
    used = time.process_time()
    async with server.client() as client:
        await client.get(f"/runs/{run}")
    used = time.process_time() - used
    began = time.perf_counter()
    await page.goto(server.at(f"/runs/{run}"))
    await expect(page.get_by_role("tree")).to_contain_text(f"{COUNT:,} items")
    shown = time.perf_counter() - began
    return [
        Row(
            f"the head of a run with {COUNT:,} effects, not kept", used, "s", "≤ 0.25 s of processor time", used <= 0.25
        ),
        Row("the same run shown after that", shown, "s", "≤ 0.45 s", shown <= 0.45),
    ]


async def _events_in_a_burst(pages: Pages, server: Served) -> list[Row]:
    from playwright.async_api import expect
    from tests.server.long_run import burst

    run, page = await _page_of_a_short_run(pages, server)
    began = time.perf_counter()
    await burst(server, run, 5000)
    await expect(page.locator(".tree-row").nth(1)).to_contain_text("$5.00", timeout=30_000)
    shown, longest = time.perf_counter() - began, float(await page.evaluate("globalThis.longest"))
    return [
        Row("10,000 events in a burst, shown", shown, "s", "≤ 2 s", shown <= 2),
        Row("the longest task of the page meanwhile", longest, "ms", "≤ 250 ms", longest <= 250),
    ]


async def _streaming_reply(pages: Pages, server: Served) -> list[Row]:
    from playwright.async_api import expect
    from tests.server.long_run import stream

    run, page = await _page_of_a_short_run(pages, server)
    began = time.perf_counter()
    await stream(server, run, DELTAS)
    await expect(page.locator(".streaming")).to_contain_text(f"word {DELTAS - 1}", timeout=30_000)
    shown, longest = time.perf_counter() - began, float(await page.evaluate("globalThis.longest"))
    return [
        Row(f"{DELTAS:,} pieces of a streaming reply, shown", shown, "s", "≤ 1.5 s", shown <= 1.5),
        Row("the longest task of the page meanwhile", longest, "ms", "≤ 250 ms", longest <= 250),
    ]


async def _page_of_a_short_run(pages: Pages, server: Served) -> tuple[str, Page]:
    """Return a run with one effect, and a page that shows it and measures its tasks."""
    from playwright.async_api import expect
    from tests.server.long_run import ten_thousand

    run = await ten_thousand(server, 1)
    page = await pages.open(server.at(f"/runs/{run}?step=1"))
    await expect(page.locator(".tree-row")).to_have_count(3)
    await page.evaluate(LONGEST)
    return run, page


if __name__ == "__main__":
    show("page", measure())
