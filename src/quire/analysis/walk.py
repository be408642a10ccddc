"""Walk over a plan once, as a run would, on what is known beforehand: add up the cost, and note every fact that decides
what the document may do.

Each kind of work has a walk of its own (`pipeline_walk.py`, `playbook_walk.py`, `thread_walk.py`); this module has what
they share: steps in sequence, branches, conditions, and calls of other documents. A callee is walked once for each kind
of arguments that it gets; its facts are then put in the place of each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.abstract_values import AbstractValue, sized, without_references
from quire.analysis.amounts import ONE, Amount, Reason, endless, number
from quire.analysis.costs import QUESTIONS, Cost, unbounded
from quire.analysis.facts import Condition, EffectFact, Fact, ModelFact, Place, PlainFact, QuestionFact
from quire.analysis.labels import AUTHORED, MODEL, Integrity, KeptContents, Label, Privacy, Trace, joined, source_label
from quire.analysis.model_costs import StepCalls, tool_call
from quire.analysis.scope import Answers, Names, Scope, answer_value

if TYPE_CHECKING:
    from quire.analysis.world import AgentFact, ToolFact, World
    from quire.plan.nodes import Plan, Sequence, Step
    from quire.schema_types import FieldType

MOST_WALKS = 2_000
"""How many different calls of documents are followed in one proof."""
MOST_NESTED = 100
"""How many levels of calls are followed: a run does not go deeper."""
MOST_FACTS = 50_000
MOST_STEPS = 40_000
"""How many steps are walked before loops are followed for a few rounds only."""
MOST_NOTES = 200_000
"""How many facts are noted in all documents. Those of a callee are noted again for each call, so a chain of calls that
are each made twice would have as many as it likes."""


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
    entered: Mapping[int, Trace] = {}
    """The ways on which values came into it, as inputs or from files, by their identities."""


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
        """Facts of calls so far, and of documents that were walked to their ends."""
        self.steps = 0
        """Steps of pipelines so far, each as often as it was walked."""
        self._repeated = 0
        """Facts of the document that are those of its calls."""
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

        before, self.facts = (self.facts, self._repeated), []
        self._repeated = 0
        is_open = not self._way and plan.infers_inputs
        names = Names(dict(inputs), pipe, plan.schemas, is_open=is_open, otherwise=otherwise, answers=self.answers)
        scope = Scope(plan, names, self._way[-1] if self._way else "")
        cost = Cost()
        result = _walk_of(plan.format)(self, scope, cost)
        self.noted += len(self.facts) - self._repeated
        is_full = self.noted > MOST_NOTES
        if is_full or len(self.facts) > MOST_FACTS:
            self.incomplete = True
        facts = tuple(self.facts[:MOST_FACTS]) if not (is_full and self._way) else ()
        self.facts, self._repeated = before
        failures = scope.names.failures.label
        if may_stop_early(plan):
            return Called(cost, result, facts, (), (), failures)
        # A document that has come to its end without stopping has fulfilled every condition on the way.
        return Called(cost, result, facts, scope.asked, scope.conditions, failures)

    def note(self, fact: PlainFact) -> None:
        self.facts.append(fact)

    def note_effect(self, effect: EffectFact, given: Label | None = None, *, again: bool = False) -> None:
        """Note an effect, and that it may have put its arguments into a file. `given` is the label of all of them, if
        it is known; `again` is true for one of a callee that was put in the place of a call."""
        self.contents.write(effect, given, again=again)
        self.facts.append(effect)

    def note_call(
        self,
        tool: ToolFact,
        arguments: Mapping[str, AbstractValue],
        place: Place,
        scope: Scope,
        cost: Cost,
        label: Label,
        *,
        given: Label | None = None,
        reads: tuple[str, ...] = (),
    ) -> AbstractValue:
        """Note a call that a step itself makes, and return its result. `label` is that of all values that decide about
        it; `given` and `reads` are those of the effect."""
        effect = EffectFact(
            place,
            tool,
            arguments,
            conditions=scope.conditions,
            asked=scope.asked,
            fans=scope.fans,
            often=scope.often,
            reads=reads,
            span=place.span,
        )
        self.note_effect(effect, given)
        tool_call(cost, tool, place)
        return sized(None, number(tool.result_tokens), self.result(tool, label, place, arguments))

    def ask(self, question: QuestionFact, scope: Scope, cost: Cost) -> AbstractValue:
        """Note a question of a step, and return its answer."""
        self.facts.append(question)
        scope.asked = (*scope.asked, question)
        cost.count(QUESTIONS, 1, 1)
        return answer_value(question, scope.names.answers)

    def told(self, label: Label, tools: Iterable[ToolFact], place: Place) -> Label:
        """Return the label of all that a model reads: of its prompt, and of what its tools return."""
        for tool in tools:
            label = label.join(self.result(tool, AUTHORED, place))
        return label

    def note_model(
        self,
        agent: AgentFact,
        told: Label,
        calls: StepCalls,
        place: Place,
        scope: Scope,
        *,
        prompt_file: Label = AUTHORED,
        used: Amount = ONE,
    ) -> Label:
        """Note the model calls of a step, and the tools that the model may use. Return the label of its reply. `used`
        is how often a tool can be used each time the step runs, where that is known."""
        output = told.made_by(MODEL, "model", place.way, place.span, place.document)
        self.facts.append(
            ModelFact(
                place,
                told,
                agent.tools,
                agent.model,
                scope.conditions,
                scope.fans,
                calls.calls,
                scope.often,
                agent.reply_tokens,
                prompt_file,
                calls.first,
                calls.windows,
                calls.uses,
                agent.asks,
            )
        )
        often = used.times(scope.often)
        for tool in agent.tools:
            self.note_effect(
                EffectFact(
                    place, tool, {}, output, True, scope.conditions, scope.asked, scope.fans, often, span=place.span
                )
            )
        return output

    def result(
        self, tool: ToolFact, given: Label, place: Place, arguments: Mapping[str, AbstractValue] | None = None
    ) -> Label:
        """Return the label of what a tool returns: at least that of the tool, that of the values it was given, and that
        of what steps have put into the file that it reads. A model may choose any arguments."""
        label = self.contents.read(tool, arguments or {})
        if label is not AUTHORED:
            given = given.join(label)
        step = place.step
        return given.given_to(tool.gives, tool.gives_privacy, tool.name, place.way, step.span, place.document)

    def miss(self, name: str) -> None:
        """Remember that a document was not found."""
        self.unknown.setdefault(name, self._way[0] if self._way else "")

    @property
    def is_long(self) -> bool:
        """True if the walk is so long that it saves its remaining steps for required work."""
        return len(self._called) > MOST_WALKS // 4 or self.noted > MOST_NOTES // 4

    @property
    def rounds(self) -> int:
        """How many rounds of a loop are followed one by one."""
        return 24 if self.steps < MOST_STEPS else 3

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
        from quire.analysis.call_sites import CallSite  # most documents call none

        plan = plan or self.world.document(name)
        inputs = {key: without_references(value) for key, value in inputs.items()}
        called = self._callee(name, plan, inputs, scope, otherwise) if plan is not None else None
        if called is None:
            self.miss(name)
            why = "is not found, so it can do anything"
            if plan is not None:
                why = "calls itself" if name in self._way else "is one of more calls than are followed"
            way = f"{scope.way}{step.label}"
            reason = Reason(f"{name} {why}", "", step.span, scope.document, way)
            cost.add(unbounded(reason))
            trace = Trace(name, way, step.span, scope.document)
            return sized(None, endless(reason), source_label(Integrity.OUTSIDE, Privacy.PUBLIC, trace))
        site = CallSite(scope, step, called.facts, called.entered)
        cost.add(site.cost(called.cost))
        # A call that the callee refuses says which value does not fit.
        scope.names.failures.add(joined((site.label(called.failing), *(value.label for value in inputs.values()))))
        for fact in called.facts:
            if self.noted > MOST_NOTES:
                self.incomplete = True
                break
            self.noted += 1
            self._repeated += 1
            placed = site.fact(fact)
            if isinstance(placed, EffectFact):
                self.note_effect(placed, again=True)
            else:
                self.note(placed)
        scope.asked = (*scope.asked, *site.questions(called.asked))
        scope.conditions = (*scope.conditions, *site.conditions(called.conditions))
        return without_references(site.result(called.result))

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
            tuple(sorted((key, signature(value)) for key, value in inputs.items())),
            signature(pipe),
            signature(otherwise) if otherwise is not None else (),
        )
        if key not in self._called:
            if len(self._called) >= MOST_WALKS:
                return None
            self._way.append(name)
            entered = _traces(*inputs.values(), pipe, otherwise) | self.contents.traces
            self._called[key] = replace(self.document(plan, inputs, pipe, otherwise), entered=entered)
            self._way.pop()
            # Keys have identities of values, which must not be those of later values.
            self._keyed += [*inputs.values(), pipe, *([otherwise] if otherwise is not None else [])]
        return self._called[key]


def _traces(*values: AbstractValue | None) -> dict[int, Trace]:
    """Return the ways of values and of their parts, by their identities."""
    traces: dict[int, Trace] = {}
    waiting = [value for value in values if value is not None]
    done: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in done:
            continue
        done.add(id(value))
        traces |= value.label.traces
        waiting += [*value.fields.values(), *value.choices, *([value.element] if value.element is not None else [])]
        waiting += value.computed.reads.values() if value.computed is not None else ()
    return traces


def signature(value: AbstractValue, depth: int = 0) -> tuple[object, ...]:
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
        str(value.largest),
        value.name,
        id(value.answer) if value.answer else 0,
        str(value.constant) if value.is_constant else "",
        value.is_word,
        tuple((name, signature(part, depth + 1)) for name, part in sorted(value.fields.items())),
        signature(value.element, depth + 1) if value.element is not None else None,
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

    if not may_stop_early(scope.plan):
        for step in steps.steps:
            each(walk, step, f"{prefix}{step.position}", scope, cost)
        return
    stopped = False
    for step in steps.steps:
        path = f"{prefix}{step.position}"
        if stopped:
            part = Cost()
            each(walk, step, path, scope, part)
            cost.add(part.may_be_left_out())
        else:
            each(walk, step, path, scope, cost)
            stopped = may_stop(step)


StepWalk = Callable[[Walk, "Step", str, Scope, Cost], None]


def _walk_of(format: str) -> Callable[[Walk, Scope, Cost], AbstractValue]:
    if format == "pipeline":
        from quire.analysis.pipeline_walk import walk_pipeline

        return walk_pipeline
    if format == "playbook":
        from quire.analysis.playbook_walk import walk_playbook

        return walk_playbook
    from quire.analysis.thread_walk import walk_directive

    return walk_directive
