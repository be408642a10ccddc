"""Begin the walk of a plan, of any format, without a run: the plan, its inputs and its environment are enough.

A plan that was changed is walked as it is. The thread of a directive is the plan's own; only its ancestors and its
knowledge come from the texts of the bundle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never, cast

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.interpreter.call_document import opener
from quire.engine.interpreter.environment import Environment
from quire.errors import CannotStart
from quire.trust.capabilities import Grants

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.interpreter.thread.setup import Setup
    from quire.engine.pure_work import PureWork
    from quire.engine.requests import Walk
    from quire.plan.nodes import Plan
    from quire.plan.thread import Thread
    from quire.runs.pins import PinnedRun
    from quire.values import Value


class PureStart(Struct, frozen=True):
    """Everything that a walk starts with."""

    plan: Plan
    inputs: Mapping[str, Value] = field(default_factory=dict)
    """Complete, as a run pins them."""
    environment: Environment = field(default_factory=Environment)
    """For a directive, `bundles` has its own texts under the empty name."""
    context_budget: int | None = None
    """Characters of earlier results that the steps of a playbook send to a model; None for all."""
    grants: tuple[str, ...] | None = None
    """The grants that bound the thread of a directive; None if only its own permissions count."""
    limits: Mapping[str, Value] = field(default_factory=dict)
    """Limits that override those of the directive."""

    @classmethod
    def of(cls, run: PinnedRun) -> PureStart:
        """Return the start of a run that has been pinned."""
        pins = run.pins
        return cls(run.plan, pins.inputs, run.setting, pins.context_budget, pins.grants, pins.limits)

    def begin(self, work: PureWork) -> Walk:
        """Return the walk from its start. Raises `CannotStart` and `Refused` for a thread that cannot be set up."""
        environment = replace(self.environment, work=work)
        match self.plan.format:
            case "pipeline":
                from quire.engine.interpreter.pipeline.interpret import interpret_pipeline

                return interpret_pipeline(self.plan, self.inputs, environment)
            case "directive":
                from quire.engine.interpreter.thread.interpret import interpret_directive

                return interpret_directive(self.thread(work))
            case "playbook":
                from quire.engine.interpreter.playbook.interpret import interpret

                inputs = cast("Mapping[str, str]", self.inputs)
                return interpret(self.plan, inputs, context_budget=self.context_budget, setting=environment)
            case _:
                assert_never(self.plan.format)

    def thread(self, work: PureWork) -> Setup:
        """Return the thread of a directive as it starts. Raises as `begin` does."""
        from quire.engine.interpreter.thread.setup import ParentContext, set_up
        from quire.plan.thread import THREAD_PATH

        environment = replace(self.environment, work=work)
        bundle, thread = environment.bundles.get(""), self.plan.thread
        if bundle is None or thread is None:
            raise CannotStart("the directive has no texts to compose it from")
        grants = None if self.grants is None else Grants.of(self.grants)
        return set_up(
            bundle,
            self.inputs,
            THREAD_PATH,
            overrides=self.limits,
            above=ParentContext(grants, open_document=opener(environment)),
            resolver=_PlanResolver(bundle, thread),
        )


class _PlanResolver:
    """Resolve the items of a directive: itself from its plan, all others from the texts of its bundle."""

    def __init__(self, bundle: Bundle, thread: Thread) -> None:
        from quire.engine.interpreter.thread.compose import BundleResolver

        self._item_id = bundle.item_id
        self._thread = thread
        self._others = BundleResolver(bundle)

    def directive(self, item_id: str) -> Thread | None:
        return self._thread if item_id == self._item_id else self._others.directive(item_id)

    def knowledge(self, item_id: str) -> str | None:
        return self._others.knowledge(item_id)
