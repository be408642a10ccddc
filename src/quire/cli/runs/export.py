"""`quire runs export`: write a run as one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.completion import complete_run
from quire.cli.options import filled
from quire.cli.stdio import look
from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


@click.command("export")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=filled)
@click.option("-o", "--out", metavar="FILE", type=click.Path(path_type=Path), help="A file; else standard output.")
@click.option("--force", is_flag=True, help="Overwrite the FILE where it exists.")
def command(run: str, out: Path | None, force: bool) -> None:
    """Print a run as JSON Lines: its pins, its journal, its events, its result. FREE.

    Each line has the sha256 of the line before, so that `quire runs verify` finds every changed byte. Journals, and so
    exports, contain no keys or other secrets; they do contain inputs, prompts and replies.
    """
    if out is not None and not force and out.is_file():
        raise CannotStart(f"{out} exists: name another file, or say --force")
    look(lambda runtime: _export(runtime, run, out))


async def _export(runtime: Runtime, name: str, out: Path | None) -> None:
    from quire.display.visible import escaped
    from quire.runs.export import export_lines, write_export

    run = await runtime.find(name)
    lines = await export_lines(runtime, run)
    if out is None:
        # Write bytes: the hashes are of UTF-8 with this line end, whatever the encoding of the terminal is.
        stream = sys.stdout.buffer
        shown = escaped if sys.stdout.isatty() else str  # a terminal gets no bytes that it would obey
        for line in lines:
            stream.write(f"{shown(line)}\n".encode())
        stream.flush()
        return
    size = write_export(lines, out)
    click.echo(f"wrote {out}: {len(lines):,} lines, {size:,} bytes", err=True)
