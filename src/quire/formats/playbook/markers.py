"""Lines that look like a branch marker and are none."""

from __future__ import annotations

import re

from quire.diagnostics import Code, Diagnostic
from quire.formats.playbook.codes import warnings
from quire.formats.playbook.fixes import marker_fix
from quire.source import Span

_WORD = re.compile(r"(`++|~~~++)\s*+(if|elif|else\s*+if|elseif|elsif|else|endif|end\s++if|fi)\b", re.IGNORECASE)
_COMPARISON = re.compile(
    r"\s*+[A-Za-z0-9_]++\s*+(?:(===|=>|=<|==|!=|<=|>=|<>|=|<|>|~)|(contains|in|is|not|matches|startswith|endswith|like)\b)",
    re.IGNORECASE,
)


def marker_word(text: str) -> str | None:
    """`if`, `elif`, `else` or `endif` when the line was probably meant as such a marker."""
    match = _WORD.match(text)
    if not match:
        return None
    ticks, word = match[1], "".join(match[2].lower().split())
    word = {"elseif": "elif", "elsif": "elif", "fi": "endif"}.get(word, word)
    # One or two backticks are ordinary code in a sentence, unless the line is nothing but the marker.
    rest = text[match.end() :].rstrip()
    if len(ticks) < 3 and (not rest.endswith(ticks) or "`" in rest[: -len(ticks)]):
        return None
    if word in ("else", "endif") and rest.strip("`~ \t"):
        return word if rest.lstrip().startswith(ticks) else None
    return word


def marker_look_alike(text: str, word: str, at: int) -> Diagnostic:
    """What is to be said about a line that `marker_word` takes for a marker."""
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    code: Code = warnings.MARKER
    message = f"Looks like a branch marker but is not one: {shown}"
    help = f"write ```{word}``` and nothing else on the line"
    if word in ("if", "elif"):
        help = f'write ```{word} NAME == "value"``` and nothing else on the line'
        match = _WORD.match(text)
        operator = _COMPARISON.match(text, match.end()) if match else None
        sign = (operator[1] or operator[2]) if operator else "=="
        if sign not in ("==", "!="):
            code = warnings.OPERATOR
            message = f'Unknown operator "{sign}" in a condition: {shown}'
            help = "only == and != are there, and they compare exact text"
    label, fix = "read as text, no branch here", marker_fix(text, word, at)
    return Diagnostic(code, message, Span(at, at + len(text)), label, help, fix)
