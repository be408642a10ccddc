"""Calls of agents, and replies that were reused, over HTTP and in a real browser."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Route, expect
from tests.browser import Pages, axe
from tests.cli.test_agent_calls import PIPELINE, SCRIPT
from tests.server.served import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="session")

DOCUMENTS = {
    "p.yaml": PIPELINE,
    "a.txt": "hello <img src=x onerror=alert(1)>",
    "b.txt": "evil \x1b[31mred",
    "s.json": json.dumps(SCRIPT),
}
SETTINGS = '[agents.reader]\ntools = ["file__read"]\n'
FILES = {"files": ["b.txt", "c.txt"]}


async def finished(server: Served, **options: Any) -> dict[str, Any]:
    model = f"script:{server.folder / 's.json'}"
    run = (await server.start("p.yaml", inputs=FILES, model=model, **options))["id"]
    for _ in range(500):
        head: dict[str, Any] = await server.read(f"/runs/{run}")
        if head["status"] == "completed":
            return head
        await asyncio.sleep(0.02)
    raise AssertionError(head)


async def test_programs_see_calls_and_reuse(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS, settings=SETTINGS) as server:
        first = await finished(server)
        steps = {one["path"]: one for one in first["steps"]}
        assert (steps["1"]["turns"], steps["1"]["calls_total"], "calls" in steps["1"]) == (2, 3, False)
        detail = await server.read(f"/runs/{first['id']}/steps/2")
        tools = [one["path"] for one in detail["effects"] if one["kind"] == "tool"]
        assert sorted(tools) == ["2/for_each[0]/turn[1]/tool[0]", "2/for_each[1]/turn[1]/tool[0]"]
        second = await finished(server, reuse=first["id"])
        assert (second["reused"]["run"], second["reused"]["replies"]) == (first["id"], 8)
        assert "reused" not in first
        model = next(
            one for one in (await server.read(f"/runs/{second['id']}/steps/3"))["effects"] if one["kind"] == "model"
        )
        assert (model["reused"], model["by"]) == (first["id"], None)
        async with server.client() as client:
            body = {"inputs": FILES, "reuse": "nothing", "model": f"script:{server.folder / 's.json'}"}
            ahead = (await client.post("/documents/p.yaml/preflight", json=body)).json()
            refused = await client.post("/runs", json={"document": "p.yaml", **body})
        assert "unknown run nothing" in json.dumps(ahead["problems"])
        assert refused.status_code == 404, refused.text


async def test_the_page_shows_calls_and_reuse(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS, settings=SETTINGS) as server:
        first = await finished(server)
        page = await pages.open(server.at(f"/runs/{first['id']}/steps/1"))
        await expect(page.get_by_role("tree")).to_contain_text("file__read")
        await page.get_by_role("treeitem", name="Turn 2").first.click()
        await expect(page.locator(".pane")).to_contain_text("nosuch")
        await page.get_by_role("treeitem", name="nope.txt").first.click()
        await expect(page.locator(".pane")).to_contain_text("nope.txt: no such file or directory")
        assert await page.locator("main img").count() == 0
        second = await finished(server, reuse="last")
        page = await pages.open(server.at(f"/runs/{second['id']}/steps/3"))
        await expect(page.get_by_role("link", name=first["id"]).first).to_be_visible()
        await expect(page.locator(".pane")).to_contain_text(f"Reused from run {first['id']}")
        assert await axe(page) == []
        page = await pages.open(server.at("/documents/p.yaml?run=1"))
        await page.get_by_label("Reuse the replies of the last run where the same is asked").check()
        await expect(page.get_by_text("--reuse last")).to_be_visible()


async def test_the_form_of_a_run_does_not_move_when_its_forecast_comes(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS, settings=SETTINGS) as server:
        page = await pages.open(server.at("/documents"))
        measured = asyncio.Event()

        async def later(route: Route) -> None:
            await measured.wait()
            await route.continue_()

        await page.route("**/preflight", later)
        await page.goto(server.at("/documents/p.yaml?run=1"))
        last = page.get_by_label("Continues after the server ends")
        before = await last.bounding_box()
        measured.set()
        await expect(page.get_by_text("nothing is given: a step that reads it fails")).to_be_visible()
        assert before is not None
        assert await last.bounding_box() == before
