"""Write facts about a playbook as Markdown. Texts of documents are escaped, so that they show as they are."""

from __future__ import annotations

from collections.abc import Iterable

from quire.display.visible import visible
from quire.lsp.markdown import code
from quire.patterns import late_pattern
from quire.wording import cut_line

_MARKUP = late_pattern(r"([\\`*_{}\[\]<>()#+!|~-])")
LONGEST_LINE = 300


def escaped(text: str) -> str:
    """Return a text of a document on one line, without markup: it may hold links and pictures."""
    return _MARKUP.sub(r"\\\1", cut_line(" ".join(visible(text).split()), LONGEST_LINE))


def quoted(text: str) -> str:
    """Return a short text of a document as code."""
    return code(cut_line(" ".join(visible(text).split()), LONGEST_LINE))


def listed(labels: Iterable[str], most: int = 8) -> str:
    """Return the labels of steps in words: `step 1`, `steps 1, 3a and 2 more`."""
    found = list(dict.fromkeys(labels))
    if not found:
        return ""
    shown = ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
    return f"step {shown}" if len(found) == 1 else f"steps {shown}"


def paragraphs(*parts: str) -> str:
    """Join parts of a hover; empty ones are left out."""
    return "\n\n".join(part for part in parts if part)
