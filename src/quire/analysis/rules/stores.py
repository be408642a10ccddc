"""Find work that runs side by side and writes the same file or the same kept value (RC101), and stores of pipelines
that nothing reads (DD104).

Only places that are certainly the same are compared: a path that stands in the document, also in the arguments of a
called document, and in a fan a path that does not depend on the item.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from posixpath import normpath
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.analysis.rules.codes import SHARED_WRITE, UNREAD_STORE
from quire.diagnostics import Diagnostic, Related
from quire.expr.syntax import RESERVED
from quire.plan.built_in_tools import STATE, WRITE
from quire.plan.nodes import Sequence, walk
from quire.plan.parts import formulas
from quire.plan.pipeline_work import Agent, Block, Fold, ForEach, Formula, Invoke, Parallel, Repeat, Select
from quire.trust.capabilities import capability

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import EffectFact, Place
    from quire.analysis.proof import Proof
    from quire.analysis.rules import RuleContext
    from quire.plan.nodes import Plan, Step


_FILES = frozenset(
    capability("execute", "tool", tool) for tool in (WRITE, "rye/file-system/edit", "rye/file-system/edit_lines")
)
_STATE = capability("execute", "tool", STATE[1])
MOST_PAIRS = 20
"""Findings about branches in one document."""


class _Write(Struct, frozen=True):
    """A place that is written, as far as it is known."""

    what: str
    """For people: `the file out.md`."""
    effect: EffectFact
    argument: str


def check(proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield a finding for each fan that writes one place in all items, and for each pair of branches that share one."""
    many = {fact.place.key for fact in proof.fans if fact.rounds.as_number not in (0, 1)}
    writes: dict[str, list[_Write]] = {}
    for effect in proof.effects:
        # Hooks of threads act on events, which rarely happen at the same time.
        if effect.by_model or not effect.fans or effect.place.is_thread:
            continue
        for write in _writes(effect):
            yield from _by_all_items(write, many, context)
            if write.what:
                writes.setdefault(write.what, []).append(write)
    pairs = (pair for same in writes.values() for pair in _side_by_side(same))
    for first, write in islice(pairs, MOST_PAIRS):
        place = first.effect.place
        message = f"step {write.effect.place.way} writes {write.what} at the same time as step {place.way}"
        related = Related(context.span(place), f"step {place.way} writes it too")
        yield _finding(message, write, context, related)


def _finding(message: str, write: _Write, context: RuleContext, *related: Related) -> Diagnostic:
    return Diagnostic(
        SHARED_WRITE,
        message,
        context.span(write.effect.place),
        help="write a place of its own each time, or write once after collect",
        related=related,
        confidence="possible" if write.effect.conditions else "proven",
    )


def _writes(effect: EffectFact) -> Iterator[_Write]:
    """Yield the places that an effect writes. Those that are not known have no name."""
    if effect.tool.capability == _STATE:
        yield _write("the kept value", "name", effect, effect.arguments.get("name"))
    elif effect.tool.capability in _FILES:
        files = effect.arguments.get("files")
        if files is None:
            yield _write("the file", "path", effect, effect.arguments.get("path"))
        elif files.is_constant and isinstance(files.constant, list | tuple):
            for file in files.constant:
                path = file.get("path") if hasattr(file, "get") else None
                if isinstance(path, str):
                    yield _Write(f"the file {normpath(path)}", effect, "files")


def _write(what: str, argument: str, effect: EffectFact, value: AbstractValue | None) -> _Write:
    if value is not None and value.is_constant and isinstance(value.constant, str):
        name = normpath(value.constant) if argument == "path" else value.constant
        return _Write(f"{what} {name}", effect, argument)
    return _Write("", effect, argument)


def _by_all_items(write: _Write, many: set[tuple[str, str]], context: RuleContext) -> Iterator[Diagnostic]:
    """Yield a finding if all items of a fan around a write go to the same place."""
    for fan in write.effect.fans:
        work = fan.step.work
        if not isinstance(work, ForEach) or work.max_parallel == 1 or fan.key not in many:
            continue
        if write.what or _is_same_for_all(write, work, fan):
            what = write.what or "the same place"
            message = f"step {write.effect.place.way} writes {what} for every item of step {fan.way}, at the same time"
            yield _finding(message, write, context)
            return


