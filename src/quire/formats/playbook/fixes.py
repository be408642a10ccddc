"""Fixes for lines that are nearly the heading of a step, a directive or a branch marker."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from re import Match

from msgspec.structs import replace

from quire.diagnostics import Edit, Fix, replacing
from quire.formats.near_names import word_fix
from quire.formats.playbook.scan import CONDITION, ELICIT, MARKER, OUTPUT, SECTION, scan
from quire.formats.playbook.syntax import DIRECTIVES
from quire.source import Span

# A dash needs space around it: `## Step 1-3: all` is not step 1.
_STEP = re.compile(
    r"step[^\S\n]*+([0-9]{1,18}+)(?:[^\S\n]*+:|[.)](?=\s)|[^\S\n]++[-–—](?=\s))[^\S\n]*+(?=\S)", re.IGNORECASE
)
_DIRECTIVE = re.compile(r"@([A-Za-z]++)[^\S\n]*+\(")
_MARKER = re.compile(
    r"`{3,}+\s*+(?:if|elif|else\s*+if|elseif|elsif|else|endif|end\s++if|end|fi)\b\s*+([^`]*+)`{3,}+", re.IGNORECASE
)
_CONDITION = re.compile(r"""([A-Za-z0-9_]++)\s*+(===?|=|!==?|<>)\s*+(?:"([^"]*+)"|'([^'"]*+)')\s*+""")
_BARE_VALUE = re.compile(r"([A-Za-z0-9_]++)\s*+(===?|=|!==?|<>)\s*+([\w .-]++)()")
_QUESTION = re.compile(r"@(?:elicit|ask)\((?:\s*+(input|confirm|select)\s*+,)?([^()\n]++)\)", re.IGNORECASE)
_INPUT = re.compile(r"[-*+][^\S\n]*+[`*_]*+([A-Za-z][A-Za-z0-9_]*+)[`*_]*+[^\S\n]*+(\([^()\n]*+\))(.*+)")
_UNEQUAL = ("!=", "!==", "<>")


def step_edits(headings: Sequence[Match[str]], taken: Collection[int]) -> tuple[Edit, ...]:
    """Return edits that turn headings into steps; none for a number that occurs twice among headings and steps."""
    meant = [(heading, _STEP.match(heading[SECTION])) for heading in headings]
    numbers = Counter([int(step[1]) for _, step in meant if step] + list(taken))
    return tuple(
        Edit(_span(heading, step), step[0], f"STEP {step[1]}: ")
        for heading, step in meant
        if step and numbers[int(step[1])] == 1
    )


def _span(heading: Match[str], part: Match[str]) -> Span:
    """Return where a part of a section's heading is. The scan runs on the text with a line end before it."""
    start = heading.start(SECTION) - 1
    return Span(start + part.start(), start + part.end())


def directive_fix(text: str, at: int) -> Fix | None:
    """Return the edit that corrects the word of a directive, if the rest of the line has its form."""
    match = _DIRECTIVE.match(text)
    if not match:
        return None
    if (question := question_fix(text)) != text:
        return replace(replacing(Span(at, at + len(text)), text, question), safe=False)
    word = match[1].lower()
    near = word_fix(word, DIRECTIVES, Span(0, 0))
    meant = word if word in DIRECTIVES else near.edits[0].new if near else ""
    if not meant or match[0] == f"@{meant}(" or not _is_directive(f"@{meant}({text[match.end() :]}"):
        return None
    return replacing(Span(at, at + match.end()), match[0], f"@{meant}(")


def question_fix(text: str) -> str:
    """Return a question whose texts are not quoted, or that is called `@ask`, as a playbook writes it; any other text
    unchanged."""
    match = _QUESTION.fullmatch(text)
    if not match or not match[2].strip():
        return text
    kind = (match[1] or "input").lower()
    row = match[2].strip()
    if '"' not in row:
        texts = row.split(",") if kind == "select" else [row]
        quoted = (text.strip().strip("'“”‘’") for text in texts)
        row = ", ".join(f'"{text}"' for text in quoted)
    line = f"@elicit({kind}, {row})"
    return line if scan(line).kinds[:1] == [ELICIT] else text


def input_fix(text: str, at: int) -> Fix | None:
    """Return the edit that writes an input line in its only valid form."""
    match = _INPUT.fullmatch(text)
    if not match:
        return None
    description = match[3].strip(" \t:-–—")
    line = f"- `{match[1]}` {match[2]}" + (f": {description}" if description else "")
    return replace(replacing(Span(at, at + len(text)), text, line), safe=False) if line != text else None


def _is_directive(line: str) -> bool:
    from quire.formats.playbook.annotations import Ignored, read_directive

    if scan(line).kinds[:1] in ([OUTPUT], [ELICIT]):
        return True
    return not isinstance(read_directive(line, 0, []), Ignored | None)


def marker_fix(text: str, word: str, at: int) -> Fix | None:
    """Return the edit that writes a branch marker in its only valid form."""
    match = _MARKER.fullmatch(text)
    if not match:
        return None
    line, safe = f"```{word}```" if not match[1] else "", True
    if word in ("if", "elif"):
        condition = _CONDITION.fullmatch(match[1]) or _BARE_VALUE.fullmatch(match[1].strip())
        if not condition:
            return None
        operator = "!=" if condition[2] in _UNEQUAL else "=="
        line = f'```{word} {condition[1]} {operator} "{condition[3] or condition[4] or ""}"```'
        safe = condition.re is _CONDITION
    if scan(line).kinds[:1] not in ([CONDITION], [MARKER]) or line == text:
        return None
    return replace(replacing(Span(at, at + len(text)), text, line), safe=safe)
