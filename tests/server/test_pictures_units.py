"""Pure modules of the pictures, in a real browser: lanes and rows, collapsed waits, states of nodes, cells, drawing."""

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


EFFECTS = """
    const effects = (rows) => ({
        path: rows.map((_, at) => `p${at}`), lane: rows.map((row) => row[0]), kind: rows.map(() => 0),
        state: rows.map((row) => row[3] ?? 0), at: rows.map((row) => row[1]), elapsed: rows.map((row) => row[2]),
    });
"""


async def test_lanes_waits_and_the_scale_of_time(page: Page) -> None:
    body = EFFECTS + (
        """
        const many = effects(Array.from({ length: 10 }, () => [0, 0, 5]));
        const rows = m.inRows(effects([[0, 0, 4], [0, 1, 1], [0, 2, 1], [0, 4, 1], [1, 0, 1]]), 3);
        const waits = [{ kind: 'question', path: 'a', lane: 0, at: 10, until: 110 },
                       { kind: 'paused', path: null, lane: -1, at: 100, until: null }];
        const work = effects([[0, 0, 10], [0, 50, 5]]);
        const gaps = m.idle(waits, work, 200);
        const scale = m.timeScale(200, gaps);
        const there = [0, 5, 10, 30, 52, 100, 200];
        return {
            row: [...rows.row], rows: rows.rows, most: m.inRows(many, 1).rows,
            tops: m.laneTops([1, 4]),
            gaps, worth: m.worthCollapsing(gaps, 200).length,
            back: there.map((time) => Math.round(scale.toTime(scale.toShown(time)) * 1e6) / 1e6),
            total: Math.round(scale.total * 100) / 100,
            long: m.timeScale(1e6 + 30, [{ from: 10, to: 1e6 }]).total < 60,
            united: m.united([{ from: 5, to: 6 }, { from: 0, to: 2 }, { from: 1, to: 3 }]),
            marks: m.marks(scale, { from: 0, to: scale.total }, gaps, 4).at,
            clocks: [m.clock(0, 10), m.clock(75, 5), m.clock(7865, 60), m.clock(0.25, 0.05), m.clock(62.5, 0.5)],
            zoomed: m.zoomed({ from: 0, to: 100 }, 2, 100), corner: m.zoomed({ from: 0, to: 50 }, 0.5, 100, 0),
            moved: m.moved({ from: 80, to: 100 }, 50, 100),
        };
        """
    )
    found = await run(page, "timeline_geometry.js", body)
    assert found == {
        "row": [0, 1, 1, 0, 0],
        "rows": [2, 1, 1],
        "most": [6],
        "tops": {"top": [0, 28], "height": [28, 54], "total": 82},
        "gaps": [{"from": 10, "to": 50}, {"from": 55, "to": 200}],
        "worth": 2,
        "back": [0, 5, 10, 30, 52, 100, 200],
        "total": 17.86,
        "long": True,
        "united": [{"from": 0, "to": 3}, {"from": 5, "to": 6}],
        "marks": [0, 5, 10, 50, 55],
        "clocks": ["0:00", "1:15", "2:11:05", "0.25 s", "1:02.5"],
        "zoomed": {"from": 25, "to": 75},
        "corner": {"from": 0, "to": 100},
        "moved": {"from": 80, "to": 100},
    }


async def test_a_timeline_goes_on_with_the_events_of_the_feed(page: Page) -> None:
    body = """
        const steps = ['1', '2', '3'].map((path) => ({ path, label: path, way: path, title: '', status: '' }));
        const empty = { path: [], lane: [], kind: [], state: [], at: [], elapsed: [] };
        const one = { path: ['3/model'], lane: [0], kind: [0], state: [0], at: [1], elapsed: [1] };
        const start = { seq: 5, start: 100, end: 2, lanes: [steps[2]], kinds: ['model'], states: ['ok', 'failed'],
                        effects: one, waits: [] };
        const events = [
            { seq: 5, type: 'effect', path: '3/model', kind: 'model', state: 'ok', at: 102, elapsed: 1 },
            { seq: 6, type: 'question', path: '1/ask', at: 103 },
            { seq: 7, type: 'effect', path: '2/for_each[1]/tool', kind: 'tool', state: 'failed', at: 105, elapsed: 2 },
            { seq: 8, type: 'effect', path: '1/ask', kind: 'ask', state: 'ok', at: 109, elapsed: 0 },
        ];
        const next = m.withEvents(start, events, steps);
        return [m.withEvents(start, events.slice(0, 1), steps) === start, next.lanes.map((lane) => lane.path),
                next.effects.lane, next.effects.at, next.kinds, next.effects.state, next.waits, next.end, next.seq];
    """
    found = await run(page, "timeline_live.js", body)
    waited = {"kind": "question", "path": "1/ask", "lane": 0, "at": 3, "until": 9}
    kinds = ["model", "tool", "ask"]
    assert found == [True, ["1", "2", "3"], [2, 1, 0], [1, 3, 9], kinds, [0, 1, 0], [waited], 9, 8]


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


