"""The steps of a pipeline file in an editor, also of one that is half typed, and the text that each of them covers."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec import Struct

from quire.formats.pipeline.incremental import Part, parts_of, readable
from quire.formats.pipeline.shifted import shifted_step
from quire.formats.pipeline.walks import parts
from quire.lsp.yaml_scan import CursorPlace, Scanner, closing
from quire.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quire.formats.pipeline.syntax import Pipeline, PipelineFile, Step
    from quire.lsp.views import View


class Tree(Struct, frozen=True):
    """A file as it can be read now."""

    file: PipelineFile
    whole: bool
    """True if all of it could be read; else steps may be missing."""


class StepList(Struct, frozen=True, eq=False):
    """The steps of one pipeline, for what is asked about one place.

    The steps of a text that could be cut have the spans of their own texts. Only the one that is asked for is moved to
    its place: to move all of them after each key takes long, and as much memory as the text many times over.
    """

    pipeline: Pipeline
    """All spans are those of the file, except for those of the steps."""
    offsets: Sequence[int]
    """How far each step has to be moved."""
    texts: Sequence[object]
    """An object for each step, which is another one as soon as the text of the step has changed."""

    def start(self, at: int) -> int:
        """Return where a step of the list begins in the file."""
        return self.pipeline.steps[at].span.start + self.offsets[at]

    def step(self, at: int) -> Step:
        """Return a step of the list at its place."""
        step, by = self.pipeline.steps[at], self.offsets[at]
        return shifted_step(step, by) if by else step

    def count_until(self, offset: int) -> int:
        """Return the number of steps that begin before an offset, or at it."""
        return bisect_right(range(len(self.pipeline.steps)), offset, key=self.start)


_TREES: WeakKeyDictionary[View, Tree] = WeakKeyDictionary()
_LISTS: WeakKeyDictionary[View, tuple[StepList, ...]] = WeakKeyDictionary()


def tree_of(view: View) -> Tree:
    """Return the tree of a file: what the reader gives, or the steps that can be read alone if its YAML is broken."""
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


def outer_of(view: View) -> PipelineFile:
    """Return a file for questions about all but its steps, which may have the spans of their own texts (`StepList`)."""
    cut = view.cut
    file = cut.result.file or cut.result.partial if cut is not None else None
    return file if file is not None else file_of(view)


def step_lists(view: View) -> tuple[StepList, ...]:
    """Return the steps of each pipeline of a file."""
    if view not in _LISTS:
        cut, file = view.cut, outer_of(view)
        if cut is not None and (file is cut.result.file or file is cut.result.partial):
            both = zip(file.pipelines, cut.pipelines, strict=True)
            _LISTS[view] = tuple(StepList(one, steps.part.items, steps.pieces) for one, steps in both)
        else:
            _LISTS[view] = tuple(StepList(one, (0,) * len(one.steps), one.steps) for one in file.pipelines)
    return _LISTS[view]


def cut_of(view: View) -> tuple[Part, ...]:
    """Return the documents of the text, cut at their steps."""
    return parts_of(view.source.text)


def part_at(view: View, offset: int) -> Part:
    """Return the document of the file that holds an offset."""
    found = cut_of(view)
    return next((part for part in reversed(found) if part.start <= offset), found[0])


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


def steps_at(view: View, offset: int) -> StepList | None:
    """Return the steps of the pipeline whose document holds an offset."""
    part = part_at(view, offset)
    return next((one for one in step_lists(view) if part.start <= one.pipeline.span.start < part.end), None)


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

    all: StepList
    """All steps of the pipeline."""
    steps: tuple[tuple[str, Step], ...]
    """Labels and steps, the outermost first, at their places."""
    number: int
    """The number of the outermost one in the list, counted from 0."""

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline, whose steps may have the spans of their own texts."""
        return self.all.pipeline

    @property
    def label(self) -> str:
        return self.steps[-1][0]

    @property
    def step(self) -> Step:
        return self.steps[-1][1]


def way_to(view: View, offset: int) -> Way | None:
    """Return the innermost step whose text holds an offset, with the steps around it."""
    steps = steps_at(view, offset)
    at = _last_before(steps, offset) if steps is not None else None
    if steps is None or at is None:
        return None
    item = item_at(part_at(view, offset), offset)
    if item is not None and not item.start <= steps.start(at) < item.end:
        return None  # the step at the cursor could not be read
    chain = [(str(at + 1), steps.step(at))]
    while True:
        label, step = chain[-1]
        inner = [
            (f"{label}.{name}", one)
            for name, one in parts(step)
            if one.span.start <= offset and offset <= extent_of(view, one).end
        ]
        if not inner:
            return Way(steps, tuple(chain), at)
        chain.append(max(inner, key=lambda one: one[1].span.start))


def _last_before(steps: StepList, offset: int) -> int | None:
    at = steps.count_until(offset) - 1
    if at < 0:
        # The dash before the first step.
        return 0 if steps.pipeline.steps and steps.start(0) - offset < 40 else None
    return at


def extent_of(view: View, step: Step) -> Span:
    """Return the whole text of a step: its kind and its body, by brackets or by indentation."""
    text = view.source.text
    start = step.span.start
    before = text.rfind("\n", 0, start) + 1
    lead = text[before:start].rstrip()
    if lead.endswith(("{", ",")) or text[:start].rstrip().endswith(("{", ",")):
        return Span(start, closing(text, start))
    column = start - before
    at = text.find("\n", step.span.end)
    end = len(text) if at < 0 else at
    while 0 <= at < len(text) - 1:
        line_end = text.find("\n", at + 1)
        line = text[at + 1 : line_end if line_end >= 0 else len(text)]
        content = line.lstrip(" ")
        if content and not content.startswith("#") and len(line) - len(content) <= column:
            break
        if content and not content.startswith("#"):
            end = at + 1 + len(line)
        at = line_end
    return Span(start, end)
