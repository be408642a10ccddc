"""The page of one run in a real browser: its tree, the selected row, and what it lets a person do."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect
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


def rows(page: Page) -> Locator:
    return page.get_by_role("tree", name="Steps of the run").get_by_role("treeitem")


def selected(page: Page) -> Locator:
    return page.locator(".tree-row[aria-selected=true]")


async def test_watch_a_run_and_answer_it(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        model = server.script("s.json", REPLIES)
        run = await server.start("release.playbook.md", inputs={"version": "2.0"}, model=model)
        await server.site.runs.ended(run["id"], 10)
        page = await pages.open(server.at(f"/runs/{run['id']}"))
        await expect(page.locator(".run-words")).to_contain_text("Waits for an answer since")
        await expect(selected(page)).to_contain_text("Decide")
        await expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
        await look(page, "run-waiting")
        await page.get_by_role("button", name="Answer", exact=True).click()
        await expect(page.get_by_role("button", name="yes").first).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator(".run-words")).to_contain_text("Completed")
        await expect(selected(page)).to_contain_text("Decide")
        await expect(page.locator(".pane")).to_contain_text("answered yes by this page")
        # The answer of the terminal is said as well, with its author.
        other = await server.start("release.playbook.md", inputs={"version": "3.0"}, model=model)
        page = await pages.open(server.at(f"/runs/{other['id']}"))
        await expect(page.locator(".pane")).to_contain_text("Publish the notes?")
        await page.locator(".tree-row", has_text="Decide").click()
        await server.site.runtime.answer(other["id"], None, "no", by="ada")
        await server.site.runs.go_on(other["id"])
        await expect(page.locator(".pane")).to_contain_text("answered no by ada, in the terminal")


async def test_rows_by_keyboard_and_what_each_shows(pages: Pages, team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    page = await pages.open(server.at(f"/runs/{runs['done']}"))
    await expect(selected(page)).to_contain_text("Result")
    await expect(page.locator(".pane .markup h1")).to_have_text("Incident report: login")
    tree = page.get_by_role("tree", name="Steps of the run")
    await tree.focus()
    for key, active in (("Home", "Result"), ("j", "Assess"), ("ArrowDown", "Reply"), ("ArrowLeft", "Assess")):
        await page.keyboard.press(key)
        await expect(selected(page)).to_contain_text(active)
    await page.keyboard.press("ArrowLeft")
    await expect(rows(page).filter(has_text="Message to the management")).to_have_count(0)
    await page.keyboard.press("ArrowRight")
    await expect(rows(page).filter(has_text="Message to the management")).to_have_count(1)
    await page.keyboard.press("End")
    await page.keyboard.press("Enter")
    await expect(page.locator("#pane-title")).to_be_focused()
    await expect(page.locator("#pane-title")).to_have_text("The report")
    # The prompt says which step wrote the timeline, and leads there.
    await page.locator(".tabs").get_by_role("link", name="Prompt").click()
    await page.locator("a.mark").first.click()
    await expect(page.locator("#pane-title")).to_have_text("Timeline")
    await expect(selected(page)).to_contain_text("Timeline")
    await page.locator(".tabs").get_by_role("link", name="Reply").click()
    await expect(page.locator(".pane .markup table")).to_be_visible()
    await look(page, "run-step")
    await page.get_by_role("button", name="Source").click()
    await expect(page.locator(".content .source")).to_contain_text("| time | what |")
    await page.locator(".tabs").get_by_role("link", name="Raw").click()
    await expect(page.locator(".pane-body code").first).to_have_text("2/model")
    await rows(page).first.click()
    await page.locator(".tabs").get_by_role("link", name="Values").click()
    await expect(page.get_by_text("review_date")).to_be_visible()
    await look(page, "run-values")


async def test_failed_items(pages: Pages, team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    page = await pages.open(server.at(f"/runs/{runs['triage']}"))
    fan = rows(page).filter(has_text="40 items · 6 failed")
    await expect(fan.locator(".buckets")).to_have_count(1)
    await page.locator("body").press("n")
    await expect(selected(page)).to_contain_text("Failed 6")
    await page.locator("body").press("n")
    await expect(selected(page)).to_contain_text("T-4105")
    await expect(page.locator(".pane")).to_contain_text("the connection was lost")
    done = rows(page).filter(has_text="Done 34")
    await done.click()
    await page.get_by_role("button", name="Slowest first").click()
    await expect(page.get_by_role("button", name="Slowest first")).to_have_attribute("aria-pressed", "true")
    await look(page, "run-fan")


async def test_set_values_at_a_breakpoint_and_go_on(pages: Pages, team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    page = await pages.open(server.at(f"/runs/{runs['paused']}"))
    await expect(page.locator(".pane")).to_contain_text("Paused after step 3")
    await page.get_by_role("button", name="Resume", exact=True).first.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("duration")).to_have_value("42")
    await look(page, "run-resume")
    await dialog.get_by_label("duration").fill("43")
    await dialog.get_by_role("button", name="Resume", exact=True).click()
    await expect(page.locator(".run-words")).to_contain_text("Completed")
    await rows(page).first.click()
    await page.locator(".tabs").get_by_role("link", name="Values").click()
    await expect(page.locator(".pane .status")).to_have_text("by hand")
    await expect(page.locator(".pane-body")).to_contain_text("43")


async def test_the_result_and_the_pinned_document(pages: Pages, team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    page = await pages.open(server.at(f"/runs/{runs['done']}"))
    await expect(page.locator(".markup h1")).to_have_text("Incident report: login")
    async with page.expect_download() as saved:
        await page.get_by_role("button", name="Download").click()
    assert (await saved.value).suggested_filename == f"{runs['done']}.md"
    await look(page, "run-result")
    file = server.folder / "incident-report.playbook.md"
    text = file.read_text()
    file.write_text(text.replace("Assess", "Judge"))
    try:
        await page.reload()
        await page.get_by_role("button", name="Details").click()
        await look(page, "run-details")
        await page.get_by_role("link", name="the file has changed since").click()
        await page.keyboard.press("Escape")
        await expect(page.locator("ins").first).to_contain_text("Judge")
        await expect(page.locator("del").first).to_contain_text("Assess")
        await look(page, "run-document")
    finally:
        file.write_text(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("steps/2", "?step=2"),
        ("steps/2/for_each[5]", "?step=2%2Ffor_each%5B5%5D"),
        ("fans/2?item=3", "?step=2%2Ffor_each%5B3%5D"),
        ("journal?effect=2/for_each[11]/model", "?step=2%2Ffor_each%5B11%5D%2Fmodel&tab=raw"),
        ("journal", ""),
        ("timeline", ""),
        ("transcript", ""),
        ("graph?step=3", "?view=graph&step=3"),
        ("values", "?tab=values"),
        ("artifact", "?tab=result"),
        ("document", "?tab=document"),
    ],
)
async def test_addresses_of_earlier_versions_lead_to_the_same(
    pages: Pages, team: tuple[Served, dict[str, str]], old: str, new: str
) -> None:
    server, runs = team
    page = await pages.open(server.at(f"/runs/{runs['triage']}/{old}"))
    await expect(page).to_have_url(f"http://{server.place}/runs/{runs['triage']}{new}")
    await expect(page.locator("#pane-title, .graph").first).to_be_visible()
    await expect(page.locator(".problem")).to_have_count(0)


SLOW = """# Slow

