"""Walk over a plan once, as a run would, on what is known beforehand: add up the cost, and note every fact that decides
what the document may do.

Each kind of work has a walk of its own (`pipeline_walk.py`, `playbook_walk.py`, `thread_walk.py`); this module has what
they share: steps in sequence, branches, conditions, and calls of other documents. A callee is walked once for each kind
of arguments that it gets; its facts are then put in the place of each call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.analysis.abstract_values import NULL, AbstractValue, either, sized, without_references
from quire.analysis.amounts import NOTHING, ONE, Amount, Reason, endless
from quire.analysis.call_sites import CallSite
from quire.analysis.costs import COUNTED, SPAN, WORK, Cost
from quire.analysis.facts import (
    Condition,
    EffectFact,
    Fact,
    Place,
    QuestionFact,
)
from quire.analysis.kept_contents import KeptContents
from quire.analysis.labels import AUTHORED, Integrity, Label, Privacy, Trace, joined, source_label
from quire.analysis.names import Answers, Names

if TYPE_CHECKING:
    from quire.analysis.world import ToolFact, World
    from quire.plan.nodes import Plan, Sequence, Step
    from quire.schema_types import FieldType

MOST_WALKS = 2_000
"""How many different calls of documents are followed in one proof."""
MOST_NESTED = 100
"""How many levels of calls are followed: a run does not go deeper."""
MOST_FACTS = 50_000
MOST_NOTES = 200_000
"""How many facts are noted in all. Those of a callee are noted again for each call, so a chain of calls that are each
made twice would have as many as it likes."""


class Saved(Struct, frozen=True, gc=False):
    """A scope as it was before a part of the document whose changes do not last."""

    pipe: AbstractValue
    bound: Mapping[str, AbstractValue]
    conditions: tuple[Condition, ...]
    asked: tuple[QuestionFact, ...]
    fans: tuple[Place, ...]
    often: Amount
    told: Label
    told_length: Amount
    told_parts: Mapping[str, AbstractValue]
    log: dict[str, tuple[AbstractValue | None, int]] | None


class Arm(Struct, frozen=True, gc=False):
    """The changes that a part of the document has made when it was walked."""

    stores: Mapping[str, tuple[AbstractValue, int]]
    """The stores that it wrote, with their versions."""
    pipe: AbstractValue
    asked: tuple[QuestionFact, ...]
    told: Label
    told_length: Amount
    told_parts: Mapping[str, AbstractValue]


class Scope(Struct):
    """The place in a document that the walk has reached, and everything that holds there.

    There is one for a whole document: a part whose changes may not last is walked between `enter` and `leave`, which
    takes them back. So a part costs as much as it writes, however many stores there are.
    """

    plan: Plan
    names: Names
    way: str = ""
    """The labels before that of a step, each followed by the joint."""
    document: str = ""
    conditions: tuple[Condition, ...] = ()
    asked: tuple[QuestionFact, ...] = ()
    fans: tuple[Place, ...] = ()
    often: Amount = ONE
    versions: dict[str, int] = field(default_factory=dict)
    """How often each name was written."""
    told: Label = AUTHORED
    """Of a playbook: of everything that its next model call reads."""
    told_length: Amount = NOTHING
    told_parts: Mapping[str, AbstractValue] = field(default_factory=dict)
    """Of a playbook: the results of earlier steps by label and name, for `@context`."""
    loops: int = 0
    """How many loops are around."""
    keeps_parts: bool = False
    """Of a playbook: whether a step or the artifact chooses among earlier results."""
    around: tuple[str, ...] = ()
    """Of a playbook: the labels of the steps whose arms are under way."""
    ended: AbstractValue | None = None
    """The value with which an earlier step may have ended the document."""
    log: dict[str, tuple[AbstractValue | None, int]] | None = None
    """The values and versions of the stores that were written since `enter`, as they were before."""

    def place(self, step: Step, path: str) -> Place:
        return Place(step, path, f"{self.way}{step.label}", self.document, self.plan.format)

    def enter(
        self,
        *conditions: Condition,
        bound: Mapping[str, AbstractValue] | None = None,
        fan: Place | None = None,
        often: Amount = ONE,
    ) -> Saved:
        """Begin a part whose changes are taken back by `leave`."""
        names = self.names
        saved = Saved(
            names.pipe,
            names.bound,
            self.conditions,
            self.asked,
            self.fans,
            self.often,
            self.told,
            self.told_length,
            self.told_parts,
            self.log,
        )
        self.log = {}
        if bound is not None:
            names.bound = bound
        if conditions:
            self.conditions = (*self.conditions, *conditions)
        if fan is not None:
            self.fans = (*self.fans, fan)
        if often is not ONE:
            self.often = self.often.times(often)
        return saved

    def leave(self, saved: Saved) -> Arm:
        """Take back what was changed since `enter`, and return it."""
        names, written = self.names, {}
        stores, versions = names.stores, self.versions
        for name, (before, version) in (self.log or {}).items():
            written[name] = stores[name], versions[name]
            versions[name] = version
            if before is None:
                del stores[name]
            else:
                stores[name] = before
        arm = Arm(written, names.pipe, self.asked, self.told, self.told_length, self.told_parts)
        names.pipe, names.bound = saved.pipe, saved.bound
        self.conditions, self.asked = saved.conditions, saved.asked
        self.fans, self.often, self.log = saved.fans, saved.often, saved.log
        self.told, self.told_length, self.told_parts = saved.told, saved.told_length, saved.told_parts
        return arm

    def keep(self, name: str, value: AbstractValue) -> int:
        """Write a store and return its version."""
        version = self.versions.get(name, 0)
        if self.log is not None and name not in self.log:
            self.log[name] = self.names.stores.get(name), version
        self.names.stores[name] = value
        self.versions[name] = version + 1
        return version + 1

    def version(self, name: str) -> str:
        return f"{name}#{self.versions.get(name, 0)}"

    def merge(self, arms: list[Arm], decided: Label, *, or_none: bool = False) -> None:
        """Go on after one of several arms was walked, or none of them: a store has the value of any."""
        for name in arms[0].stores if len(arms) == 1 else dict.fromkeys(name for arm in arms for name in arm.stores):
            before = self.names.store(name) or NULL
            found = [arm.stores[name][0] if name in arm.stores else before for arm in arms]
            value = either([*found, before] if or_none else found)
            if len(arms) > 1 or or_none:
                value = value.labelled(chosen_by(value.label, decided))
            self.keep(name, value)
            self.versions[name] = max(self.versions[name], *(arm.stores[name][1] for arm in arms if name in arm.stores))
        parts = dict(self.told_parts) if self.keeps_parts else self.told_parts
        for arm in arms:
            self.told = self.told.join(arm.told)
            self.told_length = self.told_length.either(arm.told_length)
            for name, value in arm.told_parts.items() if arm.told_parts is not self.told_parts else ():
                if parts.get(name) is not value:
                    parts = {**parts, name: either([parts[name], value]) if name in parts else value}
        self.told_parts = parts
        if arms and not or_none:
            self.asked = tuple(one for one in arms[0].asked if all(one in arm.asked for arm in arms[1:]))


def chosen_by(label: Label, decided: Label) -> Label:
    """Return the label of a value that was chosen among several."""
    if decided.chosen <= label.chosen and decided.privacy <= label.privacy:
        return label
    return label.join(decided.narrowed())


class Called(Struct, frozen=True):
    """The walk over a callee with certain arguments, before it is put in the place of a call."""

    cost: Cost
    result: AbstractValue
    facts: tuple[Fact, ...]
    asked: tuple[QuestionFact, ...]
    conditions: tuple[Condition, ...] = ()
    """Conditions that hold after it: it would have failed otherwise."""
    failing: Label = AUTHORED
    """Of the messages with which it may fail."""


class Walk:
    """One walk. `facts` has everything that was found, in the order of the document."""

    def __init__(self, world: World, contents: KeptContents | None = None) -> None:
        self.world = world
        self.contents = contents or KeptContents()
        self.facts: list[Fact] = []
        self.answers = Answers(exist=False)
        self.unknown: dict[str, str] = {}
        """Documents that were not found, and the callee of the document that leads to each; empty if the document
        itself calls it."""
        self.incomplete = False
        """True if there were too many facts to keep."""
        self.noted = 0
        self._called: dict[object, Called] = {}
        self._keyed: list[AbstractValue] = []
        self._way: list[str] = []

    def document(
        self,
        plan: Plan,
        inputs: Mapping[str, AbstractValue],
        pipe: AbstractValue,
        otherwise: AbstractValue | None = None,
    ) -> Called:
        """Walk over a document of any format with these inputs. A callee has no others than those it is given, unless
        a model may give it any: then each is `otherwise`."""
        from quire.plan.nodes import may_stop_early

        before, self.facts = self.facts, []
        is_open = not self._way and plan.format == "pipeline" and plan.declared is None
        names = Names(dict(inputs), pipe, {}, plan.schemas, is_open, otherwise=otherwise, answers=self.answers)
        scope = Scope(plan, names, document=self._way[-1] if self._way else "")
        cost = Cost()
        result = _walk_of(plan.format)(self, scope, cost)
        found, self.facts = tuple(self.facts), before
        failures = scope.names.failures.label
        if may_stop_early(plan):
            return Called(cost, result, found, (), (), failures)
        # A document that has come to its end without stopping has fulfilled every condition on the way.
        return Called(cost, result, found, scope.asked, scope.conditions, failures)

    def note(self, fact: Fact) -> None:
        if isinstance(fact, EffectFact):
            self.contents.write(fact)
        self.noted += 1
        if len(self.facts) < MOST_FACTS and self.noted <= MOST_NOTES:
            self.facts.append(fact)
        else:
            self.incomplete = True

    def result(
        self, tool: ToolFact, given: Label, place: Place, arguments: Mapping[str, AbstractValue] | None = None
    ) -> Label:
        """Return the label of what a tool returns: at least that of the tool, that of the values it was given, and that
        of what steps have put into the file that it reads. A model may choose any arguments."""
        trace = Trace(tool.name, place.way, place.span, place.document)
        own = source_label(tool.gives, tool.gives_privacy, trace)
        given = given.join(self.contents.read(tool, arguments or {}))
        return own.join(given.through(tool.name, place.way, place.span, place.document))

    def miss(self, name: str) -> None:
        """Remember that a document was not found."""
        self.unknown.setdefault(name, self._way[0] if self._way else "")

    @property
    def is_called(self) -> bool:
        """True inside of a callee."""
        return bool(self._way)

    def call(
        self,
        name: str,
        inputs: Mapping[str, AbstractValue],
        step: Step,
        scope: Scope,
        cost: Cost,
        plan: Plan | None = None,
        otherwise: AbstractValue | None = None,
    ) -> AbstractValue:
        """Walk over a callee, and put its cost and its facts in the place of the call. `plan` is the callee, if it is
        known; `otherwise` is every input that is not among `inputs`."""
        plan = plan or self.world.document(name)
        inputs = {one: without_references(value) for one, value in inputs.items()}
        found = self._callee(name, plan, inputs, scope, otherwise) if plan is not None else None
        if found is None:
            self.miss(name)
            why = "is not found, so it can do anything" if plan is None else "calls itself, or too many others"
            reason = Reason(f"step {scope.way}{step.label}: {name} {why}", span=step.span)
            for kind in (*COUNTED, WORK, SPAN):
                cost.spend(kind, endless(reason))
            trace = Trace(name, f"{scope.way}{step.label}", step.span, scope.document)
            return sized(None, endless(reason), source_label(Integrity.OUTSIDE, Privacy.PUBLIC, trace))
        cost.add(found.cost)
        # A call that the callee refuses says which value does not fit.
        scope.names.failures.add(joined((found.failing, *(value.label for value in inputs.values()))))
        site = CallSite(scope, step, found.facts)
        for fact in found.facts:
            if self.noted > MOST_NOTES:
                self.incomplete = True
                break
            self.note(site.fact(fact))
        scope.asked = (*scope.asked, *site.questions(found.asked))
        scope.conditions = (*scope.conditions, *site.conditions(found.conditions))
        return without_references(site.value(found.result))

    def _callee(
        self,
        name: str,
        plan: Plan,
        inputs: Mapping[str, AbstractValue],
        scope: Scope,
        otherwise: AbstractValue | None,
    ) -> Called | None:
        if name in self._way or len(self._way) == MOST_NESTED:
            return None
        pipe = without_references(scope.names.pipe)
        key = (
            plan.format,
            name,
            tuple(sorted((one, _signature(value)) for one, value in inputs.items())),
            _signature(pipe),
            _signature(otherwise) if otherwise is not None else (),
        )
        if key not in self._called:
            if len(self._called) >= MOST_WALKS:
                return None
            self._way.append(name)
            self._called[key] = self.document(plan, inputs, pipe, otherwise)
            self._way.pop()
            # Keys have identities of values, which must not be those of later values.
            self._keyed += [*inputs.values(), pipe, *([otherwise] if otherwise is not None else [])]
        return self._called[key]


def _signature(value: AbstractValue, depth: int = 0) -> tuple[object, ...]:
    """Return a key that two values share only if a callee cannot tell them apart."""
    label = value.label
    if value.computed or value.choices or depth > 4 or len(value.fields) > 50:
        return (id(value),)
    return (
        label.integrity,
        label.chosen,
        label.privacy,
        _type_key(value.type),
        str(value.items),
        str(value.length),
        value.name,
        id(value.answer) if value.answer else 0,
        str(value.constant) if value.is_constant else "",
        tuple((name, _signature(part, depth + 1)) for name, part in sorted(value.fields.items())),
        _signature(value.element, depth + 1) if value.element is not None else None,
    )


def _type_key(type: FieldType | None) -> object:
    """Return a key of a type. An enum of lists has no hash: then the values that keys are made of keep it alive."""
    try:
        hash(type)
    except TypeError:
        return id(type)
    return type


def sequence(walk: Walk, steps: Sequence, prefix: str, scope: Scope, cost: Cost, each: StepWalk) -> None:
    """Walk over steps in order. Those after one that may end the document may not run at all."""
    from quire.plan.nodes import may_stop, may_stop_early

    stopped, can_stop = False, may_stop_early(scope.plan)
    for step in steps.steps:
        path = f"{prefix}{step.position}"
        if stopped:
            part = Cost()
            each(walk, step, path, scope, part)
            cost.add(part.may_be_left_out())
        else:
            each(walk, step, path, scope, cost)
            stopped = can_stop and may_stop(step)


StepWalk = Callable[[Walk, "Step", str, Scope, Cost], AbstractValue]


def _walk_of(format: str) -> Callable[[Walk, Scope, Cost], AbstractValue]:
    if format == "pipeline":
        from quire.analysis.pipeline_walk import walk_pipeline

        return walk_pipeline
    if format == "playbook":
        from quire.analysis.playbook_walk import walk_playbook

        return walk_playbook
    from quire.analysis.thread_walk import walk_directive

    return walk_directive
