"""`quire runs prune` removes runs that ended long ago, and the texts that no other run refers to; `quire runs seal`
seals stored runs that the user confirms as their own; `quire runs label` names a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from quire.cli.options import require_text
from quire.cli.shell_completion import complete_run
from quire.cli.stdio import perform, tell, with_runtime, write_json, write_lines
from quire.engine.records import Status
from quire.errors import BrokenSeal, Refused
from quire.wording import counted, pluralize

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.runs.runtime import Runtime
    from quire.stores.contract import Pruned


_AGE = re.compile(r"(\d{1,6})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_ENDED = ("completed", "failed", "cancelled", "expired")


def _age(context: click.Context, parameter: click.Parameter, text: str) -> float:
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise click.UsageError(f"--older-than {text}: write a number and s, m, h, d or w: 30d", context)
    return float(int(match[1]) * _SECONDS[match[2]])


def _statuses(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[Status, ...]:
    words = [word.strip() for text in texts for word in text.split(",")] or list(_ENDED)
    for word in words:
        if word not in _ENDED:
            raise click.UsageError(
                f"--status {word}: only runs that have ended are removed: {', '.join(_ENDED)}", context
            )
    return tuple(Status(word) for word in dict.fromkeys(words))


@click.command("prune")
@click.option(
    "--older-than",
    "age",
    metavar="AGE",
    default="30d",
    show_default=True,
    callback=_age,
    help="Since the end, or the import.",
)
@click.option(
    "--status",
    "statuses",
    metavar="STATUS,…",
    multiple=True,
    callback=_statuses,
    help="Only these (default: all that ended).",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--vacuum", is_flag=True, help="Rewrite the file, so that the disk gets the space back.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def prune_command(age: float, statuses: tuple[Status, ...], dry_run: bool, vacuum: bool, as_json: bool) -> None:
    """Remove runs that ended long ago: completed, failed, cancelled or expired.

    Their journals, questions and events are removed too. The space stays in the file for later runs; --vacuum makes the
    file smaller. The age of an imported run counts from its import.
    """
    with_runtime(lambda runtime: _prune(runtime, age, statuses, dry_run, vacuum, as_json))


async def _prune(
    runtime: Runtime, age: float, statuses: tuple[Status, ...], dry_run: bool, vacuum: bool, as_json: bool
) -> None:
    from quire.display.copies_json import pruned_data

    before = runtime.clock.now() - age
    pruned = await runtime.store.prune(before, statuses, dry_run=dry_run, vacuum=vacuum)
    if as_json:
        write_json(pruned_data(pruned, dry_run=dry_run))
        return
    write_lines(pruned.runs)
    tell(_summary(pruned, dry_run, vacuum))


def _summary(pruned: Pruned, dry_run: bool, vacuum: bool) -> str:
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
    return f"{would} {', '.join(f'{count:,} {pluralize(noun, count)}' for count, noun in counts)}; {room}"


_MOST = 1_000_000
_WARNING = "A store that came with a clone or an archive, or that others can write to, is not yours to seal."


@click.command("seal")
@click.argument("runs", metavar="[RUN]...", nargs=-1, shell_complete=complete_run)
@click.option("--all", "every", is_flag=True, help="All runs of Quire 0.1.0, which did not seal runs.")
@click.option("--yes", is_flag=True, help="Seal them without being asked.")
@click.option("--json", "as_json", is_flag=True, help="For machines; asks nothing.")
@click.pass_context
def seal_command(context: click.Context, runs: tuple[str, ...], every: bool, yes: bool, as_json: bool) -> None:
    """Adopt unsealed runs as your own, so that they can continue.

    Runs of Quire 0.1.0 have no seal, and a database that was moved has those of another key. Shows what each run may
    do, and asks.
    """
    if bool(runs) == every:
        raise click.UsageError("say which: RUN, or --all for those of Quire 0.1.0")
    rows = with_runtime(lambda runtime: _unsealed(runtime, runs))
    if not as_json:
        _show(rows)
    if rows and not yes and (as_json or not _agreed(len(rows))):
        if not as_json:
            tell("not sealed: `--yes` seals them without asking")
        context.exit(Refused.exit_code)
    sealed = with_runtime(lambda runtime: _sealed(runtime, rows))
    if as_json:
        write_json({"sealed": [*sealed]})
    else:
        tell(f"sealed {counted(len(sealed), 'run')}")


def seal_old_runs() -> bool:
    """Ask the user at the terminal whether the runs of Quire 0.1.0 in this store are theirs, and seal them. Return
    True if they were sealed."""
    rows = with_runtime(lambda runtime: _unsealed(runtime, ()))
    _show(rows)
    if not rows or not _agreed(len(rows)):
        return False
    with_runtime(lambda runtime: _sealed(runtime, rows))
    return True


async def _unsealed(runtime: Runtime, names: Sequence[str]) -> list[RunRow]:
    """Return those of the named runs that have no valid seal of this user; without names, the runs of Quire 0.1.0."""
    named = [await runtime.row(await runtime.find(name)) for name in names]
    rows = []
    for row in named or await runtime.store.list(limit=_MOST):
        try:
            await runtime.store.check_seal(row.id, whole=bool(named))
        except BrokenSeal as broken:
            if named or broken.old:
                rows.append(row)
    return rows


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
        tell(one_line(f"{row.id}  {row.title}: {'; '.join(claims)}"))


def _agreed(count: int) -> bool:
    from quire.cli.terminal import somebody_is_here, yes_or_no

    if not somebody_is_here():
        return False
    tell(_WARNING)
    whose = "Is this run yours" if count == 1 else f"Are these {count} runs all yours"
    return yes_or_no(f"{whose}? Then Quire seals what it may do. yes or no [no]: ")


@click.command("label")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=require_text)
@click.option("--name", metavar="TEXT", help="Name in place of the subject; an empty text removes it.")
@click.option("--note", metavar="TEXT", help="Note for people; an empty text removes it.")
@click.option("--seen/--unseen", default=None, help="Mark a failed run as seen, or not.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def label_command(run: str, name: str | None, note: str | None, seen: bool | None, as_json: bool) -> None:
    """Give a run a name and a note, also while it runs.

    They are for people: nothing else of the run changes, and its seals do not cover them.
    """
    from quire.operations.run_list import label_run
    from quire.stores.contract import MOST_NAME, MOST_NOTE

    labels = {"name": name, "note": note, "seen": seen}
    changes = {key: value for key, value in labels.items() if value is not None}
    if not changes:
        raise click.UsageError("say what to set: --name, --note, --seen or --unseen")
    for option, text, most in (("--name", name, MOST_NAME), ("--note", note, MOST_NOTE)):
        if len(text or "") > most:
            raise click.UsageError(f"{option} has {len(text or ''):,} characters: at most {most:,}")

    row = perform(label_run, {"run": run, **changes})
    write_json(row) if as_json else tell(f"run {row['id']}: {row['label']}")
