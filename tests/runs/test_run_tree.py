"""The rows of a run: the table that the page's JavaScript is tested with as well, stored journals, and random ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.travel import Travel

from quire.display.run_tree_json import TreeRows
from quire.engine.records import EffectRecord, Event, RunRow, Status, Usage, total_cost
from quire.engine.requests import Failure
from quire.runs.imports import import_run, read_export
from quire.runs.live_views import LiveViews
from quire.runs.run_tree import RunTree, state_of

CASES = json.loads((Path(__file__).parents[1] / "server" / "tree_cases.json").read_text(encoding="utf-8"))
JOURNALS = sorted((Path(__file__).parents[1] / "fixtures" / "journals").glob("*.jsonl"))
TOLD = ("path", "parent", "kind", "label", "state", "from", "took", "waited", "cost", "effects", "failed", "children")


def run_row(status: str, created_at: float = 1000.0) -> RunRow:
    numbers: Any = (created_at, created_at, None, 0, 0, 0.0, None, (), 1, {})
    return RunRow("r", "t", "pipeline", "d", Status(status), "", *numbers)


def event_of(told: dict[str, Any]) -> Event:
    head = {name: told[name] for name in ("type", "path", "at") if name in told}
    data = {name: value for name, value in told.items() if name not in head}
    record = None
    if told["type"] == "effect":
        usage = Usage(data.get("input_tokens", 0), data.get("output_tokens", 0), data.get("cost", 0.0))
        failure = Failure("refused", data["message"]) if "message" in data else None
        numbers = {"at": told["at"] - data["elapsed"], "elapsed": data["elapsed"], "usage": usage}
        record = EffectRecord(
            told["path"], data["kind"], data["state"], "", failure=failure, by=data.get("by", ""), **numbers
        )
    return Event(run="r", data=data, record=record, **head)


def table(events: list[dict[str, Any]], status: str, now: float) -> list[list[Any]]:
    """The rows of a run after these events, without the buckets of fans."""
    tree = RunTree()
    for told in events:
        tree.apply(event_of(told))
    rows = TreeRows(tree, run_row(status), now)
    rows.first()
    return [list(row) for row in zip(*(rows.columns[name] for name in TOLD), strict=True)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_rows_after_events(case: dict[str, Any]) -> None:
    assert table(case["events"], case["status"], case["now"]) == case["rows"]


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.RUNNING])
def test_nothing_is_under_way_in_a_run_that_does_not_run(status: Status) -> None:
    told = ("pending", "running", "intent", "awaiting_input", "completed", "failed", "skipped", "cancelled")
    states = {
        state_of(word, status, asks=asks, failed=failed)
        for word in told
        for asks in (False, True)
        for failed in (False, True)
    }
    assert "running" not in states


_PARTS = """1 2 10 call/1 steps/3 for_each[0] for_each[7] parallel[left] repeat[2] try[1] thread turn[1] tool[0] case[2]
match[1] hook[error][1] whirl[3] end match for_each x[a/b]"""
PARTS = st.sampled_from(_PARTS.split())
KINDS = ("model", "tool", "ask", "offer", "load", "join", "break", "abort", "whirl")
PATHS = st.tuples(st.lists(PARTS, min_size=1, max_size=6), st.sampled_from(["", *KINDS])).map(
    lambda parts: "/".join([*parts[0], *filter(None, [parts[1]])])
)


@st.composite
def effects(draw: st.DrawFn) -> EffectRecord:
    usage = Usage(draw(st.integers(0, 9)), draw(st.integers(0, 9)), draw(st.integers(0, 8)) / 8)
    at, elapsed = draw(st.floats(1000, 2000)), draw(st.floats(0, 100))
    state: Literal["intent", "ok"] = "intent" if draw(st.booleans()) else "ok"
    return EffectRecord(draw(PATHS), draw(st.sampled_from(KINDS)), state, "", at, usage=usage, elapsed=elapsed)


@given(st.lists(effects(), max_size=40), st.sampled_from(list(Status)))
def test_rows_have_each_effect_once_and_costs_add_up(records: list[EffectRecord], status: Status) -> None:
    tree = RunTree()
    for record in records:
        tree.add(record)
    last = {record.path: record for record in records}
    rows = TreeRows(tree, run_row(status), 3000.0)
    rows.first(10_000)
    columns: dict[str, list[Any]] = {**rows.columns}
    assert len(set(columns["path"])) == len(columns["path"])
    own, costs = list(columns["effects"]), list(columns["cost"])
    for at, parent in enumerate(columns["parent"]):
        if parent >= 0:
            own[parent] -= columns["effects"][at]
            costs[parent] -= columns["cost"][at]
    assert min(own, default=0) >= 0 and min(costs, default=0) >= 0
    # Effects that are only raw and stand at the top count for the run alone.
    top = [record for path, record in last.items() if tree.leaves[path][0] is tree.root]
    assert sum(own) + len(top) == len(last) == tree.root.effects
    assert sum(costs) + (total_cost(top) or 0) == total_cost(last.values()) == tree.root.cost
    assert all(took >= 0 and waited >= 0 for took, waited in zip(columns["took"], columns["waited"], strict=True))


@pytest.mark.parametrize("file", JOURNALS, ids=lambda file: file.stem)
async def test_stored_journals_have_rows(file: Path, tmp_path: Path) -> None:
    travel = Travel(tmp_path / "work")
    async with travel.runtime() as runtime:
        run = await import_run(runtime, read_export(file))
        seen = await LiveViews(runtime).tree(run)
        effects = await runtime.store.effects(run)
    rows = TreeRows(seen.tree, seen.row, 2e9)
    total, more = rows.first()
    assert (seen.partial, more) == (False, False) and total >= 3
    assert seen.tree.root.effects == len(effects)
    columns: dict[str, list[Any]] = {**rows.columns}
    assert not {"other", "running"} & {*columns["kind"], *columns["state"]}
    assert max(columns["took"]) < 10
