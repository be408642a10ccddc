"""`quire list`: the documents here, in the user folder, and those that come with Quire."""

from __future__ import annotations

import click

from quire.cli.stdio import columns, write_json, write_lines
from quire.wording import pluralize


@click.command("list")
@click.argument("words", metavar="[TEXT]", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(words: tuple[str, ...], as_json: bool) -> None:
    """List documents in this folder, in your user folder, and those built in.

    With TEXT, only documents whose name, title, description or path contain all of its words. Inputs in brackets are
    optional.
    """
    from quire.display.lists import document_data, document_table
    from quire.library.listing import listed_documents
    from quire.workspace.configuration import settings_here

    texts = " ".join(words).split()
    documents = [document for document in listed_documents(settings_here()) if document.has(texts)]
    if as_json:
        write_json([document_data(document) for document in documents])
        return
    if documents:
        write_lines(document_table(documents, columns()))
    broken = sum(document.errors > 0 for document in documents)
    what = f"{len(documents):,} {pluralize('document', len(documents))}" if documents else "no document"
    further = f", {broken:,} with errors: quire check" if broken else ""
    click.echo(f"{what}{' with these words' if texts else ''}{further}", err=True)
