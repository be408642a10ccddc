"""Pipelines that an agent writes at run time: their text, and the report of everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Severity, edits_of
from quire.source import Source
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic, Edit
    from quire.formats.pipeline.inline import Refusal
    from quire.formats.pipeline.syntax import ParseResult
    from quire.values import Value

_FENCE = re.compile(r"\s*```[A-Za-z]*[ \t]*\n(.*?)\n?```\s*", re.DOTALL)
_MOST_TOLD = 20
_MOST_LISTED = 50
_LONGEST_LINE = 120


def definition_source(text: str) -> Source:
    """Return the text of a definition.

    Models often put it into a Markdown fence, which is removed: YAML cannot begin with one.
    """
    fenced = _FENCE.fullmatch(text) if text.lstrip().startswith("```") else None
    return Source.of(fenced[1] if fenced else text, "inline.yaml")


class Mistake(Struct, frozen=True):
    """One reason to refuse a definition, as its author is told."""

    code: str
    line: int
    column: int
    message: str
    help: str = ""
    step: str = ""
    """The path of the step, if the step as such could be read."""
    written: str = ""
    """The line of the definition, without its indentation."""
    fix: tuple[Value, ...] = ()
    """Edits that certainly correct it, as `quire check --json` has them."""

    @classmethod
    def of(cls, source: Source, finding: Diagnostic, step: str = "") -> Mistake:
        at = source.position(finding.span.start)
        written = cut_line(source.line(at.line).strip(), _LONGEST_LINE)
        fix = tuple(_edit(source, edit) for edit in edits_of(source, finding))
        return cls(finding.code.id, at.line, at.column, finding.message, finding.help, step, written, fix)

    def as_json(self) -> dict[str, Value]:
        found: dict[str, Value] = {
            "code": self.code,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "help": self.help,
        }
        if self.step:
            found["step"] = self.step
        return {**found, "text": self.written, "fix": list(self.fix)}

    def __str__(self) -> str:
        step = f"step {self.step}, " if self.step else ""
        help = f" ({self.help})" if self.help else ""
        return f"{step}line {self.line}, column {self.column}: {self.message}{help}"


def _edit(source: Source, edit: Edit) -> Value:
    at = source.position(edit.span.start)
    return {"line": at.line, "column": at.column, "old": edit.old, "new": edit.new}


def mistakes(reading: ParseResult, refusal: Refusal | None = None) -> tuple[Mistake, ...]:
    """Return everything that is wrong with a definition, in the order of its text."""
    found = [Mistake.of(reading.source, one) for one in reading.of(Severity.ERROR)]
    if refusal is not None:
        found += [Mistake.of(reading.source, one.finding, one.path) for one in refusal.problems]
    return tuple(sorted(found, key=lambda one: (one.line, one.column)))


def told(found: Sequence[Mistake]) -> str:
    """Return the mistakes as one line for the author of the definition."""
    more = len(found) - _MOST_TOLD
    return "; ".join(map(str, found[:_MOST_TOLD])) + (f"; and {more} more" if more > 0 else "")


def listed(found: Sequence[Mistake]) -> list[Value]:
    """Return the first mistakes as JSON objects."""
    return [one.as_json() for one in found[:_MOST_LISTED]]


def as_list(error: str, errors: Sequence[Mapping[str, Value]]) -> str:
    """Return the errors of a refused definition as a text with a line for each, and for its help.

    The lines of the definition are quoted: a small model that is told positions alone repeats what it wrote.
    """
    verdict = error.partition(": ")[0]
    lines = [f"{verdict}; nothing was started. Correct everything in this list, and send the whole definition:"]
    for one in errors:
        lines.append(f"- line {one['line']}, column {one['column']}, in `{one['text']}`: {one['message']}")
        if one["help"]:
            lines.append(f"  help: {one['help']}")
    return "\n".join(lines)
