"""`quire runs seal`: seal stored runs that the user confirms as their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from quire.cli.completion import complete_run
from quire.cli.stdio import with_runtime, write_json
from quire.errors import BrokenSeal, Refused
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.runs.runtime import Runtime

_MOST = 1_000_000
_WARNING = "A store that came with a clone or an archive, or that others can write to, is not yours to seal."


@click.command("seal")
@click.argument("asked", metavar="[RUN]...", nargs=-1, shell_complete=complete_run)
@click.option("--all", "every", is_flag=True, help="All runs of Quire 0.1.0, which did not seal runs.")
@click.option("--yes", is_flag=True, help="Seal them without being asked.")
@click.option("--json", "as_json", is_flag=True, help="For machines; asks nothing.")
@click.pass_context
def seal_command(context: click.Context, asked: tuple[str, ...], every: bool, yes: bool, as_json: bool) -> None:
    """Seal runs as they stand in the store, so that they can go on. WRITES the store.

    A run goes on only under a seal of yours: it shows that only you have written what the run may do. Runs of Quire
    0.1.0 have none, and a store that was moved has those of another key. Shows what each run may do, and asks.
    """
    if bool(asked) == every:
        raise click.UsageError("say which: RUN, or --all for those of Quire 0.1.0")
    rows = with_runtime(lambda runtime: _unsealed(runtime, asked))
    if not as_json:
        _show(rows)
    if rows and not yes and (as_json or not _agreed(len(rows))):
        if not as_json:
            click.echo("not sealed: `--yes` seals them without asking", err=True)
        context.exit(Refused.exit_code)
    sealed = with_runtime(lambda runtime: _sealed(runtime, rows))
    if as_json:
        write_json({"sealed": [*sealed]})
    else:
        click.echo(f"sealed {len(sealed)} {pluralize('run', len(sealed))}", err=True)


def seal_old_runs() -> bool:
    """Ask the user at the terminal whether the runs of Quire 0.1.0 in this store are theirs, and seal them. Return
    True if they were sealed."""
    rows = with_runtime(lambda runtime: _unsealed(runtime, ()))
    _show(rows)
    if not rows or not _agreed(len(rows)):
        return False
    with_runtime(lambda runtime: _sealed(runtime, rows))
    return True


async def _unsealed(runtime: Runtime, asked: Sequence[str]) -> list[RunRow]:
    """Return those of the named runs that have no valid seal of this user; without names, the runs of Quire 0.1.0."""
    named = [await runtime.row(await runtime.find(one)) for one in asked]
    found = []
    for row in named or await runtime.store.list(limit=_MOST):
        try:
            await runtime.store.check_seal(row.id, whole=bool(named))
        except BrokenSeal as broken:
            if named or broken.old:
                found.append(row)
    return found


async def _sealed(runtime: Runtime, rows: Sequence[RunRow]) -> list[str]:
    for row in rows:
        await runtime.store.reseal(row.id)
    return [row.id for row in rows]


def _show(rows: Sequence[RunRow]) -> None:
    from quire.display.text import one_line
    from quire.runs.pins import PinnedState

    for row in rows:
        pins = PinnedState.of(row.pins)
        claims = [f"is {row.status.words}"]
        claims += [f"may use {', '.join(pins.allow)}"] if pins.allow else []
        claims += [f"writes {pins.out}"] if pins.out else []
        click.echo(one_line(f"{row.id}  {row.title}: {'; '.join(claims)}"), err=True)


def _agreed(count: int) -> bool:
    import asyncio

    from quire.cli.trust_prompt import somebody_is_here, yes_or_no

    if not somebody_is_here():
        return False
    click.echo(_WARNING, err=True)
    whose = "Is this run yours" if count == 1 else f"Are these {count} runs all yours"
    return asyncio.run(yes_or_no(f"{whose}? Then Quire seals what it may do. yes or no [no]: "))
