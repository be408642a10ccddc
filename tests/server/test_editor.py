"""The editor in a real browser: findings, completion, hover, fixes, saving, conflicts, keys, and policies."""

from __future__ import annotations

import contextlib
import gzip
import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect
from tests.browser import PHONE, WIDE, Pages, axe, each_look, picture
from tests.server.served import served
from tests.vendor.manifest import PAGE

from quire.lsp.protocol import TOKEN_TYPES
from quire.server.site import SiteOptions

pytestmark = pytest.mark.asyncio(loop_scope="session")

EDIT = SiteOptions(edit=True)
NOTES = """# Release notes

## INPUTS

- `version` (string): The version that is released

## STEP 1: Draft

Write release notes for {{verson}}.
"""
FILES = {"notes.playbook.md": NOTES}
SOURCE = "/documents/notes.playbook.md?tab=source"


def text_of(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Text of the document")


async def _hover(page: Page, word: str, text: str) -> None:
    """Rest on a word until its hover is there. A line above it may come while the pointer is on its way."""
    place = page.locator(".editor .cm-line span", has_text=re.compile(f"^{re.escape(word)}$")).first
    tooltip = page.locator(".cm-tooltip-hover")
    for _ in range(10):
        await page.mouse.move(2, 2)
        await place.hover()
        with contextlib.suppress(AssertionError):
            await expect(tooltip).to_contain_text(text, timeout=3_000)
            return
    await expect(tooltip).to_contain_text(text)


async def test_a_finding_is_seen_fixed_and_saved(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        file = server.folder / "notes.playbook.md"
        page = await pages.open(server.at(SOURCE))
        side = page.get_by_role("complementary", name="About the source")
        found = side.locator(".doc-finding-warn")
        await expect(found).to_contain_text("line 9")
        await expect(page.locator(".editor .cm-lintRange-warning")).to_have_text("{{verson}}")
        await expect(page.locator(".editor .tok-keyword").first).to_have_text("INPUTS")
        # What a finding means, and where it is.
        await found.get_by_role("button", name="PB201 unresolved").click()
        await expect(page.get_by_role("dialog")).to_contain_text("PB201")
        await page.keyboard.press("Escape")
        await found.get_by_role("button", name="line 9").click()
        await expect(text_of(page)).to_be_focused()
        await expect(page.locator(".cm-activeLine")).to_contain_text("verson")
        await found.get_by_role("button", name="Replace verson with version").click()
        await expect(page.locator(".editor .cm-content")).to_contain_text("{{version}}")
        await expect(side.get_by_text("no findings")).to_be_visible()
        await expect(side.get_by_text("changed, not saved")).to_be_visible()
        assert file.read_text() == NOTES
        await page.keyboard.press("Control+s")
        await expect(side.get_by_text("saved", exact=True)).to_be_visible()
        assert file.read_text() == NOTES.replace("verson", "version")


async def test_typing_completes_and_hovers(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        page = await pages.open(server.at(SOURCE))
        await text_of(page).press("Control+End")
        await page.keyboard.type("\nTell {{ver")
        offers = page.get_by_role("listbox").get_by_role("option")
        await expect(offers.first).to_contain_text("version")
        await offers.first.click()
        await expect(page.locator(".cm-activeLine")).to_contain_text("{{version")
        await page.keyboard.press("Escape")
        await _hover(page, "version", "The version that is released")
        # Undo takes all of it back.
        await text_of(page).press("Control+z")
        for _ in range(20):
            await page.keyboard.press("Control+z")
        await expect(page.get_by_text("as in the file")).to_be_visible()
        # A lens leads to the prompt of its step, and the step at the cursor is shown in the picture.
        await page.get_by_role("button", name="line 9").click()
        await expect(page.locator(".node.selected")).to_contain_text("Draft")
        await page.locator(".cm-lens").get_by_role("button", name="Prompt").click()
        await expect(page.get_by_role("dialog", name="The prompts of a run")).to_contain_text("Write release notes for")


async def test_a_conflict_shows_both_texts(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        file = server.folder / "notes.playbook.md"
        page = await pages.open(server.at(SOURCE))
        await text_of(page).press("Control+End")
        await page.keyboard.type("Be brief.")
        await expect(page.get_by_text("changed, not saved")).to_be_visible()
        file.write_text(NOTES.replace("Draft", "Write"))
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("The file has changed since you read it.")).to_be_visible()
        pages.expect_fault("412")
        await expect(page.locator(".conflict ins")).to_contain_text(["Draft", "Be brief."])
        await expect(page.locator(".conflict del")).to_contain_text(["Write"])
        assert "Be brief." not in file.read_text()
        await page.get_by_role("button", name="Take the file as it is").click()
        await expect(page.locator(".editor .cm-content")).to_contain_text("STEP 1: Write")
        await expect(page.get_by_text("as in the file")).to_be_visible()
        # A text without changes follows its file; one with changes stays, also on another tab of the page.
        file.write_text(NOTES.replace("Draft", "Compose"))
        await expect(page.locator(".editor .cm-content")).to_contain_text("STEP 1: Compose")
        await text_of(page).press("Control+End")
        await page.keyboard.type("Be kind.")
        await page.get_by_role("link", name="Proof").click()
        await page.get_by_role("link", name="Source").click()
        await expect(page.locator(".editor .cm-content")).to_contain_text("Be kind.")
        await page.get_by_role("button", name="Discard").click()
        await expect(page.locator(".editor .cm-content")).not_to_contain_text("Be kind.")
        file.unlink()
        await expect(page.get_by_text("The file was deleted or renamed.")).to_be_visible()
        await expect(text_of(page)).to_be_visible()
        pages.faults.clear()


async def test_it_is_read_without_edit(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES) as server:
        page = await pages.open(server.at(f"{SOURCE}&line=9"))
        await expect(page.locator(".doc-finding-warn")).to_contain_text("verson")
        await expect(page.get_by_text("quire serve --edit")).to_be_visible()
        await expect(page.locator(".cm-activeLine")).to_contain_text("verson")
        await expect(text_of(page)).to_have_attribute("aria-readonly", "true")
        await text_of(page).focus()
        await page.keyboard.type("x")
        await page.keyboard.press("Tab")
        await expect(text_of(page)).not_to_be_focused()
        await expect(page.locator(".editor .cm-content")).to_contain_text("# Release notes")
        await _hover(page, "version", "The version that is released")
        assert await page.get_by_role("button", name="Save", exact=True).count() == 0


async def test_keys_search_and_leave_the_editor(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        page = await pages.open(server.at(SOURCE))
        await text_of(page).press("Control+Home")
        # Letters are text, and no shortcuts of the page.
        await page.keyboard.type("3gn")
        await expect(page.locator(".editor .cm-content")).to_contain_text("3gn# Release")
        assert "tab=source" in page.url
        await page.keyboard.press("Tab")
        await expect(text_of(page)).to_be_focused()
        await page.keyboard.press("Escape")
        await page.keyboard.press("Tab")
        await expect(text_of(page)).not_to_be_focused()
        await text_of(page).press("Control+f")
        panel = page.locator(".cm-search")
        await panel.get_by_role("textbox", name="Find").press_sequentially("released")
        await expect(page.locator(".cm-searchMatch")).to_have_count(1)
        assert await axe(page) == []
        await page.keyboard.press("Escape")
        await expect(panel).to_have_count(0)
        await expect(text_of(page)).to_be_focused()


async def test_it_looks_right(pages: Pages, tmp_path: Path) -> None:
    async def look(page: Page, label: str) -> None:
        await picture(page, label)
        needed, given = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert needed <= given, label
        assert await axe(page) == [], label

    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        page = await pages.open(server.at(SOURCE))
        await expect(page.locator(".doc-finding")).to_have_count(2)
        await expect(page.locator(".cm-lens")).to_have_count(2)
        await each_look(page, "document-source", look, widths=(PHONE, WIDE))


async def test_a_long_document_is_a_few_elements(pages: Pages, tmp_path: Path) -> None:
    lines = "\n".join(f"{number}. Say {{{{version}}}} and more words of a line." for number in range(3_990))
    async with served(tmp_path / "team", {"notes.playbook.md": NOTES + lines}, options=EDIT) as server:
        page = await pages.open(server.at(SOURCE))
        await expect(page.locator(".editor .cm-line").first).to_be_visible()
        assert await page.locator(".editor .cm-line").count() < 120
        spent = await page.evaluate(
            """async text => {
                const { openEditor } = await import(document.querySelector('link[href*="/app/parts/editor.js"]').href);
                const hosts = ["a", text].map(() => document.createElement("div"));
                const spent = [];
                for (const [at, host] of hosts.entries()) {
                    host.style.height = "600px";
                    document.querySelector("main").append(host);
                    const began = performance.now();
                    await openEditor(host, { text: at ? text : "a" });
                    host.offsetHeight;
                    spent.push(performance.now() - began);
                }
                return spent;
            }""",
            NOTES + lines,
        )
        # A busy machine draws slowly: an empty editor is the measure.
        assert spent[1] < max(100, 4 * spent[0]), spent


HOSTILE = """# <img src=x onerror="document.title='owned'">

## INPUTS

- `subject` (string): <b>bold</b> **`x`** <script>document.title = "owned"</script>

## STEP 1: <svg onload="document.title='owned'">

Write {{subject}} and {{<img src=x>}} and {{nobody}}.
"""


async def test_a_hostile_text_is_text(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"notes.playbook.md": HOSTILE}, options=EDIT) as server:
        page = await pages.open(server.at(SOURCE))
        await expect(page.locator(".cm-lens").first).to_be_visible()  # nothing moves under the pointer any more
        await _hover(page, "subject", "<b>bold</b>")
        for selector in ("main img", "main script", "main b:not(.count)", ".editor img", ".editor script", ".editor b"):
            assert await page.locator(selector).count() == 0, selector
        assert not (await page.title()).startswith("owned")


async def test_it_is_loaded_once_and_only_where_it_is_shown(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES) as server:
        page = await pages.open(server.at("/documents/notes.playbook.md"))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await expect(page.get_by_role("heading", name="Steps")).to_be_visible()
        assert not [url for url in asked if "codemirror" in url]
        for tab in ("Source", "Proof", "Source"):
            await page.get_by_role("link", name=tab).click()
        await expect(text_of(page)).to_be_visible()
        assert len([url for url in asked if "codemirror" in url]) == 1
        packed = gzip.compress((PAGE / "vendor" / "codemirror.js").read_bytes(), 9)
        assert len(packed) <= 115_000


async def test_colours_are_named_as_the_server_sends_them() -> None:
    text = (PAGE / "app" / "parts" / "editor.js").read_text(encoding="utf-8")
    listed = text.partition("export const TOKENS = [")[2].partition("];")[0]
    assert tuple(re.findall(r'"(\w+)"', listed)) == TOKEN_TYPES
