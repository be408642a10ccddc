"""Numbers on the command line that are limits: `nan` compares as neither above nor below, so no limit can be one.

Arguments that must have some text: an empty one is most often a variable of a shell that was never set.

Taken for what it is, `''` would be the current folder, a default or nothing at all.
"""

from __future__ import annotations

import math
from typing import TypeVar

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


T = TypeVar("T")


def filled(context: click.Context, parameter: click.Parameter, value: T) -> T:
    """For `callback=`; looks at each text of several."""
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, str) and not one.strip():
            if isinstance(parameter, click.Option):
                raise click.UsageError(f"{parameter.opts[0]} is empty", context)
            raise click.UsageError(f"the argument {parameter.make_metavar(context).strip('[]….')} is empty", context)
    return value
