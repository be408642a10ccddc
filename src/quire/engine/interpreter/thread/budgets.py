"""The limits of a thread and its budget: the money it may spend, the part its children hold back, and its use so far.

A limit is the directive's own, else the default; the starter of the thread may override it, even upwards; a parent
thread bounds all of them. None means no limit. Everything is computed from records, so every replay gets the same
result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.inputs import converted, shown
from quire.engine.premises import THREAD_LIMITS, smallest
from quire.engine.records import add_costs
from quire.engine.requests import TINY, Bounds, Meter
from quire.errors import BadInputs, LimitReached
from quire.plan.thread import THREAD_RULES
from quire.plan.vocabulary import CALLS, CURRENCY, INTEGER_LIMITS, LARGEST_LIMIT, LIMIT_ALIASES
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.values import Value


DEFAULTS = THREAD_LIMITS
MOST = LARGEST_LIMIT


class Limits(Struct, frozen=True):
    turns: int | None = None
    tokens: int | None = None
    spend: float | None = None
    spend_currency: str = "USD"
    spawns: int | None = None
    depth: int | None = None
    duration_seconds: float | None = None

    def as_value(self) -> dict[str, Value]:
        return {name: getattr(self, name) for name in DEFAULTS}

    def with_room(self) -> Limits:
        """Return these limits with room for one thread below.

        A thread that is being started was already admitted, even if the limit is lower now.
        """
        return self if self.depth is None else replace(self, depth=max(1, self.depth))

    def raised(self, name: str, value: float) -> Limits:
        """Return these limits with one of them set by a person, never lower than it is."""
        more = max(getattr(self, name) or 0, value)
        return replace(self, **{name: int(more) if name in INTEGER_LIMITS else more})


class Cost(Struct, frozen=True):
    """Turns, tokens, money, time and child threads that a thread has used."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    spend: float | None = 0.0
    """In US dollars. None means that the price is unknown, never that it is 0."""
    elapsed_seconds: float = 0.0
    spawns: int = 0

    def plus(self, other: Cost) -> Cost:
        return Cost(
            self.turns + other.turns,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            add_costs(self.spend, other.spend),
            self.elapsed_seconds + other.elapsed_seconds,
            self.spawns + other.spawns,
        )

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def as_value(self) -> dict[str, Value]:
        """Return the cost as hooks see it."""
        return {
            "turns": self.turns,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "tokens": self.tokens,
            # Rounded, since the costs of concurrent work are added up in any order.
            "spend": None if self.spend is None else round(self.spend, 9),
            "elapsed_seconds": round(self.elapsed_seconds, 6),
            "spawns": self.spawns,
        }


_AMOUNTS = re.compile(r"limit reached: \w+ ([-+.\de]+) of ([-+.\de]+);")


def _read(amount: str) -> int | float:
    return int(amount) if amount.isdecimal() else float(amount)


class LimitEvent(Struct, frozen=True):
    """A limit that is reached."""

    limit_code: str
    current_value: int | float | None
    """None if the spend is unknown."""
    current_max: int | float

    def as_value(self) -> dict[str, Value]:
        return {"limit_code": self.limit_code, "current_value": self.current_value, "current_max": self.current_max}

    @property
    def message(self) -> str:
        """Return one sentence that says what is reached and what to do about it."""
        name = self.limit_code.rsplit("_", 1)[0]
        if self.current_value is None:
            return (
                f"the price of this model is not known, so the spend limit of {self.current_max:g} cannot be held: "
                "set a limit of tokens"
            )
        # With all significant digits: `told` reads them back.
        return f"limit reached: {name} {self.current_value:.12g} of {self.current_max:.12g}; resume with a higher limit"

    @classmethod
    def told(cls, limit_code: str, message: str) -> LimitEvent | None:
        """Read back the limit of a refusal from its message, or None if the message names no amounts.

        The message is recorded, so it is the same in every process, even if the limits have changed.
        """
        match = _AMOUNTS.match(message)
        return cls(limit_code, _read(match[1]), _read(match[2])) if match else None