def _is_same_for_all(write: _Write, work: ForEach, fan: Place) -> bool:
    """Tell whether the expression of a place reads nothing that differs between the items of the fan around it."""
    step = write.effect.place.step
    if write.effect.place.document != fan.document or not isinstance(step.work, Invoke):
        return False
    formula = dict(step.work.arguments).get(write.argument)
    if not isinstance(formula, Formula):
        return False
    inside = {inner.capture.name for inner in _steps(work.do) if inner.capture}
    for read in formula.compiled.reads():
        name = read.store
        if name is None or name in inside or (read.path[0] in RESERVED and read.path[0] != "ctx"):
            return False
        # Inside of another loop or a collect, bare names can be bindings.
        if read.path[0] in ("round", "errors"):
            return False
    return not any(isinstance(inner.work, Parallel) for inner in _steps(work.do))


def _steps(step: Step) -> Iterator[Step]:
    return (inner for _, inner in walk(Sequence((step,))))


def _side_by_side(writes: list[_Write]) -> Iterator[tuple[_Write, _Write]]:
    """Yield each write with the first one that another branch of the same `parallel` makes.

    Each is compared with one write of another branch only, so that many writes take linear time.
    """
    first: dict[tuple[str, str, str], _Write] = {}
    for write in writes:
        for fan in write.effect.fans:
            if not fan.branch:
                continue
            key = (*fan.key, fan.way)
            before = first.setdefault(key, write)
            if _branch(before, key) != fan.branch:
                yield before, write
                break


def _branch(write: _Write, key: tuple[str, str, str]) -> str:
    return next((fan.branch for fan in write.effect.fans if (*fan.key, fan.way) == key), "")


def unread_stores(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a finding for each `output` that no expression, prompt or call of the pipeline reads."""
    names: set[str] = set()
    for _, step in plan.steps():
        for _, formula in formulas(step):
            for read in formula.compiled.reads():
                store = read.store
                if store == "errors":
                    names.update(_stores(read.path))
                elif store is not None:
                    names.add(store)
                elif read.path[0] == "ctx" and not _is_base(formula, read.path):
                    return
        if type(step.work) is Agent:
            if step.work.file:
                return  # a prompt of a file can refer to every store
            for reference in step.work.prompt.references():
                if reference.name == "ctx":
                    return
                names.update(_stores(tuple(reference.name.split("."))))
    reported: set[str] = set()
    for step in _kept(plan):
        name = step.capture.name if step.capture else ""
        if name and name not in names and name not in reported:
            reported.add(name)
            message = f"{name} is never read: no expression, prompt or call of the pipeline names it"
            yield Diagnostic(UNREAD_STORE, message, step.span, help="leave the output out, or read it")


def _stores(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that a path may read: `errors.draft` reads how the step of `draft` failed."""
    if path[0] == "ctx":
        return path[1:3] if path[1:2] == ("errors",) else path[1:2]
    if path[0] == "errors":
        return path[:2]
    return () if path[0] in RESERVED else path[:1]


def _is_base(formula: Formula, path: tuple[str, ...]) -> bool:
    """Tell whether `get` reads a part of it only: then each of its reads has the part as well."""
    reads = formula.compiled.reads()
    plain = sum(1 for read in reads if read.path == path and not read.optional)
    return plain <= sum(1 for read in reads if read.optional and read.path[: len(path)] == path)


def _kept(plan: Plan) -> Iterator[Step]:
    """Yield the steps whose stores the steps after them can see, without the last step of the pipeline."""
    waiting = deque(plan.body.steps[:-1])
    if plan.body.steps:
        waiting += _inside(plan.body.steps[-1])
    while waiting:
        step = waiting.popleft()
        if type(step.work) is not Fold:  # it must have an output
            yield step
        if type(step.work) in _SHARING:
            waiting += _inside(step)


def _inside(step: Step) -> list[Step]:
    return [part for _, part in step.work.parts()] if step.work is not None and type(step.work) in _SHARING else []


_SHARING = frozenset((Block, Select, Repeat))
"""Work whose steps write the stores around it."""
