"""The new run of `fork` and of `resume --document`: the options that change it, and the edited text of its document."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec import Struct

from quire.cli.inputs import given_limits
from quire.cli.options import NO_BUDGET, budget_of
from quire.cli.session import SessionOptions, drive, say_warnings, spawn_detached
from quire.display.text import one_line, place
from quire.errors import RunState
from quire.formats import FORMATS
from quire.plan.vocabulary import CALLS
from quire.runs.scripts import pinned_spec
from quire.values import Value, value_of
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.cli.output import Target
    from quire.engine.records import RunRow
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


class NewRunOptions(Struct, frozen=True):
    """The options that `fork` and `resume --document` give the new run."""

    sets: Mapping[str, str]
    model: str | None
    script: str | None
    answers: Mapping[str, str]
    unattended: bool
    budget: float | None
    limits: tuple[str, ...]
    force: bool
    says_yes: bool

    def changes(self, row: RunRow, granted: tuple[str, ...], to: Target | None) -> Changes:
        """Return the changes against the run that the new one is made from. Raises `RunState`."""
        from quire.runs.fork import Changes

        require_limits_fit(row, self.limits)
        asked = f"script:{self.script}" if self.script else self.model
        return Changes(
            values_for(row, self.sets),
            pinned_spec(asked) if asked else None,
            granted,
            budget_of(self.budget),
            given_limits(self.limits),
            to.kept if to else "",
            unlimited=self.budget == NO_BUDGET,
            answers=self.answers,
            unattended=self.unattended,
            force=self.force,
            says_yes=self.says_yes,
        )


def require_limits_fit(row: RunRow, limits: Collection[str]) -> None:
    """Raise `RunState` for limits that only a run of a directive has. Limits are names or NAME=VALUE."""
    if row.format != "directive" and {limit.partition("=")[0].strip() for limit in limits} - {CALLS}:
        raise RunState(f"--limit is for directives, except calls=N, and run {row.id} is of a {row.format}")


def values_for(row: RunRow, texts: Mapping[str, str]) -> Mapping[str, Value]:
    """Convert the texts of `--set` as `-i` does: for a pipeline, a text that is JSON becomes that value."""
    return {name: value_of(text) for name, text in texts.items()} if FORMATS[row.format].json_inputs else texts


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
        return spawn_detached(made.run)
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
