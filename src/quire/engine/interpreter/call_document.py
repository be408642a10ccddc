"""Let one document call another of any format, as part of the same run under a longer path.

The shape of the callee's result is known before it runs. A pipeline returns its last step's value. A playbook with
named outputs returns a map of them, with `output` for its result; one without returns that text. A directive returns
the map of its outputs, or its last words if it declares none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, assert_never, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.inputs import complete_inputs
from quire.engine.interpreter.callee_walks import called_with, check_nesting
from quire.engine.requests import Load, Walk
from quire.errors import CannotStart, Refused, StepFailed

if TYPE_CHECKING:
    from quire.engine.interpreter.environment import Environment
    from quire.engine.interpreter.thread.setup import ParentContext
    from quire.plan.nodes import Plan
    from quire.values import Value


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
    given: Mapping[str, Value],
    prefix: str,
    path: str,
    setting: Environment,
    stores: dict[str, Value] | None = None,
) -> Walk:
    """Run a callee by its name. `prefix` begins the paths of its effects; `path` is blamed for a wrong call.

    The named stores of a pipeline are put into `stores`.
    """
    plan = setting.documents.get(name)
    if plan is None:
        raise StepFailed(f"there is no document {name}", kind="call", path=path)
    check_nesting(prefix, path)
    match plan.format:
        case "pipeline":
            return (yield from _pipeline(plan, given, prefix, path, setting, stores))
        case "playbook":
            return (yield from _playbook(plan, given, prefix, path, setting))
        case "directive":
            return (yield from _directive(name, given, prefix, path, setting))
        case _:
            assert_never(plan.format)


def _pipeline(
    plan: Plan,
    given: Mapping[str, Value],
    prefix: str,
    path: str,
    setting: Environment,
    stores: dict[str, Value] | None,
) -> Walk:
    import quire.engine.interpreter.pipeline.interpret  # noqa: F401  the kinds of steps there are
    from quire.engine.interpreter.pipeline.steps import PipelineScope, run_steps

    frame = PipelineScope(setting, plan, called_with(plan, given, path, setting.work))
    output = yield from run_steps(plan.body, prefix, frame)
    if stores is not None:
        stores.update(frame.stores)
    return output


def _playbook(plan: Plan, given: Mapping[str, Value], prefix: str, path: str, setting: Environment) -> Walk:
    from quire.engine.interpreter.playbook.interpret import interpret

    try:
        inputs = complete_inputs(plan, given, one_line=False)
    except CannotStart as error:
        raise StepFailed(f"{plan.title} cannot be called so: {error}", kind="call", path=path) from None
    walk = interpret(plan, inputs, context_budget=setting.context_budget, prefix=prefix, setting=setting)
    result = cast("Mapping[str, Value]", (yield from walk))
    named = cast("Mapping[str, Value]", result["named"])
    return {**named, "output": result["output"]} if named else result["output"]


def _directive(name: str, given: Mapping[str, Value], prefix: str, path: str, setting: Environment) -> Walk:
    from quire.engine.interpreter.thread.loop import run_thread
    from quire.engine.interpreter.thread.setup import NO_PARENT, set_up

    bundle = setting.bundles.get(name)
    if bundle is None:
        raise StepFailed(f"there is no directive {name}", kind="call", path=path)
    if setting.above is not None:
        yield Load(f"{prefix}leave", "", "leave", name, _too_deep(setting.above))
    try:
        above = replace(setting.above or NO_PARENT, open_document=opener(setting))
        setup = set_up(bundle, given, f"{prefix}thread", above=above)
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
    from quire.engine.interpreter.thread.limits import too_deep

    reached = too_deep(above.limits) if above.limits else None
    return (reached.limit_code, reached.message) if reached else None
