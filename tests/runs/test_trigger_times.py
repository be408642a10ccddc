"""Due times, and which of them start runs after an outage: against brute force."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.errors import CannotStart
from quire.runs.triggers import MOST_CAUGHT_UP, ON_TIME, due_times, look, time_text
from quire.workspace.settings import TriggerSettings

BERLIN = ZoneInfo("Europe/Berlin")
SPRING = datetime(2026, 3, 28, tzinfo=UTC).timestamp()
"""A day before the clocks of Berlin go from 2 to 3."""
AUTUMN = datetime(2026, 10, 24, tzinfo=UTC).timestamp()
"""A day before they go from 3 to 2."""


def times(trigger: TriggerSettings, start: float, end: float) -> list[float]:
    due: list[float] = []
    for time in due_times(trigger, start):
        if time > end:
            return due
        due.append(time)
    return due


def local_times(minute: int, hour: int | None, start: float, end: float) -> list[float]:
    """Return the due times of `MINUTE HOUR * * *` in Berlin by looking at each minute. With an hour it fires once a
    day: at the first of two such minutes, and where there is none when the lost hour ends. Without one it fires in each
    hour that passes."""
    due: list[float] = []
    for time in range(int(start // 60 + 1) * 60, int(end) + 1, 60):
        here, before = (datetime.fromtimestamp(at, BERLIN) for at in (time, time - 60))
        if hour is None:
            due += [float(time)] if here.minute == minute else []
        elif here.fold == 0:
            wanted = hour * 60 + minute
            passed = before.hour * 60 + before.minute
            now = here.hour * 60 + here.minute
            due += [float(time)] if now == wanted or passed < wanted < now else []
    return due


@pytest.mark.parametrize("start", [SPRING, AUTUMN, SPRING + 90 * 86_400])
@pytest.mark.parametrize(
    ("cron", "minute", "hour"),
    [("30 2 * * *", 30, 2), ("0 6 * * *", 0, 6), ("0 3 * * *", 0, 3), ("15 * * * *", 15, None), ("59 1 * * *", 59, 1)],
)
def test_cron_at_clock_changes(cron: str, minute: int, hour: int | None, start: float) -> None:
    trigger = TriggerSettings("d", cron=cron, zone="Europe/Berlin")
    whole = local_times(minute, hour, start, start + 3 * 86_400)
    assert times(trigger, start, start + 3 * 86_400) == whole
    # From any moment on the rest is the same: no restart at night adds or loses one.
    for after in range(int(start), int(start) + 2 * 86_400, 1_117):
        assert times(trigger, after, start + 3 * 86_400) == [time for time in whole if time > after], after


def test_every_counts_from_the_epoch() -> None:
    trigger = TriggerSettings("d", every=90.0)
    assert times(trigger, 0.0, 300.0) == [90.0, 180.0, 270.0]
    assert times(trigger, 180.0, 300.0) == [270.0]
    assert times(trigger, 179.5, 300.0) == [180.0, 270.0]


@pytest.mark.parametrize(
    ("trigger", "problem"),
    [
        (TriggerSettings("d", cron="61 * * * *"), "cron 61 * * * *: Bad minute"),
        (TriggerSettings("d", cron="* *"), "cron * *: Wrong number of fields"),
        (TriggerSettings("d", cron="0 0 30 2 *"), "cron 0 0 30 2 *: Bad day-of-month"),
        (TriggerSettings("d", cron="0 6 * * *", zone="Europe/Berlim"), "zone Europe/Berlim does not exist"),
        (TriggerSettings("d", cron="0 6 * * *", zone="../../etc/passwd"), "zone ../../etc/passwd does not exist"),
    ],
)
def test_wrong_times_are_refused_in_words(trigger: TriggerSettings, problem: str) -> None:
    with pytest.raises(CannotStart, match=problem.replace("*", r"\*")):
        next(due_times(trigger, 0.0))


@given(
    step=st.sampled_from([1, 7, 60, 3600, 86_400]),
    cursor=st.integers(0, 200_000),
    outage=st.integers(0, 400_000),
    window=st.sampled_from([30, 3600, 86_400]),
    catch_up=st.sampled_from(["once", "all", "none"]),
)
def test_what_an_outage_leaves(step: int, cursor: int, outage: int, window: int, catch_up: str) -> None:
    """Each due time since the cursor either starts, or is named as missed: those beyond the window, all but the newest
    under `once`, all but the newest hundred under `all`, and under `none` those that are not on time."""
    trigger = TriggerSettings("d", every=float(step), window=float(window), catch_up=catch_up)
    now = cursor + outage
    since = [time for time in range(0, now + 1, step) if time > cursor]
    fresh = [time for time in since if now - time <= (min(window, ON_TIME) if catch_up == "none" else window)]
    expected = fresh[-MOST_CAUGHT_UP if catch_up == "all" else -1 :]
    missed, due = look(trigger, float(cursor), float(now))
    assert [*due] == expected
    left = [time for time in since if time not in expected]
    assert (missed is not None) == bool(left)
    if missed is not None:
        assert missed[0] == left[0]
        assert [time for time in since if time <= missed[1]] == left


def test_times_as_they_are_written() -> None:
    assert time_text(SPRING) == "2026-03-28T00:00:00Z"
    assert time_text(SPRING, "Europe/Berlin") == "2026-03-28T01:00:00+01:00"
