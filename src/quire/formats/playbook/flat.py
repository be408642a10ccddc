"""The two shapes that most steps have, made in one go: only text, and text that ends in `@output(name)`.

Everything here could be left to drafts, with the same result; it is the inner loop of reading a large document.
"""

from __future__ import annotations

from collections.abc import Sequence
from re import Match

from quire.formats.playbook.making import quick
from quire.formats.playbook.placeholders import Placeholders
from quire.formats.playbook.scan import CAPTURE, STEP
from quire.formats.playbook.syntax import OutputCapture, Step
from quire.source import Span

_step = quick(Step)
_output = quick(OutputCapture)
_span = quick(Span)
_OPENING = len("@output(")


def capture(line: Match[str]) -> OutputCapture:
    """The plain `@output(name)`, by far the most frequent directive."""
    name = line[CAPTURE]
    at = line.start(CAPTURE) - 1
    end = at + len(name)
    return _output(name, None, (), None, _span(at - _OPENING, end + 1), _span(at, end))


def tidied(text: str) -> str:
    """The text without blanks and tabs at the ends of its lines."""
    return "\n".join([line.rstrip(" \t") for line in text.split("\n")])


def flat_step(
    text: str, places: Placeholders, tidy: bool, number: int, heading: Match[str], lines: Sequence[Match[str]], end: int
) -> Step | None:
    """The step under a heading, up to `end`, in which these lines are special; None for any other shape."""
    begin, output = heading.end(), None
    stop = end
    if lines:
        line = lines[0]
        if len(lines) > 1 or line.lastindex != CAPTURE:
            return None
        rest = text[line.end() : end]
        if rest and not rest.isspace():
            return None
        stop = line.start()
        output = capture(line)
    content = text[begin:stop]
    if not tidy:
        content = tidied(content)
    content = content.strip()
    title = heading[STEP].rstrip()
    return _step(
        number,
        str(number),
        title,
        content,
        None,
        output,
        None,
        None,
        (),
        places.between(begin, stop) if "{{" in content else (),
        _span(heading.start(), heading.start(STEP) - 1 + len(title)),
    )
