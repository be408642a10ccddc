"""Runs in a real browser: filters in the address, pages, new runs that push nothing, several at once, import."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.browser import Pages, check_looks, each_look, picture
from tests.server.served import Served, served
from tests.server.team_workspace import NOTES, incident, ordinary_day, write_documents

from quire.engine.records import EffectRecord, NewRun, RunUpdate, Status, Usage
from quire.runs.export import export_lines
from quire.stores.contract import History, restore

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def made(server: Served, count: int) -> None:
    """Put runs of one effect into the store: a list shows only their rows."""
    for number in range(count):
        at = 1_700_000_000.0 + number
        run = NewRun(f"old-{number:05}", f"Report {number}", "playbook", "report.playbook.md", at, {"inputs": {}}, {})
        record = EffectRecord("1/model", "model", "ok", "f" * 64, at, {"text": "a"}, usage=Usage(10, 5, 0.01))
        history = History(RunUpdate(Status.COMPLETED, "1"), (record,), (), at + 3, 10, 5, 0.01)
        await restore(server.site.runtime.store, run, history)


async def rows(page: Page) -> list[str]:
    return await page.locator(".run-row .run-link").all_text_contents()


async def test_an_ordinary_list_is_filtered_and_shared_by_its_address(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server:
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        page = await pages.open(server.at("/runs"))
        await expect(page.locator(".run-row .run-link")).to_have_count(6)
        await check_looks(page, "runs-ordinary")
        await page.set_viewport_size({"width": 1280, "height": 900})
        await page.get_by_role("button", name="completed").click()
        await expect(page.locator(".run-row .run-link")).to_have_count(4)
        assert page.url.endswith("/runs?status=completed")
        await page.get_by_role("button", name="waits for you").click()
        await expect(page.locator(".run-row .run-link")).to_have_count(5)
        await page.get_by_label("Search runs").fill("incident")
        await expect(page.locator(".run-row .run-link")).to_have_count(3)
        await page.reload()
        await expect(page.locator(".run-row .run-link")).to_have_count(3)
        await expect(page.get_by_label("Search runs")).to_have_value("incident")
        await page.get_by_label("Search runs").fill("nothing of the kind")
        await expect(page.get_by_text("No run fits these filters.")).to_be_visible()
        await each_look(page, "runs-none-fits", picture)
        await page.get_by_role("button", name="Clear all filters").click()
        await expect(page.locator(".run-row .run-link")).to_have_count(6)
        await page.get_by_label("Document").hover()
        await expect(page.get_by_label("Document").get_by_role("option", name="ticket-triage.yaml")).to_be_attached()
        await page.get_by_label("Document").select_option("ticket-triage.yaml")
        await expect(page.locator(".run-row .run-link")).to_have_text(["ticket_triage"])
        await page.goto(server.at(f"/runs?origin={runs['done']}"))
        await expect(page.locator(".run-row .run-link")).to_have_count(1)
        # By keyboard: j goes to the first run, Enter opens it.
        await page.locator("h1").focus()
        await page.keyboard.press("j")
        await expect(page.locator(".run-row.here .run-link")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(f"http://{server.place}/runs/{runs['fork']}")


async def test_many_rows_and_new_runs_that_push_nothing(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server:
        write_documents(server.folder)
        await made(server, 450)
        page = await pages.open(server.at("/runs"))
        await expect(page.get_by_text("Report 449", exact=True)).to_be_visible()
        assert await page.evaluate("document.querySelectorAll('*').length") < 3000
        box = page.locator(".run-rows")
        await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        await expect(page.locator(".run-row .run-link")).to_have_count(200)  # so few are all in the document
        for known in (300, 400, 450):
            await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            await expect(box.locator(".virtual-all")).to_have_css("height", f"{52 * known}px")
        await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        await expect(page.get_by_text("Report 0", exact=True)).to_be_visible()
        await page.evaluate("scrollTo(0, 52 * 200)")
        await expect(page.get_by_text("Report 245", exact=True)).to_be_visible()
        before = await rows(page)
        model = f"script:{server.folder / 'incident-report.script.json'}"
        for service in ("login", "search"):
            inputs = {"notes": NOTES, "service": service, "customers": 3}
            await server.start("incident-report.playbook.md", inputs=inputs, model=model)
        await expect(page.get_by_role("button", name="2 new runs")).to_be_visible()
        assert (await rows(page), await page.evaluate("scrollY")) == (before, 52 * 200)
        await each_look(page, "runs-huge", picture)
        await page.set_viewport_size({"width": 1280, "height": 900})
        await page.get_by_role("button", name="2 new runs").click()
        await page.evaluate("scrollTo(0, 0)")
        await expect(page.get_by_text("Incident report").first).to_be_visible()


async def test_several_runs_at_once(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server:
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        page = await pages.open(server.at("/runs"))
        for name in ("waiting", "paused", "done"):
            await page.get_by_role("checkbox", name=runs[name]).check()
        await expect(page.get_by_text("3 runs selected")).to_be_visible()
        await expect(page.get_by_role("button", name="Compare")).to_be_disabled()
        await page.get_by_role("button", name="Cancel", exact=True).click()
        await expect(page.get_by_text("Stops 2 runs as soon as possible.")).to_be_visible()
        await expect(page.get_by_text("The other selected run stays as it is.")).to_be_visible()
        await each_look(page, "runs-cancel", picture)
        await page.set_viewport_size({"width": 1280, "height": 900})
        await page.get_by_role("button", name="Cancel 2 runs").click()
        await expect(page.locator(".run-row .tone-quiet", has_text="cancelled")).to_have_count(2)
        await expect(page.get_by_text("runs selected")).to_be_hidden()
        for name in ("waiting", "done"):
            await page.get_by_role("checkbox", name=runs[name]).check()
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("button", name="Delete 2 runs").click()
        await expect(page.locator(".run-row .run-link")).to_have_count(4)
        assert await server.site.runtime.store.get(runs["done"]) is None


async def test_a_double_click_starts_one_run(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server:
        write_documents(server.folder)
        page = await pages.open(server.at("/runs"))
        await expect(page.get_by_text("No runs yet.")).to_be_visible()
        await each_look(page, "runs-empty", picture)
        body = {
            "document": "incident-report.playbook.md",
            "inputs": {"notes": "n", "service": "s", "customers": 1},
            "model": f"script:{server.folder / 'incident-report.script.json'}",
        }
        started = await page.evaluate(
            """async (body) => {
                const main = document.querySelector("script[type=module]").src;
                const { post } = await import(main.replace("main.js", "api.js"));
                const twice = await Promise.all([post("/runs", body), post("/runs", body)]);
                const third = await post("/runs", body);
                return [...twice, third].map((row) => row.id);
            }""",
            body,
        )
        assert len(set(started)) == 1
        assert len(await server.site.runtime.store.list()) == 1


async def test_an_exported_run_is_verified_before_it_is_taken_in(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server:
        write_documents(server.folder)
        run = await incident(server.site.runtime, answers={"4": "yes", "6a": "on Thursday"})
        file = tmp_path / "run.jsonl"
        file.write_text("".join(f"{line}\n" for line in await export_lines(server.site.runtime, run)))
    async with served(tmp_path / "other", {}) as server:
        page = await pages.open(server.at("/runs"))
        field = page.get_by_label("File of an exported run")
        wrong = tmp_path / "wrong.jsonl"
        wrong.write_text(file.read_text().replace("certificate", "certifikate", 1))
        await field.set_input_files(wrong)
        await expect(page.get_by_text("Not as it was written.")).to_be_visible()
        await expect(page.get_by_role("button", name="Import the run")).to_be_hidden()
        await page.get_by_role("button", name="Close").last.click()
        await field.set_input_files(file)
        await expect(page.get_by_text("Verified: every line has its hash")).to_be_visible()
        await check_looks(page, "runs-import")
        await page.get_by_role("button", name="Import the run").click()
        await expect(page).to_have_url(f"http://{server.place}/runs/{run}")
