"""The page of a run with blocks, loops and survived failures, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.browser import Pages
from tests.server.served import served
from tests.server.test_run_page import look

pytestmark = pytest.mark.asyncio(loop_scope="session")

RICH = """pipeline: rich
dialect: quire
steps:
  - steps:
      output: draft
      do:
        - agent: {prompt: "Draft it", output: first}
        - agent: {prompt: "Check it", on_error: continue, default: "'unchecked'", output: checked}
        - agent: {prompt: "Never", when: "false"}
  - repeat:
      max: 9
      until: "acc == 'yes'"
      output: taken
      do:
        steps:
          - agent: {prompt: "Version {round}"}
          - tool: {name: ask, args: {prompt: !expr "'Take version ' + text(round) + '?'", type: confirm}}
  - steps:
      on_error: continue
      default: "'survived'"
      output: last
      do: [{fail: {message: "not that word"}}]
  - transform: {value: "[draft, taken, last]"}
"""
REPLIES = [{"contains": "Check it", "error": "no checker today"}, {"default": "a reply"}]


async def test_blocks_rounds_and_survived_failures(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"rich.yaml": RICH}) as server:
        run = await server.start("rich.yaml", inputs={}, model=server.script("s.json", REPLIES))
        here = f"/runs/{run['id']}"
        page = await pages.open(server.at(here))
        tree = page.get_by_role("tree", name="Steps of the run")
        await expect(page.locator(".pane")).to_contain_text("Take version 1?")
        # Everything below is told by events of steps inside of blocks, which are not kept.
        await expect(tree.get_by_role("treeitem", name="checked, no checker today, failed")).to_be_visible()
        await expect(tree.get_by_role("treeitem", name="Ask the model, skipped")).to_be_visible()
        await expect(tree.get_by_role("treeitem", name="Round 1, waits for you")).to_be_visible()
        await look(page, "dialect-waiting")
        await page.get_by_role("button", name="No", exact=True).click()
        await expect(page.locator(".pane")).to_contain_text("answered no by this page")
        await expect(tree.get_by_role("treeitem", name="Round 2, waits for you")).to_be_visible()
        await page.get_by_role("button", name="Answer", exact=True).click()
        await expect(page.locator(".pane")).to_contain_text("Take version 2?")
        await page.get_by_role("button", name="yes").first.click()
        await expect(page.locator(".run-words")).to_contain_text("Completed")
        await expect(tree.get_by_role("treeitem", name="taken, 2 rounds, done")).to_be_visible()

        page = await pages.open(server.at(f"{here}/steps/1%2Fsteps%2F2"))
        await expect(page.locator(".step-message.survived")).to_have_text(
            "Failed, and the run continued: no checker today"
        )
        await look(page, "dialect-survived")
        # A pipeline is forked between its own steps.
        await page.get_by_role("link", name="Fork from here").click()
        await expect(page.get_by_label("The first step that is new")).to_have_value("1")
        page = await pages.open(server.at(f"{here}?view=graph"))
        await expect(page.get_by_text("until acc == 'yes', at most 9 rounds")).to_be_visible()
        await look(page, "dialect-graph")
