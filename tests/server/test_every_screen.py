"""Every screen: readable for everybody (axe), by keyboard alone, at 320 px, within the budgets, and below a path."""

from __future__ import annotations

import gzip
import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, Response, expect
from tests.browser import PHONE, WIDE, Pages, axe, each_look
from tests.depth import depth
from tests.server.proxy import proxy
from tests.server.served import TOKEN, Served, served
from tests.server.team_workspace import ordinary_day, write_documents

from quire.server.assets import PAGE
from quire.server.site import SiteOptions

pytestmark = pytest.mark.asyncio(loop_scope="session")

MOST_BYTES = {"/": 100_000, "others": 120_000}
MOST_REQUESTS = {"/": 40, "others": 55}
"""A screen of many parts has a module for each; they are named in the shell, so that all are asked for at once."""
MOST_NODES = 3000
WEEKLY = '[triggers.weekly]\nrun = "meeting-minutes"\ncron = "0 6 * * 1"\nzone = "Europe/Berlin"\n'


class Team:
    """A served workspace with the runs of an ordinary day, and the addresses of all screens."""

    def __init__(self, server: Served, runs: dict[str, str], question: str) -> None:
        self.server = server
        self.runs = runs
        self._values = {"run": runs["done"], "a": runs["done"], "b": runs["fork"], "id": "incident-report.playbook.md"}
        self._question = question

    def screens(self) -> dict[str, str]:
        """Every pattern of the table of screens with an address that fits it."""
        found = {pattern: self._address(pattern) for pattern in patterns()}
        for tab in ("read", "source", "proof", "runs", "prompts", "run"):
            if "/documents/*id" in found:
                found[f"/documents/*id {tab}"] = f"{found['/documents/*id']}?tab={tab}"
        run = f"/runs/{self.runs['done']}"
        for name in ("step=2", "step=2&tab=prompt", "step=2&tab=raw", "tab=values", "tab=document", "view=graph"):
            found[f"/runs/:run {name}"] = f"{run}?{name}"
        found["/runs/:run with items"] = f"/runs/{self.runs['triage']}?step=2%23failed"
        found["/runs/:run that waits"] = f"/runs/{self.runs['waiting']}"
        return {**found, "nothing": "/nothing/here", "no such run": "/runs/nothing"}

    def _address(self, pattern: str) -> str:
        if pattern.startswith("/q/"):
            return f"/q/{self.runs['waiting']}/{self._question}"
        values = {**self._values, "path": "2/model", "old": "steps/1", "name": "weekly"}
        return re.sub(r"[:*](\w+)", lambda name: values[name[1]], pattern)


def patterns() -> list[str]:
    text = (PAGE / "app" / "screens.js").read_text(encoding="utf-8")
    return re.findall(r'^  \["(/[^"]*)", \(\) => import', text, re.MULTILINE)


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def team(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Team]:
    folder = tmp_path_factory.mktemp("screens") / "team"
    folder.mkdir()
    write_documents(folder)
    options = SiteOptions(edit=True)
    async with served(folder, {}, options=options, settings=WEEKLY) as server, server.client() as client:
        runs = await ordinary_day(server.site.runtime)
        question = (await client.get("/questions")).json()["items"][0]
        yield Team(server, {**runs, "waiting": question["run"]}, question["path"])


def forgive(pages: Pages) -> None:
    """Take the answers to what does not exist, or is not filled in yet, off the list of faults."""
    pages.faults[:] = [fault for fault in pages.faults if "404" not in fault and "422" not in fault]


async def go(page: Page, path: str) -> None:
    """Go to a screen as a link does, without loading the page again."""
    await page.evaluate(
        "path => { history.pushState({}, '', path); dispatchEvent(new PopStateEvent('popstate')) }", path
    )
    await ready(page)


async def ready(page: Page) -> None:
    await expect(page.locator("main h1").first).to_be_visible()
    await expect(page.locator(".placeholder, .skeleton")).to_have_count(0)
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 60)))")


async def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(pages: Pages, team: Team) -> None:
    page = await pages.open(team.server.url)
    found: list[str] = []
    for at, (name, path) in enumerate(team.screens().items()):
        await go(page, path)

        async def look(page: Page, label: str) -> None:
            found.extend(f"{label}: {finding}" for finding in await axe(page))

        if depth(0, 1):
            await each_look(page, name, look)
        elif at % 6 == 0:  # the short suite takes one look at every third screen; their own tests look as well
            await look(page, name)
        elif at % 6 == 3:
            await page.emulate_media(color_scheme="dark")
            await page.set_viewport_size({"width": PHONE, "height": 900})
            await look(page, f"{name}, dark, on a phone")
        await page.set_viewport_size({"width": 320, "height": 700})
        wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            found.append(f"{name}: {wide} px wider than a screen of 320 px: {await _widest(page)}")
        nodes = await page.evaluate("document.querySelectorAll('*').length")
        if nodes > MOST_NODES:
            found.append(f"{name}: {nodes} elements")
        await page.set_viewport_size({"width": WIDE, "height": 900})
        await page.emulate_media(color_scheme="light")
    forgive(pages)
    assert not found, "\n".join(found)


