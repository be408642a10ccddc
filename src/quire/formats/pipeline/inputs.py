"""Find out which stores a pipeline reads and when, and from that its inputs, if it does not declare them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct

from quire.expr import RESERVED, Read, reads
from quire.formats.pipeline.prompts import PromptReference, references
from quire.formats.pipeline.syntax import (
    AgentBody,
    CallBody,
    FoldBody,
    ForEachBody,
    MatchBody,
    Name,
    ParallelBody,
    Pipeline,
    ShellBody,
    Step,
    Text,
    ToolBody,
    TransformBody,
    expressions,
    parts,
    targets,
)

if TYPE_CHECKING:
    from quire.source import Span

_NONE: frozenset[str] = frozenset()


class Use(Struct, frozen=True):
    """One place in a step that reads a name."""

    path: tuple[str, ...]
    step: Step
    text: Text | None
    """The text that contains the place; None for a name that is passed on."""
    span: Span
    """Counts from the start of `text`; for a passed name it is the position in the file."""
    index: int
    """Index of the step, or of the top-level step around it."""
    bindings: frozenset[str]
    """Names other than stores that the step can read."""
    first: Mapping[str, int]
    """The stores that top-level steps write, with the index of the first step that does."""
    optional: bool = False
    in_prompt: bool = False

    @property
    def store(self) -> str | None:
        """The store that is read; None for a binding. A bare name in a prompt may not be a reference at all."""
        root = self.path[0]
        if root == "ctx":
            return self.path[1] if len(self.path) > 1 else None
        return None if root in RESERVED or root in self.bindings else root

    def written(self, name: str) -> bool:
        """Tell whether an earlier step writes the store."""
        return self.first.get(name, self.index) < self.index


def uses(pipeline: Pipeline) -> Iterator[Use]:
    """Yield every place that reads, in the order of the steps."""
    first: dict[str, int] = {}
    for index, step in enumerate(pipeline.steps):
        if step.output:
            first.setdefault(step.output.text, index)
    for index, step in enumerate(pipeline.steps):
        yield from _uses(step, index, _NONE, first)


def needed_inputs(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the names of the inputs that a run needs: declared ones without a default, or else inferred ones."""
    if pipeline.input is None:
        return inferred_inputs(pipeline)
    return tuple(one.name for one in pipeline.input if one.is_needed)


def further_inputs(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the names of the inputs that a run can do without."""
    if pipeline.input is None:
        return optional_inputs(pipeline)
    return tuple(one.name for one in pipeline.input if not one.is_needed)


def inferred_inputs(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the names of the stores that are read before any step writes them, in the order of their first use."""
    return _unwritten(pipeline, optional=False)


def optional_inputs(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the inputs that only `get` reads, so that the pipeline runs without them."""
    needed = inferred_inputs(pipeline)
    return tuple(name for name in _unwritten(pipeline, optional=True) if name not in needed)


def unread_inputs(pipeline: Pipeline, given: Iterable[str]) -> tuple[str, ...]:
    """Return the given names that no step reads as an input: most of them are misspelled."""
    read: set[str] = set()
    found = list(uses(pipeline))
    for use, after in zip_longest(found, found[1:]):
        of_a_get = after is not None and after.optional and after.path[0] == "ctx"
        if use.path == ("ctx",) and not of_a_get:
            return ()
        if use.store is not None and not use.written(use.store):
            read.add(use.store)
    return tuple(name for name in given if name not in read)


def _unwritten(pipeline: Pipeline, *, optional: bool) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for use in uses(pipeline):
        if use.optional is not optional or (use.in_prompt and use.path[0] != "ctx"):
            continue
        name = use.store
        if name is not None and not use.written(name):
            found.setdefault(name)
    return tuple(found)


def _uses(step: Step, index: int, bindings: frozenset[str], first: Mapping[str, int]) -> Iterator[Use]:
    """Yield the places of a step that read. `bindings` are for the step itself; nested steps have their own."""

    def use(found: Read | PromptReference, text: Text) -> Use:
        optional = isinstance(found, Read) and found.optional
        in_prompt = isinstance(found, PromptReference)
        return Use(found.path, step, text, found.span, index, bindings, first, optional, in_prompt)

    for expression in expressions(step):
        yield from (use(read, expression) for read in reads(expression.expression))
    if isinstance(step.body, AgentBody):
        yield from (use(reference, step.body.prompt) for reference in references(step.body.prompt.text))
    for name in passed(step):
        yield Use(("ctx", name.text), step, None, name.span, index, bindings, first)
    for (_, part), names in zip(parts(step), inner_bindings(step), strict=True):
        yield from _uses(part, index, names, first)


def passed(step: Step) -> Iterator[Name]:
    """Yield the names that a step passes on in list form."""
    return (one.name for target in targets(step) for one in target.passes if one.value is None)


def inner_bindings(step: Step) -> tuple[frozenset[str], ...]:
    """Return the bindings of each nested step, besides `ctx` and `pipe`."""
    match step.body:
        case ForEachBody():
            return frozenset({"item"}), frozenset({"errors"})
        case ParallelBody(branches=branches):
            names = frozenset(name.text for name, _ in branches)
            return (*(_NONE for _ in branches), names | {"errors"})
        case FoldBody():
            return (frozenset({"item", "acc"}),)
        case TransformBody() | ToolBody() | ShellBody() | AgentBody() | CallBody() | MatchBody():
            return ()
        case _:
            assert_never(step.body)
