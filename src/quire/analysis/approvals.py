"""Decide for each effect whether a person's yes stands before it on every way.

A question is a gate if the effect certainly does not happen after a refusal: asking alone is not consent. The refusal
of `confirm` is *no*; of `select`, each option that keeps the effect from happening; of `input`, every text but those
that the document compares the answer with. Questions that a model asks, and confirmations that a user asks for when a
run is started, are not gates of the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.analysis.conditions import Answers, questions_in
from quire.analysis.labels import MODEL
from quire.analysis.tool_flows import sinks
from quire.plan.pipeline_work import Invoke
from quire.trust.risk import Tier

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import Condition, EffectFact, QuestionFact
    from quire.analysis.labels import Label, Trace
    from quire.analysis.proof import Proof


Verdict = Literal["gated", "ignored", "open", "never"]
"""`gated`: a yes stands before it. `ignored`: a question stands before it, and a refusal comes through. `open`: no
question stands before it. `never`: no run reaches it."""

REFUSALS = ("no", "", "another answer", "stop", "No", "0", "?!")
"""Answers to a question for any text that must not open a gate. They are as different as texts can be, because a
condition may look at any part of the answer; the last one has neither letters nor digits."""
NONE = "none"
_MOST_CONDITIONS = 16
_MOST_TOGETHER = 20
"""Questions that are refused together to find out whether they gate an effect."""


class Gate(Struct, frozen=True):
    """An effect, and the questions that a person has to answer with a yes before it happens."""

    effect: EffectFact
    verdict: Verdict
    questions: tuple[QuestionFact, ...] = ()
    """If it is gated, the questions that gate it: each for itself, or all of them together (`jointly`). If a refusal
    comes through, the questions whose refusal does."""
    jointly: bool = False

    @property
    def way(self) -> str:
        return self.effect.place.way

    @property
    def tool(self) -> str:
        return self.effect.tool.name

    @property
    def key(self) -> str:
        """The effect in one line: `4.do tickets/create`."""
        return f"{self.way} {self.tool}"

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the values that its questions show."""
        names = (name.partition("#")[0] for question in self.questions for name in question.shown_names)
        return tuple(dict.fromkeys(names))

    @property
    def text(self) -> str:
        """The gate in one line: `2 confirm, shown: summary`; `none` if there is none."""
        return self.text_with("")

    def text_with(self, note: str) -> str:
        """Return the gate in one line, with a note behind its questions."""
        if self.verdict != "gated":
            return NONE
        joint = " or " if self.jointly else ", "
        questions = joint.join(f"{question.place.way} {question.kind}" for question in self.questions)
        shown = f"shown: {', '.join(self.shown)}" if self.shown else ""
        return ", ".join(part for part in (questions, note, shown) if part)


def gates_of(proof: Proof) -> tuple[Gate, ...]:
    """Return the gate of each effect that changes something outside of the run, in the order of the document."""
    search = GateSearch()
    return tuple(search.gate_of(effect) for effect in proof.effects if changes_something(effect))


