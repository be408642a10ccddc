"""Random documents under random faults, with the store in memory instead of a file.

The life without faults is on a file, so that both stores have to come to the same output and the same journal.
"""

from __future__ import annotations

from typing import Literal

import pytest
from tests.depth import depth
from tests.simulation.documents import SCENARIOS, without_faults
from tests.simulator.case import Case, check, simulate
from tests.simulator.databases import MemoryShelf
from tests.simulator.faults import Fault

from quire.engine.records import Status

SEEDS = depth(6, 60)
PART = 6


@pytest.mark.parametrize(
    ("format", "first"),
    [(name, first) for name in ("playbook", "pipeline", "directive") for first in range(0, SEEDS, PART)],
)
def test_seeds_in_memory(format: str, first: int) -> None:
    for seed in range(first, first + PART):
        verdict = check(Case.of_seed(seed, format), MemoryShelf)
        assert not verdict.problems, (format, seed, verdict.problems, verdict.trace)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize(("kind", "error"), [("takeover", "Fenced"), ("duplicate", "RunBusy")])
def test_a_run_has_one_owner(name: str, kind: Literal["takeover", "duplicate"], error: str) -> None:
    met = []
    calm = without_faults(name)
    for at in (1, 4, 9, 16):
        verdict = simulate(SCENARIOS[name], (Fault(0, kind, at),), at, shelves=MemoryShelf, calm=calm)
        assert not verdict.problems, (at, verdict.problems, verdict.trace)
        assert verdict.lived is not None and verdict.lived.row.status is Status.COMPLETED
        met += verdict.trace
    assert any(error in line for line in met), met
