"""The steps of a pipeline file, also of one that is half typed, and the meaning of the places in it.

A text is cut at its documents and steps by how its lines begin, also if a step is half typed. If its YAML is
broken, the steps that are right are read alone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from quire.formats.pipeline.language import ALL_KINDS, DIALECT_KINDS, KEYS, kinds
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import PipelineFile
from quire.formats.pipeline.walks import parts
from quire.formats.yaml import Node, Sequence, read_yaml
from quire.lsp.yaml_scan import ITEM, CursorPlace, Scanner, closing
from quire.source import Source, Span, line_end, line_start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quire.formats.pipeline.syntax import Pipeline, Step
    from quire.lsp.document_view import View

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


class Tree(Struct, frozen=True):
    """A file as it can be read now."""

    file: PipelineFile
    whole: bool
    """True if all of it could be read; else steps may be missing."""


_TREES: WeakKeyDictionary[View, Tree] = WeakKeyDictionary()


def tree_of(view: View) -> Tree:
    """Return the tree of a file: that of the reader, or the steps that can be read alone if its YAML is broken."""
    if view not in _TREES:
        reading = view.reading
        file = reading.file or reading.partial if reading is not None else None
        if file is not None:
            _TREES[view] = Tree(file, reading.file is not None)
        else:
            _TREES[view] = Tree(readable(view.source), whole=False)
    return _TREES[view]


def file_of(view: View) -> PipelineFile:
    return tree_of(view).file


def cut_of(view: View) -> tuple[Part, ...]:
    """Return the documents of the text, cut at their steps."""
    return parts_of(view.source.text)


def part_at(view: View, offset: int) -> Part:
    """Return the document of the file that holds an offset."""
    cut = cut_of(view)
    return next((part for part in reversed(cut) if part.start <= offset), cut[0])


def item_at(part: Part, offset: int) -> Span | None:
    """Return the step of the list `steps` that holds an offset; None before the first one."""
    at = bisect_right(part.items, offset) - 1
    if at < 0:
        return None
    return Span(part.items[at], part.items[at + 1] if at + 1 < len(part.items) else part.end)


def cursor_place(view: View, offset: int) -> CursorPlace:
    """Return where an offset stands in the YAML. Only the step around it is looked at."""
    part = part_at(view, offset)
    text = view.source.text
    item = item_at(part, offset)
    if item is None and part.items and offset >= part.items[0]:
        item = Span(part.items[0], part.end)
    start, root = (item.start, ("steps",)) if item is not None else (part.start, ())
    return Scanner(text[:offset], start, path=root).place()


def pipeline_at(view: View, offset: int) -> Pipeline | None:
    """Return the pipeline whose document holds an offset."""
    part = part_at(view, offset)
    pipelines = file_of(view).pipelines
    return next((pipeline for pipeline in pipelines if part.start <= pipeline.span.start < part.end), None)


def is_dialect(view: View, offset: int) -> bool:
    """Tell whether the pipeline around an offset is in the Quire dialect, also if it cannot be read."""
    pipeline = pipeline_at(view, offset)
    if pipeline is not None:
        return pipeline.dialect
    part = part_at(view, offset)
    return "\ndialect:" in view.source.text[part.start : part.end]


def count_until(pipeline: Pipeline, offset: int) -> int:
    """Return the number of steps of the list that begin before an offset, or at it."""
    return bisect_right(pipeline.steps, offset, key=attrgetter("span.start"))


def labelled(pipeline: Pipeline) -> Iterator[tuple[str, Step]]:
    """Yield all steps with the labels by which tests and commands name them, parents first."""
    for number, step in enumerate(pipeline.steps, 1):
        yield from below(str(number), step)


def below(label: str, step: Step) -> Iterator[tuple[str, Step]]:
    """Yield a step with its label, and all steps inside of it with theirs."""
    yield label, step
    for name, part in parts(step):
        yield from below(f"{label}.{name}", part)


class Way(Struct, frozen=True):
    """The steps from the top of a pipeline down to a place."""

    pipeline: Pipeline
    steps: tuple[tuple[str, Step], ...]
    """Labels and steps, the outermost first."""
    number: int
    """The number of the outermost one in the list, counted from 0."""

    @property
    def label(self) -> str:
        return self.steps[-1][0]

    @property
    def step(self) -> Step:
        return self.steps[-1][1]


def way_to(view: View, offset: int) -> Way | None:
    """Return the innermost step whose text holds an offset, with the steps around it."""
    pipeline = pipeline_at(view, offset)
    at = _last_before(pipeline, offset) if pipeline is not None else None
    if pipeline is None or at is None:
        return None
    top = pipeline.steps[at]
    item = item_at(part_at(view, offset), offset)
    if item is not None and not item.start <= top.span.start < item.end:
        return None  # the step at the cursor could not be read
    chain = [(str(at + 1), top)]
    while True:
        label, step = chain[-1]
        inner = [
            (f"{label}.{name}", part)
            for name, part in parts(step)
            if part.span.start <= offset and offset <= extent_of(view, part).end
        ]
        if not inner:
            return Way(pipeline, tuple(chain), at)
        chain.append(max(inner, key=lambda pair: pair[1].span.start))


def _last_before(pipeline: Pipeline, offset: int) -> int | None:
    at = count_until(pipeline, offset) - 1
    if at < 0:
        # The dash before the first step.
        return 0 if pipeline.steps and pipeline.steps[0].span.start - offset < 40 else None
    return at


def extent_of(view: View, step: Step) -> Span:
    """Return the whole text of a step: its kind and its body, by brackets or by indentation."""
    text = view.source.text
    start = step.span.start
    before = line_start(text, start)
    lead = text[before:start].rstrip()
    if lead.endswith(("{", ",")) or text[:start].rstrip().endswith(("{", ",")):
        return Span(start, closing(text, start))
    column = start - before
    at = text.find("\n", step.span.end)
    end = line_end(text, step.span.end)
    while 0 <= at < len(text) - 1:
        line = text[at + 1 : line_end(text, at + 1)]
        content = line.lstrip(" ")
        if content and not content.startswith("#") and len(line) - len(content) <= column:
            break
        if content and not content.startswith("#"):
            end = at + 1 + len(line)
        at = text.find("\n", at + 1)
    return Span(start, end)


PlaceKind: TypeAlias = Literal[
    "document", "steps", "step", "body", "args", "pass", "cases", "target", "branches", "capabilities", "fields",
    "field", "tools", "values", "other",
]  # fmt: skip

DOCUMENT_KEYS = ("pipeline", "description", "dialect", "input", "steps", "schema", "fields")
TARGET_KEYS = ("pipeline", "pass", "steps")
FIELD_KEYS = (
    "type", "values", "of", "fields", "schema", "required", "default", "description", "minimum", "maximum",
    "max_length", "pattern", "max_items",
)  # fmt: skip
EXPRESSIONS = frozenset({"value", "on", "over", "init", "until", "when"})
"""Keys whose value is always an expression."""
_STEP_KEYS = frozenset({"do", "collect"})


class YamlPlace(Struct, frozen=True):
    """A mapping, a list or a value of a file."""

    kind: PlaceKind
    step: str = ""
    """The kind of the step around it."""
    name: str = ""
    """The key, the label or the branch that leads to it."""
    depth: tuple[str, ...] = ()
    """The kinds of the steps around, each with the key below which the place is: `for_each.do`."""


def place_of(path: tuple[str, ...]) -> YamlPlace:
    """Return the meaning of the mapping or the list at a path of keys."""
    place = YamlPlace("document")
    for key in path:
        place = place_below(place, key)
    return place


def place_below(place: YamlPlace, key: str) -> YamlPlace:
    """Return the meaning of the value of a key, or of an item."""
    depth, step = place.depth, place.step
    match place.kind:
        case "document":
            if key == "steps":
                return YamlPlace("steps")
            return YamlPlace("fields", name=key) if key in ("input", "fields") else YamlPlace("other", name=key)
        case "steps":
            return YamlPlace("step", depth=depth) if key == ITEM else _in_step(key, depth)
        case "step":
            return _in_step(key, depth)
        case "body":
            return _in_body(place, key)
        case "branches":
            return YamlPlace("step", step, key, depth)
        case "cases":
            return YamlPlace("target", step, key, depth)
        case "target" if key == "steps":
            return YamlPlace("steps", depth=depth)
        case "target" if key == "pass":
            return YamlPlace("pass", step, key, depth)
        case "capabilities" if key == "tools":
            return YamlPlace("tools", step, key, depth)
        case "fields":
            return YamlPlace("field", name=key)
        case "field" if key == "of":
            return YamlPlace("field", name=key)
        case "field" if key == "fields":
            return YamlPlace("fields", name=key)
        case "field" if key == "values":
            return YamlPlace("values", name=key)
    if key == ITEM:
        return YamlPlace(place.kind, step, place.name, depth)
    return YamlPlace("other", step, key, depth)


def _in_step(key: str, depth: tuple[str, ...]) -> YamlPlace:
    if key in ALL_KINDS:
        return YamlPlace("body", key, depth=depth)
    return YamlPlace("other", "", key, depth)


def _in_body(place: YamlPlace, key: str) -> YamlPlace:
    step, depth = place.step, (*place.depth, f"{place.step}.{key}")
    if step == "steps" and key in ("do", ITEM):
        return YamlPlace("step" if key == ITEM else "steps", depth=place.depth)
    if key in _STEP_KEYS:
        return YamlPlace("step", depth=depth)
    named: dict[str, PlaceKind] = {
        "branches": "branches", "cases": "cases", "args": "args", "pass": "pass", "capabilities": "capabilities",
    }  # fmt: skip
    if key == "default" and step == "match":
        return YamlPlace("target", step, key, place.depth)
    if key in named:
        return YamlPlace(named[key], step, key, depth if key == "branches" else place.depth)
    return YamlPlace("other", step, key, place.depth)


def keys_at(place: YamlPlace, dialect: bool) -> tuple[str, ...]:
    """Return the keys that may stand in a mapping; none for one whose keys are names."""
    match place.kind:
        case "document":
            return DOCUMENT_KEYS
        case "step":
            return tuple(kinds(dialect))
        case "body":
            by_kind = kinds(dialect)
            return by_kind.get(place.step, KEYS.get(place.step, DIALECT_KINDS.get(place.step, ())))
        case "target":
            return TARGET_KEYS if dialect else TARGET_KEYS[:2]
        case "capabilities":
            return ("tools",)
        case "field":
            return FIELD_KEYS
    return ()


def is_expression(place: YamlPlace, key: str, tag: str) -> bool:
    """Tell whether the value of a key is an expression; `place` is the mapping around it."""
    if tag:
        return tag == "!expr"
    if place.kind == "body":
        return key in EXPRESSIONS or key == "default"
    return place.kind == "pass"
