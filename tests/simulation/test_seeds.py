"""Random documents of each format under random faults. `make simulate SEEDS=…` runs as many as one likes, `make
test-long` more than `make test`.

Some seeds are always the same ones, and some are drawn anew in every test run, which prints where they begin.
"""

from __future__ import annotations

import pytest
from tests.depth import depth
from tests.simulator.case import Case, check

SEEDS = {"playbook": depth(8, 40), "pipeline": depth(8, 40), "directive": depth(8, 16)}
FRESH = {"playbook": depth(16, 56), "pipeline": depth(16, 56), "directive": depth(8, 40)}
PART = 8


def parts(seeds: dict[str, int]) -> list[tuple[str, int]]:
    return [(name, first) for name, count in seeds.items() for first in range(0, count, PART)]


@pytest.mark.parametrize(("format", "first"), parts(SEEDS))
def test_seeds(format: str, first: int) -> None:
    check_seeds(format, first)


@pytest.mark.parametrize(("format", "first"), parts(FRESH))
def test_fresh_seeds(format: str, first: int, first_seed: int) -> None:
    """One that fails here becomes a case of `test_found.py`."""
    check_seeds(format, first_seed + first)


def check_seeds(format: str, first: int) -> None:
    for seed in range(first, first + PART):
        verdict = check(Case.of_seed(seed, format))
        again = f"python -m tests.simulator --format {format} --seed {seed}"
        assert not verdict.problems, (again, verdict.problems, verdict.trace)
