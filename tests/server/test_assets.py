"""The modules of the page: a screen is loaded when it is shown, and the shell names everything that it needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.browser import Pages
from tests.server.served import served
from tests.vendor.manifest import PAGE

from quire.server.assets import Assets

ASSETS = Assets()
MOST_BYTES = 120_000
STYLES = [path.name for path in PAGE.glob("*.css")]


def weight(names: Sequence[str]) -> int:
    return sum(len(ASSETS._asset(name).packed) for name in names)


def test_every_module_belongs_to_a_screen() -> None:
    modules = {path.relative_to(PAGE).as_posix() for path in (PAGE / "app").rglob("*.js")}
    later = re.compile(r'await import\("\.\.?/(?:parts/)?([\w.]+)"\)')  # loaded at a click
    clicked = {f"app/parts/{name}" for module in modules for name in later.findall(ASSETS._text(module))}
    needed = {
        name for screen in (*(screen for _, screen in ASSETS._screens), *clicked) for name in ASSETS._needs(screen)
    }
    assert modules - needed - set(ASSETS.modules("/")) == set()


@pytest.mark.parametrize("path", ["/", "/q/r1/2/ask", "/runs/r1", "/runs/r1/steps/2", "/runs/r1/graph"])
def test_the_first_load_of_a_screen_is_small(path: str) -> None:
    modules = ASSETS.modules(path)
    assert weight([*modules, *STYLES]) <= MOST_BYTES
    # With the shell, all style sheets in one, the icon, the stream and the first data.
    assert len(modules) + 8 <= (40 if path == "/" else 55)


def test_a_path_below_a_screen_has_the_modules_of_that_screen() -> None:
    assert "app/screens/run.js" in ASSETS.modules("/runs/r1/fans/3/for_each[2]/1")
    assert "app/screens/run.js" not in ASSETS.modules("/")
    assert ASSETS.modules("/nothing/here") == ASSETS.modules("/none")


@pytest.mark.asyncio(loop_scope="session")
async def test_the_browser_loads_the_modules_that_the_shell_names(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server:
        page = await pages.open(server.url)
        await expect(page.get_by_role("heading", name="Now")).to_be_visible()
        names = "() => performance.getEntriesByType('resource').map(one => one.name)"
        loaded = {name.partition("/static/")[2].partition("/")[2] for name in await page.evaluate(names)}
        assert {name for name in loaded if name.endswith(".js")} == set(ASSETS.modules("/"))
