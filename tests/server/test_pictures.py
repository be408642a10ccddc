"""Pictures of runs in a real browser: graph, timeline, fan-out strip, history."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect
from tests.browser import Pages, check_looks, picture
from tests.server.retold import retold
from tests.server.served import Served, served, write
from tests.server.team_workspace import ordinary_day, tickets, triage, write_documents

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG = "# Long\n\n" + "".join(f"## STEP {at}: Do number {at}\n\nWrite line {at}.\n\n" for at in range(1, 801))
MANY_CALLS = "[safety.spawn]\nmax_pipeline_spawns = 20000\n"
WAITS = {"4/ask": 7860.0, "6/case[1]/1/ask": 5400.0}


@asynccontextmanager
async def team(folder: Path, pages: Pages) -> AsyncIterator[tuple[Served, dict[str, str]]]:
    """The workspace of the team after an ordinary day. Pages are closed before their server."""
    folder.mkdir()
    write_documents(folder)
    write(folder.parent / f"{folder.name}-home", "quire.toml", MANY_CALLS)
    async with served(folder, {"long.playbook.md": LONG}) as server:
        yield server, await ordinary_day(server.site.runtime)
        for context in pages.contexts:
            await context.close()
        pages.contexts.clear()


async def test_a_graph_follows_a_run_and_never_moves(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team", pages) as (server, runs):
        page = await pages.open(server.at(f"/runs/{runs['waiting']}/graph"))
        gate = page.get_by_role("link", name="Step 4 - Review gate, asks yes or no, waits for you")
        await expect(gate).to_be_visible()
        await check_looks(page, "run-graph")
        await page.set_viewport_size({"width": 1280, "height": 900})

        view = page.locator(".graph-view")
        await view.evaluate("view => { view.scrollTop = 321; view.querySelector('svg').dataset.mark = 'same' }")
        places = "view => [...view.querySelectorAll('.shape')].map(one => JSON.stringify(one.getBBox())).join()"
        before = await view.evaluate(places)
        async with server.client() as client:
            question = (await client.get("/questions", params={"run": runs["waiting"]})).json()["items"][0]
            answer = {"value": "yes", "hash": question["hash"]}
            assert (await client.post(f"/questions/{runs['waiting']}/4/ask/answer", json=answer)).status_code == 200
        asks = page.get_by_role("link", name="Step 6a - Ask for a date, asks, waits for you")
        await expect(asks).to_be_attached()
        assert await view.evaluate("view => view.scrollTop") == 321
        assert await view.evaluate("view => view.querySelector('svg').dataset.mark") == "same"
        assert await view.evaluate(places) == before

        await page.get_by_role("button", name="Follow", exact=True).click()
        await expect(asks).to_be_in_viewport()
        await view.hover()
        await page.mouse.wheel(0, -400)
        await expect(page.get_by_role("button", name="Follow", exact=True)).to_have_attribute("aria-pressed", "false")


async def test_a_graph_by_keyboard_and_with_folds(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team", pages) as (server, runs):
        page = await pages.open(server.at(f"/runs/{runs['triage']}/graph"))
        first = page.get_by_role("link", name="Step 1 - transform")
        await first.focus()
        await page.keyboard.press("ArrowDown")
        await expect(page.get_by_role("link", name="Step 2.do - agent")).to_be_focused()
        await page.keyboard.press("End")
        await expect(page.get_by_role("link", name="Step 3 - agent")).to_be_focused()
        await page.keyboard.press("0")
        await expect(page.get_by_role("button", name="Zoom 100 %")).to_be_visible()
        await page.keyboard.press("-")
        await expect(page.get_by_role("button", name="Zoom 85 %")).to_be_visible()
        await picture(page, "run-graph-fan")
        await page.get_by_text("The same as a table").click()
        row = page.get_by_role("row", name="Step 2.do - agent")
        await expect(row).to_contain_text("completed")
        await page.get_by_role("link", name="40 / 40, 6 failed").click()
        await expect(page).to_have_url(f"http://{server.place}/runs/{runs['triage']}/fans/2")

        model = server.script("long.json", [{"default": "A line."}])
        run = await server.start("long.playbook.md", model=model, breakpoints=["30"])
        await page.goto(server.at(f"/runs/{run['id']}/graph"))
        fold = page.get_by_role("link", name="Steps 21 to 40, 20 steps, folded, opens")
        await expect(fold).to_contain_text("10 of 20")
        assert await page.locator("main *").count() < 3000
        await fold.focus()
        top = (await bounds(fold))["y"]
        await page.keyboard.press("Enter")
        step = page.get_by_role("link", name="Step 21 - Do number 21")
        await expect(step).to_be_visible()
        assert abs((await bounds(step))["y"] - top) < 2
        assert "open=21..40" in page.url
        await picture(page, "run-graph-folded")


async def bounds(locator: Any) -> dict[str, float]:
    found = await locator.locator(".shape").last.bounding_box()
    assert found is not None
    return dict(found)


async def test_a_timeline_shows_steps_and_collapses_waits(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team", pages) as (server, runs):
        run = await retold(server.site.runtime, runs["done"], "retold", WAITS)
        page = await pages.open(server.at(f"/runs/{run}/timeline"))
        collapse = page.get_by_label("Collapse 3 h 41 min of waiting")
        await expect(collapse).to_be_checked()
        await check_looks(page, "run-timeline")
        await page.set_viewport_size({"width": 1280, "height": 900})
        words = page.locator(".timeline-words")
        await expect(words).to_contain_text("11 effects in 11 steps, 3 h 42 min, of which 3 h 41 min waiting")

        lanes = page.get_by_role("application", name="Timeline of Incident report")
        await lanes.focus()
        await page.keyboard.press("ArrowRight")
        await expect(words).to_contain_text("Step 1, Assess: model, done, began after 0 ms, took 3.2 s")
        await page.keyboard.press("ArrowDown")
        await expect(words).to_contain_text("Step 1a, Message to everybody")
        await page.keyboard.press("End")
        await expect(words).to_contain_text("Step 7, The report")
        assert "effect=7%2Fmodel" in page.url
        await page.keyboard.press("+")
        await expect(page.get_by_role("button", name="Show all")).to_be_enabled()
        await page.keyboard.press("0")
        await expect(page.get_by_role("button", name="Show all")).to_be_disabled()

        await collapse.uncheck()
        assert "waits=open" in page.url
        await brush(page, 0.2, 0.5)
        await expect(page.get_by_role("button", name="Show all")).to_be_enabled()
        await picture(page, "run-timeline-open")
        await page.get_by_text("The same as a table").click()
        await expect(page.get_by_role("row", name="4 Review gate")).to_contain_text("2 h 11 min")
        await expect(page.get_by_text("Waited for an answer from")).to_have_count(2)
        await lanes.focus()
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(f"http://{server.place}/runs/{run}/steps/7")


async def brush(page: Page, start: float, end: float) -> None:
    """Draw a window on the overview, from one share of its width to another."""
    box = await page.locator(".timeline-overview").bounding_box()
    assert box is not None
    y, left, width = box["y"] + box["height"] / 2, box["x"] + 200, box["width"] - 200
    await page.mouse.move(left + width * start, y)
    await page.mouse.down()
    await page.mouse.move(left + width * end, y, steps=3)
    await page.mouse.up()


async def test_a_timeline_goes_on_while_the_run_does(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team", pages) as (server, runs):
        page = await pages.open(server.at(f"/runs/{runs['waiting']}/timeline"))
        words = page.locator(".timeline-words")
        await expect(words).to_contain_text("5 effects in 6 steps")
        async with server.client() as client:
            question = (await client.get("/questions", params={"run": runs["waiting"]})).json()["items"][0]
            answer = {"value": "yes", "hash": question["hash"]}
            await client.post(f"/questions/{runs['waiting']}/4/ask/answer", json=answer)
        await expect(words).to_contain_text("8 effects in 9 steps")


async def test_a_fan_of_a_thousand_items(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team", pages) as (server, _):
        run = await triage(server.site.runtime, 1000)
        page = await pages.open(server.at(f"/runs/{run}/fans/2"))
        rows = page.get_by_role("list", name="Items, the failed ones first").get_by_role("listitem")
        await expect(rows.first).to_contain_text("the connection was lost")
        await check_looks(page, "run-fan")
        await page.set_viewport_size({"width": 1280, "height": 900})
        assert await page.locator("main *").count() < 800

        strip = page.get_by_role("application", name="Items of step 2")
        words = page.locator("#fan-words")
        await strip.focus()
        for key in ("Home", "ArrowDown", "ArrowRight"):
            await page.keyboard.press(key)
        await expect(words).to_contain_text("of 1,000, done: T-4")
        await page.keyboard.press("End")
        await expect(words).to_have_text(
            "1,000 of 1,000, done: T-5099 · Ada Weber · team · The dashboard shows yesterday's numbers."
        )
        assert "item=999" in page.url

        await page.get_by_role("searchbox", name="Words of the item").fill("weber t-4204")
        await expect(rows).to_have_count(1)
        assert "q=weber+t-4204" in page.url
        await page.get_by_role("searchbox", name="Words of the item").fill("nothing like that")
        await expect(page.get_by_text("No item fits.")).to_be_visible()
        await page.get_by_role("searchbox", name="Words of the item").fill("")
        await page.get_by_role("button", name="failed 166").click()
        await expect(rows.first).to_contain_text("T-4105")
        await rows.first.get_by_role("link").click()
        await expect(page).to_have_url(f"http://{server.place}/runs/{run}/steps/2/for_each%5B5%5D")


MOUNT = """async ([document, runs]) => {
    const root = globalThis.document.querySelector('script[type=module][src]').src.replace('/main.js', '/')
    const { History } = await import(root + 'parts/history.js')
    const { h, render } = await import(root + 'html.js')
    const main = globalThis.document.querySelector('main')
    main.replaceChildren(Object.assign(globalThis.document.createElement('h1'), { textContent: document }))
    render(h(History, { runs }), main.appendChild(globalThis.document.createElement('section')))
}"""


async def test_the_past_runs_of_a_document(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team", pages) as (server, runs):
        for at in range(18):
            source = runs["done"] if at % 4 else runs["waiting"]
            await retold(server.site.runtime, source, f"past-{at}", {"4/ask": 20.0 * (at % 5)})
        page = await pages.open(server.at("/health"))
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        past = await server.read("/documents/incident-report.playbook.md/history?limit=60")
        await page.evaluate(MOUNT, ["incident-report.playbook.md", past["items"][::-1]])
        newest = page.get_by_role("group", name="The last 22 runs, the newest at the right").get_by_role("link").last
        await expect(newest).to_be_visible()
        await newest.focus()
        await page.keyboard.press("ArrowLeft")
        await expect(page.get_by_role("status").filter(has_text="paused")).to_be_visible()
        await check_looks(page, "history")
        # The list below says the same in words.
        await page.goto(server.at("/documents/incident-report.playbook.md?tab=runs"))
        await expect(page.locator(".rows a.row")).to_have_count(20)


async def test_a_fan_is_live(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team", pages) as (server, _):
        slow = [{"contains": "T-4105", "error": "lost"}, {"default": "Done.", "delay_ms": 40}]
        model = server.script("slow.json", slow)
        run = (await server.start("ticket-triage.yaml", inputs={"tickets": tickets(200)}, model=model))["id"]
        page = await pages.open(server.at(f"/runs/{run}/fans/2"))
        pending = page.get_by_role("button", name="not begun")
        await expect(pending).to_be_visible()
        await expect(page.locator(".fan-row").first).to_contain_text("T-4105")
        await expect(page.get_by_role("button", name="done 199")).to_be_visible()
        await expect(pending).to_have_count(0)
        async with server.client() as client:
            fan = (await client.get(f"/runs/{run}/fans/2")).json()
        assert fan["counts"] == {"pending": 0, "running": 0, "waiting": 0, "done": 199, "failed": 1}
        assert server.site.views.replays <= 1
