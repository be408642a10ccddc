"""Names that a step of a pipeline reads, and the steps of the same loop or fan that write them.

Blocks and choices share the stores around them, so a name that a step inside writes is not read from outside by the
steps after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from quire.patterns import late_pattern
from quire.plan.nodes import Plan, Step, Think, UseTool
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Formula,
    Invoke,
    Literal,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
)
from quire.plan.thread import Thread

PIPE, ERRORS = "pipe", "errors"
_EACH = frozenset({"item", "acc"})
_IN_BLOCK = late_pattern(r"(?:/steps/\d+|/match\[\d+\]/\d+)+$")
_AFTER_FIRST = late_pattern(r"(.*/(?:steps|match\[\d+\])/)(\d+)")


def reads_at(plan: Plan, path: str) -> list[str]:
    """Return the names that the step at a path of the plan reads, with the steps inside it: stores, `pipe` for the
    incoming value, and `errors.STORE` for a failure that the step of a store may have survived."""
    steps = dict(plan.steps())
    surviving = {one.capture.name for one in steps.values() if one.capture and one.guard and one.guard.goes_on}
    bound: frozenset[str] = frozenset()
    for above, step in steps.items():
        if path.startswith(f"{above}/"):
            bound |= _binds(step, path[len(above) :])
    reads = (_name(one, surviving) for one in _reads(steps[path], bound))
    return list(dict.fromkeys(name for name in reads if name))


def writer_inside(plan: Plan, name: str, path: str, around: str) -> tuple[str, Step] | None:
    """Return the step below `around` that gives the step at a path the value of a name, with its path. None if the
    value comes from outside."""
    steps = dict(plan.steps())
    if name == PIPE:
        return _piped(steps, path, around)
    seen: tuple[str, Step] | None = None
    passed = False
    for at, step in steps.items():
        passed = passed or at == path
        frame = _IN_BLOCK.sub("", at)
        visible = at.startswith(f"{around}/") and not path.startswith(f"{at}/") and f"{path}/".startswith(f"{frame}/")
        if not visible or not step.capture or step.capture.name != name or frame == around:
            continue
        # This step or a later one of a loop may have written it in the round before.
        if not passed or (seen is None and frame.endswith("/repeat")):
            seen = at, step
    return seen


def _piped(steps: dict[str, Step], path: str, around: str) -> tuple[str, Step] | None:
    """Return the step before this one in its block, or before the block around it."""
    while path.startswith(f"{around}/"):
        found = _AFTER_FIRST.fullmatch(path)
        if found and int(found[2]) > 1:
            before = f"{found[1]}{int(found[2]) - 1}"
            return before, steps[before]
        path = path.rpartition("/")[0]
        while path and path not in steps:
            path = path.rpartition("/")[0]
    return None


def _binds(step: Step, rest: str) -> frozenset[str]:
    """Return the names that a step binds for the steps inside it, at the rest of their path."""
    match step.work:
        case Repeat():
            return _EACH | {"round"}
        case Fold():
            return _EACH | ({PIPE} if rest == "/fold" else set())
        case ForEach() | Parallel() if rest.startswith("/collect"):
            names = {name for name, _ in step.work.branches} if isinstance(step.work, Parallel) else set()
            return _EACH | names | {ERRORS} | ({PIPE} if rest == "/collect" else set())
    return _EACH


def _name(read: tuple[str, ...], surviving: set[str]) -> str:
    root = read[0]
    if root == "ctx":
        return read[1] if len(read) > 1 else ""
    if root == ERRORS and len(read) > 1 and read[1] in surviving:
        return f"{ERRORS}.{read[1]}"
    return root


def _reads(step: Step, bound: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Yield the paths that a step reads, including the steps inside it, without the names that are bound there."""
    inside: list[tuple[Step, frozenset[str]]] = []
    if step.guard is not None:
        for around in (step.guard.when, step.guard.default):
            yield from _formula(around, bound) if around is not None else ()
    match step.work:
        case Transform(value=value):
            yield from _formula(value, bound)
        case Invoke(arguments=arguments):
            for _, one in arguments:
                yield from _formula(one, bound)
        case Agent(prompt=prompt):
            for reference in prompt.references():
                if reference.default is None:
                    yield from _free(tuple(reference.name.split(".")), bound)
        case Call(passes=passes):
            for _, formula in passes:
                yield from _formula(formula, bound)
        case Select(on=on, default=default):
            yield from _formula(on, bound)
            if isinstance(default, Formula):
                yield from _formula(default, bound)
            for target in step.work.targets():
                if isinstance(target, Block):
                    inside += _in_sequence(target.body.steps, bound)
                else:
                    for _, formula in target.passes:
                        yield from _formula(formula, bound)
        case Fold(source=source, init=init, do=do):
            yield from _formula(init, bound)
            yield from _formula(source, bound)
            inside = [(do, bound | _EACH | {PIPE})]
        case ForEach(source=source, do=do, collect=collect):
            yield from _formula(source, bound)
            inside = [(do, bound | _EACH), (collect, bound | _EACH | {PIPE, ERRORS})]
        case Parallel(branches=branches, collect=collect):
            names = frozenset(name for name, _ in branches)
            inside = [*((branch, bound) for _, branch in branches), (collect, bound | names | _EACH | {PIPE, ERRORS})]
        case Block(body=body):
            inside = _in_sequence(body.steps, bound)
        case Repeat(init=init, do=do, until=until):
            if init is not None:
                yield from _formula(init, bound)
            names = bound | _EACH | {"round"}
            yield from _formula(until, names | _writes(do))
            inside = [(do, names)]
        case Fail(message=message):
            yield from _formula(message, bound)
        case Stop(value=result):
            yield from _formula(result, bound)
        case None | Think() | UseTool() | Thread():
            pass  # a pipeline has none of these
        case _:
            assert_never(step.work)
    for part, seen in inside:
        yield from _reads(part, seen)


def _in_sequence(steps: Iterable[Step], bound: frozenset[str]) -> list[tuple[Step, frozenset[str]]]:
    """Return the steps of a block, each with what the steps before it have bound."""
    parts = []
    for step in steps:
        parts.append((step, bound))
        bound |= _writes(step) | {PIPE}
    return parts


def _writes(step: Step) -> frozenset[str]:
    """Return the stores that a step writes into the stores around it, and the failures that it may survive."""
    names: set[str] = set()
    if step.capture:
        names |= {step.capture.name, f"{ERRORS}.{step.capture.name}"}
    if isinstance(step.work, Block | Select):
        for _, part in step.work.parts():
            names |= _writes(part)
    return frozenset(names)


def _formula(what: Formula | Literal | None, bound: frozenset[str]) -> Iterator[tuple[str, ...]]:
    if what is None:
        yield from _free((PIPE,), bound)
    elif isinstance(what, Formula):
        for read in what.compiled.reads():
            yield from _free(read.path, bound)


def _free(path: tuple[str, ...], bound: frozenset[str]) -> Iterator[tuple[str, ...]]:
    root = path[1] if path[0] == "ctx" and len(path) > 1 else path[0]
    if root in _EACH or ".".join(path[:2]) in bound:
        return
    # `round` and names of branches hide a store of the same name, but not behind `ctx`. A name that a step before has
    # written is bound together with its failure.
    if root not in bound or (path[0] == "ctx" and f"{ERRORS}.{root}" not in bound):
        yield path
