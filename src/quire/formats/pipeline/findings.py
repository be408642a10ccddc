"""What reading finds wrong, and how it is told: where it points, what it quotes, what it suggests."""

from __future__ import annotations

from collections.abc import Collection

from quire.diagnostics import Code, Diagnostic, Fix
from quire.formats.yaml import Entry
from quire.source import Span
from quire.wording import nearest

LONGEST = 60
"""Characters of a name that somebody may have misspelt, and of a text that is quoted."""

_MAX_SUGGESTIONS = 50
_MAX_KNOWN = 200


class Findings:
    """Those of one reading."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self._suggested = 0

    def report(self, code: Code, message: str, span: Span, help: str = "", fix: Fix = ()) -> None:
        self.found.append(Diagnostic(code, message, span, "", help, fix))

    @property
    def suggests(self) -> bool:
        """Whether there are suggestions left to make."""
        return self._suggested < _MAX_SUGGESTIONS

    def suggestion(self, name: str, known: Collection[str]) -> str:
        """`did you mean`, for so many names as a person makes slips; likeness is dear to compute."""
        if len(name) > LONGEST or len(known) > _MAX_KNOWN or not self.suggests:
            return ""
        self._suggested += 1
        meant = nearest(name, known)
        return f"did you mean {meant}?" if meant else ""

    def visible(self, entry: Entry) -> Span:
        """Where to point at a value: at its key if it is empty."""
        return entry.value.span if entry.value.span.start < entry.value.span.end else entry.key.span

    def shown(self, text: str) -> str:
        return f'"{text}"' if len(text) <= LONGEST else f'"{text[: LONGEST - 3]}…"'
