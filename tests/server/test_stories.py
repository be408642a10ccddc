"""Stories of the whole page in a real browser: one stream for all tabs, a lost server, a proxy, a hostile document."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.browser import Pages
from tests.server.proxy import proxy
from tests.server.served import TOKEN, Served, served

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


GATE = """# Review

## INPUTS

- `subject` (string): The incident

## STEP 1: Gate

@elicit(confirm, "Go on to the causes?")

## STEP 2: Report

Write about {{subject}}.
"""
DEPLOY = """pipeline: deploy
dialect: quire
description: Publishes a version after a person agreed.
input:
  version: {type: string}
steps:
  - tool: {name: ask, args: {type: confirm, prompt: "Publish it?"}, output: approved}
  - stop: {when: approved != 'yes', value: "'not approved'"}
  - shell: {command: !expr "['sh', 'publish.sh', ctx.version]"}
"""


async def _gates(server: Served, subjects: Sequence[str]) -> dict[str, str]:
    """Start a run for each subject; all of them ask the same."""
    model = server.script("gate.json", [{"default": "The report."}])
    runs = {
        subject: await server.start("gate.playbook.md", inputs={"subject": subject}, model=model)
        for subject in subjects
    }
    async with asyncio.timeout(20):
        while len(await server.site.runtime.store.questions()) < len(subjects):
            await asyncio.sleep(0.01)
    return {subject: str(run["id"]) for subject, run in runs.items()}


async def _answered(server: Served, run: str) -> list[str]:
    return [str(effect.value) for effect in await server.site.runtime.store.effects(run) if effect.kind == "ask"]


async def test_of_four_alike_one_is_approved_one_undone_and_one_sent_by_closing_the_tab(
    pages: Pages, tmp_path: Path
) -> None:
    async with served(tmp_path / "team", {"gate.playbook.md": GATE}) as server:
        runs = await _gates(server, ["search", "payments", "login", "export"])
        page = await pages.open(server.url)
        await expect(page.get_by_text("4 alike")).to_be_visible()
        assert await page.get_by_text("Go on to the causes?").count() == 1, "the text of a question stands once"
        rows = {subject: page.locator(".asked > li", has=page.get_by_role("link", name=subject)) for subject in runs}
        await rows["payments"].get_by_role("button", name="Yes").click()
        await page.wait_for_timeout(500)  # a second click at once is part of a double click
        await rows["payments"].get_by_role("button", name="Undo").click()
        await expect(rows["payments"].get_by_role("button", name="Yes")).to_be_visible()
        await rows["search"].get_by_role("button", name="Yes").click()
        assert await _answered(server, runs["search"]) == [], "an answer is held before it is sent"
        # Leaving the screen changes nothing.
        await page.get_by_role("link", name="Documents").click()
        async with asyncio.timeout(20):
            while not await _answered(server, runs["search"]):
                await asyncio.sleep(0.05)
        assert await _answered(server, runs["search"]) == ["yes"]
        await page.get_by_role("link", name="Now").click()
        await rows["login"].get_by_role("button", name="No").dblclick()
        await rows["login"].get_by_role("button", name="Undo").wait_for()
        await page.close(run_before_unload=False)
        async with asyncio.timeout(4):  # sooner than it would be sent from an open page
            while not await _answered(server, runs["login"]):
                await asyncio.sleep(0.02)
        assert await _answered(server, runs["login"]) == ["no"]
        waiting = {question.run for question in await server.site.runtime.store.questions()}
        assert waiting == {runs["payments"], runs["export"]}


async def test_a_question_before_an_effect_is_red_and_answered_by_itself(pages: Pages, tmp_path: Path) -> None:
    options = SiteOptions(allow=("shell",))
    async with served(tmp_path / "team", {"deploy.yaml": DEPLOY, "gate.playbook.md": GATE}, options=options) as server:
        for version in ("1.0", "1.1"):
            await server.start("deploy.yaml", inputs={"version": version})
        await _gates(server, ["search", "login"])
        page = await pages.open(server.url)
        red = page.locator(".question", has_text="Publish it?")
        await expect(red.get_by_text("changes the world")).to_be_visible()
        await expect(red.get_by_role("button", name="Yes, publish")).to_have_count(2)
        await expect(red.get_by_role("button", name="Answer all")).to_have_count(0)
        await page.get_by_role("button", name="Answer all 2").click()
        await page.get_by_role("dialog").get_by_role("button", name="Yes").click()
        await expect(page.locator(".held")).to_have_count(2)
        await expect(red.locator(".held")).to_have_count(0)
        async with asyncio.timeout(20):
            while len(open_ones := await server.site.runtime.store.questions()) > 2:
                await asyncio.sleep(0.05)
        assert {question.prompt for question in open_ones} == {"Publish it?"}


async def test_hostile_subjects_and_questions_are_text(pages: Pages, tmp_path: Path) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    text = GATE.replace("Go on to the causes?", "<svg onload='x'>Go {{subject}}?")
    async with served(tmp_path / "team", {"gate.playbook.md": text}) as server:
        failing = server.script("lost.json", [{"error": f"lost {evil}"}])
        asks = await _gates(server, [evil, f"{evil} again", "\u202egnitset"])
        other = GATE.replace('@elicit(confirm, "Go on to the causes?")', "Write.")
        server.write("fails.playbook.md", other)
        lost = await server.start("fails.playbook.md", inputs={"subject": evil}, model=failing)
        await server.site.runs.ended(lost["id"], 10)
        page = await pages.open(server.url)
        await expect(page.locator("#failed")).to_be_visible()
        await expect(page.locator(".asked .subject")).to_have_count(len(asks))
        await expect(page.get_by_text("<img src=x").first).to_be_visible()
        await page.get_by_role("button", name="Yes").first.click()
        await expect(page.get_by_role("button", name="Undo")).to_be_visible()
        assert await page.locator("main img, main iframe, main script, main svg[onload]").count() == 0
        assert await page.title() == "(3) Quire"
        assert not any("\u202e" in text for text in await page.locator(".subject").all_inner_texts())