def resolve_limits(
    declared: Mapping[str, Value], overrides: Mapping[str, Value], parent: Limits | None, rules: int = THREAD_RULES
) -> Limits:
    """Combine declared limits, overrides and the parent's limits. `rules` are those of the thread: in 0.1.0 any
    currency was taken for dollars.

    Raises `BadInputs` with all problems, and `LimitReached` if threads are nested too deep already.
    """
    problems: list[str] = []
    if parent is None and CALLS in overrides:
        overrides = {name: value for name, value in overrides.items() if name != CALLS}  # a limit of the whole run
    values = {
        **DEFAULTS,
        **_canonical(declared, "the directive", problems, rules),
        **_canonical(overrides, "the overrides", problems, rules),
    }
    if problems:
        raise BadInputs(problems)
    own = Limits(**values)  # type: ignore[arg-type]
    if parent is None:
        return own
    depth = smallest(own.depth, None if parent.depth is None else parent.depth - 1)
    if depth is not None and depth < 0:
        raise LimitReached(
            "depth limit reached: the parent thread may start no thread below itself; "
            'give the outermost directive a higher depth in <limits depth="…">'
        )
    return Limits(
        smallest(own.turns, parent.turns),
        smallest(own.tokens, parent.tokens),
        smallest(own.spend, parent.spend),
        own.spend_currency,
        smallest(own.spawns, parent.spawns),
        depth,
        smallest(own.duration_seconds, parent.duration_seconds),
    )


def exceeded(limits: Limits, cost: Cost) -> LimitEvent | None:
    """Return the first limit that is reached, in the order turns, tokens, spend, duration. Called before each turn.

    An unknown spend is bounded by the tokens; if these have no limit either, that is an event of its own.
    """
    for name, value, most in (("turns", cost.turns, limits.turns), ("tokens", cost.tokens, limits.tokens)):
        if most is not None and value >= most:
            return LimitEvent(f"{name}_exceeded", value, most)
    if limits.spend is not None:
        if cost.spend is None:
            if limits.tokens is None:
                return LimitEvent("spend_unknown", None, limits.spend)
        elif cost.spend > limits.spend - TINY:
            return LimitEvent("spend_exceeded", cost.spend, limits.spend)
    longest = limits.duration_seconds
    if longest is not None and cost.elapsed_seconds >= longest:
        return LimitEvent("duration_seconds_exceeded", cost.elapsed_seconds, longest)
    return None


def spawn_refused(limits: Limits, cost: Cost) -> LimitEvent | None:
    """Return the limit that forbids starting a child thread, or None."""
    if limits.spawns is not None and cost.spawns >= limits.spawns:
        return LimitEvent("spawns_exceeded", cost.spawns, limits.spawns)
    return too_deep(limits)


def too_deep(limits: Limits) -> LimitEvent | None:
    """Return the limit that forbids any thread below one that has these limits, or None."""
    return LimitEvent("depth_exceeded", 0, limits.depth) if limits.depth is not None and limits.depth < 1 else None


def _canonical(limits: Mapping[str, Value], whose: str, problems: list[str], rules: int) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for written, value in limits.items():
        name = LIMIT_ALIASES.get(written, written)
        if name not in DEFAULTS:
            close = nearest(written, [*DEFAULTS, *LIMIT_ALIASES])
            hint = did_you_mean(close, f"the limits are {', '.join(DEFAULTS)}")
            problems.append(f"unknown limit {written} in {whose}: {hint}")
            continue
        try:
            amount = _amount(name, value, rules)
        except ValueError as error:
            problems.append(f"limit {written} in {whose}: {error}")
            continue
        before = values.get(name)
        if name in values and before != amount and rules > 1:
            problems.append(f"{name} has two different values in {whose}: {shown(before)} and {shown(amount)}")
        elif isinstance(before, int | float) and isinstance(amount, int | float):
            amount = min(before, amount)
        values[name] = amount
    return values


def _amount(name: str, value: Value, rules: int) -> Value:
    if name == "spend_currency":
        currency = value.strip().upper() if isinstance(value, str) else ""
        if currency == CURRENCY or (currency and rules < 2):
            return currency
        raise ValueError(f"{shown(value)} is not {CURRENCY}: costs are counted in US dollars")
    if value is None:
        return None
    amount = converted("integer" if name in INTEGER_LIMITS else "number", value)
    if not isinstance(amount, int | float) or not 0 <= amount <= MOST:
        raise ValueError(f"{shown(value)} is not between 0 and {MOST:,}")
    return float(amount) if name == "spend" else amount


