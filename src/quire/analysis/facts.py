"""Facts that the walk over a plan finds: effects, questions, model calls and fans, each with all that decides about it.

Rules read nothing else, so a rule is a function of these facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from quire.analysis.amounts import NOTHING, ONE, Amount, Reason
from quire.analysis.labels import AUTHORED, Label, joined
from quire.source import NOWHERE, Span

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.world import ToolFact
    from quire.expr.syntax import Node
    from quire.plan.nodes import Comparison, Step

Test: TypeAlias = "Node | Comparison | str | None"
"""A test: an expression, a comparison of a playbook, or the label of a `match` arm; None for `else`."""


class Place(Struct, frozen=True, gc=False):
    """A step and how it is reached."""

    step: Step
    path: str
    """The path of the step in its own document."""
    way: str
    """The labels on the way to it, as people read them: `3 › 1`."""
    document: str = ""
    """The name of the callee that contains the step; empty for the document itself."""
    format: str = ""
    site: Span | None = None
    """For a step of a callee: the step of the document itself that calls it."""
    branch: str = ""
    """For the place of a `parallel` among the fans around another place: the branch that contains that place."""

    @property
    def span(self) -> Span:
        return self.step.span

    @property
    def key(self) -> tuple[str, str]:
        """The document and the path: the same for all calls of a callee."""
        return self.document, self.path

    @property
    def is_thread(self) -> bool:
        """True for the thread of a directive."""
        return self.format == "directive"

    def reason(self, why: str, remedy: str = "") -> Reason:
        """Return why a bound is infinite at this place."""
        return Reason(why, remedy, self.span, self.document, self.way)


class QuestionFact(Struct, frozen=True, eq=False, gc=False):
    """A question to a person. Two are the same only if they are the same object."""

    place: Place
    kind: Literal["input", "confirm", "select"]
    shown: tuple[AbstractValue, ...] = ()
    """The values in its text, and those that are shown with it."""
    shown_names: tuple[str, ...] = ()
    """The stores or variables that are shown, with their versions: `summary#2`."""
    options: tuple[str, ...] = ()
    default: str | None = None
    """The answer of an unattended run; None if there is none, or it is not known."""
    fans: tuple[Place, ...] = ()
    """The fan-outs and loops around it."""
    often: Amount = ONE
    """How often it can be asked in a run."""
    in_an_arm: bool = False
    """True if a condition decides whether it is asked."""

    @property
    def is_elicited(self) -> bool:
        """True for `@elicit` of a playbook; false for the tool `ask` of a pipeline."""
        return self.place.step.ask is not None


class Condition(Struct, frozen=True, gc=False):
    """A test that holds, or does not hold, everywhere it is in force."""

    place: Place
    test: Test
    holds: bool
    """False if the test is known to be false: after a step that ends the run where it is true, or in a later arm."""
    reads: Mapping[str, AbstractValue]
    """The values that the test reads, by the name under which it reads them (`ctx.ok`, `approved`)."""
    label: Label = AUTHORED
    """Its `chosen` is the one that decides how the test turns out."""
    subject: AbstractValue | None = None
    """The value that a `match` compares with the label `test`."""
    span: Span = NOWHERE
    others: tuple[Test, ...] = ()
    """For an arm: the tests of all arms that are tried before it. None of them holds if the arm is chosen."""
    versions: tuple[str, ...] = ()
    """The stores that an expression of a pipeline reads, with their versions."""


class EffectFact(Struct, frozen=True, gc=False):
    """A tool that a step calls, or that a model may call in a step."""

    place: Place
    tool: ToolFact
    arguments: Mapping[str, AbstractValue]
    """Of a call of the step itself. Of a tool that a model is offered: empty, and `chooser` is its label."""
    chooser: Label = AUTHORED
    """The label of the model that chooses whether to call its tool, and with which arguments."""
    by_model: bool = False
    conditions: tuple[Condition, ...] = ()
    """Everything that must hold for the effect to happen, the outermost first."""
    asked: tuple[QuestionFact, ...] = ()
    """All questions that were certainly asked before it."""
    fans: tuple[Place, ...] = ()
    """The fan-outs and loops around it, the outermost first."""
    often: Amount = NOTHING
    """How often it can happen in a run."""
    reads: tuple[str, ...] = ()
    """The stores or variables that its arguments read, with their versions: `summary#3`."""
    span: Span = NOWHERE

    @property
    def given(self) -> Label:
        """The label of everything that it is given."""
        return joined((self.chooser, *(value.label for value in self.arguments.values())))


class ModelFact(Struct, frozen=True, gc=False):
    """A model call of a step: all that it is told, and the tools that it may use."""

    place: Place
    told: Label
    tools: tuple[ToolFact, ...] = ()
    model: str = ""
    conditions: tuple[Condition, ...] = ()
    fans: tuple[Place, ...] = ()
    calls: int = 1
    """Model calls of the step each time it runs, with its turns and corrections."""
    often: Amount = ONE
    """How often the step can run."""
    reply_tokens: int | None = None
    """The longest reply; None if nothing limits it."""
    prompt_file: Label = AUTHORED
    """Of the values in the name of the prompt file that a step of a playbook reads."""
    first: Amount = NOTHING
    """Tokens that the first call of the step reads at most, without the tools that it is offered."""
    windows: int = 0
    """Calls of the step, each time it runs, of which only the window of the model bounds what they read."""
    uses: int = 0
    """Calls of tools, or questions, that the model can make each time the step runs."""
    asks: bool = False
    """True if the model may ask a person."""


class FanFact(Struct, frozen=True, gc=False):
    """A fan-out or a loop, and how many rounds it can have."""

    place: Place
    rounds: Amount
    least: int = 0


class StoreFact(Struct, frozen=True, gc=False):
    """A value that is kept under a name, and the version of the name from then on."""

    place: Place
    name: str
    version: int
    value: AbstractValue


MOST_AROUND = 8
"""Conditions around a choice that are kept: all of a thousand would take quadratic time."""


class ChoiceFact(Struct, frozen=True, gc=False):
    """A `when` or a `match` of a pipeline, and what is known of the value that decides it."""

    place: Place
    condition: Condition
    """The condition of a `when`; of a `match` that of its first arm, whose `subject` is the value."""
    within: tuple[Condition, ...] = ()
    """The conditions that hold around it, the outermost first; of many, the last ones."""


PlainFact: TypeAlias = QuestionFact | ModelFact | FanFact | StoreFact | ChoiceFact
Fact: TypeAlias = EffectFact | PlainFact
