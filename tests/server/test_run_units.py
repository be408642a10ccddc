"""Pure modules of the page of a run, in a real browser: the tree of steps, the journal, and heads after events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect
from tests.browser import Pages
from tests.server.served import served
from tests.server.test_pictures_units import run as run_module

pytestmark = pytest.mark.asyncio(loop_scope="session")

STEPS = [
    ("1", "completed"),
    ("2", "running"),
    ("2/case[1]/1", "failed"),
    ("2/case[1]/2", "pending"),
    ("3/thread/turn[1]", "completed"),
    ("4", "pending"),
]


def steps() -> str:
    return json.dumps(
        [
            {"path": path, "label": path, "title": "", "status": status, "elapsed": 0, "cost": 0, "input_tokens": 0}
            | {"output_tokens": 0, "message": ""}
            for path, status in STEPS
        ]
    )


async def run(page: Page, module: str, body: str) -> Any:
    """Evaluate the body of a function with the module `m` and the steps `s`."""
    return await run_module(page, module, f"const s = {steps()}\n{body}")


async def test_pure_modules(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server:
        page = await pages.open(server.url)
        await expect(page.get_by_role("heading", level=1)).to_have_text("Now")
        await tree(page)
        await journal(page)
        await events(page)
        await provisional_events(page)


async def tree(page: Page) -> None:
    rows = "m.treeRows(s, new Set({closed})).map((row) => [row.step.path, row.level, row.position, row.size])"
    assert await run(page, "run_tree.js", f"return {rows.format(closed='[]')}") == [
        ["1", 1, 1, 4],
        ["2", 1, 2, 4],
        ["2/case[1]/1", 2, 1, 2],
        ["2/case[1]/2", 2, 2, 2],
        ["3/thread/turn[1]", 1, 3, 4],
        ["4", 1, 4, 4],
    ]
    closed = await run(page, "run_tree.js", "return m.treeRows(s, new Set(['2'])).map((row) => row.step.path)")
    assert closed == ["1", "2", "3/thread/turn[1]", "4"]
    cases = {
        "m.firstToSee(s)": "2/case[1]/1",
        "m.firstToSee([])": "",
        "m.nextInTrouble(s, '4', 1)": "2/case[1]/1",
        "m.nextInTrouble(s, '4', -1)": "2/case[1]/1",
        "m.nextInTrouble(s.slice(0, 2), '1', 1) ?? 'none'": "none",
        "m.stepOf(s, '2/case[1]/1/model').path": "2/case[1]/1",
        "m.partWords('2/for_each[17]/try[2]/model', '2')": "item 17, try 2",
        "JSON.stringify(m.keyInTree(m.treeRows(s, new Set()), 1, 'ArrowLeft'))": '{"close":"2"}',
        "JSON.stringify(m.keyInTree(m.treeRows(s, new Set(['2'])), 1, 'ArrowRight'))": '{"open":"2"}',
        "JSON.stringify(m.keyInTree(m.treeRows(s, new Set()), 3, 'ArrowLeft'))": '{"at":1}',
        "JSON.stringify(m.keyInTree(m.treeRows(s, new Set()), 5, 'ArrowDown'))": '{"at":5}',
    }
    assert await run(page, "run_tree.js", f"return [{', '.join(cases)}]") == list(cases.values())


async def journal(page: Page) -> None:
    found = await run(
        page,
        "journal.js",
        """
        const j = new m.Journal();
        const columns = Object.fromEntries(Object.keys(j.columns).map((name) => [name, [null, null]]));
        j.add({ ...columns, path: ["1/model", "2/tool"], kind: ["model", "tool"], state: ["ok", "intent"] });
        j.take({ path: "2/tool", kind: "tool", state: "failed", at: 5, elapsed: 2, message: "no" });
        j.take({ path: "3/model", kind: "model", state: "ok", at: 9, elapsed: 1, input_tokens: 3, output_tokens: 4 });
        const none = { kind: "", state: "", path: "" };
        return [
          j.length, j.kinds(), j.entry(1).state, j.entry(1).at, j.entry(2).tokens,
          j.fitting({ ...none, kind: "model" }), j.fitting({ ...none, state: "failed" }),
          j.fitting({ ...none, path: "TOOL" }),
        ];
        """,
    )
    assert found == [3, ["model", "tool"], "failed", 3, 7, [0, 2], [1], [1]]


async def events(page: Page) -> None:
    found = await run(
        page,
        "run_store.js",
        """
        const head = { id: "r", seq: 4, steps: s, cost: 1, input_tokens: 0, output_tokens: 0, effects_total: 2 };
        const { head: next, unsure } = m.applied(head, [
          { type: "step_started", path: "4", seq: 5, at: 1 },
          { type: "fan_started", path: "4", seq: 6, total: 3 },
          { type: "effect", path: "4/for_each[0]/model", seq: 7, elapsed: 2, cost: 0.5 },
          { type: "fan_item", path: "4", seq: 8, state: "ok" },
          { type: "fan_item", path: "4", seq: 9, state: "failed" },
          { type: "effect", path: "1/model", seq: 10, elapsed: 1, cost: null },
        ]);
        const step = next.steps[5];
        return [
          step.status, step.items, step.cost, step.elapsed, next.cost, next.seq, next.effects_total,
          next.steps[0].cost, unsure, s[5].status, next.steps[1] === s[1],
        ];
        """,
    )
    items = {"total": 3, "done": 1, "failed": 1}
    assert found == ["running", items, 0.5, 2, 1, 10, 4, None, True, "pending", True]


async def provisional_events(page: Page) -> None:
    """reliability G2: an event that was applied before it was written is not applied again, and only then counted."""
    found = await run(
        page,
        "run_store.js",
        """
        const store = new m.RunStore("r");
        store.head.value = { id: "r", seq: 4, steps: s, effects_total: 2 };
        store.seen = 4;
        const states = [];
        const told = { type: "effect", run: "r", path: "1/model", at: 1, elapsed: 2 };
        for (const data of [{ ...told, provisional: true }, { ...told, seq: 5 }, { ...told, seq: 6, at: 2 }]) {
          store.receive({ event: data.type, data });
          store.flush();
          const { seq, effects_total, steps } = store.head.value;
          states.push([store.seen, seq, effects_total, steps[0].elapsed]);
        }
        return states;
        """,
    )
    assert found == [[4, 4, 3, 2], [5, 5, 3, 2], [6, 6, 4, 4]]
