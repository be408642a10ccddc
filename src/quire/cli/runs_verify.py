"""`quire runs verify`: whether the file of a run is as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.looking import look, put_json

if TYPE_CHECKING:
    from quire.runtime import Runtime
    from quire.values import Value

FINDINGS = 1


@click.command("verify")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def command(context: click.Context, file: Path, as_json: bool) -> None:
    """Check an exported run: every line's hash, every text by its own, and that the document with the recorded effects
    gives the result that the file states. FREE: performs nothing, keeps nothing.

    Exit 1 and the line when something is not as it was written. The chain finds changes, not forgers: who makes a whole
    new file can make its hashes too. Compare the head hash with one that you had from elsewhere.
    """
    context.exit(look(lambda runtime: _verify(runtime, file, as_json)))


async def _verify(runtime: Runtime, file: Path, as_json: bool) -> int:
    from quire.render.text import visible
    from quire.runtime.exported import BadExport, read_export
    from quire.runtime.importing import NotProved, prove

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
