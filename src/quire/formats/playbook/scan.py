"""Finds the lines of a playbook that can mean anything, and what is inside fences.

Most lines are plain text. One pattern goes over the whole text and stops only at lines that begin with `#`, `@`, a
backtick or a tilde; everything after it looks at these and takes the text between them as it is. The pattern is
possessive, so its time is linear whatever the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from re import Match

from quire.formats.playbook import fences
from quire.formats.playbook.fences import Fences
from quire.formats.playbook.making import quick
from quire.source import Span

# The groups of a special line; `lastindex` says which of them it is.
NUMBER, STEP, SECTION, CAPTURE, AT, FENCE, TICKS, HASH = 1, 2, 3, 4, 5, 6, 7, 8

_SPECIAL = re.compile(
    # `## STEP 1: Title`, any other `##` section
    r"\n(?:##[^\S\n]++(?:STEP[^\S\n]++([0-9]++):[^\S\n]++(\S.*+)|(\S.*+))"
    # the plain `@output(name)`, any other line that begins with `@`
    r"|[^\S\n]*+(?:@output\(([A-Za-z0-9_]++)\)[^\S\n]*+(?![^\n])|(@.*+)"
    # what may be a fence, other lines of backticks, other headings
    r"|(`{3,}+[^`\n]*+(?![^\n])|~~~.*+)|([`~].*+)|(#.*+)))"
)
_span = quick(Span)
# A number that fits no machine is a slip, and Python refuses to read very long ones.
_MAX_DIGITS = 18


@dataclass(slots=True)
class Scan:
    """`lines` are the special lines outside of fences, as matches in `"\\n" + text`: the start of a match is the
    offset of its line in the text, the end of a match is one more than the end of its line.

    `fenced` has the special lines inside of each fence. `blocks` are the offsets at which the fences begin and end.
    """

    text: str
    lines: list[Match[str]]
    title: Match[str] | None = None
    late_title: Match[str] | None = None
    fenced_title: bool = False
    blocks: list[tuple[int, int]] = field(default_factory=list)
    fenced: list[list[Match[str]]] = field(default_factory=list)
    unclosed: list[Match[str]] = field(default_factory=list)


def scan(text: str) -> Scan:
    lines = list(_SPECIAL.finditer("\n" + text))
    result = Scan(text, lines)
    if any(line.lastindex == FENCE for line in lines):
        _fence(result, lines)
    for line in lines:
        if line.lastindex == HASH and _is_title(line[0]):
            _settle_title(result, line, lines)
            break
    return result


def line_span(line: Match[str]) -> Span:
    """The line without the space around it, as a place in the text."""
    group = line[0]
    start = line.start() - 1
    return _span(start + len(group) - len(group.lstrip()), start + len(group.rstrip()))


def is_section(line: Match[str]) -> bool:
    return line.lastindex == STEP or line.lastindex == SECTION


def step_number(line: Match[str]) -> int | None:
    """The number of a step's heading, or None when the heading is no step's."""
    digits = line[NUMBER]
    if digits is None:
        return None
    if len(digits) > _MAX_DIGITS:
        digits = digits.lstrip("0")
        if len(digits) > _MAX_DIGITS:
            return None
    return int(digits or "0")


def _is_title(line: str) -> bool:
    return line[1] == "#" and line[2:3].isspace() and not line[2:].isspace()


def _settle_title(result: Scan, title: Match[str], lines: list[Match[str]]) -> None:
    at = title.start()
    around = next((block for block in result.blocks if block[0] < at < block[1]), None)
    section = next((line for line in result.lines if is_section(line)), None)
    if section and section.start() < at and (around is None or section.start() < around[0]):
        result.late_title = title
        return
    result.title = title
    if around:
        # The fence around the title is text, so that a playbook which was pasted with its fence stays readable.
        # Where it is closed before any section it was only an example, and its end must not open another.
        result.fenced_title = True
        example = not any(is_section(line) and at < line.start() < around[1] for line in lines)
        rest = [line for line in lines if line.start() > at and not (example and line.end() - 1 == around[1])]
        _fence(result, rest)


def _fence(result: Scan, lines: list[Match[str]]) -> None:
    """Takes what is inside of fences out of the lines."""
    ticks = [line for line in lines if line.lastindex == FENCE]
    found = fences.find([line[0][1:] for line in ticks])
    result.lines = lines
    result.blocks, result.fenced, result.unclosed = [], [], [ticks[at] for at in found.unclosed]
    if found.pairs:
        _take_out(result, ticks, found)


def _take_out(result: Scan, ticks: list[Match[str]], found: Fences) -> None:
    blocks = [(ticks[opening].start(), ticks[closing].end() - 1) for opening, closing in found.pairs]
    inside: list[list[Match[str]]] = [[] for _ in blocks]
    outside: list[Match[str]] = []
    index = 0
    for line in result.lines:
        at = line.start()
        while index < len(blocks) and at > blocks[index][1]:
            index += 1
        if index == len(blocks) or at < blocks[index][0]:
            outside.append(line)
        elif blocks[index][0] < at and line.end() - 1 < blocks[index][1]:
            inside[index].append(line)
    result.lines, result.blocks, result.fenced = outside, blocks, inside
