"""The page of one run in a real browser: what it shows, and what it lets a person do."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from tests.browser import Pages, axe, each_look, picture
from tests.server.served import Served, served
from tests.server.team_workspace import ordinary_day, write_documents
from tests.server.test_stories import DOCUMENTS, REPLIES

from quire.engine.records import Event
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.scripts import reopened

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def team(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Served, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("run-page") / "team"
    folder.mkdir()
    write_documents(folder)
    async with served(folder, {}) as server:
        yield server, await ordinary_day(server.site.runtime)


async def look(page: Page, name: str) -> None:
    """Take the pictures of a screen, if there is a folder for them, and run axe on it once."""
    if "QUIRE_SCREENSHOTS" in os.environ:
        await each_look(page, name, picture)
        await page.set_viewport_size({"width": 1280, "height": 900})
        await page.emulate_media(color_scheme="light")
    assert await axe(page) == []


async def test_watch_a_run_and_answer_it(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        model = server.script("s.json", REPLIES)
        run = await server.start("release.playbook.md", inputs={"version": "2.0"}, model=model)
        page = await pages.open(server.at(f"/runs/{run['id']}"))
        await expect(page.get_by_role("heading", level=1)).to_have_text("Release notes")
        await expect(page.get_by_text("Waits for an answer since")).to_be_visible()
        await expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
        await look(page, "run-waiting")
        await page.get_by_role("button", name="yes").first.click()
        await expect(page.locator(".run-words")).to_contain_text("Completed")
        await expect(page.locator(".question-bar")).to_contain_text("answered yes by this page")
        # The answer of the terminal is said as well, with its author.
        other = await server.start("release.playbook.md", inputs={"version": "3.0"}, model=model)
        page = await pages.open(server.at(f"/runs/{other['id']}"))
        await expect(page.locator(".question-bar")).to_contain_text("Publish the notes?")
        await server.site.runtime.answer(other["id"], None, "no", by="ada")
        await server.site.runs.go_on(other["id"])
        await expect(page.locator(".question-bar")).to_contain_text("answered no by ada, in the terminal")


async def test_steps_by_keyboard_and_what_each_shows(pages: Pages, team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    page = await pages.open(server.at(f"/runs/{runs['done']}"))
    tree = page.get_by_role("tree", name="Steps")
    await expect(page.get_by_role("heading", level=2).filter(has_text="The report")).to_be_visible()
    await tree.focus()
    for key, active in (("Home", "Assess"), ("ArrowDown", "1a"), ("ArrowLeft", "Assess"), ("ArrowLeft", "Assess")):
        await page.keyboard.press(key)
        await expect(tree.locator(".active")).to_contain_text(active)
    await expect(tree.get_by_role("treeitem", name="1a")).to_have_count(0)
    await page.keyboard.press("ArrowRight")
    await expect(tree.get_by_role("treeitem").nth(1)).to_contain_text("1a")
    await page.keyboard.type("mi")
    await expect(tree.locator(".active")).to_contain_text("Minutes until the fix")
    await page.keyboard.press("End")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"http://{server.place}/runs/{runs['done']}/steps/7")
    # The prompt says which step wrote the timeline, and leads there.
    await page.locator("a.mark").click()
    await expect(page).to_have_url(f"http://{server.place}/runs/{runs['done']}/steps/2")
    await expect(page.get_by_role("heading", level=2).filter(has_text="Timeline")).to_be_visible()
    await expect(page.locator(".markup table")).to_be_visible()
    await page.get_by_role("button", name="Source").click()
    await expect(page.locator(".content .source")).to_contain_text("| time | what |")
    await page.locator("body").press("v")
    await expect(page).to_have_url(f"http://{server.place}/runs/{runs['done']}/values")
    await expect(page.get_by_text("review_date")).to_be_visible()
    await look(page, "run-values")


async def test_failed_items_and_the_journal(pages: Pages, team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    page = await pages.open(server.at(f"/runs/{runs['triage']}"))
    await expect(page.get_by_role("tree")).to_contain_text("40 / 40, 6 failed")
    await page.locator("body").press("n")
    await expect(page).to_have_url(f"http://{server.place}/runs/{runs['triage']}/steps/2")
    await expect(page.locator("details.effect")).to_have_count(40)
    await look(page, "run-fan")
    await page.get_by_role("link", name="Journal").click()
    await page.get_by_label("State").select_option("failed")
    await expect(page.get_by_text("6 of 41")).to_be_visible()
    await page.get_by_label("Path").fill("[11]")
    await page.get_by_role("link", name="2/for_each[11]/model").click()
    await expect(page.get_by_role("region", name="Effect 2/for_each[11]/model")).to_contain_text(
        "the connection was lost"
    )
    await look(page, "run-journal")
    await page.get_by_role("link", name="Open", exact=True).click()
    await expect(page.get_by_role("heading", level=2).filter(has_text="item 11")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_text("1 of 41")).to_be_visible()


async def test_set_values_at_a_breakpoint_and_go_on(pages: Pages, team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    page = await pages.open(server.at(f"/runs/{runs['paused']}"))
    await expect(page.locator(".run-words")).to_contain_text("Paused after step 3")
    await page.get_by_role("button", name="Resume", exact=True).first.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("duration")).to_have_value("42")
    await look(page, "run-resume")
    await dialog.get_by_label("duration").fill("43")
    await dialog.get_by_role("button", name="Resume", exact=True).click()
    await expect(page.locator(".run-words")).to_contain_text("Completed")
    values = page.get_by_role("complementary", name="Values of the run")
    await expect(values.locator(".status")).to_have_text("by hand")
    await expect(values).to_contain_text("43")


async def test_the_artifact_and_the_pinned_document(pages: Pages, team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    page = await pages.open(server.at(f"/runs/{runs['done']}/artifact"))
    await expect(page.locator(".markup h1")).to_have_text("Incident report: login")
    async with page.expect_download() as saved:
        await page.get_by_role("button", name="Download").click()
    assert (await saved.value).suggested_filename == f"{runs['done']}.md"
    await look(page, "run-artifact")
    file = server.folder / "incident-report.playbook.md"
    text = file.read_text()
    file.write_text(text.replace("Assess", "Judge"))
    try:
        await page.reload()
        await page.get_by_role("link", name="the file has changed since").click()
        await expect(page.locator("ins").first).to_contain_text("Judge")
        await expect(page.locator("del").first).to_contain_text("Assess")
        await look(page, "run-document")
    finally:
        file.write_text(text)


SLOW = """# Slow

