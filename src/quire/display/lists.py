"""The list of documents for people, fitted to the width of their terminal, and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import click

from quire.diagnostics import Severity
from quire.display.text import fitting_table, short, table
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.library.listing import ListedDocument
    from quire.values import Value


SPACES = {"project": "here", "user": "yours", "system": "built in"}
"""The words for the spaces of documents."""

_LAYOUTS = tuple(product((60, 40, 24, 12, 0), (48, 32, 20, 12)))
"""Layouts from the widest to the narrowest: the characters for inputs and title."""


def document_table(documents: Sequence[ListedDocument], columns: int | None = None) -> list[str]:
    """Return the list in the widest layout that fits into `columns`, else in the narrowest."""
    return fitting_table((_table(documents, *layout) for layout in _LAYOUTS), columns)


def _table(documents: Sequence[ListedDocument], inputs: int, title: int) -> list[str]:
    header = ["FORMAT", "NAME", "TITLE", *(["INPUTS"] if inputs else []), "FINDINGS", "WHERE"]
    rows = [
        [
            document.format or "unreadable",
            document.name,
            short(document.title, title),
            *([short(_inputs(document), inputs)] if inputs else []),
            findings_words(document),
            SPACES[document.space],
        ]
        for document in documents
    ]
    at = len(header) - 2
    return table(rows, header, style=lambda cell, column: _coloured(cell) if column == at else cell)


def _inputs(document: ListedDocument) -> str:
    """Return the inputs; those that may be left out in brackets."""
    return ", ".join(field.name if field.required else f"[{field.name}]" for field in document.inputs)


def findings_words(document: ListedDocument) -> str:
    """Return the errors and warnings of a document: `2 errors`, `1 warning`. Hints are not counted."""
    counts = ((document.errors, "error"), (document.warnings, "warning"))
    return ", ".join(f"{count} {pluralize(what, count)}" for count, what in counts if count)


def _coloured(cell: str) -> str:
    colour = "red" if "error" in cell else "yellow" if "warning" in cell else None
    return click.style(cell, fg=colour) if colour else cell


def document_data(document: ListedDocument) -> dict[str, Value]:
    """Return a document as JSON. All keys of the list are defined here."""
    return {
        "name": document.name,
        "format": document.format or None,
        "title": document.title,
        "description": document.description,
        "space": document.space,
        "path": str(document.path),
        "inputs": [
            {"name": each.name, "required": each.required, "schema": dict(each.schema)} for each in document.inputs
        ],
        "errors": document.errors,
        "warnings": document.warnings,
        "hints": document.count(Severity.LINT, Severity.NOTE),
        "error": document.error or None,
    }
