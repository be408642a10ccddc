"""Check the targets of `call` and `match`: they must exist, get their inputs, and not lead back to the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

from quire.expr.syntax import Constant
from quire.formats.pipeline.check_stores import wrong_value
from quire.formats.pipeline.codes import errors, warnings
from quire.formats.pipeline.inputs import Use, needed_inputs, uses
from quire.formats.pipeline.syntax import Pipeline, PipelineFile, Target
from quire.formats.pipeline.walks import all_targets, holes
from quire.formats.resolver import CallTarget, Circle, DocumentInterface, DocumentResolver
from quire.wording import listed, quoted

if TYPE_CHECKING:
    from quire.formats.pipeline.fields import Fields
    from quire.schema import Field

Find: TypeAlias = Callable[[str, Pipeline], Pipeline | None]
Inputs: TypeAlias = "dict[str, Field | None]"
"""The inputs that a called document declares; None for one that cannot be read."""

_MAX_CYCLES = 20
_SHOWN = 8


def finder(file: PipelineFile, resolver: DocumentResolver | None) -> Find:
    """Return a function that finds the pipeline of a name.

    The pipelines of the file itself come first: siblings call each other by their bare names. A name that is not
    registered means the checked pipeline itself, as in a run of its file.
    """
    siblings = {pipeline.name.text: pipeline for pipeline in file.pipelines}

    def find(name: str, caller: Pipeline) -> Pipeline | None:
        if name in siblings and siblings.get(caller.name.text) is caller:
            return siblings[name]
        registered = resolver.pipeline(name, caller) if resolver else None
        return registered or (siblings.get(name) if len(siblings) == 1 else None)

    return find


def call_cycles(pipeline: Pipeline, find: Find, done: set[int] | None = None) -> list[tuple[tuple[str, ...], Target]]:
    """Return the cycles of pipelines that can be reached from here.

    Each has the names along it, and the target of this pipeline by which it is entered. `done` are the pipelines that
    were checked before, by identity.
    """
    cycles: list[tuple[tuple[str, ...], Target]] = []
    done = set() if done is None else done
    if id(pipeline) in done:
        return cycles
    way: dict[int, tuple[Pipeline, Iterator[Target]]] = {id(pipeline): (pipeline, all_targets(pipeline))}
    first: Target | None = None
    while way and len(cycles) < _MAX_CYCLES:
        key = next(reversed(way))
        here, left = way[key]
        target = next(left, None)
        if target is None:
            done.add(key)
            del way[key]
            continue
        if first is None or len(way) == 1:
            first = target
        callee = find(target.pipeline.text, here)
        if callee is None or id(callee) in done:
            continue
        if id(callee) in way:
            names = [caller.name.text for caller, _ in way.values()]
            cycles.append((tuple(names[list(way).index(id(callee)) :]), first))
        else:
            way[id(callee)] = (callee, all_targets(callee))
    return cycles


class CallChecker:
    """Checks the calls of one file.

    With a resolver, every target that is not found does not exist, except for `unread`; and circles through documents
    of other formats are found as well.
    """

    def __init__(
        self, find: Find, fields: Fields, resolver: DocumentResolver | None, *, unread: frozenset[str] = frozenset()
    ) -> None:
        self._find = find
        self._resolver = resolver
        self._unread = unread
        self._fields = fields
        self._done: set[int] = set()
        self._needs: dict[int, tuple[tuple[str, ...], frozenset[str] | None]] = {}
        self._inputs: dict[int, Inputs] = {}

    def check(self, pipeline: Pipeline) -> None:
        fields = self._fields
        for names, target in call_cycles(pipeline, self._find, self._done):
            circle = Circle(CallTarget(target.pipeline.text), names, decided=False)
            fields.report(errors.CYCLE, f"the pipeline {circle}", target.pipeline.span)
        self._check_circles(pipeline)
        for target in all_targets(pipeline):
            callee = self._find(target.pipeline.text, pipeline)
            if callee is not None:
                self._check_passes(target, callee)
            elif self._resolver is not None and target.pipeline.text not in self._unread:
                document = self._resolver.document(target.pipeline.text)
                if document is not None:
                    self._check_inputs(target, document)
                else:
                    message = f"unknown pipeline, playbook or directive {quoted(target.pipeline.text)}"
                    fields.report(warnings.UNKNOWN_PIPELINE, message, target.pipeline.span)
            earlier: set[str] = set()
            for name in (passed.name for passed in target.passes):
                if name.text in earlier:
                    fields.report(warnings.NEEDLESS_PASS, f"{name.text} is passed twice", name.span)
                earlier.add(name.text)

    def _check_circles(self, pipeline: Pipeline) -> None:
        """Report circles that involve documents of other formats."""
        first: dict[str, Target] = {}
        for target in all_targets(pipeline):
            first.setdefault(target.pipeline.text, target)
        if self._resolver is None or not first:
            return
        calls = [CallTarget(name) for name in first]
        for circle in self._resolver.circles(self._fields.source, calls, pipeline.name.text):
            span = first[circle.call.name].pipeline.span
            if circle.decided:
                help = "the call that closes it would fail; leave one of them out"
                self._fields.report(warnings.DECIDED_CIRCLE, str(circle), span, help)
            else:
                self._fields.report(errors.CYCLE, str(circle), span, "leave one of these calls out")

    def _check_inputs(self, target: Target, callee: DocumentInterface) -> None:
        """Check the inputs for a document of another format. Values are checked only if they are constants."""
        names = {passed.name.text: passed.name for passed in target.passes}
        if missing := callee.missing(names):
            self._fields.report(warnings.CALLEE_INPUTS, missing, target.pipeline.span)
        for unknown, hint in callee.unknown(names):
            message = f"the {callee.format} {callee.name} has no input {unknown}"
            self._fields.report(warnings.CALLEE_INPUTS, message, names[unknown].span, hint)
        for passed in target.passes:
            name, root = passed.name, passed.value.expression.root if passed.value else None
            problem = callee.wrong(name.text, root.value) if isinstance(root, Constant) else ""
            if problem:
                message = f"the {callee.format} {callee.name} cannot take this {name.text}: {problem}"
                self._fields.report(warnings.CALLEE_INPUTS, message, name.span)

    def _check_passes(self, target: Target, callee: Pipeline) -> None:
        needed, read = self._needs.get(id(callee)) or self._needs.setdefault(id(callee), needs_of(callee))
        names = {passed.name.text: passed.name for passed in target.passes}
        missing = [name for name in needed if name not in names]
        if missing:
            verb = "reads" if callee.input is None else "needs"
            message = f"{callee.name.text} {verb} {listed(missing, _SHOWN)}, which is not passed to it"
            help = f"pass: [{', '.join([*names, *missing])}]" if len(missing) + len(names) <= _SHOWN else ""
            self._fields.report(warnings.NOT_PASSED, message, target.pipeline.span, help)
        if callee.input is not None:
            if id(callee) not in self._inputs:
                readable = {field.name: field for field in callee.input}
                self._inputs[id(callee)] = {name.text: readable.get(name.text) for name in callee.input_names}
            self._check_declared(target, callee, self._inputs[id(callee)])
            return
        for text, name in names.items() if read is not None else ():
            if read is not None and text not in read:
                help = self._fields.suggestion(text, read)
                message = f"{callee.name.text} never reads {text}"
                self._fields.report(warnings.NEEDLESS_PASS, message, name.span, help)

    def _check_declared(self, target: Target, callee: Pipeline, inputs: Inputs) -> None:
        """Report passed names that a called document does not declare, and constants that do not fit."""
        for passed in target.passes:
            name, root = passed.name.text, passed.value.expression.root if passed.value else None
            if name not in inputs:
                message = f"{callee.name.text} has no input {name}"
                help = self._fields.suggestion(name, inputs) or f"it takes {listed(list(inputs), _SHOWN) or 'none'}"
                self._fields.report(warnings.CALLEE_INPUTS, message, passed.name.span, help)
                continue
            field = inputs[name]
            value = root.value if isinstance(root, Constant) else None
            if field and value is not None and (problem := wrong_value(field, value)):
                message = f"{callee.name.text} cannot take this {name}: {problem}"
                self._fields.report(warnings.CALLEE_INPUTS, message, passed.name.span)


def needs_of(callee: Pipeline) -> tuple[tuple[str, ...], frozenset[str] | None]:
    """Return the names that a pipeline needs, and all that it may read; None if it may read any."""
    places = [*uses(callee)]
    whole = any(use.path == ("ctx",) and not _is_base(use, then) for use, then in zip_longest(places, places[1:]))
    read = None if whole or holes(callee) else frozenset(name for use in places if (name := use.store) is not None)
    return needed_inputs(callee), read


def _is_base(use: Use, then: Use | None) -> bool:
    """Tell whether a `get` reads from this place: then the place of the `get` itself is the next one."""
    return then is not None and then.optional and then.text is use.text and then.path[: len(use.path)] == use.path
