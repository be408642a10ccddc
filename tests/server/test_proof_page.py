"""Proofs in a real browser: the tab of a document, gates and flows on its graph, the lock, and the form that counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.browser import PHONE, WIDE, Pages, axe, each_look, picture
from tests.display.test_preflight_line import BOARD
from tests.server.served import served
from tests.server.test_proof_api import DIGEST

from quire.display.flowchart_drawing import mermaid
from quire.display.flowchart_marks import overlay_of
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.library.lock_check import lock_path, save_lock
from quire.library.lock_facts import LockFacts
from quire.source import Source
from quire.workspace.locate import find_workspace

pytestmark = pytest.mark.asyncio(loop_scope="session")

WRITES = """  - tool: {name: file__write, args: {path: reports/x.md, content: !expr ctx.summary}}
"""
HOSTILE = """# <img src=x onerror="document.title='owned'"> & co

## STEP 1: Fetch

@tool(quire, http__get, {"url": "https://<b>evil.example/"})

## STEP 2: <script>alert(1)</script>

@tool(quire, file__write, {"path": "<svg onload=alert(1)>.md", "content": "{{output}}"})

## STEP 3: Call

@tool("<iframe>", "<img onerror=x>", {"url": "x"})
"""


async def _look(page: Page, name: str) -> None:
    """Take pictures in light and dark, wide and on a phone; nothing may stick out. axe looks at two of them."""

    async def look(page: Page, label: str) -> None:
        await picture(page, label)
        needed, given = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert needed <= given, label
        if label.endswith((f"light-{WIDE}", f"dark-{PHONE}")):
            assert await axe(page) == [], label

    await each_look(page, name, look, widths=(PHONE, WIDE))
    await page.set_viewport_size({"width": 320, "height": 900})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320, name
    await page.set_viewport_size({"width": WIDE, "height": 900})


def _lock(folder: Path, *names: str) -> None:
    workspace = find_workspace(folder)
    facts = LockFacts(workspace)
    save_lock(lock_path(workspace), facts.lock(facts.documents([folder / name for name in names])))


async def test_the_proof_of_a_document(pages: Pages, tmp_path: Path) -> None:
    documents = {"digest.yaml": DIGEST + WRITES, "board.yaml": BOARD, "quire.toml": "[assume]\nreaders = 20\n"}
    async with served(tmp_path / "team", documents) as server:
        page = await pages.open(server.at("/documents/digest.yaml"))
        await page.get_by_role("link", name="Proof").click()
        rows = page.locator(".proof-bounds tbody tr")
        await expect(rows.filter(has_text="model calls")).to_contain_text("1")
        await expect(rows.filter(has_text="money")).to_contain_text("unpriced")
        gates = page.get_by_role("region", name="Table of approvals")
        await expect(gates).to_contain_text("after a yes in step 3 (confirm)")
        await expect(gates).to_contain_text("it is asked, and a no comes through")
        flows = page.locator(".proof-flows li")
        await expect(flows).to_have_count(3)
        await expect(flows.first).to_contain_text("only reads it")
        await expect(flows.last).to_contain_text("file__write content")
        touched = page.get_by_role("region", name="Table of permissions")
        await expect(touched).to_contain_text("host=example.org")
        await expect(touched).to_contain_text("path=reports/x.md")
        await expect(page.locator(".proof-lock")).to_contain_text("This workspace has no quire.lock.")
        await _look(page, "document-proof")
        # A footnote takes the reader to it, and leaves the address as it is.
        await rows.filter(has_text="money").get_by_role("link").first.click()
        await expect(page.locator(".proof-notes li:focus")).to_contain_text("no model is named")
        assert page.url.endswith("?tab=proof")
        await page.goto(server.at("/documents/board.yaml?tab=proof"))
        await expect(rows.filter(has_text="model calls")).to_contain_text("0 to |readers|, stopped at 100")
        await expect(rows.filter(has_text="model calls")).to_contain_text("~ 20")
        await expect(page.locator(".proof-bounds thead")).to_contain_text("Assumed readers=20")


async def test_the_lock_of_a_document(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"digest.yaml": DIGEST, "board.yaml": BOARD}) as server:
        folder = tmp_path / "team"
        _lock(folder, "digest.yaml")
        page = await pages.open(server.at("/documents/digest.yaml?tab=proof"))
        lock = page.locator(".proof-lock")
        await expect(lock).to_contain_text("The document may do what quire.lock says, and no more.")
        (folder / "digest.yaml").write_text(DIGEST + WRITES)
        await page.reload()
        await expect(lock).to_contain_text("The document may do more than quire.lock says.")
        await expect(lock.locator(".lock-wider").filter(has_text="LK103")).to_contain_text("path=reports/x.md")
        await _look(page, "document-lock")
        await page.get_by_role("button", name="Run", exact=True).click()
        await expect(page.locator(".forecast")).to_contain_text("The document may do more than quire.lock says.")
        await page.goto(server.at("/documents/board.yaml?tab=proof"))
        await expect(lock).to_contain_text("never reviewed")


async def test_gates_and_flows_on_the_graph(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"digest.yaml": DIGEST + WRITES}) as server:
        page = await pages.open(server.at("/documents/digest.yaml"))
        await expect(page.locator(".chart path.way.way-flow")).to_have_count(3)
        await expect(page.locator(".chart path.way.way-guard")).to_have_count(1)
        await expect(page.locator(".chart .mark-unasked")).to_have_text("asked, but a no comes through")
        await expect(page.locator(".graph-legend li")).to_have_count(2)
        dashes = "one => getComputedStyle(one).strokeDasharray"
        flow = await page.locator(".chart path.way-flow").first.evaluate(dashes)
        guard = await page.locator(".chart path.way-guard").first.evaluate(dashes)
        assert flow != guard and "none" not in (flow, guard)
        await page.get_by_text("The same as a table").click()
        await expect(page.locator(".as-table")).to_contain_text("after a yes in step 3")
        await expect(page.locator(".ways-list li").first).to_have_text("Step 3 - ok to Step 4 - shell: guards")
        await _look(page, "document-graph-proof")


async def test_the_form_counts_what_is_typed(pages: Pages, tmp_path: Path) -> None:
    script, home = tmp_path / "team" / "s.json", tmp_path / "team-home"
    home.mkdir()
    (home / "quire.toml").write_text(f'[models.prices."script:{script}"]\ninput = 3.0\noutput = 15.0\n')
    async with served(tmp_path / "team", {"board.yaml": BOARD}) as server:
        model = server.script("s.json", [])
        page = await pages.open(server.at("/documents/board.yaml?run=1"))
        line = page.locator(".forecast-line")
        await expect(line).to_contain_text("at most |readers| model calls, stopped at 100")
        await page.locator("#model").fill(model)
        await page.locator("#input-readers").fill("ann\nbob")
        await page.locator("#input-doc").fill("ä" * 500)
        await expect(line).to_have_text("This run: 2 model calls, ≤ $0.51.")
        await expect(page.locator(".forecast")).to_contain_text("doc 1,000 bytes")
        await page.locator("#input-doc").fill("ä" * 50_000)
        await expect(line).to_have_text("This run: 2 model calls, ≤ $1.10.")
        await page.get_by_text("Formulas").click()
        await expect(page.locator(".forecast .opens")).to_contain_text("‖doc‖")
        await page.locator("#budget").fill("0.5")
        told = "it may stop midway: it costs up to $1.10, and the budget is $0.50"
        await expect(page.locator(".forecast .hint-row")).to_have_text(told)
        await expect(line).to_contain_text("It stops at $0.50")
        await _look(page, "document-forecast")
        await page.locator("#budget").fill("")  # it would take the place of the limit of calls
        await page.locator("#input-readers").fill("\n".join(["x"] * 101))
        await expect(page.locator(".forecast .input-problem")).to_contain_text("at least 101 model calls")
        await page.get_by_role("button", name="Start the run").click()
        await expect(page.get_by_role("alert").first).to_contain_text("at least 101 model calls")
        pages.expect_fault("40")
        assert (await server.client().get("/runs")).json()["items"] == []


async def test_names_are_never_markup(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"hostile.playbook.md": HOSTILE}) as server:
        (tmp_path / "team" / "quire.lock").write_text("quire: 1\ndocuments: {}\n")
        page = await pages.open(server.at("/documents/hostile.playbook.md?tab=proof"))
        await expect(page.locator(".proof")).to_contain_text("<img onerror=x>")
        await expect(page.get_by_role("region", name="Table of permissions")).to_contain_text("path=")
        for tab in ("tab=proof", "tab=read", "run=1"):
            await page.goto(server.at(f"/documents/hostile.playbook.md?{tab}"))
            await expect(page.get_by_role("heading", level=1)).to_contain_text("onerror")
            await expect(page.locator(".proof, .chart, .forecast-line").first).to_be_visible()
            assert await page.locator("main img, main iframe, main script, main [onload], main [onerror]").count() == 0
            assert "owned" not in await page.title() or "onerror" in await page.title()


async def test_mermaid_draws_gates_and_flows(pages: Pages, stage: str) -> None:
    plan = read(Source.of(DIGEST + WRITES, "p.yaml")).runnable()
    text = mermaid(plan, overlay_of(Foresight(None).proof(plan)))
    page = await pages.open(stage)
    await page.evaluate("text => show('mermaid', text)", text)
    drawing = page.frame_locator("iframe").locator("#place > svg")
    await expect(drawing).to_be_visible()
    await expect(page.locator(".frame-problem")).to_have_count(0)
    await expect(drawing).to_contain_text("from outside")
    await expect(drawing).to_contain_text("guards")
    dotted = drawing.locator("path.edge-pattern-dotted")
    await expect(dotted).to_have_count(1)
    assert await dotted.evaluate("one => getComputedStyle(one).stroke") == "rgb(130, 80, 223)"
