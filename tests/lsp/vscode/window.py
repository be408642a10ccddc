"""A window of VS Code: a page of Chromium, with the keys and places that the tests need."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Locator, Page, TimeoutError, expect, sync_playwright
from tests.browser import FLAGS, WITHOUT_BROWSER, find_browser

PATIENCE = 60
"""Seconds until something that does not happen is a failure: a busy machine is slow, not wrong."""
WIDTH, HEIGHT = 1180, 720


class Window:
    def __init__(self, page: Page, folder: Path, environment: Mapping[str, str], pictures: Path | None) -> None:
        self.page = page
        self.folder = folder
        self.environment = environment
        self._pictures = pictures
        self._count = 0

    @property
    def editor(self) -> Locator:
        """The editor that has the keyboard, or had it last."""
        return self.page.locator(".editor-group-container.active .monaco-editor").first

    @property
    def messages(self) -> Locator:
        return self.page.locator(".notifications-toasts .notification-list-item")

    @property
    def terminal(self) -> Locator:
        return self.page.locator(".terminal-wrapper.active .xterm-rows")

    def open(self, name: str, *, served: bool = True) -> None:
        """Open a document, and wait until the server has answered about it: lenses move the lines below them."""
        self.rest_mouse()
        self.page.get_by_role("treeitem", name=name).first.dblclick()
        expect(self.page.locator(".tab.active", has_text=name)).to_be_visible()
        if served:
            expect(self.editor.locator(".codelens-decoration a").first).to_be_visible()

    def rest_mouse(self) -> None:
        """Move the mouse away: where it rests on a row, a box comes up and covers the rows below."""
        self.page.mouse.move(800, 400)
        expect(self.page.locator(".context-view .hover-contents")).to_have_count(0)

    def place(self, before: str) -> None:
        """Put the cursor behind the first occurrence of a text in the file as it is on the disk."""
        name = self.page.locator(".editor-group-container.active .tab.active").get_attribute("data-resource-name")
        text = (self.folder / str(name)).read_text()
        head = text[: text.index(before) + len(before)]
        self.press("Control+g")
        self.page.keyboard.type(f"{head.count(chr(10)) + 1}:{len(head) - (head.rfind(chr(10)) + 1) + 1}")
        self.press("Enter")
        expect(self.page.locator(".quick-input-widget")).to_be_hidden()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def command(self, title: str) -> None:
        """Choose a command from the palette, which must have it. The palette shows what was there when it opened."""
        row = self.page.locator(".quick-input-list .monaco-list-row").first
        until = time.monotonic() + PATIENCE
        while True:
            self.press("F1")
            box = self.page.locator(".quick-input-widget input[type=text]")
            try:
                expect(box).to_be_visible(timeout=3000)
                box.fill(f">{title}", timeout=3000)
                expect(row).to_contain_text(title, timeout=3000)
                break
            except (AssertionError, TimeoutError):
                self.press("Escape")
                if time.monotonic() > until:
                    raise
        self.press("Enter")

    def answer(self, text: str) -> None:
        """Type into the box that a command has opened."""
        box = self.page.locator(".quick-input-widget:visible input[type=text]")
        expect(box).to_be_visible()
        box.fill(text)
        self.press("Enter")

    def close_all(self) -> None:
        """Leave the folder with no editor, no panel and no message."""
        self.command("View: Close All Editors")
        if self.page.locator(".part.panel").is_visible():
            self.command("View: Toggle Panel Visibility")
        self.command("Notifications: Clear All Notifications")
        self.command("File: Focus on Files Explorer")

    def picture(self, name: str, *, documented: bool = False) -> None:
        """Keep a picture, if somewhere for pictures is named; one for the documentation if that is made."""
        if self._pictures is not None and documented:
            self.page.mouse.move(WIDTH - 2, 2)
            self.page.wait_for_timeout(1000)  # the last colours and signs are drawn
            self.page.screenshot(path=self._pictures / f"editor-{name}.png")
        elif folder := os.environ.get("QUIRE_SCREENSHOTS"):
            self._count += 1
            self.page.screenshot(path=Path(folder) / f"{self.folder.name}-{self._count:02}-{name}.png")


@contextmanager
def window(url: str, folder: Path, environment: Mapping[str, str], pictures: Path | None = None) -> Iterator[Window]:
    browser = find_browser()
    if browser is None:
        raise SystemExit(WITHOUT_BROWSER)
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser, args=[*FLAGS, "--no-sandbox", "--disable-gpu"])
        page = launched.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_default_timeout(PATIENCE * 1000)
        opened = Window(page, folder, environment, pictures)
        try:
            page.goto(f"{url}?folder={quote(str(folder))}")
            expect(page.get_by_role("treeitem").first).to_be_visible()
            yield opened
        except BaseException:
            opened.picture("failed")
            raise
        finally:
            launched.close()


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait for something outside of the window."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.1)
