"""`quire runs verify`: check that a stored run, or an exported one, is as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.stdio import look, put_json

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime
    from quire.values import Value

FINDINGS = 1


@click.command("verify")
@click.argument("what", metavar="RUN|FILE")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def command(context: click.Context, what: str, as_json: bool) -> None:
    """Check a stored run or an exported one. FREE: performs nothing, keeps nothing.

    RUN: that its seals are yours, from what it was started with to its last record, and that its document with its
    records replays. FILE: every line's hash, every text by its own, and that the document with the recorded effects
    gives the result that the file states.

    Exit 1 and the reason when something is not as it was written. The chain of a file finds changes, not forgeries: a
    forger can make a whole new file together with its hashes. Compare the head hash with one that you had from
    elsewhere.
    """
    file = Path(what)
    if file.exists() or "/" in what or file.suffix:
        context.exit(look(lambda runtime: _verify_file(runtime, file, as_json)))
    context.exit(look(lambda runtime: _verify_run(runtime, what, as_json)))


async def _verify_run(runtime: Runtime, asked: str, as_json: bool) -> int:
    from quire.display.text import visible
    from quire.errors import BrokenSeal, JournalMismatch, StoreError

    run = await runtime.find(asked)
    result: dict[str, Value] = {"run": run, "ok": False}
    try:
        await runtime.store.check_seal(run)
        view = await runtime.view(run)
    except (BrokenSeal, JournalMismatch, StoreError) as error:
        problem = f"run {run}: {error.reason if isinstance(error, BrokenSeal) else error}"
        if as_json:
            put_json({**result, "problem": problem})
        else:
            click.echo(visible(problem), err=True)
        return FINDINGS
    if as_json:
        put_json({**result, "ok": True, "effects": len(view.effects)})
    else:
        click.echo(f"run {run} is as you wrote it: {len(view.effects):,} effects, sealed and replayed", err=True)
    return 0


async def _verify_file(runtime: Runtime, file: Path, as_json: bool) -> int:
    from quire.display.text import visible
    from quire.runs.imports import BadExport, NotProved, prove, read_export

    result: dict[str, Value] = {"file": str(file), "ok": False}
    try:
        exported = read_export(file)
        result |= {"run": exported.row.id, "lines": exported.lines, "head": exported.head}
        await prove(exported, runtime.settings)
    except (BadExport, NotProved) as error:
        problem = str(error) if isinstance(error, BadExport) else f"{file}: {error}"
        if as_json:
            put_json({**result, "problem": problem, "line": getattr(error, "line", 0) or None})
        else:
            click.echo(visible(problem), err=True)
        return FINDINGS
    if as_json:
        put_json({**result, "ok": True})
    else:
        click.echo(exported.head)
        click.echo(
            f"run {exported.row.id} is as it was written: {exported.lines:,} lines, "
            f"{len(exported.effects):,} effects, replayed to the same result",
            err=True,
        )
    return 0
