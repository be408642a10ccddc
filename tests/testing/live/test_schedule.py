"""Schedules of live tests: order, stopping, budgets, and models that are given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from quire.testing.live.schedule import Made, Purse, Schedule, Terms
from quire.testing.live.tries import Attempt, Ending, Status, Try

ROWS = tuple(f"row {place}" for place in range(1, 31))


def _performing(ending: Callable[[Attempt], Ending], trouble: str = "") -> Callable[[Attempt], object]:
    async def perform(attempt: Attempt) -> Made:
        await asyncio.sleep(0)
        found = ending(attempt)
        return Made(Try(attempt, found, (trouble,) if found == "lost" else ()), trouble if found == "lost" else "")

    return perform


async def _run(schedule: Schedule, perform: object) -> list[tuple[str, str, int]]:
    await schedule.run(perform)  # type: ignore[arg-type]
    return [(one.attempt.row, one.attempt.model, one.attempt.repeat) for one in schedule.tries]


async def test_repeats_are_outermost_and_models_innermost() -> None:
    schedule = Schedule([Terms("x", ("r1", "r2"), 2), Terms("y", ("",), 1)], ["a", "b"], at_once=1)
    assert schedule.planned == 10
    made = await _run(schedule, _performing(lambda attempt: "passed"))
    assert made[:6] == [("r1", "a", 0), ("r1", "b", 0), ("r2", "a", 0), ("r2", "b", 0), ("", "a", 0), ("", "b", 0)]
    assert made[6:] == [("r1", "a", 1), ("r1", "b", 1), ("r2", "a", 1), ("r2", "b", 1)]
    assert [(one.case, one.model, one.passed, one.tried) for one in schedule.scores()] == [
        ("x", "a", 4, 4),
        ("x", "b", 4, 4),
        ("y", "a", 1, 1),
        ("y", "b", 1, 1),
    ]


async def test_no_more_tries_at_once_than_allowed() -> None:
    running = most = 0

    async def perform(attempt: Attempt) -> Made:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return Made(Try(attempt, "passed"))

    schedule = Schedule([Terms("x", ROWS)], ["a"], at_once=3)
    await schedule.run(perform)
    assert (most, len(schedule.tries)) == (3, 30)


async def test_a_model_that_is_alone_makes_no_try_too_many() -> None:
    """The tries that wait for their turn are left out as well, once the result is decided."""
    running = most = 0

    async def perform(attempt: Attempt) -> Made:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return Made(Try(attempt, "failed"))

    schedule = Schedule([Terms("x", ROWS, passes=0.9)], ["local:a"], at_once=8, alone=["local:a"])
    await schedule.run(perform)
    together = Schedule([Terms("x", ROWS, passes=0.9)], ["a"], at_once=8)
    await together.run(perform)
    assert len(schedule.tries) < len(together.tries)
    assert most == 8


async def test_a_decided_case_stops_on_one_model_only() -> None:
    schedule = Schedule([Terms("x", ROWS, passes=0.9)], ["bad", "good"], at_once=1)
    await _run(schedule, _performing(lambda attempt: "failed" if attempt.model == "bad" else "passed"))
    bad, good = schedule.scores()
    assert (bad.status, bad.tried + bad.stopped) == (Status.FAILING, 30)
    assert bad.tried < 5
    assert (good.status, good.tried, good.stopped) == (Status.VERIFIED, 30, 0)


async def test_without_a_share_all_tries_are_made() -> None:
    schedule = Schedule([Terms("x", ROWS)], ["a"])
    await _run(schedule, _performing(lambda attempt: "failed"))
    assert len(schedule.tries) == 30


async def test_the_budget_ends_the_test() -> None:
    purse = Purse(1.0)
    schedule = Schedule([Terms("x", ROWS)], ["a", "b"], purse, at_once=1)

    async def perform(attempt: Attempt) -> Made:
        if not purse.reserve(0.3):
            return Made(Try(attempt, "lost", ("the budget is used up",)), "budget")
        purse.settle(0.3, 0.3)
        return Made(Try(attempt, "passed"))

    await schedule.run(perform)
    assert [one.ending for one in schedule.tries] == ["passed", "passed", "passed", "lost"]
    assert schedule.given_up == {}


@pytest.mark.parametrize(("trouble", "made"), [("auth", 1), ("unknown_model", 1), ("rate_limit", 5), ("server", 5)])
async def test_a_model_that_only_fails_is_given_up(trouble: str, made: int) -> None:
    schedule = Schedule([Terms("x", ROWS)], ["away", "good"], at_once=1)
    await _run(schedule, _performing(lambda attempt: "lost" if attempt.model == "away" else "passed", trouble))
    away, good = schedule.scores()
    assert (away.lost, away.status, good.tried) == (made, Status.UNVERIFIED, 30)
    assert schedule.given_up == {"away": trouble}


async def test_a_model_that_fails_now_and_then_is_kept() -> None:
    schedule = Schedule([Terms("x", ROWS)], ["a"], at_once=1)
    await _run(schedule, _performing(lambda attempt: "passed" if int(attempt.row[4:]) % 5 == 0 else "lost", "server"))
    assert (schedule.given_up, len(schedule.tries)) == ({}, 30)


async def test_tries_are_kept_when_the_user_stops() -> None:
    schedule = Schedule([Terms("x", ROWS)], ["a"], at_once=1)

    async def perform(attempt: Attempt) -> Made:
        if len(schedule.tries) == 3:
            await asyncio.Event().wait()
        return Made(Try(attempt, "passed"))

    task = asyncio.create_task(schedule.run(perform))
    while len(schedule.tries) < 3:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert schedule.scores()[0].tried == 3
