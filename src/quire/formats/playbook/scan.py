"""Find the lines of a playbook that can have a meaning, and the content of fences.

Most lines are plain text. One pattern goes over the whole text and stops only at lines that begin with `#`, `@`, a
backtick or a tilde; all later code looks only at these and takes the text between them as it is. The pattern itself
splits well-formed lines into their parts. It takes linear time, also for hostile texts: runs of characters are
possessive, and a repeated group can match in one way only, so backtracking over its repetitions finds nothing new. The
groups themselves are not possessive, because CPython before 3.11.5 matches such groups wrongly.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter, itemgetter
from re import Match

from msgspec import Struct

from quire.formats import markdown
from quire.patterns import late_pattern
from quire.source import Span

# Most lines begin with a character that begins no special line: one look at it skips them. Alternatives begin with a
# plain character where possible, so that most of them are skipped without a match attempt. A match with more than 24
# groups is too large for Python's own allocator and takes twice the time to make.
_SPECIAL = re.compile(
    r"""\n(?=[^0-9A-Za-z\n*-])(?:
    # ## STEP 1: Title (a number that fits no machine is a slip), any other section, a title
      \#\#[^\S\n]++(?:STEP[^\S\n]++(?=[0-9])0*+([0-9]{0,18}+):[^\S\n]++(\S.*+)|(\S.*+))
    | \#[^\S\n]++(\S.*+)
    | [^\S\n]*+(?:
        @(?:
        # @output(name: type, "option", extract:"field")
          output\(([A-Za-z0-9_]++)(?:[^\S\n]*+:[^\S\n]*+([A-Za-z0-9_]++))?
            ((?:,[^\S\n]*+"[^"\n]*+")*)(?:,[^\S\n]*+extract:"([A-Za-z0-9_]++)")?\)()[^\S\n]*+(?![^\n])
        # @elicit(kind, "question", "option", default:"answer")
        | elicit\(([A-Za-z0-9_]++)(?:,(?![^\S\n]*+\))
            ((?:[^\S\n]*+"[^"\n]*+"[^\S\n]*+(?:,(?![^\S\n]*+\))|(?=\))))*)
            (?:[^\S\n]*+default:"([^"\n]*+)"[^\S\n]*+)?)?\)()[^\S\n]*+(?![^\n])
        # any other line that begins with @
        | (.*+)
        )
      # ### STEP 1a: Title, any other heading
      | \#(?:\#\#[^\S\n]++STEP[^\S\n]++([0-9]++[a-z]):[^\S\n]++(\S.*+)|(.*+))
      # ```if name == "value"```, ```else```
      | ```(if|elif|else|endif)(?:
          (?<=[`l]if)[^\S\n]++([A-Za-z0-9_]++)[^\S\n]*+(==|!=)[^\S\n]*+"([^"\n]*+)"[^\S\n]*+```()
        | (?<=else|ndif)```
        )[^\S\n]*+(?![^\n])
      # what may be a fence, any other line that begins with a backtick
      | [`~]((?<=`)`{2,}+[^`\n]*+(?![^\n])|(?<=~)~~.*+)
      | `(.*+)
      )
    )""",
    re.VERBOSE,
)
# The kinds of special lines: the `lastindex` of the match. Every kind after CONDITION is a line of ticks.
STEP, SECTION, TITLE, OUTPUT, ELICIT, AT, SUBSTEP, HASH, MARKER, CONDITION = 2, 3, 4, 9, 13, 14, 16, 17, 18, 22
FENCE, BACKTICKS = 23, 24
# The other groups: parts of a step's heading, of @output, of @elicit, of a sub-step's heading, of a condition.
NUMBER = 1
NAME, TYPE, OPTIONS, FIELD = 5, 6, 7, 8
KIND, TEXTS, DEFAULT = 10, 11, 12
LABEL = 15
VARIABLE, OPERATOR, VALUE = 19, 20, 21

_kind = attrgetter("lastindex")


class Scan(Struct):
    """The special lines and the fences of a text."""

    lines: Sequence[Match[str]]
    """The special lines outside of fences, as matches in `"\\n" + text`.

    The start of a match is the offset of its line in the text, the end of a match is the offset of the next line.
    """
    kinds: Sequence[int]
    """The kind of each line."""
    title: Match[str] | None = None
    late_title: Match[str] | None = None
    fenced_title: bool = False
    blocks: Sequence[tuple[int, int]] = ()
    """The offsets at which the fences begin and end."""
    fenced: Sequence[Sequence[Match[str]]] = ()
    """The special lines inside each fence."""
    unclosed: Sequence[Match[str]] = ()

    def is_fenced(self, at: int) -> bool:
        """Tell whether an offset is inside a fence."""
        before = bisect_right(self.blocks, at, key=itemgetter(0))
        return before > 0 and at < self.blocks[before - 1][1]


def scan(text: str) -> Scan:
    """Scan a text."""
    lines = list(_SPECIAL.finditer("\n" + text))
    kinds = list(map(_kind, lines))
    result = Scan(lines, kinds, lines[0] if kinds and kinds[0] == TITLE else None)
    if FENCE in kinds:
        _fence(result, lines)
    if not result.title and TITLE in kinds:
        _settle_title(result, lines[kinds.index(TITLE)], lines)
    return result


def line_span(line: Match[str]) -> Span:
    """Return the span of the line in the text, without the white space around it."""
    group = line[0]
    start = line.start() - 1
    return Span(start + len(group) - len(group.lstrip()), start + len(group.rstrip()))


def is_section(line: Match[str]) -> bool:
    return line.lastindex == STEP or line.lastindex == SECTION


def step_number(line: Match[str]) -> int | None:
    """Return the number in the heading of a step; None if it is not the heading of a step."""
    return int(line[NUMBER] or 0) if line.lastindex == STEP else None


def _settle_title(result: Scan, title: Match[str], lines: list[Match[str]]) -> None:
    at = title.start()
    around = next((block for block in result.blocks if block[0] < at < block[1]), None)
    section = next((line for line in result.lines if is_section(line)), None)
    if section and section.start() < at and (around is None or section.start() < around[0]):
        result.late_title = title
        return
    result.title = title
    if around:
        # The fence around the title is text, so that a playbook that was pasted with its fence can still be read.
        # If it is closed before any section, it was only an example, and its end must not open another fence.
        result.fenced_title = True
        example = not any(is_section(line) and at < line.start() < around[1] for line in lines)
        rest = [line for line in lines if line.start() > at and not (example and line.end() - 1 == around[1])]
        _fence(result, rest)


def _fence(result: Scan, lines: list[Match[str]]) -> None:
    """Remove the content of fences from the lines."""
    ticks = [index for index, line in enumerate(lines) if line.lastindex == FENCE]
    fences = markdown.find_fences([lines[index][0][1:] for index in ticks])
    result.unclosed = [lines[ticks[at]] for at in fences.unclosed]
    outside: list[Match[str]] = []
    blocks: list[tuple[int, int]] = []
    fenced: list[list[Match[str]]] = []
    after = 0
    for opening, closing in fences.pairs:
        first, last = ticks[opening], ticks[closing]
        outside += lines[after:first]
        blocks.append((lines[first].start(), lines[last].end() - 1))
        fenced.append(lines[first + 1 : last])
        after = last + 1
    result.blocks, result.fenced = blocks, fenced
    result.lines = outside + lines[after:]
    result.kinds = list(map(_kind, result.lines))


_QUIRE_ONLY = late_pattern(r"@(?:context|model)\(|\\|\bfrom:|\n[^\S\n]++@", re.IGNORECASE)
_QUIRE_WORDS = ("\\", "@context(", "@model(", "from:", " @", "\t@")


def may_be_quire_only(text: str) -> bool:
    """Tell whether a text may use what only Quire has; few do. Words are looked for first: the pattern is tried at each
    letter, and takes longer than reading the document."""
    lower = text.lower()
    return any(word in lower for word in _QUIRE_WORDS) and _QUIRE_ONLY.search(text) is not None
