"""A run that is left to a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quire.display.text import one_line
from quire.python_process import start_module

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


def start_alone(run: str, *options: str) -> None:
    """Starts a process that goes on with the run, and says nothing: a server speaks its protocol on stdout."""
    start_module("quire", "resume", run, "--quiet", *options)


async def say_warnings(runtime: Runtime, run: str) -> None:
    """Says what the look before the start found: a run that is left to itself tells nobody."""
    for warning in await runtime.warnings(run):
        click.echo(one_line(f"warning: {warning}"), err=True)


def leave_to_itself(run: str, *options: str) -> int:
    """The run goes on although this process ends; says how to look at it. The current folder says which workspace.

    `options` are those of `quire resume`."""
    start_alone(run, *options)
    click.echo(run)
    click.echo(f"to see it: quire runs {run} --follow", err=True)
    return 0
