"""Documents in a real browser: from the form to the artifact, errors under fields, edits and conflicts, findings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, expect
from tests.browser import PHONE, WIDE, Pages, axe, each_look, picture
from tests.server.served import served
from tests.server.team_workspace import TRIAGE, write_documents

from quire.server.site import SiteOptions

pytestmark = pytest.mark.asyncio(loop_scope="session")

RELEASE = """# Release notes

Writes release notes and asks before they go out.

## SYSTEM

You write plainly.

## INPUTS

- `version` (string): The version that is released
- `audience` (enum: users, developers): Who reads them
- `language` (enum: English, French, German, Italian, Polish, Spanish): In which language
- `changes` (text): What has changed
- `year` (number: 2026): The year
- `loud` (boolean: false): With exclamation marks

## STEP 1: Draft

Write release notes for {{version}} of {{year}} for {{audience}} in {{language}}: {{changes}} (loud: {{loud}})

## STEP 2: Decide

@elicit(confirm, "Publish the notes?")

## STEP 3: Announce

Announce {{version}}.

## ARTIFACTS

type: markdown
"""
BROKEN = RELEASE.replace("- `year` (number: 2026): The year\n", "- `version` (number): Again\n").replace(
    "{{changes}}", "{{chnges}}"
)
COUNT = """# Count lines

## STEP 1: Count

