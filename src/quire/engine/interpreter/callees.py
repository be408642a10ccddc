"""Let one document call another of any format, as part of the same run under a longer path.

A plan knows the labels of its own steps only. The caller of a document adds the label of the calling step in front of
the label of every request that comes out of it, level by level: `3 › 1` is step 1 of the document that step 3 calls.
Labels are for people: the added part never enters a path or a recorded hash.

The shape of the callee's result is known before it runs. A pipeline returns its last step's value. A playbook with
named outputs returns a map of them, with `output` for its result; one without returns that text. A directive returns
the map of its outputs, or its last words if it declares none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, assert_never, cast

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.inputs import complete_inputs
from quire.engine.premises import REPAIRS, PureWork
from quire.engine.requests import (
    Boundary,
    Bounds,
    Emit,
    Fan,
    Load,
    Meter,
    Metering,
    ModelRequest,
    Request,
    Spawn,
    ToolRequest,
    Walk,
)
from quire.errors import BadInputs, CannotStart, Refused, StepFailed
from quire.plan.nodes import SEMANTICS_VERSION, Plan
from quire.plan.vocabulary import JOINT, MAX_LEVELS

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.budgets import Limits, Purse
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.interpreter.thread.setup import ParentContext
    from quire.values import Value


def check_nesting(prefix: str, path: str) -> None:
    """Raise `StepFailed` if the steps of a callee, whose paths begin with `prefix`, would be nested too deep.

    Each call waits on Python's stack for the call that it made. A chain that is too long for the stack must fail its
    step, and at the same place in every process that replays the run, however much of the stack is in use there.
    """
    if prefix.count("/") > MAX_LEVELS:
        raise StepFailed("the calls are nested too deep", kind="depth", path=path)


def called_with(plan: Plan, inputs: Mapping[str, Value], path: str, work: PureWork) -> dict[str, Value]:
    """Return the inputs of a pipeline that is called: checked, with defaults, if it declares them. `path` is blamed for
    a wrong call."""
    if plan.declared is None:
        return dict(inputs)
    from quire.engine.declared_inputs import checking_work, complete_declared

    work.used += checking_work(plan, inputs)
    try:
        return complete_declared(plan, inputs)
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
    """Return the same walk, restricted to what its caller may do: a thread may call a document that was granted more
    than the thread itself. Its requests carry the caller's grants, and the caller's purse pays for its model calls.

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


class Opened(Struct, frozen=True):
    """A document that was named while the run was under way, with everything that it can call."""

    name: str
    setting: Environment


def opener(setting: Environment) -> Callable[[str], Opened] | None:
    """Return a function that reads a document loaded by a thread in this setting, to be called in the same setting."""
    read = setting.open_document
    return None if read is None else lambda text: read(text, setting)


def call_document(
    name: str,
    inputs: Mapping[str, Value],
    prefix: str,
    path: str,
    setting: Environment,
    stores: dict[str, Value] | None = None,
) -> Walk:
    """Run a callee by its name. `prefix` begins the paths of its effects; `path` is blamed for a wrong call.

    The variables of a pipeline are put into `stores`.
    """
    plan = setting.documents.get(name)
    if plan is None:
        raise StepFailed(f"there is no document {name}", kind="call", path=path)
    check_nesting(prefix, path)
    match plan.format:
        case "pipeline":
            return (yield from _pipeline(plan, inputs, prefix, path, setting, stores))
        case "playbook":
            return (yield from _playbook(plan, inputs, prefix, path, setting))
        case "directive":
            return (yield from _directive(name, inputs, prefix, path, setting))
        case _:
            assert_never(plan.format)


def _pipeline(
    plan: Plan,
    inputs: Mapping[str, Value],
    prefix: str,
    path: str,
    setting: Environment,
    stores: dict[str, Value] | None,
) -> Walk:
    import quire.engine.interpreter.pipeline.interpret  # noqa: F401  registers the kinds of steps
    from quire.engine.interpreter.pipeline.steps import PipelineScope, run_steps

    frame = PipelineScope(setting, plan, called_with(plan, inputs, path, setting.work))
    output = yield from run_steps(plan.body, prefix, frame)
    if stores is not None:
        stores.update(frame.stores)
    return output


