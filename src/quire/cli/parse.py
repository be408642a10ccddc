"""`quire parse`: print a document's syntax tree; for playbooks in the shape of the format's published test vectors.

Directives and knowledge files are printed as fields, with names and values as in the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire import formats
from quire.cli.stdio import write_json
from quire.errors import Unreadable
from quire.source import Source, read_source

if TYPE_CHECKING:
    from quire.values import Value


@click.command("parse")
@click.argument("file", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="JSON is the only form there is; accepted for scripts.")
@click.pass_context
def command(context: click.Context, file: str, as_json: bool) -> None:
    """Print the syntax tree of FILE as JSON, with the warnings and errors of the reader.

    FREE. Exit 1 when the document is not valid, 2 when it cannot be read.
    """
    try:
        tree = _tree(read_source(Path(file)))
    except Unreadable as error:
        if reading := formats.unread(error):
            from quire.formats.playbook.as_json import as_vector

            write_json(as_vector(reading))
        raise
    write_json(tree)
    context.exit(0 if tree["valid"] else 1)


def _tree(source: Source) -> dict[str, Value]:
    format = formats.format_of(source)
    if format == "pipeline":
        from quire.formats.pipeline.as_json import pipeline_tree
        from quire.formats.pipeline.parse import parse

        return pipeline_tree(parse(source, registered=True))
    if format in ("directive", "knowledge"):
        from quire.formats.directive.as_json import directive_tree, knowledge_tree

        return directive_tree(source) if format == "directive" else knowledge_tree(source)
    from quire.formats.playbook.as_json import as_vector

    return as_vector(formats.read(source))
