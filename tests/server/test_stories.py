"""Stories of the whole page in a real browser: one stream for all tabs, a lost server, a proxy, a hostile document."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.browser import Pages
from tests.server.proxy import proxy
from tests.server.served import TOKEN, served

from quire.server.site import SiteOptions

pytestmark = pytest.mark.asyncio(loop_scope="session")

RELEASE = """# Release notes

Writes release notes and asks before they go out.

## INPUTS

- `version` (string): The version that is released

## STEP 1: Draft

Write release notes for {{version}}.

## STEP 2: Decide

@elicit(confirm, "Publish the notes?")

## STEP 3: Announce

Announce {{version}}.
"""
DOCUMENTS = {"release.playbook.md": RELEASE}
REPLIES = ["## Fixed\n\nThe **queue** no longer stalls.", "It is out."]


async def test_many_tabs_need_one_stream_and_the_next_tab_takes_over(pages: Pages, tmp_path: Path) -> None:
    """More tabs than the six connections that a browser keeps to one server."""
    async with served(tmp_path / "team", DOCUMENTS) as server:
        context = await pages.context(server.url)
        tabs = [await context.new_page() for _ in range(7)]
        for tab in tabs:
            await tab.goto(server.url)
            await expect(tab.get_by_text("Nothing waits for you.")).to_be_visible()
        assert server.site.hub.listeners == 1
        await server.start("release.playbook.md", inputs={"version": "2.0"}, model=server.script("s.json", REPLIES))
        for tab in tabs:
            await expect(tab.get_by_text("Publish the notes?")).to_be_visible()
        await tabs[0].close()
        await tabs[1].get_by_role("button", name="yes").click()
        for tab in tabs[2:]:
            await expect(tab.get_by_role("heading", name="Ended")).to_be_visible()
        assert server.site.hub.listeners == 1


async def test_a_lost_server_is_said_and_old_tabs_go_on_with_the_token_of_the_next(
    pages: Pages, tmp_path: Path
) -> None:
    """security N1: the token of a server dies with it; a tab with the new one hands it to the older tabs."""
    async with served(tmp_path / "team", DOCUMENTS) as server:
        port = int(server.place.rpartition(":")[2])
        context = await pages.context(server.url)
        old, other = await context.new_page(), await context.new_page()
        await old.goto(server.url)
        await other.goto(server.url)
        await server.start("release.playbook.md", inputs={"version": "2.0"}, model=server.script("s.json", REPLIES))
        for tab in (old, other):
            await expect(tab.get_by_text("Publish the notes?")).to_be_visible()
    for tab in (old, other):
        await expect(tab.get_by_text("The server has ended")).to_be_visible()
        await expect(tab.get_by_text("Publish the notes?")).to_be_visible()
    async with served(tmp_path / "team", {}, port=port, token="the-token-of-the-next-server") as server:
        new = await context.new_page()
        await new.goto(server.url)
        for tab in (old, other):
            await expect(tab.get_by_text("The server has ended")).to_be_hidden()
        await old.get_by_role("button", name="yes").click()
        await expect(old.get_by_role("heading", name="Ended")).to_be_visible()


async def test_a_request_that_the_network_breaks_off_keeps_the_token(pages: Pages, tmp_path: Path) -> None:
    """security N1: only a server that is gone is not sent its token again."""
    async with served(tmp_path / "team", DOCUMENTS) as server:
        page = await pages.open(server.url, guarded=False)
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        await page.route("**/api/v1/documents*", lambda route: route.abort("connectionaborted"), times=1)
        await page.get_by_role("link", name="Documents").click()
        await expect(page.get_by_text("The server cannot be reached").first).to_be_visible()
        await page.get_by_role("link", name="Runs").click()
        await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        assert await page.get_by_text("The server has ended").count() == 0


@pytest.mark.parametrize("keeps_path", [True, False])
async def test_below_a_path_behind_a_proxy(pages: Pages, tmp_path: Path, keeps_path: bool) -> None:
    async with proxy("/tools/quire", keeps_path=keeps_path) as front:
        options = SiteOptions(base="/tools/quire")
        async with served(tmp_path / "team", DOCUMENTS, options=options, names=[front.place]) as server:
            front.target = server.place
            page = await pages.open(f"http://{front.place}/tools/quire/#token={TOKEN}")
            await server.start("release.playbook.md", inputs={"version": "2"}, model=server.script("s.json", REPLIES))
            await page.get_by_role("button", name="yes").click()
            await expect(page.get_by_role("heading", name="Ended")).to_be_visible()
            assert page.url == f"http://{front.place}/tools/quire/"
            await _go_and_come_back(page)
            await page.close()  # before the server behind the proxy: a page that is alone would ask for it


async def _go_and_come_back(page: Page) -> None:
    await page.get_by_role("link", name="Documents").click()
    await expect(page.get_by_role("heading", level=1)).not_to_have_text("Now")
    assert page.url.endswith("/tools/quire/documents")
    await page.go_back()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Now")


MARKUP = """# <img src=x onerror="document.title='owned'">&lt;b&gt;

<script>document.title = "owned"</script>

## STEP 1: <svg onload="document.title='owned'">

@elicit(select, "<iframe srcdoc='<script>1</script>'>Which?", "<b>one</b>", "javascript:alert(1)")
"""


async def test_markup_in_titles_and_questions_is_text(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"a<b>.playbook.md": MARKUP}) as server:
        await server.start("a<b>.playbook.md")
        page = await pages.open(server.url)
        await expect(page.get_by_role("button", name="<b>one</b>")).to_be_visible()
        await expect(page.get_by_text("<iframe srcdoc=")).to_be_visible()
        assert await page.title() == "(1) Quire"
        assert await page.locator("main img, main iframe, main script").count() == 0


async def test_the_token_leaves_the_address_and_a_wrong_one_asks_for_it(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        page = await pages.open(server.url)
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        assert page.url == f"http://{server.place}/"
        await page.evaluate("localStorage.setItem('quire-token', 'wrong')")
        await page.reload()
        await page.get_by_label("Token, or the whole address").fill(server.url)
        await page.get_by_role("button", name="Open").click()
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    pages.faults[:] = [fault for fault in pages.faults if "401" not in fault and "ERR_" not in fault]


async def test_two_answers_at_once_count_once(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        run = await server.start("release.playbook.md", inputs={"version": "2"}, model=server.script("s.json", REPLIES))
        first, second = await pages.open(server.url), await pages.open(server.url)
        for page in (first, second):
            await expect(page.get_by_text("Publish the notes?")).to_be_visible()
        await asyncio.gather(
            *(page.get_by_role("button", name="yes").click(no_wait_after=True) for page in (first, second))
        )
        for page in (first, second):
            await expect(page.get_by_role("heading", name="Ended")).to_be_visible()
        effects = await server.site.runtime.store.effects(run["id"])
        assert [one.path for one in effects if one.kind == "ask"] == ["2/ask"]
    pages.faults[:] = [fault for fault in pages.faults if "409" not in fault and "404" not in fault]
