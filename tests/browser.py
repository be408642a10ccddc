"""A real browser for tests of the page: finds Chromium, opens pages with guards, runs axe, takes pictures.

Everything runs in pytest-asyncio's loop of the session, because one browser serves all tests of a process. A test file
says `pytestmark = pytest.mark.asyncio(loop_scope="session")`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request
from tests.depth import depth

Theme = Literal["light", "dark"]
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first is the same browser without windows, and takes a third less time."""
FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    # There is no graphics card to be protected from, and a process less to talk to.
    "--in-process-gpu",
    # A name that is looked up would be a request that leaves the machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
WIDE, PHONE = 1280, 375
# A page outlives the server of its test by a moment, and tries to reach it again.
SERVER_ENDED = (
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "ERR_EMPTY_RESPONSE",
    "ERR_INCOMPLETE_CHUNKED",
    "ERR_SOCKET_NOT_CONNECTED",
)
WITHOUT_BROWSER = f"no browser: install {' or '.join(NAMES)}, or name one in QUIRE_BROWSER"


def find_browser() -> str | None:
    """The program of `QUIRE_BROWSER`, or the first Chromium on the path."""
    named = os.environ.get("QUIRE_BROWSER")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


@dataclass(slots=True)
class Pages:
    """Opens pages, each in a fresh context. `close` fails the test on what a good page never does.

    That is: a request to another origin than the page's own, an error on the console, an uncaught exception.
    """

    browser: Browser
    contexts: list[BrowserContext] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    async def open(
        self, url: str, *, theme: Theme = "light", width: int = WIDE, height: int = 900, guarded: bool = True
    ) -> Page:
        context = await self.context(url, theme=theme, width=width, height=height, guarded=guarded)
        page = await context.new_page()
        await page.goto(url)
        return page

    async def context(
        self, url: str, *, theme: Theme = "light", width: int = WIDE, height: int = 900, guarded: bool = True
    ) -> BrowserContext:
        """A fresh context for pages of one origin; several pages in it are several tabs of one browser."""
        context = await self.browser.new_context(
            color_scheme=theme, viewport={"width": width, "height": height}, reduced_motion="reduce"
        )
        context.set_default_timeout(30_000)
        self.contexts.append(context)
        if guarded:
            self._guard(context, origin(url))
        return context

    def _guard(self, context: BrowserContext, home: str) -> None:
        def request(sent: Request) -> None:
            if not sent.url.startswith(("data:", "blob:", "about:")) and origin(sent.url) != home:
                self.faults.append(f"a request left for {sent.url}")

        def console(message: ConsoleMessage) -> None:
            if message.type == "error" and not any(end in message.text for end in SERVER_ENDED):
                self.faults.append(f"console: {message.text}")

        context.on("request", request)
        context.on("console", console)
        context.on("weberror", lambda error: self.faults.append(f"uncaught: {error.error}"))

    def expect_fault(self, part: str) -> None:
        """Take one expected fault off the list, for tests that provoke it."""
        self.faults.remove(next(fault for fault in self.faults if part in fault))

    async def close(self) -> None:
        for context in self.contexts:
            await context.close()
        assert not self.faults, "\n".join(self.faults)


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


AXE_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


async def axe(page: Page, tags: Sequence[str] = AXE_TAGS, *, without: Sequence[str] = ()) -> list[str]:
    """Findings of axe-core on the page as it is now, a line for each element."""
    if not await page.evaluate("typeof axe === 'object'"):
        await page.evaluate(_axe_source())
    options = {
        "runOnly": {"type": "tag", "values": list(tags)},
        "rules": {rule: {"enabled": False} for rule in without},
        "resultTypes": ["violations"],
    }
    result = await page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{finding['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for finding in result["violations"]
        for node in finding["nodes"]
    ]


class _Look(Protocol):
    def __call__(self, page: Page, name: str, /) -> Awaitable[None]: ...


async def each_look(page: Page, name: str, look: _Look, widths: Sequence[int] = (WIDE, PHONE)) -> None:
    """Call `look(page, NAME-THEME-WIDTH)` in light and dark and at each width, without loading the page again."""
    themes: tuple[Theme, ...] = ("light", "dark")
    for theme in themes:
        await page.emulate_media(color_scheme=theme)
        for width in widths:
            await page.set_viewport_size({"width": width, "height": 900})
            await look(page, f"{name}-{theme}-{width}")


async def check_looks(page: Page, name: str, *, without: Sequence[str] = ()) -> None:
    """Run axe and take a picture in light and dark, wide and on a phone; in the short suite only in two of the four."""
    findings: list[str] = []

    async def look(page: Page, label: str) -> None:
        await picture(page, label)
        findings.extend(f"{label}: {finding}" for finding in await axe(page, without=without))

    if depth(0, 1) or "QUIRE_SCREENSHOTS" in os.environ:
        await each_look(page, name, look)
    else:
        await look(page, name)
        await page.emulate_media(color_scheme="dark")
        await page.set_viewport_size({"width": PHONE, "height": 900})
        await look(page, f"{name}, dark, on a phone")
    assert not findings, "\n".join(findings)


async def picture(page: Page, name: str, *, full_page: bool = True) -> None:
    """A PNG in the folder of `QUIRE_SCREENSHOTS`, or nothing without that."""
    folder = os.environ.get("QUIRE_SCREENSHOTS")
    if folder:
        await page.screenshot(path=Path(folder) / f"{name}.png", full_page=full_page)


@cache
def _axe_source() -> str:
    package = find_spec("axe_playwright_python")
    assert package is not None and package.origin is not None
    return (Path(package.origin).parent / "axe.min.js").read_text(encoding="utf-8")