def considered(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Return the conditions that can make a gate: of many, the outermost and the innermost ones."""
    if len(conditions) <= 2 * _MOST_CONDITIONS:
        return conditions
    return (*conditions[:_MOST_CONDITIONS], *conditions[-_MOST_CONDITIONS:])


_CHANGING = frozenset(str(tier) for tier in Tier if tier.rank >= Tier.WRITE.rank)
"""Tiers of tools that change something. The rank of a tier by its name takes long to find."""


def changes_something(effect: EffectFact) -> bool:
    """Tell whether an effect changes more than the run itself."""
    return effect.tool.effect != "read" and effect.tool.tier in _CHANGING


class GateSearch:
    """Finds the gates of effects of one proof. Conditions that effects share are looked at once."""

    def __init__(self) -> None:
        self._answers: dict[tuple[tuple[int, str], ...], Answers] = {}
        self._questions: dict[int, tuple[QuestionFact, ...]] = {}

    def gate_of(self, effect: EffectFact) -> Gate:
        """Return the gate of an effect."""
        conditions = considered(effect.conditions)
        if self.prevented(conditions, {}):
            return Gate(effect, "never")
        by_question = self._by_question(conditions)
        tested = tuple(by_question)
        stopping = tuple(fact for fact in tested if self.refusals(fact, tuple(by_question[fact])))
        if stopping:
            return Gate(effect, "gated", stopping)
        deciding = tuple({id(condition): condition for part in by_question.values() for condition in part}.values())
        if 1 < len(tested) <= _MOST_TOGETHER and self._stop_together(tested, deciding):
            return Gate(effect, "gated", tested, jointly=True)
        facts = tuple(dict.fromkeys((*tested, *(fact for fact in effect.asked if fact.kind == "confirm"))))
        return Gate(effect, "ignored", facts) if facts else Gate(effect, "open")

    def _by_question(self, conditions: tuple[Condition, ...]) -> dict[QuestionFact, list[Condition]]:
        """Return the questions that conditions depend on, with those conditions."""
        several: dict[QuestionFact, list[Condition]] = {}
        for condition in conditions:
            if id(condition) not in self._questions:
                self._questions[id(condition)] = questions_in((condition,))
            for question in self._questions[id(condition)]:
                several.setdefault(question, []).append(condition)
        return several

    def refusals(self, question: QuestionFact, conditions: tuple[Condition, ...]) -> tuple[str, ...]:
        """Return the answers to a question that keep an effect under these conditions from happening; none if the
        question is not a gate of it."""
        match question.kind:
            case "confirm":
                words: tuple[str, ...] = ("no",)
            case "select" if question.options:
                return tuple(option for option in question.options if self.prevented(conditions, {question: option}))
            case "select" | "input":
                words = REFUSALS
        return words if all(self.prevented(conditions, {question: word}) for word in words) else ()

    def prevented(self, conditions: tuple[Condition, ...], answers: Mapping[QuestionFact, str]) -> bool:
        """Tell whether an effect under these conditions certainly does not happen after these answers."""
        key = tuple((id(question), answer) for question, answer in answers.items())
        if key not in self._answers:
            self._answers[key] = Answers(answers)
        return self._answers[key].prevent(conditions)

    def _stop_together(self, questions: tuple[QuestionFact, ...], conditions: tuple[Condition, ...]) -> bool:
        """Tell whether an effect does not happen if all questions are refused."""
        free = [question for question in questions if question.kind != "select"]
        return all(
            self.prevented(conditions, {fact: "no" if fact.kind == "confirm" else word for fact in free})
            for word in REFUSALS
        )


def decided_from_outside(effect: EffectFact) -> bool:
    """Tell whether a model or an outsider can influence an effect or its arguments."""
    if effect.by_model or any(condition.label.chosen >= MODEL for condition in effect.conditions):
        return True
    return any(is_from_model(value.label) for _, value in used_arguments(effect))


def is_constant(effect: EffectFact) -> bool:
    """Tell whether the document says all that an effect does: a model or an outsider can only decide whether."""
    return not effect.by_model and all(
        value.is_constant or not value.label.levels for _, value in used_arguments(effect)
    )


def deciding(effect: EffectFact) -> Trace | None:
    """Return the way of the value by which a model or an outsider decides whether an effect happens; None if none
    does."""
    return next(
        (condition.label.chosen_trace for condition in effect.conditions if condition.label.chosen >= MODEL), None
    )


def decider(effect: EffectFact) -> str:
    """Return in words who decides whether an effect happens, if that is a model or an outsider; else an empty text."""
    trace = deciding(effect)
    return source_words(trace) if trace is not None else ""


def source_words(trace: Trace | None) -> str:
    """Return the source of a value: `a model (3)`, `http__get of step 1`."""
    if trace is None:
        return "a model"
    source = trace.source
    if source.what == "model":
        return f"a model ({source.step})" if source.step else "a model"
    return f"{source.what} of step {source.step}" if source.step else source.what


def is_from_model(label: Label) -> bool:
    """Tell whether a model or an outsider has written or chosen a value."""
    return max(label.integrity, label.chosen) >= MODEL


def used_arguments(effect: EffectFact) -> Iterator[tuple[str, AbstractValue]]:
    """Yield the arguments that an effect acts on. A command is given the value before it, which most do not read."""
    for name, value in effect.arguments.items():
        if name != "stdin" or effect.tool.kind != "shell" or any(sink.name == "stdin" for sink in sinks(effect)):
            yield name, value


def opens_by_itself(gate: Gate, search: GateSearch) -> bool:
    """Tell whether the effect happens although no person answers: each question that gates it has an answer of its own
    that does not stop it."""
    conditions = considered(gate.effect.conditions)
    answers: dict[QuestionFact, str] = {}
    for question in gate.questions:
        answer = unattended(question)
        if answer is None or search.prevented(conditions, {question: answer}):
            return False
        answers[question] = answer
    return not search.prevented(conditions, answers)


def may_open_by_itself(gate: Gate, search: GateSearch) -> bool:
    """Tell whether the effect may happen although no person answers. A default that is computed may be the yes."""
    answers: dict[QuestionFact, str] = {}
    for question in gate.questions:
        answer = unattended(question)
        if answer is not None:
            answers[question] = answer
        elif not has_default(question):
            return False
    return not search.prevented(considered(gate.effect.conditions), answers)


def can_open_without_default(question: QuestionFact) -> bool:
    """Tell whether a question without a default may be answered with a yes if no person answers."""
    return question.kind == "select" or (question.kind == "confirm" and question.is_elicited)


def unattended(question: QuestionFact) -> str | None:
    """Return the answer of a question that no person answers; None if it is computed, or the step fails then."""
    from quire.engine.interpreter.playbook.steps import unattended_answer

    if question.default is None and has_default(question):
        return None
    if question.default is None and question.kind == "confirm" and question.place.format == "pipeline":
        # The tool `ask` says yes to nothing by itself.
        return None
    return unattended_answer(question.kind, question.options, question.default)


def has_default(question: QuestionFact) -> bool:
    """Tell whether the document gives a question a default, known or not."""
    step = question.place.step
    if isinstance(step.work, Invoke):
        return any(name == "default" for name, _ in step.work.arguments)
    return step.ask is not None and step.ask.default is not None