async def _widest(page: Page) -> Any:
    return await page.evaluate(
        """() => [...document.querySelectorAll("main *")]
          .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !hides(one.parentElement))
          .slice(0, 4).map((one) => `${one.tagName}.${one.className}`);
        function hides(one) {
          for (; one; one = one.parentElement) {
            if (one.tagName !== "HTML" && getComputedStyle(one).overflowX !== "visible") return true;
          }
          return false;
        }"""
    )


FOCUSED = """() => {
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  return one;
}"""
STOPS = (
    f"() => {{ const one = ({FOCUSED})();"
    + """
  if (!one || one === document.body) return null;
  const box = one.getBoundingClientRect();
  const style = getComputedStyle(one);
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const shadowed = style.boxShadow !== "none";
  const name = one.getAttribute("aria-label") || one.textContent?.trim() || one.getAttribute("title")
    || one.labels?.[0]?.textContent?.trim() || one.getAttribute("placeholder") || "";
  const bordered = one.matches("input, textarea, select") || one.matches("iframe");
  return {
    what: `${one.tagName.toLowerCase()}.${one.className || ""}`, name: name.slice(0, 60),
    visible: outlined || shadowed || bordered, size: box.width * box.height,
    covered: box.bottom < 0 || box.top > innerHeight,
  };
}"""
)


async def _changes_with_focus(page: Page) -> bool:
    """Tell whether what has the focus looks different without it: not everything is outlined itself."""
    focused = (await page.evaluate_handle(FOCUSED)).as_element()
    assert focused is not None
    box = await focused.bounding_box()
    if box is None:
        return False
    clip: Any = {
        "x": max(box["x"] - 8, 0),
        "y": max(box["y"] - 8, 0),
        "width": box["width"] + 16,
        "height": box["height"] + 16,
    }
    before = await page.screenshot(clip=clip)
    await page.evaluate("one => one.blur()", focused)
    after = await page.screenshot(clip=clip)
    await focused.focus()
    return before != after


async def test_tab_reaches_everything_with_a_visible_focus(pages: Pages, team: Team) -> None:
    page = await pages.open(team.server.url)
    wrong: list[str] = []
    for name, path in list(team.screens().items())[:: depth(3, 1)]:
        await go(page, path)
        await page.evaluate("document.activeElement?.blur()")
        stops: list[str] = []
        for _ in range(depth(25, 80)):
            await page.keyboard.press("Tab")
            stop = await page.evaluate(STOPS)
            if stop is None:
                break
            told = f"{stop['what']} {stop['name']!r}"
            if not stop["visible"] and not await _changes_with_focus(page):
                wrong.append(f"{name}: the focus on {told} is not visible")
            if not stop["name"] and "iframe" not in stop["what"]:
                wrong.append(f"{name}: {told} has no name")
            if stop["size"] and stop["covered"]:
                wrong.append(f"{name}: {told} has the focus outside of the screen")
            if stops and told == stops[0]:
                break
            stops.append(told)
            if "cm-content" in stop["what"]:
                await page.keyboard.press("Escape")  # a Tab without it indents
        if not stops:
            wrong.append(f"{name}: Tab stops nowhere")
    forgive(pages)
    assert not wrong, "\n".join(wrong)


async def test_the_focus_goes_to_the_heading_and_escape_gives_it_back(pages: Pages, team: Team) -> None:
    page = await pages.open(team.server.url)
    await ready(page)
    for name in ("Documents", "Runs", "Artifacts", "Search", "Health", "Now"):
        await page.get_by_role("navigation").get_by_role("link", name=name).first.click()
        await ready(page)
        focused = await page.evaluate("document.activeElement?.tagName")
        assert focused in ("H1", "INPUT"), (name, focused)  # a search box takes the focus itself
    # Where the system chooses the colours, shadows are not drawn: the focus is an outline then.
    await page.emulate_media(forced_colors="active")
    await page.keyboard.press("Tab")
    outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    await page.emulate_media(forced_colors="none")
    keys = page.get_by_role("button", name="Keys", exact=True)
    await keys.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(keys).to_be_focused()


