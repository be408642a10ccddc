"""`--document` of `fork` and `resume`: continue a run with the edited text of its document."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from quire.cli.detach import leave_to_itself, say_warnings
from quire.cli.session import SessionOptions, drive
from quire.display.text import one_line, place
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.runs.fork import Changes
    from quire.runs.repair import Repaired
    from quire.runs.runtime import Runtime

Verb = TypeVar("Verb", bound=Callable[..., object])
SAME = ""
"""Value of `--document` without a file: use the file that the run was started from."""


def document_option(verb: Verb) -> Verb:
    return click.option(
        "--document",
        metavar="[FILE]",
        is_flag=False,
        flag_value=SAME,
        default=None,
        help="Go on with the edited document, in a new run; what still fits is kept.",
    )(verb)


async def repair_and_drive(
    runtime: Runtime,
    run: str,
    file: str,
    changes: Changes,
    manner: SessionOptions,
    *,
    step: str = "",
    instead: bool = False,
    detach: bool = False,
) -> int:
    """Start the repaired run and drive it. Before anything is paid for, print how much is kept and which step is the
    first to be done again."""
    from quire.runs.repair import repair

    if not manner.quiet:
        runtime.notice = lambda line: click.echo(one_line(line), err=True)
    made = await repair(runtime, run, file, changes, step, instead=instead)
    if not manner.quiet:
        for line in _lines(made, run):
            click.echo(line, err=True)
    if detach:
        if not manner.quiet:
            await say_warnings(runtime, made.run)
        return leave_to_itself(made.run)
    return await drive(runtime, made.run, manner, why=made.reason)


def _lines(made: Repaired, run: str) -> list[str]:
    effects = f"{made.kept} of {made.recorded} recorded {pluralize('effect', made.recorded)}"
    lines = [f"run {made.run}: the edited document, with {effects} of {run}"]
    label, path = made.misfit
    if path:
        lines.append(
            f"  {one_line(place(label))} asks for something else now ({path}): it is done again, with all after it"
        )
    elif made.next[1]:
        lines.append(f"  goes on at {one_line(place(made.next[0]))}")
    return lines