def _playbook(plan: Plan, values: Mapping[str, Value], prefix: str, path: str, setting: Environment) -> Walk:
    from quire.engine.interpreter.playbook.interpret import interpret

    try:
        inputs = complete_inputs(plan, values, one_line=False)
    except CannotStart as error:
        raise StepFailed(f"{plan.title} cannot be called so: {error}", kind="call", path=path) from None
    walk = interpret(plan, inputs, context_budget=setting.context_budget, prefix=prefix, setting=setting)
    result = cast("Mapping[str, Value]", (yield from walk))
    named = cast("Mapping[str, Value]", result["named"])
    return {**named, "output": result["output"]} if named else result["output"]


def _directive(name: str, inputs: Mapping[str, Value], prefix: str, path: str, setting: Environment) -> Walk:
    from quire.engine.interpreter.thread.loop import run_thread
    from quire.engine.interpreter.thread.setup import NO_PARENT, set_up

    bundle = setting.bundles.get(name)
    if bundle is None:
        raise StepFailed(f"there is no directive {name}", kind="call", path=path)
    if setting.above is not None:
        yield Load(f"{prefix}leave", "", "leave", name, _too_deep(setting.above))
    try:
        above = replace(setting.above or NO_PARENT, open_document=opener(setting))
        setup = set_up(bundle, inputs, f"{prefix}thread", above=above)
    except CannotStart as error:
        raise StepFailed(f"{name} cannot be called so: {error}", kind="call", path=path) from None
    except Refused as error:
        raise StepFailed(str(error), kind="denied", path=path) from None
    ending = yield from run_thread(setup)
    if not ending.success:
        raise ending.failure(setup.path)
    return dict(ending.outputs) if setup.composed.outputs else ending.result


def _too_deep(above: ParentContext) -> tuple[str, str] | None:
    """Return why a thread must not be started below this one, or None.

    The driver decides and records the refusal: after a resume with a higher limit, a refused call stays refused.
    """
    from quire.engine.interpreter.thread.budgets import too_deep

    reached = too_deep(above.limits) if above.limits else None
    return (reached.limit_code, reached.message) if reached else None


class Profile(Struct, frozen=True):
    """An identity: the model and the system prompt of its agents, their tools, and the settings of their calls."""

    model: str = ""
    system: str = ""
    tools: tuple[str, ...] = ()
    turns: int | None = None
    """None if the profile does not set it."""
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning: str = ""
    timeout: float | None = None
    stops_repetition: bool = True
    """False in runs of 0.1.0, where an agent could make a failing call again and again."""


class Environment(Struct, frozen=True, eq=False):
    """The environment that a walk runs in: the documents that it calls, its identity, and its limits; all pinned at the
    start."""

    documents: Mapping[str, Plan] = field(default_factory=dict)
    """The callees by name, of any format."""
    identity: str = "default"
    profiles: Mapping[str, Profile] = field(default_factory=lambda: {"default": Profile()})
    repairs: int = REPAIRS
    """How often a reply that does not fit its schema is sent back."""
    fan_out_depth: int = 5
    """0 means no limit."""
    bundles: Mapping[str, Bundle] = field(default_factory=dict)
    """The texts of the callees that are directives."""
    above: ParentContext | None = None
    """The bounds of the calling thread; None if no thread calls."""
    open_document: Callable[[str, Environment], Opened] | None = None
    """Reads the documents that a directive among the callees loads when it runs."""
    context_budget: int | None = None
    """Characters of earlier results that the playbooks among the callees send to a model; None for all."""
    work: PureWork = field(default_factory=PureWork)
    """Counts the pure work of the walk in this setting."""
    one_model: bool = False
    """True if the user has named the model: then those that steps of pipelines name do not count."""
    rules: int = SEMANTICS_VERSION
    """The version of the rules of running that the run was started under."""
