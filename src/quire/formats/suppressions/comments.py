"""Find the comments that begin with `quire:`, and the part of the document that each one covers.

- YAML (pipelines, tests): a comment behind a line covers that line. On a line of its own it covers the next line and
  all lines below that are indented deeper: a whole step, for instance. Above everything else it covers the file.
- Knowledge: the same for the YAML of its metadata, which is not sent to a model.
- Playbooks and directives: see `markdown_comments`.

A comment inside a text, such as a prompt, covers nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import PurePath

from msgspec import Struct

from quire.formats import YAML
from quire.patterns import late_pattern
from quire.source import Source, Span

WORD = "quire:"
"""The word that such a comment begins with. Most documents do not have it."""

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
    if WORD not in source.text:
        return
    if format in ("playbook", "directive"):
        from quire.formats.suppressions.markdown_comments import in_directive, in_playbook

        yield from (in_playbook if format == "playbook" else in_directive)(source)
    elif format == "knowledge":
        yield from _knowledge(source)
    else:
        yield from _yaml(source, Span(0, len(source.text)))


def _knowledge(source: Source) -> Iterator[Comment]:
    """Yield the comments of the metadata. A YAML file without a key for its text is a text as a whole."""
    from quire.formats.markdown import Fence, find_fence

    fence = None if PurePath(source.name).suffix.lower() in YAML else find_fence(source.text, "yaml")
    if isinstance(fence, Fence):
        yield from _yaml(source, fence.content)
    else:
        yield from _yaml(source, Span(0, len(source.text)), is_text=not _BODY_KEY.search(source.text))


def _yaml(source: Source, part: Span, *, is_text: bool = False) -> Iterator[Comment]:
    """Yield the comments of a part that is YAML; `is_text` if it is sent to a model as it is."""
    found = list(_COMMENT.finditer(source.text, part.start, part.end))
    if not found:
        return
    texts = _texts(source, part)
    starts = [one.start for one in texts]
    lines = _Lines(source, part)
    for match in found:
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
        while end < len(depths) and ((found := depths[end]) is None or found > depth):
            end += 1
        return Span(self._start(at), self._start(end) if end < len(depths) else self._end)

    def _start(self, at: int) -> int:
        return self._source.starts()[self._first - 1 + at]


def _depth(line: str) -> int | None:
    """Return how far a line of YAML is indented; None for a line without content."""
    text = line.lstrip(" \t")
    return None if not text or text[0] == "#" or text.rstrip() == "---" else len(line) - len(text)
