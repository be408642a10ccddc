"""Numbers on the command line that are limits: `nan` compares as neither above nor below, so no limit can be one."""

from __future__ import annotations

import math

import click


class Amount(click.FloatRange):
    """A finite number of a range."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """From the text of the command line, or from a default."""
        try:
            float(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is not a number: write an amount such as 0.50", param, ctx)
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


NO_BUDGET = math.inf
"""The value of `--budget none`: the run has no budget any more."""


class Budget(Amount):
    """Dollars, or `none`."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if str(value).strip().lower() == "none" or value is NO_BUDGET:
            return NO_BUDGET
        return super().convert(value, param, ctx)


def budget_of(given: float | None) -> float | None:
    """The amount that was given; None for none."""
    return None if given == NO_BUDGET else given
