"""Decisions, taken one by one from a seed or from a list, and remembered.

0 is always the plainest choice, and what a list does not say any more is 0: so a shorter list, or one with smaller
numbers, is a smaller case.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """`taken` are the decisions so far, as they would have to be given again."""

    def __init__(self, below: Callable[[int], int]) -> None:
        self._below = below
        self.taken: list[int] = []

    @classmethod
    def seeded(cls, seed: int | str) -> Draw:
        return cls(random.Random(str(seed)).randrange)

    @classmethod
    def given(cls, choices: Sequence[int]) -> Draw:
        left = iter(choices)
        return cls(lambda count: min(next(left, 0), count - 1))

    def below(self, count: int) -> int:
        chosen = self._below(count) if count > 1 else 0
        self.taken.append(chosen)
        return chosen

    def fixed(self, chosen: int) -> int:
        """A decision that is taken already."""
        self.taken.append(chosen)
        return chosen

    def between(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """Drawn so that 0 says no."""
        return self.below(100) >= 100 - percent
