"""The walk of a document that another one calls: how deep it may be, how its requests are labelled, what it may do.

A plan knows the labels of its own steps only. The caller of a document adds the label of the calling step in front of
the label of every request that comes out of it, level by level: `3 › 1` is step 1 of the document that step 3 calls.
Labels are for people: the added part never enters a path or a recorded hash.

A thread may call a document that was granted more than the thread itself; every request of the callee is rewritten to
carry the caller's grants, and its model calls are paid from the caller's purse.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire.engine.requests import (
    Boundary,
    Bounds,
    Emit,
    Fan,
    Meter,
    Metering,
    ModelRequest,
    Request,
    Spawn,
    ToolRequest,
    Walk,
)
from quire.errors import BadInputs, StepFailed
from quire.plan.vocabulary import MAX_LEVELS
from quire.plan.ways import JOINT

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.budget import Purse
    from quire.engine.interpreter.thread.limits import Limits
    from quire.engine.pure_work import PureWork
    from quire.plan.nodes import Plan
    from quire.values import Value


def check_nesting(prefix: str, path: str) -> None:
    """Raise `StepFailed` if the steps of a callee, whose paths begin with `prefix`, would be nested too deep.

    Each call waits on Python's stack for the call that it made. A chain that is too long for the stack must fail its
    step, and at the same place in every process that replays the run, however much of the stack is in use there.
    """
    if prefix.count("/") > MAX_LEVELS:
        raise StepFailed("the calls are nested too deep", kind="depth", path=path)


def called_with(plan: Plan, given: Mapping[str, Value], path: str, work: PureWork) -> dict[str, Value]:
    """Return the inputs of a pipeline that is called: checked, with defaults, if it declares them. `path` is blamed for
    a wrong call."""
    if plan.declared is None:
        return dict(given)
    from quire.engine.declared_inputs import checking_work, complete_declared

    work.used += checking_work(plan, given)
    try:
        return complete_declared(plan, given)
    except BadInputs as error:
        message = f"{plan.title} cannot be called so: {'; '.join(error.problems)}"
        raise StepFailed(message, kind="call", path=path) from None


def below(label: str, walk: Walk) -> Walk:
    """Return the walk of a callee that the step with this label calls, its requests labelled with the way to them."""
    above = f"{label}{JOINT}"

    def labelled(request: Request) -> Generator[Request, Any, Any]:
        try:
            return (yield _named(request, label, above))
        except StepFailed as failed:
            # The failure of a branch of a fan was already labelled when it left the branch, and comes out here again.
            failed.label = failed.label.removeprefix(above)
            raise

    try:
        return (yield from _relayed(walk, labelled))
    except StepFailed as failed:
        failed.label = f"{above}{failed.label}" if failed.label else ""
        raise


def confined(walk: Walk, grants: tuple[str, ...], purse: Purse, limits: Limits | None = None) -> Walk:
    """Return the same walk, restricted to what its caller may do.

    A thread inside it has bounds of its own and keeps them.
    """

    def paid(request: Request) -> Generator[Request, Any, Any]:
        error: StepFailed | None = None
        try:
            answer = yield _held(request, grants, purse, limits)
        except StepFailed as failed:
            error = failed
        if isinstance(request, ModelRequest) and request.bounds is None:
            meters: list[Meter] = yield Metering((request.path,))
            for meter in meters:
                purse.pay(meter.cost)
        if error is not None:
            raise error
        return answer

    return _relayed(walk, paid)


def _relayed(walk: Walk, relay: Callable[[Request], Generator[Request, Any, Any]]) -> Walk:
    """Return a walk that answers each request of another one with what `relay` makes of it."""
    answer: Any = None
    error: StepFailed | None = None
    try:
        while True:
            request = walk.send(answer) if error is None else walk.throw(error)
            answer = error = None
            try:
                answer = yield from relay(request)
            except StepFailed as failed:
                error = failed
    except StopIteration as stop:
        result: Value = stop.value
        return result
    finally:
        walk.close()


def _named(request: Request, label: str, above: str) -> Request:
    match request:
        case Emit() | ToolRequest() | Boundary():
            if request.label:
                request.label = f"{above}{request.label}"
            return request
        case Metering():
            return request
        case Fan(children=children):
            return replace(request, children=(below(label, child) for child in children))
        case Spawn(child=child):
            return replace(request, child=below(label, child))
    return replace(request, label=f"{above}{request.label}") if request.label else request


def _held(request: Request, grants: tuple[str, ...], purse: Purse, limits: Limits | None) -> Request:
    match request:
        case ToolRequest(grants=None):
            return replace(request, grants=grants, limits=limits)
        case ModelRequest(bounds=None):
            return replace(request, bounds=Bounds(money=purse))
        case Fan():
            return replace(request, children=(confined(child, grants, purse, limits) for child in request.children))
        case Spawn():
            return replace(request, child=confined(request.child, grants, purse, limits))
    return request
