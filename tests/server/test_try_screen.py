"""Try it in a real browser: change a prompt, run it three times, write it into the document, keep a test case."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.browser import Pages, each_look, picture
from tests.server.served import Served, served

from quire.display.visible import visible
from quire.engine.records import Status
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.server.site import SiteOptions
from quire.stores.run_pages import RunFilters

pytestmark = pytest.mark.asyncio(loop_scope="session")

BRIEF = """\
---
schema: Verdict
fields:
  decision: {type: enum, values: [publish, revise]}
  notes: {type: string, max_length: 200}
---
pipeline: brief
description: Writes and judges a brief.
dialect: quire
input:
  topic: {type: string}
steps:
  - agent: {prompt: "Draft a brief about {topic}.", output: draft}
  - agent:
      prompt: |
        Edit this draft by the style.

        Be strict.

        {draft}
      schema: Verdict
      output: verdict
  - transform: {value: "verdict.decision + ': ' + draft"}
"""
HOSTILE = "</textarea><script>alert(1)</script> {{__proto__}} \u202e"
REPLIES: list[object] = [
    {"contains": "Draft a brief", "reply": f"SQLite 3.52 changes little. {HOSTILE}"},
    {
        "contains": "Be strict.",
        "reply": '{"decision": "revise", "notes": "Say in the first sentence who need not read."}',
    },
    {"contains": "Be kind.", "reply": '{"decision": "publish", "notes": "Say in the first sentence who may read."}'},
]
EDIT = SiteOptions(edit=True)


async def brief(server: Served) -> str:
    runtime = server.site.runtime
    model = server.script("replies.json", REPLIES * 9)
    run = await runtime.start(load(server.folder / "brief.yaml"), {"topic": "SQLite"}, RunOptions(model=model))
    ended = await runtime.drive(run)
    assert ended.status is Status.COMPLETED, ended.failure
    return run


async def test_change_run_three_times_write_and_keep(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "brief", {"brief.yaml": BRIEF}, options=EDIT) as server:
        run = await brief(server)
        page = await pages.open(server.at(f"/runs/{run}?step=2"))
        await page.get_by_role("link", name="Try it").click()
        await expect(page.get_by_role("heading", name="Try it: 2")).to_be_visible()
        prompt = page.get_by_label("Prompt", exact=True)
        await expect(prompt).to_have_value("Edit this draft by the style.\n\nBe strict.\n\n{draft}\n")
        await expect(page.get_by_label("Recorded")).to_contain_text("revise")
        await expect(page.locator(".try-values")).to_contain_text("draft")
        await prompt.fill("Edit this draft by the style.\n\nBe kind.\n\n{draft}\n")
        receipt = page.get_by_role("region", name="Receipt")
        await expect(receipt).to_contain_text("3 calls")
        await page.get_by_role("button", name="Run 3 times").click()
        third = page.get_by_role("article", name="Try 3", exact=True)
        await expect(third.locator("ins").first).to_have_text("publish")
        await expect(third).to_contain_text("fits Verdict")
        await expect(page.locator(".try-sum")).to_contain_text("3 of 3 fit Verdict")
        await each_look(page, "try", picture)
        await page.set_viewport_size({"width": 1366, "height": 900})
        await page.get_by_role("button", name="Write into the document").click()
        await expect(page.locator(".try-said")).to_have_text("Written into brief.yaml.")
        assert (server.folder / "brief.yaml").read_text() == BRIEF.replace("Be strict.", "Be kind.")
        await page.get_by_role("button", name="Keep Try 2 as test case").click()
        await expect(page.locator(".try-said")).to_have_text("Added to brief.test.yaml.")
        tests = await server.read("/documents/brief.yaml/tests")
        assert tests["file"] == "brief.test.yaml"
        async with server.client() as client:
            answer = await client.post("/documents/brief.yaml/tests", json={})
            assert [case["outcome"] for case in answer.json()["cases"]] == ["passed"], answer.text
        store = server.site.runtime.store
        assert [row.id for row in (await store.page(RunFilters())).rows] == [run]
        assert len((await store.page(RunFilters(tries=True))).rows) == 4


async def test_texts_of_a_try_stay_text_and_wrong_prompts_are_refused(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "brief", {"brief.yaml": BRIEF}) as server:
        run = await brief(server)
        page = await pages.open(server.at(f"/runs/{run}/try/1/model"))
        await expect(page.get_by_label("Recorded")).to_contain_text("</textarea><script>")
        prompt = page.get_by_label("Prompt", exact=True)
        await prompt.fill(f"Draft a brief: {HOSTILE}")
        await page.get_by_role("button", name="1", exact=True).click()
        await page.get_by_role("button", name="Run once").click()
        await expect(page.get_by_role("article", name="Try 1", exact=True)).to_contain_text("SQLite 3.52")
        await expect(page.get_by_role("button", name="Write into the document")).to_be_disabled()
        await prompt.fill("")
        await expect(page.get_by_text("a prompt needs a text")).to_be_visible()
        await expect(page.get_by_role("button", name="Run once")).to_be_disabled()
        await page.get_by_role("button", name="Back to the recorded one").click()
        await expect(prompt).to_have_value("Draft a brief about {topic}.")
        assert not await page.locator("main script").count()
        assert visible(HOSTILE) != HOSTILE
    pages.faults[:] = [fault for fault in pages.faults if "409" not in fault]


async def test_another_value_is_tried(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "brief", {"brief.yaml": BRIEF}) as server:
        run = await brief(server)
        page = await pages.open(server.at(f"/runs/{run}/try/1"))
        topic = page.locator(".try-values textarea")
        await expect(topic).to_have_value("SQLite")
        await topic.fill("DuckDB")
        await topic.blur()
        await page.get_by_role("button", name="Run 3 times").click()
        await expect(page.locator(".try-sum")).to_contain_text("3 of 3 completed")
        rows = (await server.site.runtime.store.page(RunFilters(tries=True))).rows
        assert [row.pins["inputs"] for row in rows] == [{"topic": "DuckDB"}] * 3 + [{"topic": "SQLite"}]


async def test_the_api_says_what_a_try_would_do_and_refuses_the_rest(tmp_path: Path) -> None:
    async with served(tmp_path / "brief", {"brief.yaml": BRIEF}) as server:
        run = await brief(server)
        async with server.client() as client:
            answer = await client.post(f"/runs/{run}/tries", json={"path": "2", "n": 21})
            assert (answer.status_code, answer.json()["exit_code"]) == (409, 6)
            answer = await client.post(f"/runs/{run}/tries", json={"path": "3"})
            assert answer.status_code == 422 and "no model was asked" in answer.text
            answer = await client.post(f"/runs/{run}/tries", json={"path": "2", "dry_run": True, "n": 2})
            receipt = answer.json()["receipt"]
            assert (receipt["n"], receipt["schema"], receipt["until"]) == (2, "Verdict", "2")
            assert receipt["command"] == f"quire runs try {run} 2/model -n 2"
            answer = await client.post(f"/runs/{run}/test", json={"write": True})
            assert answer.json()["code"] == "editing-off"
            answer = await client.post(f"/runs/{run}/test", json={})
            assert answer.json()["file"] == "brief.test.yaml" and "Be strict" not in answer.json()["text"]
        assert not (server.folder / "brief.test.yaml").exists()
