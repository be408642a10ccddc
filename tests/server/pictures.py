"""Make the pictures of the documentation: `python -m tests.server.pictures` writes docs/pictures.

They show the workspace of tests/server/team_workspace.py in a real browser. Make them again after a change of the page,
and look at them. A test compares the list with the files and with the pages that show them.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from msgspec import Struct
from playwright.async_api import Browser, async_playwright
from tests.browser import FLAGS, PHONE, WIDE, WITHOUT_BROWSER, Theme, find_browser
from tests.server.served import TOKEN, Served, served
from tests.server.team_workspace import ordinary_day, write_documents

from quire.library.lock_check import lock_path, save_lock
from quire.library.lock_facts import LockFacts
from quire.workspace.locate import find_workspace

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
REPORT = "incident-report.playbook.md"
DIGEST = """pipeline: news_digest
dialect: quire
description: Sums up a page for every reader, and posts the digest after a yes.
input:
  readers: {type: list, of: {type: string}, max_items: 20}
steps:
  - tool: {name: http__get, args: {url: "https://news.example.org/today"}, output: page}
  - for_each:
      over: ctx.readers
      on_error: continue
      do: {agent: {prompt: "Sum up for {item}: {ctx.page}", model: "anthropic:claude-sonnet-4-5"}}
      collect: {transform: {value: pipe}}
      output: digests
  - tool:
      name: ask
      args: {type: confirm, prompt: "Post the digests?", show: !expr ctx.digests, default: "no"}
      output: ok
  - tool:
      when: ctx.ok == 'yes'
      name: http__send
      args: {url: "https://board.example.org/digests", method: POST, body: !expr ctx.digests}
"""
ARCHIVE = "  - tool: {name: file__write, args: {path: archive/digest.json, content: !expr json(ctx.digests)}}\n"


class Picture(Struct, frozen=True):
    """One picture: the address of a screen, with {names} of the runs of an ordinary day, and how it is looked at."""

    path: str
    theme: Theme = "light"
    width: int = WIDE
    height: int = 800


PICTURES = {
    "now": Picture("/"),
    "run": Picture("/runs/{done}"),
    "graph": Picture("/runs/{waiting}?view=graph", theme="dark"),
    "fan-out": Picture("/runs/{triage}?step=2%23failed", height=700),
    "compare": Picture("/compare/{done}/{fork}"),
    "fork": Picture("/runs/{done}/fork"),
    "source": Picture(f"/documents/{REPORT}?tab=source"),
    "run-form": Picture(f"/documents/{REPORT}?run=1", height=900),
    "proof": Picture("/documents/news-digest.yaml?tab=proof", height=1240),
    "proof-graph": Picture("/documents/news-digest.yaml", height=1240),
    "question": Picture("/q/{waiting}/4/ask", width=PHONE, height=640),
}


async def main() -> None:
    program = find_browser()
    if program is None:
        raise SystemExit(WITHOUT_BROWSER)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "support-team"
        folder.mkdir()
        write_documents(folder)
        _write_locked(folder)
        os.chdir(folder)  # paths in the pictures are those that a user would type
        async with served(folder, {}) as server, async_playwright() as driver:
            runs = await ordinary_day(server.site.runtime)
            browser = await driver.chromium.launch(executable_path=program, args=list(FLAGS))
            for name, picture in PICTURES.items():
                await _take(browser, server, picture, picture.path.format(**runs), FOLDER / f"{name}.png")
            await browser.close()


def _write_locked(folder: Path) -> None:
    """Write a document that may do more than its lock says."""
    document, workspace = folder / "news-digest.yaml", find_workspace(folder)
    document.write_text(DIGEST)
    facts = LockFacts(workspace)
    save_lock(lock_path(workspace), facts.lock(facts.documents([document])))
    document.write_text(DIGEST + ARCHIVE)


async def _take(browser: Browser, server: Served, picture: Picture, path: str, to: Path) -> None:
    context = await browser.new_context(
        color_scheme=picture.theme,
        viewport={"width": picture.width, "height": picture.height},
        reduced_motion="reduce",
    )
    page = await context.new_page()
    await page.goto(f"{server.url.partition('#')[0]}#token={TOKEN}")
    await page.goto(server.url.partition("#")[0].rstrip("/") + path)
    await page.get_by_role("heading", level=1).wait_for()
    await page.wait_for_load_state("load")
    await page.wait_for_timeout(1500)  # the last data arrive, and letters and pictures are drawn
    await page.screenshot(path=to)
    await context.close()


if __name__ == "__main__":
    asyncio.run(main())