Writes for a while.

## STEP 1: Write

Write a long text.
"""


async def drawn(page: Page) -> None:
    """Wait until the page has drawn what it knows, and has heard of the scrolling."""
    await page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


async def test_a_text_is_shown_while_it_is_written_and_a_cancel_stops_it(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"slow.playbook.md": SLOW}) as server:
        model = server.script("s.json", [{"default": "Done.", "delay_ms": 600_000}])
        run = await server.start("slow.playbook.md", model=model)
        page = await pages.open(server.at(f"/runs/{run['id']}"))
        await expect(page.locator("#pane-title")).to_have_text("Write")
        await expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "true")

        def delta(text: str) -> None:
            server.site.hub.listen(Event("delta", run["id"], 0.0, 0, "1/model", "1", {}, {"text": text}))

        def reading(processed: int) -> None:
            live = {"processed": processed, "total": 2031}
            server.site.hub.listen(Event("reading", run["id"], 0.0, 0, "1/model", "1", {}, live))

        reading(768)
        await expect(page.get_by_text("The model is reading the prompt 768/2,031")).to_be_visible()
        reading(2031)
        await expect(page.get_by_text("The model is reading")).to_have_count(0)
        for number in range(200):
            delta(f"line {number}\n")
        box = page.locator(".streaming pre")
        await expect(box).to_contain_text("line 199")
        await expect(box).to_contain_text("line 0\n")
        await expect(page.locator(".pane .status")).to_have_text("writing")
        await drawn(page)
        assert await box.evaluate("box => box.scrollHeight - box.scrollTop - box.clientHeight") < 2
        await box.evaluate("box => { box.scrollTop = 100; }")
        await drawn(page)
        delta("one more\n")
        await expect(box).to_contain_text("one more")
        await drawn(page)
        await expect(box).to_have_js_property("scrollTop", 100)
        await expect(page.get_by_text("Write is writing its reply.")).to_have_count(1)
        # A tab that comes late has the text from its first letter.
        late = await pages.open(server.at(f"/runs/{run['id']}"))
        delta("the last line")
        whole = "".join(f"line {number}\n" for number in range(200)) + "one more\nthe last line"
        for tab in (late, page):
            await expect(tab.locator(".streaming pre")).to_have_text(whole, use_inner_text=False)
        await page.get_by_role("button", name="Cancel", exact=True).first.click()
        await page.get_by_role("button", name="Cancel the run").click()
        await expect(page.locator(".run-words")).to_contain_text("Cancelled")
        for again in (False, True):
            if again:
                await page.goto(server.at(f"/runs/{run['id']}"))
            await page.locator(".tree-row", has_text="Write").click()
            await expect(page.locator(".pane .status")).to_contain_text("stopped")
            await expect(page.locator(".streaming, .tree-row .icon-running")).to_have_count(0)


WAITS = """# Waits

