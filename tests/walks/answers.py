"""The answers that a pure walk is given, its limits, and its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from quire.engine.premises import PURE_WORK
from quire.engine.requests import Boundary, Emit, HumanRequest, Load, Meter, ModelRequest, Offer, ToolRequest

if TYPE_CHECKING:
    from quire.engine.premises import PureWork
    from quire.engine.records import Status
    from quire.engine.requests import Effect, Failure, Walk
    from quire.values import Value

Performed: TypeAlias = ModelRequest | ToolRequest | HumanRequest | Load | Offer | Boundary
"""The requests that the caller answers."""

NO_METER = Meter()
MAX_EFFECTS = 10_000
"""Answers that one walk may take."""


class Performance(Struct):
    """The answer to a request: a value of the shape that a record has, or a failure; and what it used."""

    value: Value = None
    meter: Meter = NO_METER
    failure: Failure | None = None


Answers: TypeAlias = Callable[[Performed], Performance | None]
"""Answers a request. None leaves it open: its branch rests. `StepFailed` and `Refused` fail its step.

A boundary is only asked for where the walk has a breakpoint.
"""

Begin: TypeAlias = "Callable[[PureWork], Walk]"
Listen: TypeAlias = Callable[[Emit], None]


class Failed(Struct, frozen=True):
    """The failure that ended a walk."""

    kind: str
    message: str
    path: str = ""
    label: str = ""


class WalkEnd(Struct):
    """The end of a walk, or the place where it rests."""

    status: Status
    result: Value = None
    failure: Failed | None = None
    asked: dict[str, Effect] = field(default_factory=dict)
    """Every requested effect by path, in the order of the requests."""
    open: list[Performed] = field(default_factory=list)
    """Requests that have no answer."""
    events: list[Emit] = field(default_factory=list)
    meters: dict[str, Meter] = field(default_factory=dict)
    """The usage of each effect that used something."""
    seconds: float = 0.0
    """Time that passed, by the answers."""
    started: bool = True
    """False if the document could not be started; then nothing was asked."""

    @property
    def questions(self) -> list[HumanRequest]:
        """The questions that wait for a person."""
        return [request for request in self.open if isinstance(request, HumanRequest)]


class WalkLimits(Struct, frozen=True):
    """The limits of one walk."""

    breakpoints: frozenset[str] = frozenset()
    pure_work: int = PURE_WORK
    max_effects: int = MAX_EFFECTS
    max_model_calls: int | None = None


NO_LIMITS = WalkLimits()