class Purse:
    """A thread's budget in dollars.

    A child's purse is filled from its parent's, which has that much less until the child gives back what it did not
    need; so money is never promised twice. An unknown price is not counted: the limit on tokens bounds such a thread.
    """

    def __init__(self, limit: float, parent: Purse | None = None, share: float = 1.0) -> None:
        """`share` is the largest part of the parent's remaining money that may be taken."""
        self._parent = parent
        self._open = parent is not None
        self._told = 0.0
        self._held = 0.0
        self._reserved = 0.0
        self.limit = limit if parent is None else max(0.0, min(limit, parent.left * share))
        self.spent = 0.0
        self._reserve()

    @property
    def left(self) -> float:
        return self.limit - self.spent - self._held

    def pay(self, cost: float | None) -> None:
        self.spent += cost or 0.0
        self._reserve()

    def raise_to(self, limit: float) -> None:
        """Raise the limit as a person decided; never by more than the parent has left."""
        more = limit - self.limit
        if self._parent is not None and self._open:
            more = min(more, max(0.0, self._parent.left))
        self.limit += more
        self._reserve()

    def close(self) -> None:
        """Give back the remaining money, except what is still held for launched runs. The amount spent counts as spent
        by the parent too."""
        if self._parent is not None and self._open:
            self._open = False
            self._parent.hold(self._held - self._reserved)
            self._tell(self.spent)

    def settle(self, spent: float) -> None:
        """Close the purse of a thread that was stopped.

        `spent` is the total of its records. That may be more than the thread has counted: a replay stops the thread
        before it has walked through all of its records again.
        """
        self.close()
        self._tell(spent - self._told)

    def _tell(self, more: float) -> None:
        if self._parent is not None and more > 0:
            self._told += more
            self._parent.pay(more)

    def hold(self, amount: float) -> None:
        """Set an amount aside: for a child, or for a running call. A negative amount gives it back."""
        self._held += amount
        if self._parent is not None and not self._open:
            self._parent.hold(amount)
        self._reserve()

    def _reserve(self) -> None:
        """Hold back from the parent all that this purse may spend, or more if more was spent.

        The limit of a child in a replay can be lower than it was when the child spent its money: it depends on what the
        parent had left at that moment.
        """
        if self._parent is not None and self._open and self.limit != math.inf:
            needed = max(self.limit, self.spent + self._held)
            if needed != self._reserved:
                self._parent.hold(needed - self._reserved)
                self._reserved = needed


class SharedPurse(Purse):
    """A purse without money of its own, for a document that a thread calls: it pays from the thread's purse. Several
    can be open at once.

    `spent` is the amount that was paid through this one.
    """

    def __init__(self, owner: Purse) -> None:
        super().__init__(owner.limit)
        self._owner = owner

    @property
    def left(self) -> float:
        return self._owner.left

    def pay(self, cost: float | None) -> None:
        super().pay(cost)
        self._owner.pay(cost)

    def settle(self, spent: float) -> None:
        if spent > self.spent:
            self.pay(spent - self.spent)

    def raise_to(self, limit: float) -> None:
        self._owner.raise_to(limit)

    def hold(self, amount: float) -> None:
        self._owner.hold(amount)


RAISABLE = ("turns", "tokens", "spend", "duration_seconds")
"""Limits that end a thread at its next turn, and that a person may raise at that moment."""

REACHED = (*(f"{name}_exceeded" for name in RAISABLE), "spend_unknown")


class Account:
    def __init__(self, limits: Limits, purse: Purse) -> None:
        self.limits = limits
        self.cost = Cost()
        self._purse = purse

    def pay(self, meter: Meter, *, turns: int = 0) -> None:
        used = Cost(turns, meter.input_tokens, meter.output_tokens, meter.cost, meter.elapsed)
        self.cost = self.cost.plus(used)
        self._purse.pay(meter.cost)

    def count_child(self, cost: Mapping[str, Value]) -> None:
        """Add the cost of a child.

        Its turns and tokens are its own; its time is the parent's too, and its money is already counted by the purse.
        """
        spend = cost["spend"]
        total = add_costs(self.cost.spend, spend if isinstance(spend, int | float) else None)
        elapsed = self.cost.elapsed_seconds + cast("float", cost["elapsed_seconds"])
        self.cost = replace(self.cost, spend=total, elapsed_seconds=elapsed)

    def count_documents(self, spent: float) -> None:
        """Add the cost of documents that the thread called; the purse has counted it already."""
        if spent and self.cost.spend is not None:
            self.cost = replace(self.cost, spend=self.cost.spend + spent)

    def count_spawns(self, started: int) -> None:
        self.cost = replace(self.cost, spawns=started)

    def bounds(self) -> Bounds:
        """Return the bounds of the next model call."""
        left = None if self.limits.tokens is None else max(1, self.limits.tokens - self.cost.tokens)
        event = exceeded(self.limits, self.cost)
        return Bounds(
            reached=(event.limit_code, event.message) if event else None,
            money=None if self.limits.spend is None else self._purse,
            tokens=LARGEST_LIMIT if left is None else left,
        )

    def reached(self, code: str, message: str) -> LimitEvent:
        """Return the limit that a call was refused for, with this code and message, in the form that hooks see."""
        return LimitEvent.told(code, message) or LimitEvent(code, self.cost.spend, self.limits.spend or 0.0)

    def raise_limit(self, name: str, value: float) -> None:
        self.limits = self.limits.raised(name, value)
        if name == "spend":
            self._purse.raise_to(value)