@tool(quire, shell, {"command": ["wc", "-l", "a.txt"]})
"""
EDIT = SiteOptions(edit=True)


def _documents() -> dict[str, str]:
    return {
        "release.playbook.md": RELEASE,
        "drafts/broken.playbook.md": BROKEN,
        "count.playbook.md": COUNT,
        "flows/triage.yaml": TRIAGE,
        "empty.playbook.md": "",
    }


async def _look(page: Page, name: str) -> None:
    """Take pictures in light and dark, wide and on a phone; nothing may stick out. axe looks at two of them."""

    async def look(page: Page, label: str) -> None:
        await picture(page, label)
        wide = "[document.documentElement.scrollWidth, innerWidth]"
        needed, given = await page.evaluate(wide)
        assert needed <= given, label
        if label.endswith((f"light-{WIDE}", f"dark-{PHONE}")):
            assert await axe(page) == [], label

    await each_look(page, name, look, widths=(PHONE, WIDE))
    await page.set_viewport_size({"width": 320, "height": 900})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320, name
    await page.set_viewport_size({"width": WIDE, "height": 900})


async def _fill(page: Page, name: str, text: str) -> None:
    await page.locator(f"#input-{name}").fill(text)


async def test_from_the_form_to_the_artifact(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", _documents()) as server:
        model = server.script("s.json", ["## Fixed\n\nThe queue.", "It is out."])
        page = await pages.open(server.at("/documents"))
        await page.get_by_role("link", name="Release notes").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Release notes")
        await expect(page.get_by_text("asks a person: Publish the notes?")).to_be_visible()
        await page.get_by_role("button", name="Run", exact=True).click()
        start = page.get_by_role("button", name="Start the run")
        line = page.locator(".forecast-line")
        # The price is that of the model of this machine, if it has one.
        await expect(line).to_have_text(re.compile("^This run: 2 model calls, .*, 1 question[.]$"))
        # An empty field is not wrong before the reader has come to it; starting says what is missing, in one go.
        problems = page.locator(".field .input-problem")
        assert await problems.count() == 0
        await start.click()
        await expect(problems).to_have_count(4)
        await expect(problems.first).to_have_text("missing input version (string): The version that is released")
        await expect(page.locator("#input-version")).to_be_focused()
        await _fill(page, "version", "2.0")
        await page.get_by_label("developers").check()
        await page.locator("#input-language").select_option("Polish")
        await _fill(page, "changes", "The queue no longer stalls.")
        await expect(problems).to_have_count(0)
        await _fill(page, "year", "soon")
        await expect(problems).to_have_text('input year: "soon" is not a number')
        assert await page.locator("#input-year").get_attribute("aria-invalid") == "true"
        await _fill(page, "year", "2027")
        await page.locator("#model").fill(model)
        await expect(line).to_contain_text("at a price that is not known")
        await page.get_by_text("Answers beforehand").click()
        await page.get_by_label("Publish the notes?").select_option("yes")
        await expect(page.locator(".forecast .command")).to_contain_text("-i year=2027 -i loud=false --model script:")
        await _look(page, "document-run")
        # The last values stay with the browser, for this document.
        await page.reload()
        await expect(page.locator("#input-version")).to_have_value("2.0")
        await expect(page.locator("#model")).to_have_value(model)
        await expect(line).to_contain_text("2 model calls")
        await start.dblclick()
        await expect(page.get_by_text("completed").first).to_be_visible()
        rows = (await server.client().get("/runs")).json()["items"]
        assert len(rows) == 1
        assert page.url.endswith(f"/runs/{rows[0]['id']}")
        output = (await server.client().get(f"/runs/{rows[0]['id']}/artifact")).text
        assert "It is out." in output
        await page.goto(server.at("/documents/release.playbook.md?run=1"))
        await page.get_by_role("button", name="Clear, and forget the last values").click()
        await expect(page.locator("#input-version")).to_have_value("")


async def test_a_document_that_cannot_run_says_why(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", _documents()) as server:
        page = await pages.open(server.at("/documents/drafts/broken.playbook.md?tab=proof"))
        for tab in ("proof", "runs"):
            await page.goto(server.at(f"/documents/drafts/broken.playbook.md?tab={tab}"))
            await expect(page.get_by_text("The document has errors, so it cannot run.")).to_be_visible()
        await page.get_by_role("link", name="See what is wrong").click()
        await expect(page.locator(".doc-finding-bad").first).to_contain_text("line ")
        await _look(page, "document-broken")
        await page.goto(server.at("/documents/drafts/broken.playbook.md?run=1"))
        dialog = page.get_by_role("dialog", name="Run")
        await expect(dialog.get_by_text("The document has errors, so it cannot run.")).to_be_visible()
        await page.goto(server.at("/documents/empty.playbook.md"))
        await expect(page.get_by_text("empty.playbook.md is empty")).to_be_visible()
        assert await axe(page) == []
        await page.goto(server.at("/documents/releese.playbook.md"))
        await expect(page.get_by_text("Unknown document releese.playbook.md.")).to_be_visible()
        pages.expect_fault("404")


Role = Literal["region", "heading", "dialog"]
OLD: dict[str, tuple[str, Role, str]] = {
    "graph": ("tab=read", "region", "Flowchart of Release notes"),
    "bounds": ("tab=proof", "heading", "Permissions that it needs"),
    "prompts": ("tab=read&prompt=first", "dialog", "The prompts of a run"),
    "tests": ("tab=runs", "heading", "Tests"),
    "run": ("run=1", "dialog", "Run Release notes"),
    "nothing": ("tab=nothing", "heading", "Steps"),
}


async def test_old_addresses_lead_to_the_new_places(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", _documents()) as server:
        page = await pages.open(server.at("/documents"))
        for tab, (query, role, name) in OLD.items():
            await page.goto(server.at(f"/documents/release.playbook.md?tab={tab}"))
            place = page.get_by_role(role, name=name, exact=True)
            await expect(place).to_be_visible()
            assert page.url.endswith(f"?{query}"), tab


async def test_the_drawer_is_left_by_esc_and_keeps_the_place(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", _documents()) as server:
        page = await pages.open(server.at("/documents/release.playbook.md?tab=proof"))
        await expect(page.get_by_role("heading", name="Signature")).to_be_visible()
        await page.keyboard.press("x")
        await expect(page.get_by_role("dialog", name="Run Release notes")).to_be_visible()
        assert page.url.endswith("?tab=proof&run=1")
        await page.keyboard.press("Escape")
        await expect(page).to_have_url(re.compile(r"[?]tab=proof$"))
        await expect(page.get_by_role("dialog")).to_have_count(0)


LIKE = """async ([document, like]) => {
    const root = globalThis.document.querySelector('script[type=module][src]').src.replace('/main.js', '/')
    const { RunDrawer } = await import(root + 'parts/run_drawer.js')
    const { h, render } = await import(root + 'html.js')
    const place = globalThis.document.querySelector('main').appendChild(globalThis.document.createElement('section'))
    render(h(RunDrawer, { document, like, onClose: () => {} }), place)
}"""


async def test_the_drawer_is_filled_like_a_run(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", _documents()) as server:
        model = server.script("s.json", ["Draft"])
        values = {"version": "2.0", "audience": "users", "language": "French", "changes": "[redacted:A_KEY]"}
        run = await server.start("release.playbook.md", inputs=values, model=model, budget=2)
        page = await pages.open(server.at("/health"))
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await page.evaluate(LIKE, ["release.playbook.md", run["id"]])
        drawer = page.get_by_role("dialog", name="Run again")
        await expect(drawer.locator("#input-version")).to_have_value("2.0")
        await expect(drawer.locator("#input-language")).to_have_value("French")
        await expect(drawer.get_by_role("radio", name="users")).to_be_checked()
        await expect(drawer.locator("#model")).to_have_value(model)
        # A secret is not kept, so it has to be typed again.
        await expect(drawer.locator("#input-changes")).to_have_value("")
        await drawer.locator("#input-changes").fill("All")
        await expect(drawer.locator(".forecast .command").last).to_contain_text("changes=All")
        async with page.expect_request("**/api/v1/runs") as sent:
            await page.get_by_role("button", name="Start the run").click()
        body = json.loads((await sent.value).post_data or "")
        assert {**body["inputs"], **values, "changes": "All"} == body["inputs"]
        assert (body["budget"], body["model"]) == (2, model)
    pages.faults[:] = [fault for fault in pages.faults if "422" not in fault]


async def test_the_list_filters_in_the_address_and_shows_everything(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "none", {}) as server:
        page = await pages.open(server.at("/documents"))
        await expect(page.get_by_text("This workspace has no documents yet.")).to_be_visible()
        await _look(page, "documents-empty")
    async with served(tmp_path / "team", _documents()) as server:
        write_documents(server.folder)
        model = server.script("s.json", ["Draft"])
        values = {"version": "2", "audience": "users", "language": "French", "changes": "All"}
        await server.start("release.playbook.md", inputs=values, model=model)
        page = await pages.open(server.at("/documents"))
        rows = page.locator(".document-row")
        await expect(rows).to_have_count(9)
        await expect(rows.filter(has_text="empty.playbook.md")).to_contain_text("cannot be read")
        await expect(rows.filter(has_text="release.playbook.md")).to_contain_text("waits for you")
        await _look(page, "documents")
        await page.get_by_role("button", name="With errors").click()
        await expect(rows).to_have_count(2)
        assert "finding=error" in page.url
        await page.get_by_role("button", name="With errors").click()
        await page.get_by_label("Search in titles and paths").fill("triage")
        await expect(rows).to_have_count(2)
        await page.get_by_label("Folder").select_option("flows")
        await expect(rows).to_have_count(1)
        server.write("flows/new-triage.yaml", TRIAGE)
        await expect(rows).to_have_count(2)
        await page.reload()
        await expect(rows).to_have_count(2)
        await page.keyboard.press("j")
        await expect(page.locator(".document-row.here .document-link")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("ticket_triage")


async def test_every_tab_of_a_document(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", _documents()) as server:
        page = await pages.open(server.at("/documents/release.playbook.md"))
        await expect(page.get_by_role("heading", name="Steps")).to_be_visible()
        await _look(page, "document-read")
        await expect(page.get_by_role("region", name="Flowchart of Release notes")).to_be_visible()
        await page.keyboard.press("3")
        await expect(page.get_by_text("None: it uses no tools.")).to_be_visible()
        await page.keyboard.press("1")
        await page.locator(".outline-title", has_text="Draft").get_by_role("link", name="Prompt").click()
        await _fill(page, "version", "3.1")
        await expect(page.locator(".prompt-message").last).to_contain_text("Write release notes for 3.1 of 2026")
        await expect(page.get_by_text("no value for changes")).to_be_visible()
        await _look(page, "document-prompts")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await page.keyboard.press("4")
        await expect(page.get_by_text("This document has not been run yet.")).to_be_visible()
        await page.goto(server.at("/documents/count.playbook.md?tab=proof"))
        await expect(page.get_by_role("region", name="Table of permissions")).to_contain_text("not granted")
        await expect(page.get_by_text("quire serve --allow shell")).to_be_visible()
        await _look(page, "document-proof-needs")
        await page.goto(server.at("/documents/count.playbook.md?run=1"))
        await expect(page.locator(".forecast")).to_contain_text("quire serve --allow shell")
        await page.get_by_role("button", name="Start the run").click()
        await expect(page.get_by_role("alert")).to_contain_text("A permission is missing")
        pages.expect_fault("403")
        await page.goto(server.at("/documents/flows/triage.yaml?run=1"))
        await page.locator("#input-tickets").fill(json.dumps([{"id": 1}, {"id": 2}]))
        await expect(page.get_by_text("read as a list of 2 items")).to_be_visible()
        await expect(page.locator(".forecast-line")).to_contain_text("at most 3 model calls")
        await page.locator("#input-tickets").fill('[{"id": 1}')
        await expect(page.locator(".field .input-problem")).to_contain_text("this is not JSON")


HOSTILE = """# <img src=x onerror="document.title='owned'">&lt;b&gt;

