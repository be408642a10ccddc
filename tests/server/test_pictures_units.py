"""Pure modules of the pictures, in a real browser: states of nodes, columns, ways between nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page
from tests.browser import Pages
from tests.server.served import served

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    pages = Pages(browser)
    async with served(tmp_path_factory.mktemp("units") / "team", {}) as server:
        yield await pages.open(server.url)
        await pages.close()


async def run(page: Page, module: str, body: str) -> Any:
    """Evaluate the body of a function of the module `m`."""
    return await page.evaluate(
        f"""async () => {{
            const root = document.querySelector('script[type=module][src]').src.replace('/main.js', '/')
            const m = await import(root + {module!r})
            {body}
        }}"""
    )


async def test_states_of_nodes(page: Page) -> None:
    body = """
        const steps = [
            { path: '1', status: 'completed' },
            { path: '2', status: 'completed', items: { total: 1000, done: 997, failed: 3 } },
            { path: '3', status: 'running', items: { total: 1000, done: 931, failed: 3 } },
            { path: '4', status: 'pending' },
        ];
        const states = m.runStates(steps, 'running');
        const words = (path) => { const one = states(path); return [one.word, one.tone, one.note ?? '']; };
        const all = steps.map((step) => states(step.path));
        return [
            words('1'), words('2'), words('3'), words('2/for_each'), words('9'),
            m.together(all).word, m.together([all[0], all[3]]).word, m.together([all[3]]).word,
            m.folded({ path: '2', until: '3' }, ['1', '2', '2/case[1]/1', '3', '3/case[1]/1', '4']),
        ];
    """
    assert await run(page, "chart_states.js", body) == [
        ["completed", "good", ""],
        ["completed", "warn", "1,000 / 1,000, 3 failed"],
        ["running", "live", "934 / 1,000, 3 failed"],
        ["completed", "good", ""],
        ["running", "live", ""],
        "running",
        "1 of 2",
        "not begun",
        ["2", "2/case[1]/1", "3", "3/case[1]/1"],
    ]


async def test_columns_and_ways_between_nodes(page: Page) -> None:
    columns = "return [[3, 600], [60, 600], [60, 100]].map(([count, width]) => m.columns(count, width))"
    assert await run(page, "parts/history.js", columns) == [
        {"each": 26, "shown": 3},
        {"each": 10, "shown": 60},
        {"each": 5, "shown": 20},
    ]
    near = """
        const node = (id, x, y) => ({ id, x, y, w: 10, h: 10 });
        const all = [node('a', 50, 0), node('b', 20, 50), node('c', 80, 50), node('d', 50, 100)];
        const keys = ['ArrowDown', 'ArrowUp', 'ArrowRight', 'ArrowLeft', 'x'];
        return keys.map((key) => m.nearest(all, all[1], key)?.id ?? '');
    """
    assert await run(page, "parts/graph_camera.js", near) == ["d", "a", "c", "", ""]
