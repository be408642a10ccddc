"""Steps side by side in the live view and in plain lines: counts, a bar, and what failed."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth

from quire.display.live_frame import FrameState, frame, summary
from quire.display.run_views import PlainView
from quire.engine.progress import KEPT_FAILURES, Progress, place_in_plan
from quire.engine.records import EffectRecord, Event, Usage
from quire.library.document import read
from quire.source import Source
from quire.values import Value

PAGE = """pipeline: fan
steps:
  - transform: {value: "1", output: one}
  - for_each:
      over: ctx.items
      on_error: continue
      do: {agent: {prompt: Hi}}
      collect: {transform: {value: pipe}}
      output: all
  - call: {pipeline: other}
"""


def progress() -> Progress:
    return Progress.of(read(Source.of(PAGE, "fan.yaml")).runnable())


def happened(type: str, path: str, data: dict[str, Value] | None = None, **live: Value) -> Event:
    return Event(type, "run", 100.0, 1, path, path.partition("/")[0], data or {}, live)


def started(total: int, limit: int = 8, path: str = "2") -> Event:
    return happened("fan_started", path, {"total": total, "limit": limit})


def ended(which: int | str, message: str = "") -> Event:
    key = "index" if isinstance(which, int) else "name"
    data: dict[str, Value] = {key: which, "state": "failed" if message else "done"}
    return happened("fan_item", f"2/for_each[{which}]", {**data, "message": message} if message else data)


def under_way(*events: Event) -> Progress:
    known = progress()
    for event in (
        happened("step_started", "1"),
        happened("step_completed", "1", output=1),
        happened("step_started", "2"),
        *events,
    ):
        known.apply(event)
    return known


def lines(known: Progress, width: int = 100, height: int = 24, unicode: bool = True) -> list[str]:
    return [line.plain for line in frame(known, width, height, FrameState(103.5, 12.0, unicode=unicode))]


def test_a_bar_with_counts_and_failures() -> None:
    known = under_way(started(20, 4), *(ended(number) for number in range(9)), ended(9, "it\nbroke\x1b[2J"))
    assert lines(known) == [
        "✓ 1 one  │ 1",
        "⠋ 2 all  ██████████░░░░░░░░░░ 10/20 · 1 failed · 4 running  3.5s",
        "    ✗ 9: it broke␛[2J",
        "○ 3 other",
        "step 2 of 3 · 12.0s · Ctrl-C pauses",
    ]
    assert "##########---------- 10/20" in lines(known, unicode=False)[1]
    assert lines(known, width=70)[1] == "⠋ 2 all  10/20 · 1 failed · 4 running  3.5s"


def test_many_failures_are_counted_and_the_last_shown() -> None:
    known = under_way(started(500), *(ended(number, f"no {number}") for number in range(300)))
    shown = lines(known)
    assert shown[2] == "    … 296 more failed"
    fan = known.steps["2"].fan
    assert fan is not None and (fan.failed, len(fan.failures), fan.running) == (300, KEPT_FAILURES, 8)
    known.apply(happened("step_failed", "2"))
    final = [line.plain for line in summary(known, 100, FrameState(0, 1.0))]
    assert final[1].startswith("✗ 2 all  0 of 500, 300 failed")
    assert sum(line.startswith("    ✗") for line in final) == 20


def test_what_is_left_when_it_is_done() -> None:
    known = under_way(started(2), ended("facts"), ended("tone", "busy"), happened("step_completed", "2", output=[1]))
    assert [line.plain for line in summary(known, 100, FrameState(0, 1.0))] == [
        "✓ 1 one  │ 1",
        "✓ 2 all  1 of 2, 1 failed",
        "    ✗ tone: busy",
        "○ 3 other",
        "2 of 3 steps · 1.0s",
    ]
    assert known.stores == {"one": 1, "all": [1]}


def test_fans_below_a_step_are_summed() -> None:
    known = under_way(started(3, path="2/call/1"), ended(0), ended(1), ended(2), started(5, 2, "2/call/2"), ended(0))
    fan = known.steps["2"].fan
    assert fan is not None and (fan.total, fan.done, fan.running) == (8, 4, 2)


def test_effects_inside_count_for_their_step_and_replies_side_by_side_are_not_shown() -> None:
    known = under_way(started(2))
    record = EffectRecord("2/for_each[0]/try[1]/model", "model", "ok", "", 100.0, None, None, Usage(10, 5, 0.5), 2.0)
    known.apply(Event("effect", "run", 100.0, 1, record.path, "2.do", {}, {}, False, record))
    known.apply(happened("delta", "2/for_each[0]/model", text="word"))
    step = known.steps["2"]
    assert (step.elapsed, step.input_tokens, step.cost, known.streaming) == (2.0, 10, 0.5, "")
    known.apply(happened("step_started", "3"))
    known.apply(happened("delta", "3/call/1/model", text="word"))
    assert known.streaming == "word"


def test_plain_lines() -> None:
    known, out = progress(), io.StringIO()
    view = PlainView(known, out)
    for event in (
        happened("step_started", "2"),
        started(2),
        ended(0),
        ended(1, "broke"),
        happened("step_completed", "2", output=1),
    ):
        known.apply(event)
        view.show(event)
    assert out.getvalue().splitlines() == [
        "[2/3] all …",
        "  2 1 failed: broke",
        "[2/3] all … done 0.0s (1 of 2, 1 failed)",
    ]


@settings(max_examples=depth(25, 60), deadline=None)
@given(
    width=st.integers(1, 120),
    height=st.integers(1, 20),
    total=st.integers(0, 50),
    failed=st.integers(0, 30),
    text=st.text(max_size=60),
)
def test_a_picture_fits(width: int, height: int, total: int, failed: int, text: str) -> None:
    known = under_way(started(total), *(ended(number, text or "x") for number in range(failed)))
    picture = frame(known, width, height, FrameState(101.0, 1.0))
    assert 1 <= len(picture) <= max(1, height - 1)
    assert all(line.cell_len <= max(1, width - 1) for line in picture)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("2/model", "2/model"),
        ("2/for_each[7]/try[2]/model", "2/for_each/model"),
        ("2/for_each/collect/model", "2/collect/model"),
        ("2/for_each[1]/for_each/collect/model", "2/for_each/collect/model"),
        ("2/parallel[collect]/model", "2/parallel[collect]/model"),
        ("2/parallel/collect/tool", "2/collect/tool"),
        ("1/fold[10]/parallel[a]/try[1]/model", "1/fold/parallel[a]/model"),
    ],
)
def test_the_place_in_the_plan(path: str, place: str) -> None:
    assert place_in_plan(path) == place


def effect(elapsed: float, number: int) -> Event:
    record = EffectRecord(f"2/for_each[{number}]/model", "model", "ok", "hash", 100.0, "hi", elapsed=elapsed)
    return Event("effect", "run", 100.0, 1, record.path, "2", record=record)


def test_items_side_by_side_do_not_add_up_to_more_than_the_time_that_passed() -> None:
    known = under_way(started(3), *(effect(4.0, number) for number in range(3)))
    [line] = [str(line) for line in frame(known, 100, 30, FrameState(105.0, 5.0)) if " 2 all" in str(line)]
    assert line.endswith("5.0s")
    err = io.StringIO()
    end = Event("step_completed", "run", 105.0, 1, "2", "2", {}, {"output": 1})
    known.apply(end)
    PlainView(known, err).show(end)
    assert "done 5.0s (" in err.getvalue()
    [line] = [str(line) for line in summary(known, 100, FrameState(110.0, 10.0)) if " 2 all" in str(line)]
    assert line.endswith("5.0s")
