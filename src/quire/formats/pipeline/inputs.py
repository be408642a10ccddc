"""Find out which stores a pipeline reads and when, and from that its inputs, if it does not declare them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar, assert_never, cast

from msgspec import Struct

from quire.expr import RESERVED, Read, reads
from quire.formats.pipeline import syntax
from quire.formats.pipeline.known_types import LOOP_NAMES
from quire.formats.pipeline.prompt_references import PromptReference, references
from quire.formats.pipeline.walks import blocks, expressions, own_prompts, parts, shared_parts, targets, walk

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Name, Pipeline, Step, Text
    from quire.source import Span

_NONE: frozenset[str] = frozenset()
T = TypeVar("T")


class Written(Struct, frozen=True):
    """Where a store is first written. Steps are numbered in the order in which they begin and end."""

    begins: int
    ends: int
    label: str
    when: str = ""
    """The condition of the step."""


class Use(Struct, frozen=True):
    """One place in a step that reads a name."""

    path: tuple[str, ...]
    step: Step
    text: Text | None
    """The text that contains the place; None for a name that is passed on."""
    span: Span
    """Counts from the start of `text`; for a passed name it is the position in the file."""
    index: int
    """The number at which the step begins."""
    bindings: frozenset[str]
    """Names other than stores that the step can read."""
    first: Mapping[str, Written]
    """The stores that the step could see if they were written in time."""
    certain: Mapping[str, int]
    """Of those, the ones that no `when` and no `match` may leave unwritten, with the number from which they exist."""
    optional: bool = False
    in_prompt: bool = False

    @property
    def store(self) -> str | None:
        """The store that is read; None for a binding. A bare name in a prompt may not be a reference at all."""
        root = self.path[0]
        if root == "ctx":
            return self.path[1] if len(self.path) > 1 else None
        if root == "errors" and self.written(root):
            return root
        return None if root in RESERVED or root in self.bindings else root

    def written(self, name: str) -> bool:
        """Tell whether an earlier step may have written the store."""
        written = self.first.get(name)
        return written is not None and written.ends < self.index

    def certainly_written(self, name: str) -> bool:
        """Tell whether an earlier step has written the variable even if some steps were skipped."""
        return self.certain.get(name, self.index) < self.index


def uses(pipeline: Pipeline) -> Iterator[Use]:
    """Yield every place that reads, in the order of the steps."""
    walk = _UseWalk(frozenset({"errors"}) if any(map(_survives, pipeline.steps)) else _NONE)
    for number, step in enumerate(pipeline.steps, 1):
        walk.count(step, str(number))
    yield from walk.scope(pipeline.steps, walk.base, {}, {})


def _survives(step: Step) -> bool:
    """Tell whether a step, or one in it, has an output and does not end the run when it fails: then all steps can read
    `errors`."""
    if step.guard is not None and step.guard.on_error and step.output:
        return True
    return any(_survives(part) for _, part in parts(step))


def needed_inputs(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the names of the inputs that a run needs: declared ones without a default, or else inferred ones."""
    if pipeline.input is None:
        return inferred_inputs(pipeline)
    return tuple(field.name for field in pipeline.input if field.is_needed)