TITLES = {
    "/": "",
    "/runs": "Runs",
    "/documents": "Documents",
    "/documents/*id": "Incident report",
    "/artifacts": "Artifacts",
    "/search": "Search",
    "/triggers": "Triggers",
    "/triggers/:name": "weekly",
    "/trust": "Trust",
    "/health": "Health",
    "/api": "The HTTP API",
    "/compare/:a/:b": "Compare",
    "nothing": "This page does not exist",
}


async def test_the_title_of_the_tab_is_that_of_the_screen(pages: Pages, team: Team) -> None:
    page = await pages.open(team.server.url)
    label = (await team.server.read(f"/runs/{team.runs['done']}"))["label"]
    screens = team.screens()
    for name, title in {**TITLES, "/runs/:run": label, "/q/:run/*path": "Question of"}.items():
        await go(page, screens[name])
        start = "" if name.startswith("/q/") else r"\(\d+\) "
        end = ".*" if name.startswith("/q/") else " · " if title else ""
        await expect(page).to_have_title(re.compile(f"^{start}{re.escape(title)}{end}.*Quire$"))
    forgive(pages)


async def test_a_phone_has_words_and_the_rest_under_more(pages: Pages, team: Team) -> None:
    page = await pages.open(team.server.url, width=PHONE, height=800)
    rail = page.get_by_role("navigation", name="Screens")
    for word in ("Now", "Documents", "Runs", "Artifacts", "Search", "More"):
        await expect(rail.get_by_text(word, exact=True)).to_be_in_viewport()
    await expect(rail.get_by_text("Trust")).to_be_hidden()
    await rail.get_by_role("button", name="More").click()
    await page.get_by_role("dialog").get_by_role("link", name="Trust").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Trust")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_the_rail_makes_room_for_a_run(pages: Pages, team: Team) -> None:
    page = await pages.open(team.server.at(f"/runs/{team.runs['done']}"), width=1366)
    for width, path, wide in ((1366, None, 56), (1700, None, 208), (1366, "/runs", 208), (900, "/runs", 56)):
        await page.set_viewport_size({"width": width, "height": 900})
        if path:
            await go(page, path)
        await expect(page.locator(".rail")).to_have_css("width", f"{wide}px")


def _keep(answers: list[Response], answer: Response) -> None:
    answers.append(answer)


async def test_a_first_load_stays_within_its_budget(pages: Pages, team: Team) -> None:
    for path in ("/", f"/runs/{team.runs['done']}", "/runs"):
        context = await pages.context(team.server.url)
        page = await context.new_page()
        answers: list[Response] = []
        context.on("response", partial(_keep, answers))
        await page.goto(team.server.at(path))
        await ready(page)
        files = [one for one in answers if "/static/" in one.url and "/frames/" not in one.url]
        sizes = {}
        for one in files:
            if one.url.endswith((".js", ".css")):
                sizes[one.url.partition("/static/")[2].partition("/")[2]] = len(
                    gzip.compress(await one.body(), 9, mtime=0)
                )
        total = sum(sizes.values())
        most = MOST_BYTES.get(path, MOST_BYTES["others"])
        assert total <= most, (path, total, sorted(sizes.items(), key=lambda item: -item[1])[:8])
        requests = [one for one in answers if not one.url.startswith("data:")]
        assert len(requests) <= MOST_REQUESTS[path if path in MOST_REQUESTS else "others"], (path, len(requests))
        await context.close()
        pages.contexts.remove(context)


async def test_all_screens_below_a_path_behind_a_proxy(pages: Pages, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("below") / "team"
    folder.mkdir()
    write_documents(folder)
    async with proxy("/tools/quire", keeps_path=True) as front:
        options = SiteOptions(base="/tools/quire")
        async with (
            served(folder, {}, options=options, names=[front.place], settings=WEEKLY) as server,
            server.client() as client,
        ):
            runs = await ordinary_day(server.site.runtime)
            question = (await client.get("/questions")).json()["items"][0]
            below = Team(server, {**runs, "waiting": question["run"]}, question["path"])
            front.target = server.place
            page = await pages.open(f"http://{front.place}/tools/quire/#token={TOKEN}")
            for name, path in list(below.screens().items())[:: depth(4, 1)]:
                await page.goto(f"http://{front.place}/tools/quire{path}")
                await ready(page)
                assert page.url.startswith(f"http://{front.place}/tools/quire"), name
                away = await page.evaluate(
                    "[...document.querySelectorAll('a[href^=\"/\"]')].map((one) => one.getAttribute('href'))"
                    ".filter((href) => !href.startsWith('/tools/quire'))"
                )
                assert away == [], name
            await page.close()
    forgive(pages)
