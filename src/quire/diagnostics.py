"""One value for every finding about a document, whatever the format and whoever prints it.

A `Code` is the stable part (listed in the docs, explained by `check --explain`); a `Diagnostic` is
one place where it applies. Printers live in `quire.display`.

The shape of an explanation page: what, why, and the wrong beside the right.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from quire.source import Source, Span


class Severity(StrEnum):
    """`error` stops a document from running; `warning` is the format's own; `lint` is advice that `check`
    adds; `note` says what the reader did with something unusual. `--strict` fails on warnings and lints."""

    ERROR = "error"
    WARNING = "warning"
    LINT = "lint"
    NOTE = "note"


class Code(Struct, frozen=True):
    """A kind of finding: its stable id, a short name, and the page that `--explain` prints."""

    id: str
    name: str
    severity: Severity
    explanation: str


class Edit(Struct, frozen=True):
    """A replacement of `old`, which must stand at `span`, by `new`."""

    span: Span
    old: str
    new: str


Fix: TypeAlias = tuple[Edit, ...]
"""The edits that mend a finding, together. Empty where there is none that is certain."""


class Diagnostic(Struct, frozen=True):
    code: Code
    message: str
    span: Span
    label: str = ""
    help: str = ""
    fix: Fix = ()

    @property
    def severity(self) -> Severity:
        return self.code.severity


def edits_of(source: Source, found: Diagnostic) -> Fix:
    """The fix, unless the text is not as the fix expects it: escaped or in quotes, for instance."""
    expected = all(source.text[edit.span.start : edit.span.end] == edit.old for edit in found.fix)
    return found.fix if expected else ()


def make(severity: Severity, id: str, name: str, what: str, why: str, wrong: str, right: str) -> Code:
    page = f"{what}\n\n{why}\n\nWrong:\n\n{_indented(wrong)}\n\nRight:\n\n{_indented(right)}"
    return Code(id, name, severity, page)


def _indented(example: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in example.split("\n"))
