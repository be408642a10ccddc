"""Names that a step of a pipeline reads, and the steps of the same loop or parallel items that write them.

Blocks and choices share the variables around them, so a name that a step inside writes is not read from outside by the
steps after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.patterns import late_pattern
from quire.plan.parts import binds, formulas
from quire.plan.pipeline_work import Agent, Fold, ForEach, Repeat, Stop

if TYPE_CHECKING:
    from quire.plan.nodes import Plan, Step, Work

PIPE, ERRORS = "pipe", "errors"
_EACH = ("item", "acc")
_IN_BLOCK = late_pattern(r"(?:/steps/\d+|/match\[\d+\]/\d+)+$")
_AFTER_FIRST = late_pattern(r"(.*/(?:steps|match\[\d+\])/)(\d+)")


def reads_at(plan: Plan, path: str) -> list[str]:
    """Return the names that the step at a path of the plan reads, with the steps inside it: stores, `pipe` for the
    incoming value, and `errors.STORE` for a failure that the step of a store may have survived."""
    steps = dict(plan.steps())
    surviving = {step.capture.name for step in steps.values() if step.capture and step.guard and step.guard.goes_on}
    bound: frozenset[str] = frozenset()
    for above, step in steps.items():
        if path.startswith(f"{above}/"):
            bound |= _binds(step.work, path[len(above) :]) if step.work is not None else bound
    names = (_name(read, surviving) for read in _reads(steps[path], bound))
    return list(dict.fromkeys(name for name in names if name))


def writer_inside(plan: Plan, name: str, path: str, around: str) -> tuple[str, Step] | None:
    """Return the step below `around` that gives the step at a path the value of a name, with its path. None if the
    value comes from outside."""
    steps = dict(plan.steps())
    if name == PIPE:
        return _piped(steps, path, around)
    writer: tuple[str, Step] | None = None
    passed = False
    for at, step in steps.items():
        passed = passed or at == path
        frame = _IN_BLOCK.sub("", at)
        visible = at.startswith(f"{around}/") and not path.startswith(f"{at}/") and f"{path}/".startswith(f"{frame}/")
        if not visible or not step.capture or step.capture.name != name or frame == around:
            continue
        # This step or a later one of a loop may have written it in the round before.
        if not passed or (writer is None and frame.endswith("/repeat")):
            writer = at, step
    return writer


def _piped(steps: dict[str, Step], path: str, around: str) -> tuple[str, Step] | None:
    """Return the step before this one in its block, or before the block around it."""
    while path.startswith(f"{around}/"):
        match = _AFTER_FIRST.fullmatch(path)
        if match and int(match[2]) > 1:
            before = f"{match[1]}{int(match[2]) - 1}"
            return before, steps[before]
        path = path.rpartition("/")[0]
        while path and path not in steps:
            path = path.rpartition("/")[0]
    return None


def _binds(work: Work, rest: str) -> frozenset[str]:
    """Return the names that work binds for the step at the rest of a path. Only the step at a part itself is given the
    pipe of the part; those further inside are given one by the steps before them."""
    part = rest.removeprefix("/")
    return binds(work, part) - ({PIPE} if part not in work.binds else set())


def _name(read: tuple[str, ...], surviving: set[str]) -> str:
    root = read[0]
    if root == "ctx":
        return read[1] if len(read) > 1 else ""
    if root == ERRORS and len(read) > 1 and read[1] in surviving:
        return f"{ERRORS}.{read[1]}"
    return root


def _reads(step: Step, bound: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Yield the paths that a step and its inner steps read, without the names that are bound where they stand."""
    work = step.work
    for role, formula in formulas(step):
        names = bound
        if isinstance(work, Repeat) and role == "until":
            names |= binds(work, "repeat") | _writes(work.do)
        yield from (read.path for read in formula.compiled.reads() if _is_free(read.path, names))
    match work:
        case Agent(prompt=prompt):
            paths = (tuple(reference.name.split(".")) for reference in prompt.references() if reference.default is None)
            yield from (path for path in paths if _is_free(path, bound))
        case Fold(source=None) | ForEach(source=None) | Stop(value=None) if PIPE not in bound:
            yield (PIPE,)
    if work is None:
        return
    sequence, names_so_far = "", bound
    for part, inner in work.parts():
        around = part.rpartition("/")[0]
        if around != sequence or not around:
            sequence, names_so_far = around, bound | binds(work, part)
        yield from _reads(inner, names_so_far)
        names_so_far |= _writes(inner) | {PIPE}


def _writes(step: Step) -> frozenset[str]:
    """Return the stores that a step writes into the stores around it, and the failures that it may survive."""
    names = {step.capture.name, f"{ERRORS}.{step.capture.name}"} if step.capture else set[str]()
    parts = step.work.parts() if step.work is not None and step.work.shares_stores else ()
    return frozenset(names.union(*(_writes(part) for _, part in parts)))


def _is_free(path: tuple[str, ...], bound: frozenset[str]) -> bool:
    root = path[1] if path[0] == "ctx" and len(path) > 1 else path[0]
    if root in _EACH or ".".join(path[:2]) in bound:
        return False
    # `round` and names of branches hide a store of the same name, but not behind `ctx`. A name that a step before has
    # written is bound together with its failure.
    return root not in bound or (path[0] == "ctx" and f"{ERRORS}.{root}" not in bound)
