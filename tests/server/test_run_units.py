"""The store of a run in a real browser: provisional events, and pieces of texts that are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.browser import Pages
from tests.server.served import served
from tests.server.test_pictures_units import run

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_pure_parts(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server:
        page = await pages.open(server.url)
        await expect(page.get_by_role("heading", level=1)).to_have_text("Now")
        await provisional_events(page)
        await pieces(page)
        await end_of_a_run(page)


STORE = """
    const store = new m.RunStore("r");
    store.head.value = { id: "r", seq: 4, status: "running", questions: [] };
    store.seen = 4;
    const names = "kind label title hint state from took waited cost in out effects failed children".split(" ");
    const rows = Object.fromEntries(names.map((name) => [name, [0]]));
    store.takeTree({ rows: { ...rows, path: ["1"], parent: [-1], state: ["running"] }, start: 0, end: null });
"""


async def provisional_events(page: Page) -> None:
    """reliability G2: an event that was applied before it was written is not applied again, and only then counted."""
    found = await run(
        page,
        "run_store.js",
        STORE
        + """
        const states = [];
        const told = { type: "effect", run: "r", path: "1/model", at: 1, elapsed: 1 };
        const again = { ...told, path: "1/tool", at: 2 };
        for (const data of [{ ...told, provisional: true }, { ...told, seq: 5 }, { ...again, seq: 6 }]) {
          store.receive({ event: data.type, data });
          store.flush();
          states.push([store.seen, store.tree.value.rows.get("1").effects]);
        }
        return states;
        """,
    )
    assert found == [[4, 1], [5, 1], [6, 2]]


async def pieces(page: Page) -> None:
    cases = {
        "m.joined(undefined, { text: 'a', offset: 0 })": {"text": "a", "from": 0},
        "m.joined({ text: 'ab', from: 0 }, { text: 'c', offset: 2 })": {"text": "abc", "from": 0},
        # What comes once more takes the place of what is there.
        "m.joined({ text: 'abc', from: 0 }, { text: 'abcd', offset: 0 })": {"text": "abcd", "from": 0},
        "m.joined({ text: 'abc', from: 0 }, { text: 'cd', offset: 2 })": {"text": "abcd", "from": 0},
        # A piece is missing: the text is asked for again.
        "m.joined({ text: 'ab', from: 0 }, { text: 'd', offset: 3 })": None,
        "m.joined(undefined, { text: 'd', offset: 3 })": None,
        # Of a very long text the server keeps the end.
        "m.joined(undefined, { text: 'xyz', offset: 900, cut: true })": {"text": "xyz", "from": 900},
        "m.joined({ text: 'xyz', from: 900 }, { text: '!', offset: 903 })": {"text": "xyz!", "from": 900},
        "m.joined({ text: 'a'.repeat(200000), from: 5 }, { text: 'bc', offset: 200005 }).from": 7,
    }
    assert await run(page, "run_store.js", f"return [{', '.join(cases)}]") == list(cases.values())


async def end_of_a_run(page: Page) -> None:
    """A text that is written belongs to a run that goes on."""
    found = await run(
        page,
        "run_store.js",
        STORE
        + """
        store.receive({ event: "delta", data: { type: "delta", run: "r", path: "1/model", text: "a", offset: 0 } });
        store.flush();
        const before = store.streams.value.size;
        store.receive({ event: "runs", data: { rows: [{ id: "r", status: "cancelled" }], gone: [] } });
        return [before, store.streams.value.size];
        """,
    )
    assert found == [1, 0]