Writes for a while.

## STEP 1: Write

Write a long text.
"""


async def drawn(page: Page) -> None:
    """Wait until the page has drawn what it knows, and has heard of the scrolling."""
    await page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


async def test_a_text_is_shown_while_it_is_written(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"slow.playbook.md": SLOW}) as server:
        run = await server.start("slow.playbook.md", model=server.script("s.json", ["Done."]), breakpoints=["1"])
        await server.site.runs.ended(run["id"], 10)
        page = await pages.open(server.at(f"/runs/{run['id']}"))
        await expect(page.get_by_role("heading", level=2).filter(has_text="Write")).to_be_visible()

        def delta(text: str) -> None:
            server.site.hub.listen(Event("delta", run["id"], 0.0, 0, "1/model", "1", {}, {"text": text}))

        def reading(processed: int) -> None:
            live = {"processed": processed, "total": 2031}
            server.site.hub.listen(Event("reading", run["id"], 0.0, 0, "1/model", "1", {}, live))

        reading(768)
        await expect(page.get_by_text("The model is reading the prompt 768/2,031")).to_be_visible()
        reading(2031)
        await expect(page.get_by_text("The model is reading")).to_have_count(0)
        reading(512)
        await expect(page.get_by_text("The model is reading the prompt 512/2,031")).to_be_visible()
        for number in range(200):
            delta(f"line {number}\n")
        box = page.locator(".streaming pre")
        await expect(box).to_contain_text("line 199")
        await expect(page.get_by_text("The model is reading")).to_have_count(0)
        await drawn(page)
        assert await box.evaluate("box => box.scrollHeight - box.scrollTop - box.clientHeight") < 2
        await box.evaluate("box => { box.scrollTop = 100; }")
        await drawn(page)
        delta("one more\n")
        await expect(box).to_contain_text("one more")
        await drawn(page)
        await expect(box).to_have_js_property("scrollTop", 100)
        await expect(page.get_by_text("Step 1 is writing its reply.")).to_have_count(1)


async def test_a_run_that_another_process_drives(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"slow.playbook.md": SLOW}) as server:
        runtime = server.site.runtime
        model = server.script("s.json", [{"default": "Done.", "delay_ms": 600_000}])
        document = load(str(server.folder / "slow.playbook.md"))
        run = await runtime.start(document, {}, RunOptions(model=model))
        drive = asyncio.create_task((await reopened(runtime, run)).drive(run))
        try:
            page = await pages.open(server.at(f"/runs/{run}"))
            await expect(page.get_by_text("another process; text appears when a step ends").first).to_be_visible()
            await expect(page.get_by_role("button", name="Pause after this step")).to_have_count(0)
            await page.get_by_role("button", name="Cancel", exact=True).click()
            await page.get_by_role("button", name="Cancel the run").click()
            await expect(page.locator(".run-words")).to_contain_text("Cancelled")
        finally:
            drive.cancel()
            await asyncio.gather(drive, return_exceptions=True)


async def test_a_run_that_was_changed_from_outside_says_so_and_is_not_driven(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        model = server.script("s.json", REPLIES)
        run = (await server.start("release.playbook.md", inputs={"version": "2.0"}, model=model))["id"]
        with closing(sqlite3.connect(server.folder / ".quire" / "quire.db")) as database, database:
            database.execute("UPDATE pins SET value = json_set(value, '$.allow', json('[\"shell\"]'))")
        async with server.client() as client:
            head = (await client.get(f"/runs/{run}")).json()
            assert head["sealed"] is False
            assert [action["name"] for action in head["actions"]] == ["cancel", "fork", "compare", "export"]
            asked = head["questions"][0]
            body = {"value": "yes", "hash": asked["hash"]}
            assert (await client.post(f"/questions/{run}/{asked['path']}/answer", json=body)).status_code == 403
        page = await pages.open(server.at(f"/runs/{run}"))
        await expect(page.get_by_text(head["seal_problem"])).to_be_visible()
        await expect(page.get_by_role("button", name="Answer")).to_have_count(0)
        await look(page, "run-broken-seal")
