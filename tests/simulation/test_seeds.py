"""Random documents of each format under random faults. `make simulate SEEDS=…` runs as many as one likes."""

from __future__ import annotations

import pytest

from quire.testing.simulator.case import Case, check

SEEDS = {"playbook": 40, "pipeline": 40, "directive": 16}
PART = 8


@pytest.mark.parametrize(
    ("format", "first"), [(name, first) for name, count in SEEDS.items() for first in range(0, count, PART)]
)
def test_seeds(format: str, first: int) -> None:
    for seed in range(first, first + PART):
        case = Case.of_seed(seed, format)
        verdict = check(case)
        again = f"python -m quire.testing.simulator --format {format} --seed {seed}"
        assert not verdict.problems, (again, verdict.problems, verdict.trace)
