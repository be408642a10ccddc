"""`quire parse`: a document's syntax tree, in the shape of the format's published test vectors."""

from __future__ import annotations

import json
from pathlib import Path

import click

from quire import formats
from quire.formats.playbook.vector import as_vector
from quire.source import read_source
from quire.values import clean


@click.command("parse")
@click.argument("file", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="JSON is the only form there is; accepted for scripts.")
@click.pass_context
def command(context: click.Context, file: str, as_json: bool) -> None:
    """Print the syntax tree of FILE as JSON, with the warnings and errors of the reader.

    FREE. Exit 1 when the document is not valid, 2 when it cannot be read.
    """
    reading = formats.read(read_source(Path(file)))
    click.echo(clean(json.dumps(as_vector(reading), indent=2, ensure_ascii=False)))
    context.exit(0 if reading.playbook else 1)