<script>document.title = "owned"</script>

## INPUTS

- `kind` (enum: <b>one</b>, "><svg onload=alert(1)>): <iframe src=javascript:alert(1)>

## STEP 1: <svg onload="document.title='owned'">

Write about {{kind}} and {{nobody"><img src=x>}}.

## STEP 2: Ask

@elicit(select, "<iframe srcdoc='<script>1</script>'>Which?", "<b>one</b>", "javascript:alert(1)")
"""


async def test_markup_in_a_document_is_text(pages: Pages, tmp_path: Path) -> None:
    name = "a<b>&'\"#?%.playbook.md"
    async with served(tmp_path / "team", {name: HOSTILE}, options=EDIT) as server:
        page = await pages.open(server.at("/documents"))
        await page.locator(".document-link").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x onerror=")
        tabs = page.get_by_role("navigation", name="Parts of the document")
        for tab in ("source", "proof", "runs", "read"):
            await tabs.locator(f'a[href$="tab={tab}"]').click()
            await expect(page.locator("main .placeholder")).to_have_count(0)
            assert await page.locator("main img, main iframe, main script, main b:not(.count)").count() == 0
        for opens in ("prompt=first", "run=1"):
            await page.goto(server.at(f"{urlsplit(page.url).path}?{opens}"))
            await expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x onerror=")
            await expect(page.locator(".placeholder")).to_have_count(0)
            assert await page.locator("main img, main iframe, main script, main b:not(.count)").count() == 0
        assert "owned" not in await page.title() or "onerror" in await page.title()


async def test_a_huge_document_and_a_huge_workspace_are_light(pages: Pages, tmp_path: Path) -> None:
    long = "# Long\n\n" + "\n".join(
        f"## STEP {step}: Part {step}\n\nWrite about **part** {step} with `code` and {{{{x{step}}}}}.\n{'y ' * 80}\n"
        for step in range(1, 801)
    )
    assert 150_000 < len(long) < 200_000
    many = {f"area{at % 40}/doc-{at}.playbook.md": RELEASE for at in range(700)}
    async with served(tmp_path / "team", {"long.playbook.md": long, **many}) as server:
        page = await pages.open(server.at("/documents"))
        await expect(page.locator(".document-row").first).to_be_visible()
        assert await _nodes(page) < 3000
        await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        await expect(page.locator(".virtual-all")).to_have_css("height", f"{701 * 56}px")
        await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        await expect(page.locator(".document-list")).to_contain_text("long.playbook.md")
        for tab in ("source", "read", "prompts", "run", "proof"):
            await page.goto(server.at(f"/documents/long.playbook.md?tab={tab}"))
            await expect(page.locator("main .placeholder")).to_have_count(0)
            await expect(page.get_by_role("heading", level=1)).to_have_text("Long")
            assert await _nodes(page) < 3000, tab
        await page.goto(server.at("/documents/long.playbook.md?tab=source&line=3900"))
        await expect(page.locator(".editor .cm-activeLine")).to_be_in_viewport()
        assert await _nodes(page) < 3000
        await picture(page, "document-source-huge", full_page=False)


async def _nodes(page: Page) -> int:
    return await page.evaluate("document.querySelectorAll('*').length")
