"""`quire runs prune`: remove runs that ended long ago, and the texts that no other run refers to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from quire.cli.stdio import with_runtime, write_json, write_lines
from quire.engine.records import Status
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime
    from quire.stores.contract import Pruned

_AGE = re.compile(r"(\d{1,6})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_ENDED = ("completed", "failed", "cancelled", "expired")


def _age(context: click.Context, parameter: click.Parameter, text: str) -> float:
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise click.UsageError(f"--older-than {text}: write a number and s, m, h, d or w: 30d", context)
    return float(int(found[1]) * _SECONDS[found[2]])


def _statuses(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[Status, ...]:
    words = [word.strip() for text in texts for word in text.split(",")] or list(_ENDED)
    for word in words:
        if word not in _ENDED:
            known = ", ".join(_ENDED)
            raise click.UsageError(f"--status {word}: only runs that have ended are removed: {known}", context)
    return tuple(Status(word) for word in dict.fromkeys(words))


@click.command("prune")
@click.option(
    "--older-than",
    "age",
    metavar="AGE",
    default="30d",
    show_default=True,
    callback=_age,
    help="Since they ended, or were imported.",
)
@click.option(
    "--status", "statuses", metavar="STATUS,…", multiple=True, callback=_statuses, help="Only these; all ended ones."
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--vacuum", is_flag=True, help="Give the room back to the disk as well: rewrites the file.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def prune_command(age: float, statuses: tuple[Status, ...], dry_run: bool, vacuum: bool, as_json: bool) -> None:
    """Remove runs that ended long ago: completed, failed, cancelled or expired, never one that runs or waits.

    Their journals, questions and events are removed too, and the documents and large values that no other run refers
    to. The space stays in the file for later runs; --vacuum makes the file smaller. In PostgreSQL the space is free
    after the next VACUUM of the server, and --vacuum asks for one now. The age of an imported run counts from its
    import. WRITES the store.
    """
    with_runtime(lambda runtime: _prune(runtime, age, statuses, dry_run, vacuum, as_json))


async def _prune(
    runtime: Runtime, age: float, statuses: tuple[Status, ...], dry_run: bool, vacuum: bool, as_json: bool
) -> None:
    from quire.display.transfer_json import pruned_data
    from quire.stores.contract import keeper

    before = runtime.clock.now() - age
    pruned = await keeper(runtime.store).prune(before, statuses, dry_run=dry_run, vacuum=vacuum)
    if as_json:
        write_json(pruned_data(pruned, dry_run=dry_run))
        return
    write_lines(pruned.runs)
    click.echo(_said(pruned, dry_run, vacuum), err=True)


def _said(pruned: Pruned, dry_run: bool, vacuum: bool) -> str:
    if not pruned.runs and not pruned.texts and not vacuum:
        return "nothing to remove"
    would = "would remove" if dry_run else "removed"
    are, vacuumed = "would be" if dry_run else "are", vacuum and not dry_run
    room = f"{pruned.size:,} bytes {are} free in the file"
    if vacuumed:
        room = f"{pruned.given_back:,} bytes went back to the disk"
    if not pruned.in_file:
        when = f", {pruned.given_back:,} went back to the disk" if vacuumed else " after its next VACUUM"
        room = f"{pruned.size:,} bytes {are} free in the database{when}"
    counts = ((len(pruned.runs), "run"), (pruned.effects, "effect"), (pruned.texts, "text"))
    return f"{would} {', '.join(_counted(count, what) for count, what in counts)}; {room}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {pluralize(what, count)}"
