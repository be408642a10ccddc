"""Read a pipeline file again after a change, and parse only the steps whose text is new.

The text is cut where a document or a step of a pipeline begins. Each piece is read by itself and its tree is kept by
its text, with spans that count from the start of the piece. The result is exactly that of `parse`: whenever a cut may
change the meaning (anchors, mistakes in the YAML, lists in brackets, unusual lines), the whole text is read instead.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Seq
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.parse import KnownSteps, parse, read_documents
from quire.formats.pipeline.shifted import shifted_finding, shifted_node, shifted_step
from quire.formats.pipeline.steps import StepReader
from quire.formats.pipeline.syntax import ParseResult, PipelineFile, Step
from quire.formats.yaml import MAX_DEPTH, Entry, Mapping, Node, Scalar, Sequence, YamlReading, read_yaml
from quire.source import MAX_DOCUMENT_BYTES, Source, Span
from quire.text_diff import common_prefix, common_suffix

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic

_ANCHOR = re.compile(r"(?<![^\s,:\[{-])&[^\s&]")
"""Matches every anchor, and texts that look like one."""
_SPECIAL = ("\n%", "\n...", "\ufeff", "\x85", "\u2028", "\u2029")
"""Directives, ends of documents, and characters that YAML treats in its own way."""
_STEPS = re.compile(r"^steps:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*(?=( *)-[ \n])", re.MULTILINE)
_AFTER_DASH = (" ", "\n")
_MOST_FINDINGS = 20
"""Above this many findings the limits of one reading on suggestions may count, so the whole text is read."""
_MOST_PIECES = 8_000
_MOST_LEVELS = MAX_DEPTH - 10


class Piece(Struct, frozen=True):
    """A step of the list `steps`, read by itself. All spans count from the start of its text."""

    step: Step
    diagnostics: tuple[Diagnostic, ...]
    lost: tuple[Step, ...]


class PlacedPiece(Struct, frozen=True):
    """A piece at its place in a text."""

    start: int
    piece: Piece
    known: KnownSteps
    """The same step with the spans of the whole text."""


class Part(Struct, frozen=True):
    """One document of a file: the text before its steps, and where each of its steps begins."""

    start: int
    head: int
    """Where the text before the steps ends; the end of the document if it is not cut."""
    end: int
    items: tuple[int, ...] = ()
    column: int = 0
    """The column in which the steps begin."""

    @property
    def spans(self) -> list[Span]:
        """The places of the steps."""
        return [Span(start, end) for start, end in zip(self.items, (*self.items[1:], self.end), strict=False)]

    def span(self, at: int) -> Span:
        """Return the place of one step."""
        return Span(self.items[at], self.items[at + 1] if at + 1 < len(self.items) else self.end)


class CutSteps(Struct, frozen=True):
    """The steps of one pipeline, each with the spans of its own text."""

    steps: tuple[Step, ...]
    """No two are the same object, even if their texts are the same."""
    pieces: tuple[Piece, ...]
    part: Part
    """The place of each text."""


class CutReading(Struct, frozen=True):
    """A reading whose steps have not been moved to their places: most of a check does not need their places."""

    result: ParseResult
    """All spans are those of the file, except for those of the steps."""
    pipelines: tuple[CutSteps, ...]
    """The steps of each pipeline of the result."""


_KnownSteps: TypeAlias = Callable[[Part, Seq[Piece]], KnownSteps]


class _ReadPart(Struct, frozen=True):
    """The pieces of one document of the last version of a text."""

    body: str
    """The text of all steps."""
    starts: list[int]
    """Where each step begins in it."""
    column: int
    dialect: bool
    pieces: list[Piece]


class IncrementalReader:
    """Reads the versions of one text after each other."""

    def __init__(self) -> None:
        self._placed: dict[int, PlacedPiece] = {}
        self._nodes: dict[tuple[int, str], Node] = {}
        self._parts: dict[int, _ReadPart] = {}
        """By the number of the document in the text."""
        self._cut_source: Source | None = None
        self._cuts: dict[bool, CutReading | None] = {}
        """The last text that was cut, by whether it was read as a registered one."""

    def parse(self, source: Source, *, registered: bool = False, limit: int = MAX_DOCUMENT_BYTES) -> ParseResult:
        """Return what `quire.formats.pipeline.parse.parse` returns."""
        placed: dict[int, PlacedPiece] = {}
        found = self._from_pieces(source, registered, limit, lambda part, pieces: self._moved(part, pieces, placed))
        if found is None:
            return parse(source, registered=registered, limit=limit)
        self._placed = placed
        return found

    def cut(self, source: Source, *, registered: bool, limit: int = MAX_DOCUMENT_BYTES) -> CutReading | None:
        """Read a text as `parse` does, but leave its steps where their own texts begin. Return None if the text cannot
        be cut."""
        if self._cut_source is not source:
            self._cut_source, self._cuts = source, {}
        if registered not in self._cuts:
            self._cuts[registered] = self._cut(source, registered, limit)
        return self._cuts[registered]

    def _cut(self, source: Source, registered: bool, limit: int) -> CutReading | None:
        lists: list[CutSteps] = []

        def known(part: Part, pieces: Seq[Piece]) -> KnownSteps:
            steps = _distinct(pieces)
            found: list[Diagnostic] = []
            for start, piece in zip(part.items, pieces, strict=True):
                found += [shifted_finding(one, start) for one in piece.diagnostics]
            lists.append(CutSteps(steps, tuple(pieces), part))
            return KnownSteps(steps, tuple(found))

        result = self._from_pieces(source, registered, limit, known)
        if result is None:
            return None
        file = result.file or result.partial
        by_steps = {id(one.steps): one for one in lists}
        cut = [by_steps.get(id(pipeline.steps)) for pipeline in (file.pipelines if file else ())]
        pipelines = tuple(one for one in cut if one is not None)
        return CutReading(result, pipelines) if len(pipelines) == len(cut) else None

    def _from_pieces(self, source: Source, registered: bool, limit: int, make: _KnownSteps) -> ParseResult | None:
        if source.size > limit or _needs_all(source.text):
            return None
        documents: list[Node] = []
        known: dict[Span, KnownSteps] = {}
        nodes: dict[tuple[int, str], Node] = {}
        for number, part in enumerate(parts_of(source.text)):
            head = source.text[part.start : part.head]
            read = _documents(head)
            if read is None or (part.items and not (len(read) == 1 and _is_cut_pipeline(read[0]))):
                return None
            for node in read:
                key = (part.start, head)
                nodes[key] = at = self._nodes.get(key) or shifted_node(node, part.start)
                if part.items and isinstance(at, Mapping):
                    pieces = self._pieces(source.text, number, part, _is_dialect(at))
                    if pieces is None:
                        return None
                    span = Span(part.items[0], part.end)
                    known[span] = make(part, pieces)
                    *others, last = at.entries
                    at = Mapping((*others, Entry(last.key, Sequence((), span))), at.span)
                documents.append(at)
        self._nodes = nodes
        if sum(len(one.diagnostics) for one in known.values()) > _MOST_FINDINGS:
            return None
        return read_documents(YamlReading(source, tuple(documents), ()), registered=registered, known=known)

    def _pieces(self, text: str, number: int, part: Part, dialect: bool) -> list[Piece] | None:
        """Return the pieces of a document; None if one of them cannot be read by itself. Those before and behind the
        change since the last version are known."""
        first = part.items[0]
        body, starts = text[first : part.end], [start - first for start in part.items]
        known, kept, after = self._parts.get(number), 0, 0
        if known is not None and known.column == part.column and known.dialect is dialect:
            kept, after = _same_pieces(known, body, starts)
        ends = (*starts[1:], len(body))
        found = known.pieces[:kept] if known is not None else []
        for at in range(kept, len(starts) - after):
            piece = piece_of(body[starts[at] : ends[at]], dialect, part.column)
            if piece is None:
                return None
            found.append(piece)
        if known is not None and after:
            found += known.pieces[-after:]
        self._parts[number] = _ReadPart(body, starts, part.column, dialect, found)
        return found

    def _moved(self, part: Part, pieces: Seq[Piece], placed: dict[int, PlacedPiece]) -> KnownSteps:
        """Return pieces at their places. Those that were there before are not moved again."""
        steps: list[Step] = []
        found: list[Diagnostic] = []
        lost: list[Step] = []
        before = self._placed
        for start, piece in zip(part.items, pieces, strict=True):
            one = before.get(start)
            if one is None or one.piece is not piece:
                one = _placed(piece, start)
            placed[start] = one
            steps += one.known.steps
            if piece.diagnostics:
                found += one.known.diagnostics
            if piece.lost:
                lost += one.known.lost
        return KnownSteps(tuple(steps), tuple(found), tuple(lost))


def _same_pieces(known: _ReadPart, body: str, starts: list[int]) -> tuple[int, int]:
    """Return how many pieces at the beginning and at the end of a text are those of the version before."""
    most = min(len(body), len(known.body))
    before = common_prefix(known.body, body, most)
    behind = common_suffix(known.body, body, most - before)
    if before == len(body) == len(known.body):
        return len(starts), 0
    # Whether a step begins at a place depends on the line end before it and on the character behind its dash.
    kept = max(bisect_right(starts, before - known.column - 2) - 1, 0)
    after = len(starts) - bisect_left(starts, len(body) - behind + 1)
    return kept, after


def _distinct(pieces: Seq[Piece]) -> tuple[Step, ...]:
    """Return the steps of pieces. Walks know steps by their identity, so a step that is there twice is copied."""
    if len({id(one) for one in pieces}) == len(pieces):
        return tuple([one.step for one in pieces])
    seen: set[int] = set()
    steps = []
    for one in pieces:
        steps.append(shifted_step(one.step, 0) if id(one) in seen else one.step)
        seen.add(id(one))
    return tuple(steps)


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
    found = _STEPS.search(text, start, end)
    if found is None:
        return Part(start, end, end)
    column = len(found[1])
    mark = "\n" + " " * column + "-"
    first = found.end()
    # The text before each dash, but for the first: splitting is several times as quick as searching one by one.
    before, *between = text[first + column + 1 : end].split(mark)
    items, at = [first], first + column + 1 + len(before)
    for number, piece in enumerate(between, 1):
        # A dash is followed by a space or a line end, which is that of the next item if nothing is between them.
        if piece[:1] in _AFTER_DASH if piece else number < len(between):
            items.append(at + 1)
        at += len(mark) + len(piece)
    return Part(start, first, end, tuple(items), column)


def _needs_all(text: str) -> bool:
    """Tell whether a text has something that makes it impossible to read its parts alone."""
    if text.startswith(("%", "...")) or any(one in text for one in (_SPECIAL if not text.isascii() else _SPECIAL[:2])):
        return True
    return "&" in text and _ANCHOR.search(text) is not None


@lru_cache(maxsize=32)
def _outside(column: int) -> re.Pattern[str]:
    """Return what matches any line that would end a list whose items begin at a column."""
    left = rf"| {{0,{column - 1}}}-" if column else ""
    return re.compile(rf"^(?: {{0,{column}}}[^ \n#-]{left}| {{{column}}}-(?![ \n]))", re.MULTILINE)


@lru_cache(maxsize=512)
def _documents(text: str) -> tuple[Node, ...] | None:
    """Return the documents of a text; None if its YAML is not plainly right."""
    yaml = read_yaml(Source("", text))
    return None if yaml.diagnostics or any(map(_is_deep, yaml.documents)) else yaml.documents


@lru_cache(maxsize=_MOST_PIECES)
def piece_of(text: str, dialect: bool, column: int) -> Piece | None:
    """Read one item of a list of steps that begin at a column; None if its YAML is not plainly right."""
    node = node_of(text, column)
    if node is None:
        return None
    fields = Fields(Source("", text))
    fields.dialect = dialect
    reader = StepReader(fields)
    step = reader.step(node, "a step")
    return Piece(step, tuple(fields.diagnostics), tuple(reader.lost))


def node_of(text: str, column: int) -> Node | None:
    """Return the YAML of one item of a list whose items begin at a column; None if it is not plainly right."""
    if _outside(column).search(text):
        return None
    yaml = read_yaml(Source("", text))
    node = yaml.documents[0] if len(yaml.documents) == 1 else None
    if yaml.diagnostics or not isinstance(node, Sequence) or len(node.items) != 1 or _is_deep(node):
        return None
    return node.items[0]


def readable(source: Source) -> PipelineFile:
    """Return what can be read of a text whose YAML is broken: its schemas, and the steps that are right."""
    documents: list[Node] = []
    known: dict[Span, KnownSteps] = {}
    for part in parts_of(source.text):
        head = source.text[part.start : part.head]
        for node in _documents(head) or ():
            at = shifted_node(node, part.start)
            if part.items and isinstance(at, Mapping) and _is_cut_pipeline(at):
                dialect = _is_dialect(at)
                ends = (*part.items[1:], part.end)
                pieces = [
                    (start, piece_of(source.text[start:end], dialect, part.column))
                    for start, end in zip(part.items, ends, strict=True)
                ]
                span = Span(part.items[0], part.end)
                known[span] = KnownSteps(tuple(shifted_step(one.step, start) for start, one in pieces if one))
                *others, last = at.entries
                at = Mapping((*others, Entry(last.key, Sequence((), span))), at.span)
            documents.append(at)
    read = read_documents(YamlReading(source, tuple(documents), ()), registered=True, known=known)
    return read.file or read.partial or PipelineFile((), ())


def _placed(piece: Piece, start: int) -> PlacedPiece:
    found = tuple(shifted_finding(one, start) for one in piece.diagnostics)
    lost = tuple(shifted_step(one, start) for one in piece.lost)
    return PlacedPiece(start, piece, KnownSteps((shifted_step(piece.step, start),), found, lost))


def _is_cut_pipeline(node: Node) -> bool:
    """Tell whether a document is a pipeline whose steps are missing at its end."""
    if not isinstance(node, Mapping) or not node.find("pipeline") or node.find("schema"):
        return False
    last = node.entries[-1]
    return last.key.value == "steps" and isinstance(last.value, Scalar) and last.value.value is None


def _is_dialect(node: Mapping) -> bool:
    """Tell whether steps are read with the keys of the dialect: also beside a dialect that is not known."""
    return node.find("dialect") is not None


def _is_deep(node: Node) -> bool:
    """Tell whether a node is nested so deep that the limit may depend on what is around it."""
    level: list[Node] = [node]
    for _ in range(_MOST_LEVELS):
        below: list[Node] = []
        for one in level:
            if isinstance(one, Sequence):
                below += one.items
            elif isinstance(one, Mapping):
                below += [entry.value for entry in one.entries]
        if not below:
            return False
        level = below
    return True
