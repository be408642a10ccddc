"""A browser for each test process, and a fresh context for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect
from tests.browser import FLAGS, WITHOUT_BROWSER, Pages, find_browser
from tests.canary import Canary
from tests.server.stage import serving, stage_app
from tests.stores.postgres_server import shared_server


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip(WITHOUT_BROWSER)
    # Three test processes, each with its browser, share the cores of a machine that may be busy.
    expect.set_options(timeout=30_000)
    async with async_playwright() as driver:
        launched = await driver.chromium.launch(executable_path=program, args=list(FLAGS))
        yield launched
        await launched.close()


@pytest_asyncio.fixture(loop_scope="session")
async def pages(browser: Browser) -> AsyncIterator[Pages]:
    opened = Pages(browser)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="session")
async def canary() -> AsyncIterator[Canary]:
    async with Canary() as listening:
        yield listening


@pytest.fixture(scope="session")
def stage() -> Iterator[str]:
    with serving(stage_app()) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest) -> str:
    """The text of quire.toml for each kind of store."""
    if request.param == "sqlite":
        return ""
    server = shared_server()
    return f'[store]\nurl = "{server.url(schema=server.new_schema())}"\n'