async def test_cells_columns_and_ways_between_nodes(page: Page) -> None:
    cells = "return [40, 1000, 5000].map((count) => m.cells(count, 960))"
    assert await run(page, "parts/fan_strip.js", cells) == [
        {"size": 22, "across": 43, "height": 22},
        {"size": 12, "across": 80, "height": 156},
        {"size": 6, "across": 160, "height": 192},
    ]
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


async def test_ten_thousand_effects_and_a_thousand_items_are_drawn_at_once(page: Page) -> None:
    """`pytest -s` prints how long a redraw takes, which should be 16 ms on an idle machine."""
    strip = """
        const context = document.createElement('canvas').getContext('2d');
        const colours = new Proxy({}, { get: () => '#123456' });
        const letters = Array.from({ length: 1000 }, (_, at) => 'dddfrwp'[at % 7]).join('');
        const took = [];
        for (let turn = 0; turn < 9; turn++) {
            const begun = performance.now();
            m.drawCells(context, colours, letters, m.cells(1000, 960), 3, 4);
            context.getImageData(0, 0, 1, 1);
            took.push(performance.now() - begun);
        }
        return Math.min(...took);
    """
    cells = await run(page, "parts/fan_strip.js", strip)
    timeline = """
        const count = 10000, column = (make) => Array.from({ length: count }, (_, at) => make(at));
        const data = {
            seq: 1, start: 0, end: 1000, kinds: ['model'], states: ['ok', 'failed'], waits: [],
            lanes: Array.from({ length: 40 }, (_, at) => ({ path: `${at}`, label: '', way: `${at}`, title: 'A step' })),
            effects: { path: column((at) => `p${at}`), lane: column((at) => at % 40), kind: column(() => 0),
                       state: column((at) => at % 9 ? 0 : 1), at: column((at) => at / 10), elapsed: column(() => 0.5) },
        };
        const { modelOf } = await import(root + 'parts/timeline_model.js');
        const begun = performance.now();
        const model = modelOf(data, true, 0);
        const made = performance.now() - begun;
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [1280, 560];
        const context = canvas.getContext('2d');
        const colours = new Proxy({}, { get: () => '#123456' });
        const look = { model, span: { from: 0, to: model.scale.total }, labels: 200, selected: 5, pointed: -1 };
        const took = [];
        for (let turn = 0; turn < 9; turn++) {
            const begun = performance.now();
            m.drawLanes(context, 1280, 560, colours, look, 0);
            context.getImageData(0, 0, 1, 1);
            took.push(performance.now() - begun);
        }
        const at = model.effectAt(700, 10, m.placing(look, 1280));
        return [made, Math.min(...took), data.effects.lane[at], model.words(0)];
    """
    made, drawn, lane, words = await run(page, "parts/timeline_drawing.js", timeline)
    print(f"1,000 cells {cells:.1f} ms; 10,000 effects placed in {made:.1f} ms, drawn in {drawn:.1f} ms")
    assert lane == 0
    assert words == "Step 0, A step: model, failed, began after 0 ms, took 0.5 s"


async def test_items_change_with_the_events_of_the_feed(page: Page) -> None:
    body = """
        return m.withItems('ppppp', '2', [
            { type: 'effect', path: '2/for_each[1]/model' }, { type: 'fan_item', path: '2', index: 0, state: 'done' },
            { type: 'question', path: '2/for_each[3]/ask' }, { type: 'fan_item', path: '2', index: 2, state: 'failed' },
            { type: 'effect', path: '20/for_each[4]/model' }, { type: 'run_paused' },
            { type: 'fan_item', path: '2', index: 99, state: 'done' },
        ]);
    """
    assert await run(page, "fan_live.js", body) == "drfwp"
