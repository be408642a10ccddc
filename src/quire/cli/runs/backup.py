"""`quire runs backup`: copy the store while runs continue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.stdio import look, put_json

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


@click.command("backup")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(file: Path, as_json: bool) -> None:
    """Copy all runs of this workspace to a file, as they are at one moment, while others may go on writing. WRITES.

    The copy is a complete store: to restore it, put it in the place of .quire/quire.db. An existing file is never
    overwritten.
    """
    look(lambda runtime: _backup(runtime, file, as_json))


async def _backup(runtime: Runtime, file: Path, as_json: bool) -> None:
    from quire.stores.contract import keeper

    size = await keeper(runtime.store).backup(file)
    put_json({"file": str(file), "bytes": size}) if as_json else click.echo(f"wrote {file}: {size:,} bytes", err=True)