## STEP 1: First

Write one.

## STEP 2: Second

Write two.

## STEP 3: Third

Write three.
"""


async def test_follow_goes_to_the_result_and_an_own_choice_ends_it(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"waits.playbook.md": WAITS}) as server:
        model = server.script("s.json", [{"default": "Done.", "delay_ms": 700}])
        run = await server.start("waits.playbook.md", model=model)
        page = await pages.open(server.at(f"/runs/{run['id']}"))
        follow = page.get_by_role("button", name="Follow")
        await expect(follow).to_have_attribute("aria-pressed", "true")
        for name in ("First", "Second", "Third", "Result"):
            await expect(selected(page)).to_contain_text(name)
        await expect(follow).to_have_count(0)
        other = await server.start("waits.playbook.md", model=model)
        await page.goto(server.at(f"/runs/{other['id']}"))
        await expect(selected(page)).to_contain_text("First")
        await rows(page).filter(has_text="Third").click()
        await expect(follow).to_have_attribute("aria-pressed", "false")
        await page.locator("body").press("f")
        await expect(follow).to_have_attribute("aria-pressed", "true")
        await rows(page).filter(has_text="First").click()
        await expect(page.locator(".run-words")).to_contain_text("Completed")
        await expect(selected(page)).to_contain_text("First")


LEVEL = """pipeline: level_{level}
dialect: quire
steps:
  - call: {{pipeline: level_{below}, output: below}}
"""
BOTTOM = """pipeline: level_8
dialect: quire
steps:
  - agent: {prompt: "Say where you are.", output: said}
"""


async def test_find_by_keyboard_which_level_said_it(pages: Pages, tmp_path: Path) -> None:
    levels = {f"pipelines/level_{level}.yaml": LEVEL.format(level=level, below=level + 1) for level in range(1, 8)}
    async with served(tmp_path / "team", {**levels, "pipelines/level_8.yaml": BOTTOM}) as server:
        model = server.script("s.json", [{"default": "At the bottom."}])
        run = await server.start("pipelines/level_1.yaml", model=model)
        await server.site.runs.ended(run["id"], 10)
        page = await pages.open(server.at(f"/runs/{run['id']}"))
        tree = page.get_by_role("tree", name="Steps of the run")
        await expect(rows(page).filter(has_text="said")).to_have_attribute("aria-level", "8")
        await tree.focus()
        await page.keyboard.press("End")
        await page.keyboard.press("Enter")
        await expect(page.locator("#pane-title")).to_have_text("said")
        await expect(page.locator(".pane-body")).to_contain_text("At the bottom.")
        await expect(page.locator(".pane-crumbs a")).to_have_count(7)


LONG = "".join(f"Paragraph {number} says a little more than the one before it.\n\n" for number in range(38_000))


async def test_a_long_reply_is_read_to_its_end(pages: Pages, tmp_path: Path) -> None:
    assert len(LONG) > 2_000_000
    async with served(tmp_path / "team", {"slow.playbook.md": SLOW}) as server:
        run = await server.start("slow.playbook.md", model=server.script("s.json", [LONG]))
        await server.site.runs.ended(run["id"], 20)
        page = await pages.open(server.at(f"/runs/{run['id']}?step=1"))
        await page.get_by_role("button", name="Read on").click()
        await expect(page.locator(".more-text")).to_contain_text("of 2,")
        await page.get_by_role("button", name="To the end").click()
        await expect(page.locator(".pane-body")).to_contain_text("Paragraph 37999 says", timeout=60_000)
        await expect(page.locator(".more-text")).to_have_count(0)


async def test_name_and_note(pages: Pages, team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    page = await pages.open(server.at(f"/runs/{runs['release']}"))
    await page.get_by_role("button", name="Name and note").click()
    await page.locator("#run-name").fill("<b>For the board</b>")
    await page.locator("#run-note").fill("Read it <img src=x onerror=alert(1)> twice.")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator(".run-head h1")).to_have_text("<b>For the board</b>")
    await page.reload()
    await expect(page.locator(".run-head h1")).to_have_text("<b>For the board</b>")
    await page.get_by_role("button", name="Details").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Read it <img src=x onerror=alert(1)> twice.")


async def test_a_run_that_another_process_drives(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"slow.playbook.md": SLOW}) as server:
        runtime = server.site.runtime
        model = server.script("s.json", [{"default": "Done.", "delay_ms": 600_000}])
        document = load(str(server.folder / "slow.playbook.md"))
        run = await runtime.start(document, {}, RunOptions(model=model))
        drive = asyncio.create_task((await reopened(runtime, run)).drive(run))
        try:
            page = await pages.open(server.at(f"/runs/{run}"))
            await expect(page.get_by_text("driven by another process")).to_be_visible()
            await expect(page.get_by_role("button", name="Pause after this step")).to_have_count(0)
            await page.get_by_role("button", name="Cancel", exact=True).first.click()
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
        await page.locator(".tree-row").first.click()
        await expect(page.get_by_text(head["seal_problem"])).to_be_visible()
        await expect(page.get_by_role("button", name="Answer")).to_have_count(0)
        await look(page, "run-broken-seal")
