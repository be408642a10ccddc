"""Budgets of a long run in the page: time until it is shown, events in a burst, nodes, and what stays meanwhile.

The budgets are those of an idle machine. `pytest -s` prints what was measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from tests.browser import Pages
from tests.server.long_run import COUNT, MANY, ten_thousand
from tests.server.served import Served, served

from quire.engine.records import Event
from quire.values import Value

pytestmark = pytest.mark.asyncio(loop_scope="session")

FACTOR = 6
"""A machine may be so many times slower than the one that the budgets were written on: 1.2 s were seen for 0.25."""


def allowed() -> float:
    """Return the factor for now: a machine that has other work gives this process only a part of its time."""
    began, used = time.perf_counter(), time.process_time()
    while time.process_time() - used < 0.1:
        pass
    return FACTOR * max(1.0, (time.perf_counter() - began) / 0.1)


WATCH = """() => {
  globalThis.longest = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, task.duration);
  }).observe({ type: "longtask", buffered: true });
}"""


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def long(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Served, str]]:
    async with served(tmp_path_factory.mktemp("budgets") / "team", {"many.yaml": MANY}) as server:
        yield server, await ten_thousand(server)


def report(line: str) -> None:
    """Print a measurement, for `pytest -s`."""
    print(f"\n{line}")


async def nodes(page: Page) -> int:
    return int(await page.evaluate("document.querySelectorAll('*').length"))


async def test_ten_thousand_effects_are_shown_soon_and_scroll(pages: Pages, long: tuple[Served, str]) -> None:
    server, run = long
    page = await pages.open(server.url)
    used = time.process_time()
    async with server.client() as client:
        assert (await client.get(f"/runs/{run}")).status_code == 200
    used = time.process_time() - used
    began = time.perf_counter()
    await page.goto(server.at(f"/runs/{run}"))
    await expect(page.get_by_role("tree")).to_contain_text(f"{COUNT:,} / {COUNT:,}")
    shown = time.perf_counter() - began
    assert await nodes(page) <= 3000
    await page.get_by_role("link", name="Journal").click()
    await expect(page.get_by_text(f"{COUNT:,} of {COUNT:,}")).to_be_visible()
    rows = page.get_by_label("Effects")
    await rows.evaluate("box => { box.scrollTop = box.scrollHeight; }")
    await expect(rows).to_contain_text(f"[{COUNT - 1}]")
    assert await nodes(page) <= 3000
    report(f"{COUNT:,} effects: {used:.2f} s of the server's CPU for a cold head, shown {shown:.2f} s after that")
    assert used <= 0.25 * FACTOR
    assert shown <= 0.45 * allowed()


async def burst(server: Served, run: str, count: int) -> None:
    """Tell the page of so many items of a run, each with an effect and an end, as a drive would."""
    last = (await server.site.views.head(run)).version.seq
    used: dict[str, Value] = {"kind": "model", "state": "ok", "elapsed": 0.01, "cost": 0.001}
    used |= {"input_tokens": 1, "output_tokens": 1}
    for at in range(count):
        seq, path = last + 2 * at + 1, f"1/for_each[{at + 1}]/model"
        server.site.hub.listen(Event("effect", run, 1.0, seq, path, "1", used))
        server.site.hub.listen(Event("fan_item", run, 1.0, seq + 1, "1", "1", {"index": at + 1, "state": "ok"}))
        if at % 100 == 0:
            await asyncio.sleep(0)


async def test_a_burst_of_events_is_shown_as_it_comes(pages: Pages, long: tuple[Served, str]) -> None:
    server, _ = long
    run = await ten_thousand(server, 1)
    page = await pages.open(server.at(f"/runs/{run}"))
    await expect(page.get_by_role("tree")).to_contain_text("1 / 1")
    await page.evaluate(WATCH)
    began = time.perf_counter()
    await burst(server, run, 5000)
    await expect(page.get_by_role("tree")).to_contain_text("5,001 / 1", timeout=30_000)
    took = time.perf_counter() - began
    longest = float(await page.evaluate("globalThis.longest"))
    report(f"10,000 events shown after {took:.2f} s, longest task {longest:.0f} ms")
    assert took <= 2 * allowed()
    assert longest <= 250 * allowed()
    assert await nodes(page) <= 3000


async def test_many_deltas_do_not_hold_the_page_up(pages: Pages, long: tuple[Served, str]) -> None:
    server, _ = long
    run = await ten_thousand(server, 1)
    page = await pages.open(server.at(f"/runs/{run}"))
    await expect(page.get_by_role("tree")).to_contain_text("1 / 1")
    await page.evaluate(WATCH)
    began = time.perf_counter()
    for at in range(5000):
        text = {"text": f"word {at} "}
        server.site.hub.listen(Event("delta", run, 1.0, 0, "1/for_each[0]/model", "1", {}, text))
        if at % 100 == 0:
            await asyncio.sleep(0)
    await expect(page.locator(".streaming")).to_contain_text("word 4999", timeout=30_000)
    took, longest = time.perf_counter() - began, float(await page.evaluate("globalThis.longest"))
    report(f"5,000 deltas shown after {took:.2f} s, longest task {longest:.0f} ms")
    assert took <= 1.5 * allowed()
    assert longest <= 250 * allowed()


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
