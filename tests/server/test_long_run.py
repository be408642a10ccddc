"""A long run in the page: what is shown of it, the most nodes, and what stays where it is while events arrive.

`python -m bench page` measures how long it takes.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from tests.browser import Pages
from tests.server.long_run import COUNT, MANY, burst, ten_thousand
from tests.server.served import Served, served

MOST_NODES = 600

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
    tree = page.get_by_role("tree")
    await expect(tree).to_contain_text(f"{COUNT:,} items")
    assert await nodes(page) <= MOST_NODES
    await page.locator(".tree-row", has_text="Done 10,000").click()
    await tree.focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.locator(".tree-row[aria-level='3']").first).to_be_visible()
    await tree.focus()
    for last in (199, 399):  # the row at the end of a page loads the next
        await page.keyboard.press("End")
        await expect(page.locator(".tree-row[aria-selected=true]")).to_contain_text(str(last))
        await expect(page.locator(".tree-row", has_text="More")).to_have_count(0)
    assert await nodes(page) <= MOST_NODES
    # What the step took is what the run took, not the sum of its items.
    row = await server.read(f"/runs/{run}/tree")
    whole = (await server.read(f"/runs/{run}"))["updated_at"] - row["start"]
    assert 0 < row["rows"]["took"][0] <= whole


async def test_ten_thousand_effects_are_there_soon(pages: Pages, long: tuple[Served, str]) -> None:
    """Compared with an empty screen of the same server, because the machine may be busy."""
    server, run = long
    page = await pages.open(server.url)
    server.site.views.forget(run)
    took: dict[str, float] = {}
    for path, ready in ((f"/runs/{run}", ".tree-row .buckets"), ("/nothing/here", "main h1")):
        began = time.perf_counter()
        await page.goto(server.at(path))
        await expect(page.locator(ready).first).to_be_visible()
        took[ready] = time.perf_counter() - began
    assert took[".tree-row .buckets"] < 1 + 20 * took["main h1"]


ABOVE = """pipeline: above
dialect: quire
input: {items: {type: list, of: {type: string}, max_items: 20}}
steps:
  - for_each:
      over: ctx.items
      max_parallel: 1
      on_error: continue
      do: {agent: {prompt: "Say {item}"}}
      collect: {transform: {value: pipe}}
      output: said
  - agent: {prompt: "Sum up.", output: summary}
"""


@pytest.mark.parametrize("height", [900, 300])
async def test_a_new_bar_never_moves_the_selected_row(pages: Pages, long: tuple[Served, str], height: int) -> None:
    server, _ = long
    server.write("above.yaml", ABOVE)
    model = server.script("above.json", [{"default": "Yes.", "delay_ms": 250}])
    run = await server.start("above.yaml", inputs={"items": list("abcdefghijkl")}, model=model)
    page = await pages.open(server.at(f"/runs/{run['id']}"), height=height)
    last = page.locator(".tree-row", has_text="summary")
    await last.click()
    before = await last.bounding_box()
    inside, count = page.locator(".tree-row[aria-level='2']"), 0
    while count < 12:
        await expect(inside).not_to_have_count(count, timeout=30_000)
        count = await inside.count()
        now = await last.bounding_box()
        assert before is not None
        assert now is not None
        assert abs(now["y"] - before["y"]) < 1


async def test_a_burst_of_events_is_shown_as_it_comes(pages: Pages, long: tuple[Served, str]) -> None:
    server, _ = long
    run = await ten_thousand(server, 1)
    page = await pages.open(server.at(f"/runs/{run}"))
    await expect(page.locator(".tree-row")).to_have_count(3)
    await burst(server, run, 5000)
    await expect(page.locator(".tree-row").nth(1)).to_contain_text("$5.00", timeout=30_000)
    assert await nodes(page) <= MOST_NODES


STATE = """() => ({
  scroll: document.querySelector('.tree-panel').scrollTop,
  pane: document.querySelector('.pane-body').scrollTop,
  open: [...document.querySelectorAll('.pane-body details')].map((one) => one.open),
  selected: String(getSelection()),
  focus: document.activeElement?.className,
  row: document.querySelector('[aria-selected=true]')?.textContent?.slice(0, 8),
})"""


async def test_what_a_person_looks_at_stays_while_events_arrive(pages: Pages, long: tuple[Served, str]) -> None:
    server, _ = long
    run = await ten_thousand(server, 60)
    page = await pages.open(server.at(f"/runs/{run}?step=1&tab=raw"), height=500)
    folded = page.locator(".pane-body details")
    await expect(folded).to_have_count(40)
    await page.locator(".tree-row", has_text="Done 60").dblclick()
    await page.locator(".tree-row .tree-name").nth(1).click()
    await page.locator(".tabs").get_by_role("link", name="Raw").click()
    await folded.nth(6).locator("> summary").click()
    await folded.nth(6).locator(".json-row").first.select_text()
    await page.evaluate("document.querySelector('.tree-panel').scrollTop = 200")
    await page.evaluate("document.querySelector('.pane-body').scrollTop = 100")
    before = await page.evaluate(STATE)
    assert before["scroll"] == 200
    assert before["pane"] == 100
    assert sum(before["open"]) == 1
    await burst(server, run, 500)
    # The server knows nothing of these events: its own tree takes them back, and that changes nothing else either.
    async with page.expect_response(lambda answer: answer.url.endswith("/tree")):
        server.site.hub.touch(run)
    assert await page.evaluate(STATE) == before
