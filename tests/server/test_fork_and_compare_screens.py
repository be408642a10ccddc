"""Fork with its receipt, then compare with the origin, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.browser import WIDE, Pages, check_looks, each_look, picture
from tests.server.served import served
from tests.server.team_workspace import ordinary_day, write_documents

from quire.runs.export import export_lines

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_fork_from_a_step_with_another_value_and_compare(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server:
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        done = runs["done"]
        before = await export_lines(server.site.runtime, done)
        page = await pages.open(server.at(f"/runs/{done}/fork"))
        receipt = page.get_by_role("region", name="Receipt")
        await expect(receipt).to_contain_text("Keeps")
        step = page.get_by_label("The first step that is new")
        # Values are the inputs, and the results of earlier steps.
        await step.select_option("2")
        assert await names(page) == {"notes", "service", "customers", "severity"}
        await step.select_option("4")
        await expect(receipt.locator(".receipt-line")).to_contain_text("recorded effects ($")
        assert {"severity", "timeline"} < await names(page) and not [name for name in await names(page) if "__" in name]
        await page.get_by_label("Budget in dollars").fill("5")
        await expect(receipt.locator(".command")).to_contain_text("--budget 5")
        await step.select_option("1")
        assert await names(page) == {"notes", "service", "customers"}
        await expect(receipt.locator(".receipt-line")).to_contain_text("Keeps 0 recorded effects")
        customers = page.locator("#field-customers")
        await customers.fill("many")
        await expect(page.get_by_text("many is not a number")).to_be_visible()
        await expect(page.get_by_role("button", name="Start the fork")).to_be_disabled()
        await customers.fill("7")
        await expect(receipt.locator(".command")).to_contain_text("--set customers=7")
        await check_looks(page, "fork")
        await page.set_viewport_size({"width": WIDE, "height": 900})
        await page.get_by_role("button", name="Start the fork").dblclick()
        await expect(page).not_to_have_url(f"http://{server.place}/runs/{done}/fork?from=1")
        rows = await server.site.runtime.store.list()
        assert len(rows) == len(runs) + 1
        await expect(page).to_have_url(f"http://{server.place}/runs/{rows[0].id}")
        assert await export_lines(server.site.runtime, done) == before
        await page.get_by_role("button", name="Compare").first.click()
        await expect(page).to_have_url(f"http://{server.place}/compare/{done}/{rows[0].id}")
        await expect(page.get_by_role("region", name="Differences of the runs as a whole")).to_contain_text("customers")


async def names(page: Page) -> set[str]:
    """The names of the values that the form offers."""
    return {
        str(await field.get_attribute("id"))[6:]
        for field in await page.locator("[id^=field-]:is(input, textarea, select)").all()
    }


async def test_compare_two_runs_step_by_step(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server:
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        page = await pages.open(server.at(f"/runs?compare={runs['done']}"))
        await expect(page.get_by_text("Select a run to compare with")).to_be_visible()
        await page.get_by_role("checkbox", name=runs["fork"]).check()
        await page.get_by_role("button", name="Compare").click()
        await expect(page).to_have_url(f"http://{server.place}/compare/{runs['done']}/{runs['fork']}")
        await expect(page.get_by_text("Same document, model and inputs.")).to_be_visible()
        answer = page.locator(".change", has=page.get_by_role("heading", name="answer"))
        await expect(answer.first.locator("del")).to_have_text("yes")
        await expect(answer.first.locator("ins")).to_have_text("no")
        await check_looks(page, "compare")
        await page.set_viewport_size({"width": WIDE, "height": 900})
        folded = page.get_by_role("button", name="the same").first
        await folded.click()
        await expect(page.locator(".same-steps li").first).to_be_visible()
        await page.get_by_role("link", name="Graph").click()
        await expect(page.locator(".chart")).to_be_visible()
        await each_look(page, "compare-graph", picture)
        await page.set_viewport_size({"width": WIDE, "height": 900})
        await page.go_back()
        await page.locator("h1").focus()
        await page.keyboard.press("n")
        await page.keyboard.press("n")
        await expect(page.locator(".step-diff [aria-expanded=true]").first).to_be_visible()
        assert "step=" in page.url
        await page.get_by_role("link", name="Swap").click()
        await expect(page).to_have_url(f"http://{server.place}/compare/{runs['fork']}/{runs['done']}")
        await page.goto(server.at(f"/compare/{runs['done']}/{runs['done']}"))
        await expect(page.get_by_text("steps are the same.")).to_be_visible()
        await page.goto(server.at(f"/compare/{runs['done']}/nothing"))
        await expect(page.get_by_text("unknown run nothing")).to_be_visible()
    pages.faults[:] = [fault for fault in pages.faults if "404" not in fault]
