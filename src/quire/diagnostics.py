"""Findings about documents, the same for all formats and printers.

A `Code` is the stable part (listed in the docs, explained by `check --explain`); a `Diagnostic` is one place where it
applies. `make` builds a code whose explanation has the usual form: the mistake, the reason, a wrong and a right
example. Printers live in `quire.display`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from quire.wording import Suggestions, cut_line

if TYPE_CHECKING:
    from types import ModuleType

    from quire.source import Source, Span

_LONGEST = 60
"""Most characters of a replaced text in the title of a fix."""
_STOPS = "A document with this finding does not run, unless `--force` or an allow comment says that it is meant."


class Severity(StrEnum):
    """How serious a finding is. `--strict` fails on warnings and lints."""

    ERROR = "error"
    """Stops a document from running, or a check from passing."""
    WARNING = "warning"
    """The document runs, but not as it seems to be meant, or not safely."""
    LINT = "lint"
    """Advice that `check` adds."""
    NOTE = "note"
    """Says how the reader treated something unusual."""


class Code(Struct, frozen=True, cache_hash=True):
    """A kind of finding: its stable id, a short name, and the page that `--explain` prints."""

    id: str
    name: str
    severity: Severity
    explanation: str
    portable: bool = True
    """False if it says that a document uses what only Quire has. `check --portable` fails on it."""
    stops: bool = False
    """True if the author probably meant a question, a branch, a step or a value that is read as text. `check` fails on
    it, and a run does not start unless it is forced."""


class Edit(Struct, frozen=True):
    """Replaces `old`, which must be the text at `span`, with `new`."""

    span: Span
    old: str
    new: str


class Fix(Struct, frozen=True):
    """The edits of one document that together correct a finding."""

    title: str
    """The change as an order: `replace transfrom with transform`."""
    edits: tuple[Edit, ...]
    safe: bool = True
    """True if the document certainly means the same as its author intended. `check --fix` applies safe fixes only."""


Confidence: TypeAlias = Literal["proven", "possible"]
"""`possible` is for a finding that holds unless a fact that the analysis cannot know excludes it."""


class Related(Struct, frozen=True):
    """A place that belongs to a finding about another place."""

    span: Span
    message: str
    """Says what happens there: `the reply of the model is stored as summary`."""
    source: Source | None = None
    """The document of the place; None if it is the document of the finding."""
    node: str = ""
    """The short name of the place in the path of a flow: `1 http__get`, `page`, `5 shell argv[2]`. Empty for a place
    that is not on a path, such as the other one of two writes."""


class Diagnostic(Struct, frozen=True):
    code: Code
    message: str
    span: Span
    label: str = ""
    help: str = ""
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    """Other places of the finding. Those of a flow are its whole path, in order, from the source to the sink."""
    confidence: Confidence = "proven"

    @property
    def flow(self) -> tuple[Related, ...]:
        """The places on the path of a flow, in order."""
        return tuple(place for place in self.related if place.node)

    @property
    def severity(self) -> Severity:
        return self.code.severity

    @property
    def stops(self) -> bool:
        return self.code.stops


class Findings:
    """The findings of one reading, and its suggestions."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.suggestions = Suggestions()

    def report(self, code: Code, message: str, span: Span, help: str = "", fix: Fix | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, span, "", help, fix))


def replacing(span: Span, old: str, new: str) -> Fix:
    """Return the safe fix that replaces one text with another."""
    shown, meant = (cut_line(text.strip(), _LONGEST) for text in (old, new))
    return Fix(f"replace {shown} with {meant}", (Edit(span, old, new),))


def fix_of(source: Source, finding: Diagnostic) -> Fix | None:
    """Return the fix; None if the text differs from what the fix expects: escaped or quoted, for instance."""
    fix = finding.fix
    if fix is None or not fix.edits:
        return None
    expected = all(source.text[edit.span.start : edit.span.end] == edit.old for edit in fix.edits)
    return fix if expected else None


def edits_of(source: Source, finding: Diagnostic) -> tuple[Edit, ...]:
    """Return the edits that certainly correct a finding: those of its fix, if it is safe."""
    fix = fix_of(source, finding)
    return fix.edits if fix and fix.safe else ()


def codes_in(*modules: ModuleType) -> list[Code]:
    """Return the codes that are defined in some modules."""
    return [value for module in modules for value in vars(module).values() if isinstance(value, Code)]


def make(severity: Severity, id: str, name: str, what: str, why: str, wrong: str, right: str, **marks: bool) -> Code:
    """Build a code whose explanation has a wrong and a right example. `marks` are `portable` and `stops` of `Code`."""
    why += f"\n\n{_STOPS}" if marks.get("stops") else ""
    page = f"{what}\n\n{why}\n\nWrong:\n\n{_indented(wrong)}\n\nRight:\n\n{_indented(right)}"
    return Code(id, name, severity, page, **marks)


def _indented(example: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in example.split("\n"))
