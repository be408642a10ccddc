"""The lines of a document in coloured pieces, for a page that shows its source.

A piece has a kind by which the page colours it: heading, step, key, text, number, word, comment, tag, call, value, code
or mark. A line without pieces is a plain text. The colours only help to read: the parser decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from quire.source import Source

Piece: TypeAlias = tuple[str, str]
Line: TypeAlias = "str | list[Piece]"

LONGEST_LINE = 4_000
"""A longer line is not coloured."""

# A line that ends its own backticks is a branch of a playbook or a piece of code, and opens no fence.
_FENCE = re.compile(r"\s{0,3}(`{3,}(?=[^`]*$)|~{3,})")
_BRANCH = re.compile(r"\s*```\s*(?:if|elif|else|endif)\b[^`]*```\s*", re.IGNORECASE)
_STEP = re.compile(r"#{1,6}\s+(?:STEP|ELSE|IF|ELIF|END)\b.*", re.IGNORECASE)
_HEADING = re.compile(r"#{1,6}\s.*")

# Every repetition is over a class that excludes the character after it, so matching is linear.
_VALUE = r"(?P<value>\{\{[^{}\n]*\}\})"
_MARKDOWN = re.compile(
    rf"{_VALUE}|(?P<call>@[a-z_]+(?=\())|(?P<code>`[^`\n]*`)|(?P<comment><!--[^\n]*?-->)"
    r"|(?P<mark>\*\*[^*\n]+\*\*|^\s*[-*] |^\s*\d{1,4}\. )"
)
_XML = re.compile(
    rf"{_VALUE}|(?P<comment><!--[^\n]*?-->)|(?P<tag></?[A-Za-z_][\w.:-]*|/?>)"
    r"|(?P<key>\b[A-Za-z_][\w.:-]*(?==\"))|(?P<text>\"[^\"\n]*\")"
)
_YAML = re.compile(
    rf"{_VALUE}|(?P<comment>(?:^|(?<=\s))#[^\n]*)|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')"
    r"|(?P<key>[A-Za-z_][\w.-]*(?=\s*:(?:\s|$)))|(?P<mark>^\s*-(?=\s)|[\[\]{},|>](?=[\s\[\]{},]|$)|---$)"
    r"|(?P<word>(?<=[\s:\[,])(?:true|false|null|yes|no)(?=[\s,\]}]|$))|(?P<number>(?<=[\s:\[,])-?\d[\d.]*(?=[\s,\]}]|$))"
)


def source_lines(source: Source, format: str) -> list[Line]:
    """Return the lines of a document."""
    lines = source.text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if format == "pipeline" or source.name.lower().endswith((".yaml", ".yml")):
        return [_pieces(line, _YAML) for line in lines]
    return list(_markdown(lines, xml=format == "directive"))


def _markdown(lines: list[str], *, xml: bool) -> Iterator[Line]:
    fence = ""
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if fence:
            yield _pieces(line, _XML) if xml else ([("code", line)] if line else line)
            if match and match[1].startswith(fence) and not line.strip(" \t`~"):
                fence = ""
        elif match:
            fence = match[1]
            yield [("mark", line)]
        elif _HEADING.fullmatch(line):
            yield [("step" if _STEP.fullmatch(line) else "heading", line)]
        elif _BRANCH.fullmatch(line):
            yield [("call", line)]
        elif not number and line.startswith("<!--"):
            yield [("comment", line)]
        else:
            yield _pieces(line, _MARKDOWN)


def _pieces(line: str, pattern: re.Pattern[str]) -> Line:
    if len(line) > LONGEST_LINE:
        return line
    pieces: list[Piece] = []
    at = 0
    for match in pattern.finditer(line):
        if match.end() == match.start():
            continue
        if match.start() > at:
            pieces.append(("", line[at : match.start()]))
        pieces.append((match.lastgroup or "", match[0]))
        at = match.end()
    if not pieces:
        return line
    return [*pieces, ("", line[at:])] if at < len(line) else pieces
