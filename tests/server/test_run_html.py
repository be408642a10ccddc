"""The HTML file of a run: whole, safe with hostile texts, and readable without a network and without scripts."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Request, expect
from tests.browser import Pages, axe, picture
from tests.canary import Canary
from tests.server.hostile import HTML, MARKDOWN, NAME, aimed
from tests.server.long_run import MANY, ten_thousand
from tests.server.served import Served, served
from tests.server.team_workspace import ordinary_day, write_documents

from quire.display.run_html import CUT, POLICY

pytestmark = pytest.mark.asyncio(loop_scope="session")

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "section", "footer", "h1", "h2", "p", "span"),
    *("small", "b", "i", "pre", "dl", "dt", "dd", "div", "details", "summary", "svg", "rect"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "open", "title", "viewbox", "preserveaspectratio"),
    *("aria-hidden", "x", "y", "width", "height"),
}


class Parts(HTMLParser):
    """The elements and attributes of a file."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}


async def file_of(server: Served, run: str, query: str = "") -> str:
    async with server.client() as client:
        answer = await client.get(f"/runs/{run}/export?as=html{query}")
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-disposition"] == f'attachment; filename="{run}.html"'
        return answer.text


async def look(pages: Pages, path: Path, text: str, **options: Any) -> Page:
    """Open the file from the disk, without scripts and without a network."""
    path.write_text(text, encoding="utf-8")
    context = await pages.browser.new_context(java_script_enabled=False, offline=True, **options)
    pages.contexts.append(context)

    def request(sent: Request) -> None:
        if not sent.url.startswith("file:"):
            pages.faults.append(f"a request left for {sent.url}")

    context.on("request", request)
    page = await context.new_page()
    await page.goto(path.as_uri())
    return page


PIPE = """pipeline: brief
dialect: quire
input: {topic: {type: string}, rows: {type: list, of: {type: string}}}
steps:
  - agent: {title: Outline the brief, prompt: "A secret of the prompt about {ctx.topic}", output: outline}
  - for_each:
      over: ctx.rows
      on_error: continue
      do: {agent: {prompt: "Score {item}"}}
      collect: {transform: {value: "count(pipe)"}}
      output: scored
  - transform: {title: Put it together, value: "outline + ' ' + text(scored)"}
"""


async def test_it_has_the_run_and_not_its_prompts(tmp_path: Path, pages: Pages) -> None:
    async with served(tmp_path / "team", {"brief.yaml": PIPE}) as server:
        model = server.script(
            "replies.json", [{"default": "A reply.", "usage": {"input_tokens": 5, "output_tokens": 3}}]
        )
        body = {"inputs": {"topic": "SQLite", "rows": ["a", "b", "c"]}, "model": model}
        run = (await server.start("brief.yaml", **body))["id"]
        await server.site.runs.ended(run, 20)
        text = await file_of(server, run)
        assert Parts(text).elements <= ELEMENTS and Parts(text).attributes <= ATTRIBUTES
        assert "secret of the prompt" not in text and "http" not in re.sub(r"http-equiv", "", text.split("<style>")[0])
        page = await look(pages, tmp_path / "run.html", text)
        await expect(page.get_by_role("heading", level=1)).to_contain_text("SQLite")
        await expect(page.locator(".result pre")).to_have_text("A reply. 3")
        await expect(page.locator("dd pre").first).to_have_text("SQLite")
        for name in ("Outline the brief", "scored", "Item 1", "Put it together"):
            await expect(page.get_by_text(name, exact=True).first).to_be_visible()
        reply = page.locator("details", has_text="Outline the brief").last
        assert not await reply.locator("pre").is_visible()
        await reply.locator("summary").click()
        await expect(reply.locator("pre")).to_have_text("A reply.")
        assert await page.locator("rect").count() >= 6


