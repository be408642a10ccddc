"""`quire runs import`: read a run from a file, to look at and to fork."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.stdio import look, put_json

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(file: Path, as_json: bool) -> None:
    """Import an exported run under its own id. It is verified first, as `quire runs verify` does. WRITES the store.

    It can be shown like any other run, and forked. It cannot be resumed or answered, and it brings no grants: a fork
    of it runs with your grants and your model.
    """
    look(lambda runtime: _import(runtime, file, as_json))


async def _import(runtime: Runtime, file: Path, as_json: bool) -> None:
    from quire.runs.imports import import_run, read_export

    exported = read_export(file)
    run = await import_run(runtime, exported)
    if as_json:
        put_json({"run": run, "effects": len(exported.effects), "head": exported.head})
        return
    click.echo(run)
    click.echo(f"to see it: quire runs {run}", err=True)
