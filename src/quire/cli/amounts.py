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
