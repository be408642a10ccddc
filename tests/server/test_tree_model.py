"""The tree of a run in the page: its own model, with the table of rows that runs/run_tree.py is tested with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quire.server.assets import PAGE

DENO = Path(sys.executable).parent / "deno"
CASES = json.loads((Path(__file__).parent / "tree_cases.json").read_text(encoding="utf-8"))
STOPS = ("run_started", "run_resumed", "run_paused", "run_failed", "run_cancelled", "run_forked", "thread_ended")
"""After these the page asks the server: only it knows the times in which a run rested."""

pytestmark = pytest.mark.skipif(not DENO.exists(), reason="no deno")

MODEL = """
import * as m from "MODULE";
const input = JSON.parse(INPUT);
const result = await (async () => { BODY })();
console.log(JSON.stringify(result));
"""
NAMES = ("path", "parent", "kind", "label", "state", "from", "took", "waited", "cost", "effects", "failed", "children")
NUMBERS = ("from", "took", "waited", "cost", "in", "out", "effects", "failed")


def run(body: str, given: object = None) -> Any:
    """Evaluate the body of a function with the module `m` and `input`."""
    script = MODEL.replace("MODULE", (PAGE / "app" / "tree_model.js").as_uri()).replace("BODY", body)
    done = subprocess.run(
        [DENO, "run", "--quiet", "--no-config", "--no-lock", f"--allow-read={PAGE}", "-"],
        input=script.replace("INPUT", json.dumps(json.dumps(given))),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def answer(rows: list[list[Any]], start: float, **changed: Any) -> dict[str, Any]:
    """What the server answers: rows as columns. `changed` are values for all rows."""
    columns = {name: [row[at] for row in rows] for at, name in enumerate(NAMES)}
    columns |= {name: [value] * len(rows) for name, value in changed.items()}
    rest = {name: [""] * len(rows) for name in ("title", "hint")} | {"buckets": [None] * len(rows)}
    columns |= {"in": [0] * len(rows), "out": [0] * len(rows), **rest}
    return {"rows": columns, "start": start, "end": None, "partial": False, "next": None}


def began(case: dict[str, Any]) -> float:
    return min([1000.0, *(event["at"] - event.get("elapsed", 0) for event in case["events"])])


LIVE = [
    case
    for case in CASES
    if not any(event["type"] in STOPS for event in case["events"]) and "#" not in json.dumps(case["rows"])
]


def test_rows_that_are_known_change_as_on_the_server() -> None:
    """The page changes rows that it has, and draws the time of what is under way itself; the server names rows that are
    new and knows whether a process still drives the run."""
    nothing: dict[str, Any] = dict.fromkeys(NUMBERS, 0) | {"state": "pending"}
    given = [[answer(case["rows"], began(case), **nothing), case["events"]] for case in LIVE]
    changed = run(
        """
        return input.map(([answer, events]) => {
          const tree = m.applied(m.treeOf(answer), events);
          return [...tree.rows.values()].map((row) => ({ ...row, cost: row.cost }));
        });
        """,
        given,
    )
    assert len(LIVE) > 20
    for case, rows in zip(LIVE, changed, strict=True):
        for row, told in zip(case["rows"], rows, strict=True):
            want = dict(zip(NAMES, row, strict=True)) | {"from": row[5] or 0}
            names = {"path", "effects", "failed", "cost", "from", "state", "waited", "took"}
            names -= {"waited", "took"} if want["state"] in ("running", "waits", "stopped") else set()
            names -= {"state"} if want["state"] == "stopped" or "agent" in case["name"] else set()
            assert {name: told[name] for name in names} == {name: want[name] for name in names}, case["name"]


def shown(rows: list[list[Any]], body: str, **changed: Any) -> Any:
    return run(f"const t = m.treeOf(input); const rows = m.shownRows(t, new Map()); {body}", answer(rows, 0, **changed))


ROWS = [
    ["1", -1, "step", "One", "done", 0, 4, 0, 0, 1, 0, 0],
    ["2", -1, "step", "Two", "running", 4, 6, 0, 0, 3, 1, 2],
    ["2/case[1]/1", 1, "step", "In", "failed", 4, 1, 0, 0, 1, 1, 0],
    ["2/case[1]/2", 1, "step", "In too", "running", 5, 5, 0, 0, 1, 0, 0],
    ["4", -1, "step", "Last", "pending", 0, 0, 0, 0, 0, 0, 0],
]


def test_rows_and_keys() -> None:
    cases = {
        "rows.map((one) => [one.level, one.position, one.size].join())": ["1,1,3", "1,2,3", "2,1,2", "2,2,2", "1,3,3"],
        "m.shownRows(t, new Map([['2', false]])).map((one) => one.row.path)": ["1", "2", "4"],
        "m.firstToSee(t, 'running')": "2/case[1]/2",
        "m.firstToSee(t, 'completed')": "=",
        "m.firstToSee(t, 'awaiting_input')": "=",
        "m.nextInTrouble(rows, '4', 1)": "2/case[1]/1",
        "m.nextInTrouble(rows.slice(0, 1), '1', 1) ?? 'none'": "none",
        "m.above(t, '2/case[1]/1').map((row) => row.path)": ["2"],
        "m.rowOf(t, '2/case[1]/1/model')": "2/case[1]/1",
        "m.rowOf(t, '9/model')": "",
        "m.keyInTree(rows, 1, 'ArrowLeft')": {"close": "2"},
        "m.keyInTree(m.shownRows(t, new Map([['2', false]])), 1, 'ArrowRight')": {"open": "2"},
        "m.keyInTree(rows, 3, 'ArrowLeft')": {"at": 1},
        "m.keyInTree(rows, 4, 'j')": {"at": 4},
        "m.keyInTree(rows, 2, 'x')": {},
    }
    assert shown(ROWS, f"return [{', '.join(cases)}]") == list(cases.values())


def test_times_in_which_nothing_ran_are_drawn_short() -> None:
    rows = [
        [str(at), -1, "step", "", "done", start, took, 0, 0, 1, 0, 0] for at, start, took in ((1, 0, 10), (2, 3610, 10))
    ]
    body = "const s = m.timeScale(t, 3620); return [s.shortened, s.at(10), s.at(3610), s.at(3620), s.ticks]"
    shortened, first, second, end, ticks = shown(rows, body)
    assert shortened
    assert 0.4 < first < second < 0.6
    assert (end, ticks[0], ticks[-1]) == (1, 0, 20)
    assert shown(rows[:1], "const s = m.timeScale(t, 10); return [s.shortened, s.at(5)]") == [False, 0.5]


def test_more_rows_of_a_group_come_below_it() -> None:
    group = ["1#done", -1, "group", "Done 400", "done", 0, 1, 0, 0, 400, 0, 400]
    body = """
        let tree = m.treeOf(input.whole);
        for (const page of input.pages) tree = m.withPage(tree, "1#done", page);
        return m.shownRows(tree, new Map()).map((one) => one.row.path);
    """
    pages = [
        answer([[f"1/for_each[{at}]", -1, "item", "", "done", 0, 1, 0, 0, 1, 0, 0]], 0) | {"next": following}
        for at, following in ((0, "1"), (1, None))
    ]
    whole = answer([group], 0)
    assert run(body, {"whole": whole, "pages": pages[:1]}) == ["1#done", "1/for_each[0]", "1#done~more"]
    assert run(body, {"whole": whole, "pages": pages}) == ["1#done", "1/for_each[0]", "1/for_each[1]"]