async def test_hostile_texts_stay_texts(tmp_path: Path, pages: Pages, canary: Canary) -> None:
    """Names, inputs, replies and errors that attack a page: no element of theirs, no request, no script."""
    evil = aimed(f"{NAME}\n{HTML}\n{MARKDOWN}\n</pre></details><style>*{{}}</style>\u202eabc\x00\x1b[2J", canary.url)
    name = aimed(NAME, canary.url)
    document = f"# {name}\n\n## INPUTS\n\n- `topic` (text): x\n\n## STEP 1: {name}\n\nSay {{{{topic}}}}.\n"
    async with served(tmp_path / "team", {"evil.playbook.md": document}) as server, server.client() as client:
        cases: tuple[list[object], ...] = ([evil], [{"error": evil}])
        for at, replies in enumerate(cases):
            model = server.script(f"{at}.json", replies)
            run = (await server.start("evil.playbook.md", inputs={"topic": evil}, model=model))["id"]
            await server.site.runs.ended(run, 20)
            answer = await client.patch(f"/runs/{run}", json={"name": evil[:80], "note": evil[:2000]})
            assert answer.status_code in (200, 422)
            text = await file_of(server, run, "&full=1")
            assert Parts(text).elements <= ELEMENTS and Parts(text).attributes <= ATTRIBUTES
            assert html.escape(f"{canary.url}/script.js", quote=True) in text
            assert "\x00" not in text and "\u202e" not in text and "\x1b" not in text
            (tmp_path / f"{at}.html").write_text(text, encoding="utf-8")
            # With scripts and a network, as a careless reader opens it.
            context = await pages.browser.new_context()
            pages.contexts.append(context)
            page = await context.new_page()
            page.on("dialog", lambda dialog: pages.faults.append(f"a dialog: {dialog.message}"))
            await page.goto((tmp_path / f"{at}.html").as_uri())
            await page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
            await page.evaluate("new Promise((done) => setTimeout(done, 200))")
            assert (await page.title()).endswith("Quire")
            assert await page.evaluate("self.owned === undefined && document.scripts.length === 0")
    assert canary.hits == []


async def test_the_policy_stands_before_all_other_texts(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"a.playbook.md": "# A\n\n## STEP 1: Say\n\nSay.\n"}) as server:
        run = (await server.start("a.playbook.md", model=server.script("a.json", ["x" * (CUT + 7)])))["id"]
        await server.site.runs.ended(run, 20)
        text = await file_of(server, run)
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
        assert policy is not None and html.unescape(policy[1]) == POLICY and policy.start() < text.index("<title>")
        assert "7 more characters not in this file" in text and "x" * (CUT + 1) not in text
        assert "x" * (CUT + 7) in await file_of(server, run, "&full=1")


async def test_a_long_run_has_its_first_rows(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"many.yaml": MANY}) as server:
        run = await ten_thousand(server, 300)
        text = await file_of(server, run)
        assert "200 more rows not in this file" in text and text.count('class="mark') < 150
        whole = await file_of(server, run, "&full=1")
        assert "not in this file" not in whole and "Item 300" in whole


async def test_how_it_looks(tmp_path: Path, pages: Pages) -> None:
    """No sideways scroll and no finding of axe, in both themes, wide and on a phone."""
    folder = tmp_path / "team"
    async with served(folder, {}) as server:
        write_documents(folder)
        for name, run in (await ordinary_day(server.site.runtime)).items():
            path = tmp_path / f"{name}.html"
            path.write_text(await file_of(server, run), encoding="utf-8")
            for theme in ("light", "dark"):
                for width in (1366, 390):
                    without = await look(pages, path, path.read_text(encoding="utf-8"), color_scheme=theme,
                                         viewport={"width": width, "height": 900})  # fmt: skip
                    await picture(without, f"run-html-{name}-{theme}-{width}")
                    # Scripts are only for axe.
                    context = await pages.browser.new_context(
                        color_scheme=theme, viewport={"width": width, "height": 900}, bypass_csp=True
                    )
                    pages.contexts.append(context)
                    page = await context.new_page()
                    await page.goto(path.as_uri())
                    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
                    assert await axe(page) == [], (name, theme, width)
