"""Pictures of runs in a real browser: graph, bars, history."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect
from tests.browser import Pages, check_looks, picture
from tests.server.retold import retold
from tests.server.served import Served, served, write
from tests.server.team_workspace import ordinary_day, write_documents

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
        page = await pages.open(server.at(f"/runs/{runs['waiting']}?view=graph"))
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

        follow = page.locator(".graph-tools").get_by_role("button", name="Follow", exact=True)
        await follow.click()
        await expect(asks).to_be_in_viewport()
        await view.hover()
        await page.mouse.wheel(0, -400)
        await expect(page.locator(".graph-tools").get_by_role("button", name="Follow", exact=True)).to_have_attribute(
            "aria-pressed", "false"
        )


async def test_a_graph_by_keyboard_and_with_folds(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team", pages) as (server, runs):
        page = await pages.open(server.at(f"/runs/{runs['triage']}?view=graph"))
        first = page.get_by_role("link", name="Step 1 - batch")
        await first.focus()
        await page.keyboard.press("ArrowDown")
        await expect(page.get_by_role("link", name="Step 2.do - Ask the model")).to_be_focused()
        await page.keyboard.press("End")
        await expect(page.get_by_role("link", name="Step 3 - report")).to_be_focused()
        await page.keyboard.press("0")
        await expect(page.get_by_role("button", name="Zoom 100 %")).to_be_visible()
        await page.keyboard.press("-")
        await expect(page.get_by_role("button", name="Zoom 85 %")).to_be_visible()
        await picture(page, "run-graph-fan")
        await page.get_by_text("The same as a table").click()
        row = page.get_by_role("row", name="Step 2.do - Ask the model")
        await expect(row).to_contain_text("completed")
        await page.get_by_role("link", name="40 / 40, 6 failed").click()
        await expect(page.locator("#pane-title")).to_have_text("summaries")

        model = server.script("long.json", [{"default": "A line."}])
        run = await server.start("long.playbook.md", model=model, breakpoints=["30"])
        await page.goto(server.at(f"/runs/{run['id']}?view=graph"))
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


async def test_times_in_which_a_run_waits_are_drawn_short(pages: Pages, tmp_path: Path) -> None:
    async with team(tmp_path / "team", pages) as (server, runs):
        run = await retold(server.site.runtime, runs["done"], "retold", WAITS)
        page = await pages.open(server.at(f"/runs/{run}"))
        await expect(page.get_by_text("waits shortened")).to_be_visible()
        await expect(page.locator(".run-facts")).to_contain_text("+ 3 h waiting")
        gate = page.locator(".tree-row", has_text="Review gate")
        await expect(gate).to_contain_text("2 h 11 min")
        await expect(gate.locator(".bar-wait")).to_have_count(1)
        # A wait of hours leaves the bars of seconds their room.
        first = await page.locator(".tree-row", has_text="Timeline").locator(".tree-bar").bounding_box()
        assert first is not None
        assert first["width"] > 5
        await check_looks(page, "run-waited")


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
