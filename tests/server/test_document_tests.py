"""The tests of a document in the API and on its page: cases, results, coverage on the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.browser import Pages
from tests.server.served import served
from tests.server.test_run_page import look
from tests.testing.bench import TAGLINE

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEST = """
defaults:
  inputs: {product: a bakery, tone: dry}
  model: {"1": '{"best": "Bread."}'}
cases:
  - name: a yes polishes it
    answers: {"2": "yes"}
    model: {"3a": "Bread, then."}
    expect: {output: "Bread, then.", prompts: {"1": {contains: a bakery}}}
  - name: another output
    answers: {"2": "yes"}
    model: {"3a": "Bread, then."}
    expect: {output: "Cake, then."}
  - {name: later, skip: not written yet}
"""
DOCUMENT = "tagline.playbook.md"
FILES = {DOCUMENT: TAGLINE.lstrip("\n"), "tagline.test.yaml": TEST}


async def test_cases_are_listed_run_and_remembered(tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES) as server, server.client() as client:
        before = (await client.get(f"/documents/{DOCUMENT}/tests")).json()
        assert [(one["case"], one["outcome"]) for one in before["cases"]] == [
            ("a yes polishes it", None),
            ("another output", None),
            ("later", None),
        ]
        assert (before["at"], before["coverage"], before["old"]) == (None, None, False)
        ran = (await client.post(f"/documents/{DOCUMENT}/tests", json={})).json()
        assert [one["outcome"] for one in ran["cases"]] == ["passed", "failed", "skipped"]
        problem = ran["cases"][1]["problems"][0]
        assert (problem["code"], problem["expected"], problem["actual"]) == ("TS110", "Cake, then.", "Bread, then.")
        assert ran["coverage"]["kinds"]["arms"] == {"taken": 1, "total": 2, "percent": 50}
        assert "none" in ran["coverage"]["lines"].values()
        again = (await client.get(f"/documents/{DOCUMENT}/tests")).json()
        assert (again["cases"], again["old"]) == (ran["cases"], False)
        server.write(DOCUMENT, FILES[DOCUMENT].replace("Polish", "Improve"))
        assert (await client.get(f"/documents/{DOCUMENT}/tests")).json()["old"] is True
        assert not (server.folder / "tagline.test.snap.yaml").exists()


async def test_a_document_without_tests_says_how_to_write_some(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {DOCUMENT: FILES[DOCUMENT]}) as server, server.client() as client:
        found = (await client.get(f"/documents/{DOCUMENT}/tests")).json()
        assert (found["file"], found["make"]) == (None, "tagline.test.yaml")


async def test_a_test_elsewhere_that_names_the_document_is_found(tmp_path: Path) -> None:
    files = {DOCUMENT: FILES[DOCUMENT], "tests/words.test.yaml": f"document: ../{DOCUMENT}\n{TEST}"}
    async with served(tmp_path / "team", files) as server, server.client() as client:
        found = (await client.get(f"/documents/{DOCUMENT}/tests")).json()
        assert found["file"] == "tests/words.test.yaml"


async def test_the_page_runs_them_and_paints_the_source(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES) as server:
        page = await pages.open(server.at(f"/documents/{DOCUMENT}?tab=runs"))
        await expect(page.get_by_text("3 cases in")).to_be_visible()
        await page.get_by_role("button", name="Run the tests").click()
        await expect(page.get_by_text("1 passed, 1 failed, 1 skipped")).to_be_visible()
        cases = page.get_by_role("list", name="Cases")
        await expect(cases.get_by_role("listitem").filter(has_text="another output")).to_contain_text("TS110")
        await expect(cases.locator("del")).to_have_text("Cake")
        await expect(page.get_by_role("heading", name="Coverage of its decisions")).to_be_visible()
        await expect(page.locator(".editor .covered-none").first).to_be_visible()
        await expect(page.get_by_text("not covered: step 2 answered no")).to_be_visible()
        await look(page, "document-tests")
        server.write(DOCUMENT, FILES[DOCUMENT].replace("Polish", "Improve"))
        await expect(page.get_by_text("changed since")).to_be_visible()
