"""Find the comments that begin with `quire:`, and the part of the document that each one covers.

- YAML (pipelines, tests): a comment behind a line covers that line. On a line of its own it covers the next line and
  all lines below that are indented deeper: a whole step, for instance. Above everything else it covers the file.
- Knowledge: the same for the YAML of its metadata, which is not sent to a model.
- Before the title of a playbook, and before the fence of a directive, a comment covers the file.
- In `## INPUTS` and `## ARTIFACTS` of a playbook it covers the next line.
- In the XML of a directive a comment behind a line covers that line, and one on a line of its own covers the next
  element. Only places where the format skips comments count: `<permissions>`, for instance, is sent as it is.

Everything else is text for a model, where a comment covers nothing. Code fences are skipped: they show examples.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.formats import YAML
from quire.patterns import late_pattern
from quire.source import Source, Span

if TYPE_CHECKING:
    from quire.formats.playbook.scan import Scan

WORD = "quire:"
"""The word that such a comment begins with. Most documents do not have it."""

_OPENING = late_pattern(r"<!--[ \t]*+quire:")
_SKIPPING = ("", "directive", "metadata", "inputs", "outputs", "hooks", "context", "cost")
"""The elements in which comments are skipped; the empty name is for the place before the root."""
_COMMENT = late_pattern(r"(?<![^ \t\n])#[ \t]*+quire:[^\n]*+")
_BODY_KEY = late_pattern(r"^(?:body|content)[ \t]*+:", re.MULTILINE)


class Comment(Struct, frozen=True):
    """A comment that begins with `quire:`."""

    text: str
    """The words, without the signs of the comment."""
    span: Span
    covers: Span | None
    """The part of the document that it is about; None if the comment is a part of a text."""
    whole: bool = False
    """True if it covers the file."""


def comments(source: Source, format: str) -> Iterator[Comment]:
    """Yield the comments of a document, in the order of its text."""
    match format:
        case "playbook":
            yield from _in_playbook(source)
        case "directive":
            yield from _in_directive(source)
        case "knowledge":
            yield from _in_knowledge(source)
        case _:
            yield from _in_yaml(source, Span(0, len(source.text)))


def _in_playbook(source: Source) -> Iterator[Comment]:
    """Yield the comments of a playbook that end a line outside of fences."""
    from quire.formats.playbook.scan import SECTION, STEP, scan

    result = scan(source.text)
    heads = [line for line in result.lines if line.lastindex in (STEP, SECTION)]
    starts = [line.start() for line in heads]
    title = result.title.start() if result.title else 0
    for span in _in_markdown(source, Span(0, len(source.text)), result):
        at = bisect_right(starts, span.start) - 1
        covers = None
        if span.start < title and at < 0:
            covers = Span(0, len(source.text))
        elif at >= 0 and heads[at].lastindex == SECTION:
            # Only some lines of these sections have a meaning.
            is_list = " ".join(heads[at][SECTION].upper().split()) in ("INPUTS", "ARTIFACTS", "OUTPUT")
            covers = _next_line(source, span) if is_list else None
        yield _comment(source, span, covers if _is_alone(source, span) else None)


def labelled_steps(source: Source) -> dict[str, tuple[Span, ...]]:
    """Return where the steps of a playbook are, by label. A step extends to the next step or section, a sub-step to the
    next marker as well."""
    from quire.formats.playbook.scan import CONDITION, LABEL, MARKER, NUMBER, SECTION, STEP, SUBSTEP, scan

    steps: dict[str, list[Span]] = {}
    step_end = substep_end = len(source.text)
    for line in reversed(scan(source.text).lines):
        kind, at = line.lastindex, line.start()
        if kind == STEP:
            steps.setdefault(line[NUMBER] or "0", []).append(Span(at, step_end))
        elif kind == SUBSTEP:
            steps.setdefault(line[LABEL], []).append(Span(at, substep_end))
        if kind in (STEP, SECTION):
            step_end = substep_end = at
        elif kind in (SUBSTEP, MARKER, CONDITION):
            substep_end = at
    return {label: tuple(reversed(spans)) for label, spans in steps.items()}


def _in_directive(source: Source) -> Iterator[Comment]:
    """Yield the comments before the fence, in it, and those of the body, which are text."""
    from quire.formats.markdown import Fence, find_fence
    from quire.formats.playbook.scan import scan

    scanned = scan(source.text)
    fence = find_fence(source.text, "xml")
    if not isinstance(fence, Fence):
        return
    for span in _in_markdown(source, Span(0, fence.whole.start), scanned):
        yield _comment(source, span, Span(0, len(source.text)) if _is_alone(source, span) else None)
    yield from _in_xml(source, fence.content)
    for span in _in_markdown(source, Span(fence.whole.end, len(source.text)), scanned):
        yield _comment(source, span, None)


def _in_markdown(source: Source, part: Span, scanned: Scan) -> Iterator[Span]:
    """Yield comments that end a line outside of fences. A second comment on a line is not looked for."""
    text, last = source.text, 0
    for match in _OPENING.finditer(text, part.start, part.end):
        number = source.position(match.start()).line
        if number == last:
            continue
        last = number
        line = source.line_span(number)
        end = text.find("-->", match.end(), line.end)
        if end >= 0 and not scanned.is_fenced(match.start()) and not text[end + 3 : line.end].strip():
            yield Span(match.start(), end + 3)


def _is_alone(source: Source, comment: Span) -> bool:
    line = source.line_span(source.position(comment.start).line)
    return not source.text[line.start : comment.start].strip() and not source.text[comment.end : line.end].strip()


def _next_line(source: Source, comment: Span) -> Span:
    """Return the next line that is neither blank nor a comment; an empty span at the end of the text."""
    for number in range(source.position(comment.start).line + 1, len(source.starts()) + 1):
        text = source.line(number).strip()
        if text and not text.startswith("<!--"):
            return _whole_line(source, number)
    return Span(len(source.text), len(source.text))


def _whole_line(source: Source, number: int) -> Span:
    line = source.line_span(number)
    return Span(line.start, line.end + 1)


class _Open:
    """An element whose end has not been found, with the comments that are about it."""

    def __init__(self, name: str, start: int, about: list[Span]) -> None:
        self.name = name
        self.start = start
        self.about = about
        self.waiting: list[Span] = []
        """Comments in it that are about its next child."""


def _in_xml(source: Source, content: Span) -> Iterator[Comment]:
    """Yield the comments of the XML, in the order in which the parts that they cover end."""
    from quire.formats.directive.xml import ENDS, REST_OF_TAG, TAG
    from quire.plan.vocabulary import OPAQUE

    text, at = source.text, content.start
    stack = [_Open("", content.start, [])]
    while match := TAG.search(text, at, content.end):
        inner = stack[-1]
        if closing := ENDS.get(match[0]):
            end = text.find(closing, match.end(), content.end)
            at = content.end if end < 0 else end + len(closing)
            if match[0] == "<!--" and _OPENING.match(text, match.start()) and end >= 0:
                span = Span(match.start(), at)
                if inner.name not in _SKIPPING:
                    yield _comment(source, span, None)
                elif _is_alone(source, span):
                    inner.waiting.append(span)
                else:
                    yield _comment(source, span, _whole_line(source, source.position(span.start).line))
            continue
        rest = REST_OF_TAG.match(text, match.end(), content.end)
        at = rest.end() if rest else content.end
        name, is_closing, is_empty = match[2], bool(match[1]), text.endswith("/>", match.start(), at)
        if not is_closing:
            stack.append(_Open(name, match.start(), inner.waiting))
            inner.waiting = []
            if not is_empty and name in OPAQUE:
                end = text.find(f"</{name}", at, content.end)
                at = content.end if end < 0 else end
        if (is_closing or is_empty) and len(stack) > 1:
            done = stack.pop()
            yield from (_comment(source, span, Span(done.start, at)) for span in done.about)
            yield from (_comment(source, span, Span(span.end, span.end)) for span in done.waiting)
    for left in stack:
        yield from (_comment(source, span, Span(span.end, span.end)) for span in (*left.about, *left.waiting))


def _comment(source: Source, span: Span, covers: Span | None) -> Comment:
    text = source.text[span.start : span.end].removeprefix("<!--").removesuffix("-->").strip()
    return Comment(text, span, covers, covers == Span(0, len(source.text)))


def _in_knowledge(source: Source) -> Iterator[Comment]:
    """Yield the comments of the metadata. A YAML file without a key for its text is a text as a whole."""
    from quire.formats.markdown import Fence, find_fence

    fence = None if PurePath(source.name).suffix.lower() in YAML else find_fence(source.text, "yaml")
    if isinstance(fence, Fence):
        yield from _in_yaml(source, fence.content)
    else:
        yield from _in_yaml(source, Span(0, len(source.text)), is_text=not _BODY_KEY.search(source.text))


def _in_yaml(source: Source, part: Span, *, is_text: bool = False) -> Iterator[Comment]:
    """Yield the comments of a part that is YAML; `is_text` if it is sent to a model as it is."""
    matches = list(_COMMENT.finditer(source.text, part.start, part.end))
    if not matches:
        return
    texts = _texts(source, part)
    starts = [text.start for text in texts]
    lines = _Lines(source, part)
    for match in matches:
        inside = bisect_right(starts, match.start()) - 1
        span = Span(match.start(), match.start() + len(match[0].rstrip()))
        in_text = is_text or (inside >= 0 and span.start < texts[inside].end)
        covers = None if in_text else lines.covered(span)
        yield Comment(match[0].lstrip("# \t").rstrip(), span, covers, covers == Span(0, len(source.text)))


def _texts(source: Source, part: Span) -> list[Span]:
    """Return where quoted texts and blocks are. The first line of a block is left out: it may end in a comment."""
    import yaml

    from quire.formats.yaml.parser_events import Events

    inside = source.text[part.start : part.end]
    texts = []
    for event, start, end in Events(Source(source.name, inside)):
        if isinstance(event, yaml.ScalarEvent) and event.style:
            first = inside.find("\n", start, end) if event.style in "|>" else start
            texts.append(Span(part.start + (end if first < 0 else first), part.start + end))
    return texts


class _Lines:
    """The lines of a YAML text with their indentation."""

    def __init__(self, source: Source, part: Span) -> None:
        self._source = source
        self._first = source.position(part.start).line
        written = source.text[part.start : part.end].split("\n")
        self._depths = [_depth(line) for line in written]
        self._end = part.end

    def covered(self, comment: Span) -> Span:
        """Return the part of the text that a comment covers."""
        here = self._source.position(comment.start).line
        line = self._source.line_span(here)
        if self._depths[here - self._first] is not None:
            return Span(line.start, line.end + 1)
        depths = self._depths
        if all(depth is None for depth in depths[: here - self._first]):
            return Span(0, len(self._source.text))
        at = here - self._first + 1
        while at < len(depths) and depths[at] is None:
            at += 1
        if at == len(depths):
            return Span(comment.end, comment.end)
        depth, end = depths[at] or 0, at + 1
        while end < len(depths) and ((below := depths[end]) is None or below > depth):
            end += 1
        return Span(self._start(at), self._start(end) if end < len(depths) else self._end)

    def _start(self, at: int) -> int:
        return self._source.starts()[self._first - 1 + at]


def _depth(line: str) -> int | None:
    """Return how far a line of YAML is indented; None for a line without content."""
    text = line.lstrip(" \t")
    return None if not text or text[0] == "#" or text.rstrip() == "---" else len(line) - len(text)
