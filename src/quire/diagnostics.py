"""Findings about documents, the same for all formats and printers.

A `Code` is the stable part (listed in the docs, explained by `check --explain`); a `Diagnostic` is one place where it
applies. `make` builds a code whose explanation has the usual form: what, why, a wrong and a right example. Printers
live in `quire.display`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.wording import Suggestions

if TYPE_CHECKING:
    from types import ModuleType

    from quire.source import Source, Span


class Severity(StrEnum):
    """How serious a finding is. `--strict` fails on warnings and lints."""

    ERROR = "error"
    """Stops a document from running."""
    WARNING = "warning"
    """A warning of the format itself."""
    LINT = "lint"
    """Advice that `check` adds."""
    NOTE = "note"
    """Says how the reader treated something unusual."""


class Code(Struct, frozen=True):
    """A kind of finding: its stable id, a short name, and the page that `--explain` prints."""

    id: str
    name: str
    severity: Severity
    explanation: str
    portable: bool = True
    """False if it says that a document uses what only Quire has. `check --portable` fails on it."""


class Edit(Struct, frozen=True):
    """Replaces `old`, which must be the text at `span`, with `new`."""

    span: Span
    old: str
    new: str


Fix: TypeAlias = tuple[Edit, ...]
"""The edits that together correct a finding. Empty if there is no certain correction."""


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


class Findings:
    """The findings of one reading, and its suggestions."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.suggestions = Suggestions()

    def report(self, code: Code, message: str, span: Span, help: str = "", fix: Fix = ()) -> None:
        self.diagnostics.append(Diagnostic(code, message, span, "", help, fix))


def edits_of(source: Source, found: Diagnostic) -> Fix:
    """Return the fix, or nothing if the text differs from what the fix expects: escaped or quoted, for instance."""
    expected = all(source.text[edit.span.start : edit.span.end] == edit.old for edit in found.fix)
    return found.fix if expected else ()


def codes_in(*modules: ModuleType) -> list[Code]:
    """Return the codes that are defined in some modules."""
    return [value for module in modules for value in vars(module).values() if isinstance(value, Code)]


def make(
    severity: Severity, id: str, name: str, what: str, why: str, wrong: str, right: str, *, portable: bool = True
) -> Code:
    """Build a code whose explanation has a wrong and a right example."""
    page = f"{what}\n\n{why}\n\nWrong:\n\n{_indented(wrong)}\n\nRight:\n\n{_indented(right)}"
    return Code(id, name, severity, page, portable)


def _indented(example: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in example.split("\n"))
