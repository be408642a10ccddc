"""`quire test --record`: ask the user, run cases with a cassette on a real model, and say which were kept."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, cast

import click

from quire.display.visible import visible
from quire.errors import CannotStart
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.testing.cassettes.record import RecordedCase, Recording, Which
    from quire.testing.discovery import Selection, TestTarget

WHICH = ("missing", "all")
EXIT_BUDGET = 5


def record_cassettes(
    which: str, models: tuple[str, ...], budget: float | None, targets: list[TestTarget], selection: Selection
) -> int:
    """Record the cases, and return the exit code. Raises `CannotStart`."""
    from quire.cli.trust_prompt import somebody_is_here, with_trust
    from quire.testing.cassettes.record import RecordOptions, plan_recording, record

    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise CannotStart("--record writes files, and CI is set: record on your own machine")
    if len(models) > 1:
        raise CannotStart("a cassette is recorded with one model: give --model once")
    wanted = cast("Which", which)
    options = RecordOptions(tuple(targets), selection, wanted, models[0] if models else "", budget)
    recording = with_trust(lambda: plan_recording(options), ask=somebody_is_here())
    if not _agreed(recording, budget):
        return 2
    made = record(recording, _say)
    failed = [one for one in made if one.problems]
    kept = len(made) - len(failed)
    click.echo(f"{kept} {pluralize('case', kept)} recorded, {len(failed)} not kept", err=True)
    if len(made) < len(recording.cases):
        click.echo("the budget is reached", err=True)
        return EXIT_BUDGET
    return int(bool(failed))


def _agreed(recording: Recording, budget: float | None) -> bool:
    """Say what is paid, and ask on a terminal. Without one the budget is the answer."""
    count = len(recording.cases)
    most = f", at most ${budget:.2f}" if budget is not None else ""
    click.echo(f"PAID: {count} {pluralize('case', count)} on {recording.spec}{most}", err=True)
    if sys.stdin.isatty() and sys.stderr.isatty():
        return click.confirm("Record?", default=False, err=True)
    if budget is None:
        raise CannotStart("--record asks a real model: without a terminal it needs --budget USD")
    return True


def _say(made: RecordedCase) -> None:
    name = f"{made.file}::{made.case}"
    if made.problems:
        click.echo(f"not kept  {visible(name)}: {visible(made.problems[0])}")
        return
    click.echo(f"recorded  {visible(name)} ({made.calls} {pluralize('call', made.calls)})")
