"""Leave a run to a separate process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quire.display.text import one_line
from quire.python_process import start_module

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


def start_alone(run: str, *options: str) -> None:
    """Start a process that resumes the run. Prints nothing, because a server speaks its protocol on stdout."""
    start_module("quire", "resume", run, "--quiet", *options)


async def say_warnings(runtime: Runtime, run: str) -> None:
    """Print the warnings of the checks before the start. A detached run has no terminal to show them on."""
    for warning in await runtime.warnings(run):
        click.echo(one_line(f"warning: {warning}"), err=True)


def leave_to_itself(run: str, *options: str) -> int:
    """Start a process that continues the run after this one ends, and print how to look at it.

    The current folder determines the workspace. `options` are those of `quire resume`.
    """
    start_alone(run, *options)
    click.echo(run)
    click.echo(f"to see it: quire runs {run} --follow", err=True)
    return 0
