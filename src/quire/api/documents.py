"""Find the document that a caller means: a `Document`, a `Source`, a text, a file, or a name in the workspace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from quire import formats
from quire.errors import BadDocument, CannotStart
from quire.library.document import Document, load, read
from quire.library.lookup import document_of
from quire.source import Source

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic

_STEP = re.compile(r"^## STEP", re.MULTILINE)
_YAML_KEY = re.compile(r"(?:pipeline|schema|description|steps)[ \t]*:")


def check(document: str | Path | Source | Document) -> tuple[Diagnostic, ...]:
    """Return every finding about a document, lints included, in the order of the text. Nothing is run.

    Takes what `run` takes, except names: a `str` without a line break is a file. Raises `Unreadable` if there is no
    document to read.
    """
    if isinstance(document, str | Path) and not _is_text(document):
        source = load(document).source
    else:
        source = find(document, None).source
    found = formats.check(source)
    if "quire:" not in source.text:
        return found
    from quire.formats.suppressions.allows import applied

    # Findings that need the workspace are not among these, so a comment may hide nothing here.
    return applied(source, found, formats.all_codes, lambda _: False).diagnostics


def find(document: str | Path | Source | Document, workspace: Path | None) -> Document:
    """Read the document that the caller gave. A `str` with a line break is a text; otherwise it is a file, or else a
    name.

    Raises `Unreadable`, or `CannotStart` if a name is unknown or ambiguous.
    """
    match document:
        case Document():
            return document
        case Source():
            return read(document)
        case Path():
            return load(document)
        case str() if _is_text(document):
            if not document.strip("\ufeff \t\r\n"):
                raise BadDocument("the text of the document is empty")
            return read(_source(document))
        case str():
            return document_of(document, workspace)
    raise CannotStart(f"{document!r} is not a document: give a path, a text, a name, a Source or a Document")


def _is_text(document: object) -> bool:
    return isinstance(document, str) and ("\n" in document or "\r" in document)


def _source(text: str) -> Source:
    """Return the text under a name that shows its format."""
    source = Source.of(text, "<text>.md")
    return Source.of(text, "<text>.yaml") if _is_pipeline(source.text) else source


def _is_pipeline(text: str) -> bool:
    """Return True if the text is a pipeline: its first line is a key of one, and no line is a `## STEP` heading.

    Empty lines, `---`, and lines with `#` (comments of YAML, titles of Markdown) are skipped.
    """
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and line != "---" and not line.startswith("#")), "")
    return _YAML_KEY.match(first) is not None and _STEP.search(text) is None
