"""A process dies before or after each of its writes and each of its effects, in every drive of a run.

Nothing of it shows in the end: same output, same journal, nothing recorded done twice. `make simulate` looks at all
points; here it is some of them.
"""

from __future__ import annotations

import os

import pytest
from tests.depth import depth
from tests.simulation.documents import SCENARIOS, without_faults
from tests.simulator.case import at_every_point, simulate
from tests.simulator.faults import Fault

STRIDE = {"playbook": depth(4, 1), "pipeline": depth(21, 5), "directive": depth(61, 11)}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_death_at_any_point_changes_nothing(name: str) -> None:
    stride = 1 if os.environ.get("QUIRE_EVERY_POINT") else STRIDE[name]
    looked_at = 0
    for point, verdict in at_every_point(SCENARIOS[name], stride=stride):
        assert not verdict.problems, (point, verdict.problems, verdict.trace)
        assert verdict.lived is not None and any(process.dead for process in verdict.lived.processes)
        looked_at += 1
    assert looked_at > 12


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("kind", ["takeover", "duplicate"])
def test_of_two_processes_one_goes_on(name: str, kind: str) -> None:
    """The other one is fenced, or does not get the run at all; the journal is as if it had never been there."""
    met = []
    for at in (1, 4, 9, 16, 25):
        fault = Fault(0, kind, at)  # type: ignore[arg-type]
        verdict = simulate(SCENARIOS[name], (fault,), pace=at, calm=without_faults(name))
        assert not verdict.problems, (at, verdict.problems, verdict.trace)
        met += verdict.trace
    word = "Fenced" if kind == "takeover" else "RunBusy"
    assert any(word in line for line in met), met


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("kind", ["cancel", "stop", "interrupt", "write_fails"])
def test_who_is_stopped_comes_to_the_same_end(name: str, kind: str) -> None:
    ended = set()
    for at in (1, 5, 12):
        fault = Fault(0, kind, at)  # type: ignore[arg-type]
        verdict = simulate(SCENARIOS[name], (fault,), pace=at, calm=without_faults(name))
        assert not verdict.problems, (at, verdict.problems, verdict.trace)
        ended.add(verdict.trace[0])
    assert ended != {"process 0 ended: completed"}
