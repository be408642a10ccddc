"""Arguments that must have some text: an empty one is most often a variable of a shell that was never set.

Taken for what it is, `''` would be the current folder, a default or nothing at all.
"""

from __future__ import annotations

from typing import TypeVar

import click

T = TypeVar("T")


def filled(context: click.Context, parameter: click.Parameter, value: T) -> T:
    """For `callback=`; looks at each text of several."""
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, str) and not one.strip():
            if isinstance(parameter, click.Option):
                raise click.UsageError(f"{parameter.opts[0]} is empty", context)
            raise click.UsageError(f"the argument {parameter.make_metavar(context).strip('[]….')} is empty", context)
    return value