def further_inputs(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the names of the inputs that a run can do without."""
    if pipeline.input is None:
        return optional_inputs(pipeline)
    return tuple(field.name for field in pipeline.input if not field.is_needed)


def inferred_inputs(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the names of the stores that are read before any step writes them, in the order of their first use."""
    return _unwritten(pipeline, optional=False)


def optional_inputs(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the inputs that only `get` reads, so that the pipeline runs without them."""
    needed = inferred_inputs(pipeline)
    return tuple(name for name in _unwritten(pipeline, optional=True) if name not in needed)


def unread_inputs(pipeline: Pipeline, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that no step reads as an input: most of them are misspelled."""
    read: set[str] = set()
    if any(isinstance(step.body, syntax.AgentBody) and step.body.is_file for _, step in walk(pipeline)):
        return ()  # a prompt file may refer to any of them
    places = list(uses(pipeline))
    for use, after in zip_longest(places, places[1:]):
        of_a_get = after is not None and after.optional and after.path[0] == "ctx"
        if use.path == ("ctx",) and not of_a_get:
            return ()
        if use.store is not None and not use.written(use.store):
            read.add(use.store)
    return tuple(name for name in names if name not in read)


def _unwritten(pipeline: Pipeline, *, optional: bool) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for use in uses(pipeline):
        if use.optional is not optional or (use.in_prompt and use.path[0] != "ctx"):
            continue
        name = use.store
        if name is not None and not use.written(name):
            names.setdefault(name)
    return tuple(names)


class _UseWalk:
    """One walk through the steps of a pipeline. A scope is the stores that a sequence of steps shares, with the blocks
    in it. Steps are counted before they are walked through, each under the number at which it begins."""

    def __init__(self, base: frozenset[str]) -> None:
        self.base = base
        """The names besides stores that every step can read."""
        self._number = 0
        """The number of the next step to begin or end."""
        self._begins: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._labels: dict[int, str] = {}

    def count(self, step: Step, label: str) -> None:
        """Number a step and those in it."""
        self._begins[id(step)], self._labels[id(step)] = self._number, label
        self._number += 1
        for name, part in parts(step):
            self.count(part, f"{label}.{name}")
        self._ends[id(step)] = self._number
        self._number += 1

    def scope(
        self,
        steps: Iterable[Step],
        bindings: frozenset[str],
        outer: Mapping[str, Written],
        certain: Mapping[str, int],
    ) -> Iterator[Use]:
        """Yield the uses of steps that share stores of their own, on top of those around them."""
        steps = tuple(steps)
        own: dict[str, Written] = {}
        for step in steps:
            for name, written in self._writes(step):
                before = own.get(name) or outer.get(name)
                if before is None or before.ends > written.ends:
                    own[name] = written
        # Never a copy of what is around: a document may have thousands of scopes in thousands of stores.
        yield from self._sequence(steps, bindings, ChainMap(own, _writable(outer)) if own else outer, certain)

    def _writes(self, step: Step) -> Iterator[tuple[str, Written]]:
        """Yield the stores that a step writes into its scope, those of the blocks in it included."""
        for part in shared_parts(step):
            yield from self._writes(part)
        if step.output:
            when = step.guard.when.text if step.guard and step.guard.when else ""
            here = id(step)
            yield step.output.text, Written(self._begins[here], self._ends[here], self._labels[here], when)

    def _sequence(
        self, steps: Iterable[Step], bindings: frozenset[str], first: Mapping[str, Written], certain: Mapping[str, int]
    ) -> Iterator[Use]:
        written = ChainMap({}, _writable(certain))
        for step in steps:
            yield from self._step(step, bindings, first, written)
            for name, at in self._certain(step):
                written.setdefault(name, at)

    def _certain(self, step: Step) -> Iterator[tuple[str, int]]:
        """Yield the variables that a step writes if the run continues after it."""
        if step.guard is not None and step.guard.when is not None and step.guard.default is None:
            return
        if isinstance(step.body, syntax.StepsBody) and not (
            step.guard and step.guard.on_error and step.guard.on_error.goes_on
        ):
            for part in step.body.steps:
                yield from self._certain(part)
        if step.output:
            yield step.output.text, self._ends[id(step)]

    def _step(
        self, step: Step, bindings: frozenset[str], first: Mapping[str, Written], certain: Mapping[str, int]
    ) -> Iterator[Use]:
        """Yield the places of a step that read. `bindings` are for the step itself; nested steps have their own."""
        index = self._begins[id(step)]

        def use(read: Read | PromptReference, text: Text, names: frozenset[str] = bindings) -> Use:
            optional = isinstance(read, Read) and read.optional
            in_prompt = isinstance(read, PromptReference)
            return Use(read.path, step, text, read.span, index, names, first, certain, optional, in_prompt)

        for expression in expressions(step):
            yield from (use(read, expression) for read in reads(expression.expression))
        for prompt in own_prompts(step):
            yield from (use(reference, prompt) for reference in references(prompt.text))
        for name in passed(step):
            yield Use(("ctx", name.text), step, None, name.span, index, bindings, first, certain)
        if isinstance(step.body, syntax.StepsBody | syntax.MatchBody):
            for block in blocks(step):
                yield from self._sequence(block, bindings, first, certain)
            return
        for (_, part), names in zip(parts(step), inner_bindings(step, bindings, self.base), strict=True):
            yield from self.scope((part,), names, first, certain)
        if isinstance(step.body, syntax.RepeatBody):
            # The test of a loop sees what its step has written.
            names = inner_bindings(step, bindings, self.base)[0]
            inner = {**dict(self._writes(step.body.do)), **first}
            sure = {**dict(self._certain(step.body.do)), **certain}
            for read in reads(step.body.until.expression):
                at, text = self._ends[id(step)], step.body.until
                yield Use(read.path, step, text, read.span, at, names, inner, sure, read.optional)
        elif isinstance(step.body, syntax.ForEachBody | syntax.ParallelBody) and step.body.default is not None:
            names = inner_bindings(step, bindings, self.base)[0]
            yield from (use(read, step.body.default, names) for read in reads(step.body.default.expression))


def _writable(names: Mapping[str, T]) -> MutableMapping[str, T]:
    """Return the same names under the type that a `ChainMap` takes; it never writes into this part."""
    return cast("MutableMapping[str, T]", names)


def passed(step: Step) -> Iterator[Name]:
    """Yield the names that a step passes on in list form."""
    return (passed.name for target in targets(step) for passed in target.passes if passed.value is None)


def inner_bindings(step: Step, own: frozenset[str], base: frozenset[str] = _NONE) -> tuple[frozenset[str], ...]:
    """Return the bindings of each nested step, besides `ctx` and `pipe`. `own` are those of the step itself, `base`
    those that every step has."""
    match step.body:
        case syntax.ForEachBody(sees_loops=sees_loops):
            base = base | (own & LOOP_NAMES if sees_loops else _NONE)
            return base | {"item"}, base | {"errors"}
        case syntax.ParallelBody(branches=branches, sees_loops=sees_loops):
            base = base | (own & LOOP_NAMES if sees_loops else _NONE)
            names = frozenset(name.text for name, _ in branches)
            return (*(base for _ in branches), base | names | {"errors"})
        case syntax.FoldBody():
            return (base | (own & {"round"}) | {"item", "acc"},)
        case syntax.RepeatBody():
            return (own | {"acc", "round"},)
        case syntax.StepsBody() | syntax.MatchBody():
            return tuple(own for _ in parts(step))
        case (
            syntax.TransformBody()
            | syntax.ToolBody()
            | syntax.ShellBody()
            | syntax.AgentBody()
            | syntax.CallBody()
            | syntax.FailBody()
            | syntax.StopBody()
        ):
            return ()
        case _:
            assert_never(step.body)
