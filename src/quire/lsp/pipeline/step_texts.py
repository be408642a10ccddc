"""Cut the text of a pipeline file at its documents and steps, and read the steps of a text whose YAML is broken.

The cut looks only at how lines begin, so it is there whatever is half typed inside of a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import PipelineFile
from quire.formats.yaml import Node, Sequence, read_yaml
from quire.source import Source, Span

_STEPS = re.compile(r"^steps:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*(?=( *)-[ \n])", re.MULTILINE)
_AFTER_DASH = (" ", "\n")
_NOT_BLANK = re.compile(r"[^\n]")
_MOST_STEPS = 2_000


class Part(Struct, frozen=True):
    """One document of a file, and where each of its steps begins."""

    start: int
    end: int
    items: tuple[int, ...] = ()
    column: int = 0
    """The column in which the steps begin."""

    @property
    def head(self) -> int:
        """Where the text before the steps ends."""
        return self.items[0] if self.items else self.end

    @property
    def spans(self) -> list[Span]:
        """The places of the steps."""
        return [Span(start, end) for start, end in zip(self.items, (*self.items[1:], self.end), strict=False)]


@lru_cache(maxsize=2)
def parts_of(text: str) -> tuple[Part, ...]:
    """Cut a text into its documents, and each of them at its steps if that is possible."""
    starts = [0, *_later_documents(text)]
    return tuple(_part(text, start, end) for start, end in zip(starts, (*starts[1:], len(text)), strict=True))


def _later_documents(text: str) -> Iterator[int]:
    """Yield where the documents behind the first one begin. A pattern would be tried at each line."""
    at = text.find("\n---")
    while at >= 0:
        if text[at + 4 : at + 5] in ("", " ", "\t", "\n"):
            yield at + 1
        at = text.find("\n---", at + 1)


def _part(text: str, start: int, end: int) -> Part:
    match = _STEPS.search(text, start, end)
    if match is None:
        return Part(start, end)
    column = len(match[1])
    mark = "\n" + " " * column + "-"
    first = match.end()
    # The text before each dash, but for the first: splitting is several times as quick as searching one by one.
    before, *between = text[first + column + 1 : end].split(mark)
    items, at = [first], first + column + 1 + len(before)
    for number, piece in enumerate(between, 1):
        # A dash is followed by a space or a line end, which is that of the next item if nothing is between them.
        if piece[:1] in _AFTER_DASH if piece else number < len(between):
            items.append(at + 1)
        at += len(mark) + len(piece)
    return Part(start, end, tuple(items), column)


@lru_cache(maxsize=_MOST_STEPS)
def node_of(text: str, column: int) -> Node | None:
    """Return the YAML of one item of a list whose items begin at a column; None if it is not plainly right."""
    if _outside(column).search(text):
        return None
    yaml = read_yaml(Source("", text))
    node = yaml.documents[0] if len(yaml.documents) == 1 else None
    if yaml.diagnostics or not isinstance(node, Sequence) or len(node.items) != 1:
        return None
    return node.items[0]


@lru_cache(maxsize=32)
def _outside(column: int) -> re.Pattern[str]:
    """Return what matches any line that would end a list whose items begin at a column."""
    left = rf"| {{0,{column - 1}}}-" if column else ""
    return re.compile(rf"^(?: {{0,{column}}}[^ \n#-]{left}| {{{column}}}-(?![ \n]))", re.MULTILINE)


def readable(source: Source) -> PipelineFile:
    """Return what can be read of a text whose YAML is broken: its schemas, and the steps that are right.

    The other steps become empty ones of the same length, so that everything else keeps its place, and are left out of
    the result.
    """
    text = source.text
    pieces: list[str] = []
    empty: set[int] = set()
    for part in parts_of(text):
        if read_yaml(Source("", text[part.start : part.head])).diagnostics:
            pieces.append(_blank(text[part.start : part.end]))
            continue
        pieces.append(text[part.start : part.head])
        for span in part.spans:
            step = span.of(text)
            if node_of(step, part.column) is None:
                dash = part.column + 1
                empty.add(span.start + dash)
                step = step[:dash] + _blank(step[dash:])
            pieces.append(step)
    reading = parse(Source(source.name, "".join(pieces)), registered=True)
    file = reading.file or reading.partial
    if file is None:
        return PipelineFile((), ())
    pipelines = [
        replace(pipeline, steps=tuple(step for step in pipeline.steps if step.span.start not in empty))
        for pipeline in file.pipelines
    ]
    return replace(file, pipelines=tuple(pipelines))


def _blank(text: str) -> str:
    return _NOT_BLANK.sub(" ", text)
