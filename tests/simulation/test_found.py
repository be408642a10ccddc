"""What the simulator has found, each as small as it could be made."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.simulation.documents import HOOK, WAIT, directive, fork, run_pipeline, use, wait
from tests.simulator.case import Case, calm_life, check, simulate
from tests.simulator.faults import Fault
from tests.simulator.scenario import Scenario

AGENTS = (
    "pipeline: {name}\nsteps:\n- for_each: {{items: [1, 2, 3, 4, 5, 6], max_parallel: 6, on_error: continue, "
    "do: {{agent: {{prompt: 'one {{item}}'}}}}, collect: {{transform: {{value: pipe}}}}}}\n"
)


def top(*files: tuple[str, str], exact: bool = True, max_spend: float = 0.0) -> Scenario:
    return Scenario("found", dict(files), ".ai/directives/sim/top.md", exact=exact, max_spend=max_spend)


@pytest.mark.parametrize("pace", range(6))
def test_what_was_set_aside_for_a_thread_does_not_show_in_what_it_asks_for(pace: int) -> None:
    """How much is left for a thread depends on who has ended meanwhile; its hooks must ask for the same on a replay."""
    scenario = top(
        directive("top", [fork("one", aside=True)], [use("sim_read", at=1)], [fork("two")], [wait()]),
        directive("one", [use("sim_read", at=2)], [use("sim_read", at=3)]),
        directive("two", [use("sim_read", at=4)], hooks=HOOK),
    )
    verdict = simulate(scenario, (Fault(0, "crash", 40 + pace),), pace)
    assert not verdict.problems, verdict.problems


@pytest.mark.parametrize("pace", range(4))
def test_documents_and_threads_side_by_side_share_the_budget(pace: int) -> None:
    """The first one must not take all of it, so that the others are refused."""
    scenario = top(
        directive("top", [run_pipeline("a"), run_pipeline("b"), fork("one")]),
        directive("one", [use("sim_read", at=1)]),
        ("pipelines/a.yaml", AGENTS.format(name="a")),
        ("pipelines/b.yaml", AGENTS.format(name="b")),
    )
    verdict = simulate(scenario, (), pace)
    assert not verdict.problems, verdict.problems
    assert verdict.lived is not None
    assert all(record.state == "ok" for record in verdict.lived.records if record.kind == "model")


@pytest.mark.parametrize("pace", range(4))
def test_calls_side_by_side_do_not_spend_the_same_money(pace: int) -> None:
    scenario = top(
        directive("top", [run_pipeline("a")], spend=0.035),
        ("pipelines/a.yaml", AGENTS.format(name="a")),
        exact=False,
        max_spend=0.035,
    )
    verdict = simulate(scenario, (), pace)
    assert not verdict.problems, verdict.problems
    assert verdict.lived is not None
    assert verdict.lived.row.cost == pytest.approx(0.03)


def reads(first: int, turns: int) -> list[list[dict[str, object]]]:
    return [[use("sim_read", at=at)] for at in range(first, first + turns)]


STOPPED = top(
    directive("top", [fork("middle")], *reads(10, 12), spend=0.125),
    directive("middle", [fork("one", aside=True)], *reads(30, 3)),
    directive("one", *reads(3, 6)),
    exact=False,
    max_spend=0.125,
)
"""The thread in the middle ends before the one that it has started, which is stopped."""

CUT_OFF = top(
    directive("top", [run_pipeline("cut")], *reads(10, 12), spend=0.125),
    (
        "pipelines/cut.yaml",
        "pipeline: cut\nsteps:\n- parallel:\n    on_error: abort\n    branches:\n"
        + "".join(f"      {name}: {{agent: {{prompt: {name}}}}}\n" for name in ("one", "two", "three", "four"))
        + "      late: {for_each: {items: [1], on_error: retry(3), do: {tool: {name: broken, args: {}}}, "
        "collect: {transform: {value: pipe}}}}\n    collect: {transform: {value: pipe}}\n",
    ),
    exact=False,
    max_spend=0.125,
)
"""A branch fails when those beside it have asked their models."""


@pytest.mark.parametrize("scenario", [STOPPED, CUT_OFF], ids=["stopped", "cut off"])
@pytest.mark.parametrize("crashes", [(0,), (100, 112), (120, 148, 152)], ids=str)
def test_money_of_what_was_stopped_is_spent(scenario: Scenario, crashes: tuple[int, ...]) -> None:
    """Nobody else may spend it again, and whoever goes on after a crash knows of it: a replay does not walk through
    what was stopped."""
    scenario = replace(scenario, resumes=0)
    for pace in (0, 1, 4):
        calm = calm_life(scenario, pace)
        for at in crashes:
            verdict = simulate(scenario, (Fault(0, "crash", at),), pace, calm=calm)
            assert not verdict.problems, (pace, at, verdict.problems)
            assert verdict.lived is not None and verdict.lived.row.failure is not None
            assert verdict.lived.row.failure.kind == "spend_exceeded"


def test_a_call_that_was_cancelled_is_spent_for_whoever_goes_on() -> None:
    """Its cost is not known, so what was set aside for it counts, also in later drives, where it is made again."""
    faults = (Fault(0, "crash", 13), Fault(1, "cancel", 55))
    case = Case((2, 88, 1, 0, 0, 0, 0, 99), faults, 194)
    verdict = check(case)
    assert not verdict.problems, verdict.problems


@pytest.mark.parametrize("at", [18, 39, 46, 67])
def test_a_run_that_stops_at_a_boundary_names_the_step_that_stopped(at: int) -> None:
    """And not a step beside it, which would be no boundary to pass."""
    scenario = top(
        directive("top", [fork("one"), fork("two"), use("sim_read", at=1)]),
        directive("one", [use("sim_read", at=2)], [use("sim_read", at=3)]),
        directive("two", [use("sim_read", at=4)], [use("sim_read", at=5)]),
    )
    verdict = simulate(scenario, (Fault(0, "stop", at),), at % 7)
    assert not verdict.problems, verdict.problems


def look_after(operation: str, **more: object) -> dict[str, object]:
    return use(WAIT, operation=operation, **more)


LONG_AND_SHORT = [wait(), look_after("wait_threads", timeout=1)]
STOPPED_AND_ASKED = [look_after("cancel_thread"), look_after("get_status"), look_after("list_active")]


@pytest.mark.parametrize("turn", [LONG_AND_SHORT, STOPPED_AND_ASKED], ids=["waited for", "stopped"])
def test_several_calls_of_one_turn_look_after_the_same_children(turn: list[dict[str, object]]) -> None:
    """Which of them hears last of a child is a matter of timing, and does not decide whether it is stopped in the end.
    (A tool that changes the world has a while to finish when its thread is stopped.)"""
    names = ("one", "two", "left")
    children = [directive(name, *([[use("sim_write", at=at, of=name)] for at in range(3)])) for name in names]
    forks = [fork("one", aside=True), fork("two", aside=True)]
    for order in (turn, turn[::-1]):
        scenario = top(directive("top", forks, order, [fork("left", aside=True)]), *children, exact=False)
        for pace in range(4):
            verdict = simulate(scenario, (Fault(0, "crash", 40),), pace)
            assert not verdict.problems, (pace, verdict.problems)


@pytest.mark.parametrize(
    ("format", "seed"),
    [("", 4882), ("directive", 101_410), ("directive", 102_807), ("directive", 957_918_407_712)],
    ids=lambda it: str(it),
)
def test_seeds_that_found_something(format: str, seed: int) -> None:
    """Children that a directive leaves behind when it ends, two of the three without any fault; and the money of a
    child that was waited for, when a replay of its parent is faster than its own."""
    verdict = check(Case.of_seed(seed, format))
    assert not verdict.problems, verdict.problems
