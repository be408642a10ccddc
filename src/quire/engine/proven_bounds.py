"""Compare the numbers of a run with the bounds proven before it started. More than was proven is a mistake in Quire,
unless a model wrote more than its call allowed, or a service counts or charges in a way of its own.

The whole journal is counted, over all drives of the run, and each path once. So a resume that performs a failed effect
again counts once, and a call that was under way at a crash counts as the one call that is made in its place. Calls that
a limit refused, replies that were taken from another run, and the question whether a tool may be called again after a
crash do not count. Nor does money that was only set aside, for a call whose tokens are not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

from quire.engine.requests import TINY, UNCERTAIN

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.values import Value

BROKEN = "bound_broken"
"""The type of the event."""

_REFUSALS = ("too_many_calls", "spend_unknown")
_CHILD = "/thread/"
_WORDS = {
    "model_calls": "model calls",
    "tool_calls": "tool calls",
    "input_tokens": "tokens of input",
    "output_tokens": "tokens of output",
    "cost": "dollars",
}


_DEPENDS_ON_REPLIES = ("output_tokens", "cost")
_UNLESS = {
    "input_tokens": "the model service counts tokens that it was not sent",
    "output_tokens": "the model service wrote more than max_tokens of a call",
    "cost": "the model service wrote more than max_tokens of a call, or charges more than its listed price",
}
_COMPARED = ("model_calls", "tool_calls", "questions", "threads", "input_tokens", "output_tokens", "cost")


class ProvenBounds(Struct, frozen=True, omit_defaults=True):
    """The most that a run can do, for the inputs that it has. None where nothing is proven."""

    model_calls: int | None = None
    tool_calls: int | None = None
    questions: int | None = None
    threads: int | None = None
    """Threads that other threads start; the outermost one is not counted."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    """In US dollars."""
    reply_tokens: int | None = None
    """The longest reply that a call allows. It is not compared, but explains why another bound is exceeded."""

    def as_value(self) -> dict[str, Value]:
        """Return the bounds that are proven, in the form in which a run pins them."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of(cls, stored: Mapping[str, Value]) -> ProvenBounds:
        """Read pinned bounds. Names of newer versions are left out."""
        return cls(**{name: stored[name] for name in cls.__struct_fields__ if name in stored})  # type: ignore[arg-type]


class BrokenBound(Struct, frozen=True):
    """A bound that a run exceeded."""

    name: str
    seen: float
    proven: float
    too_long: tuple[int, int] | None = None
    """The tokens of the longest reply, and those that a call allows; None if no reply is longer than that."""

    @property
    def message(self) -> str:
        """Return what is wrong with the bound, whose mistake it is, and what to do."""
        what = _WORDS.get(self.name, self.name)
        text = f"{_count(self.seen)} {what} were seen, and at most {_count(self.proven)} were proven possible"
        if self.too_long is not None and self.name in _DEPENDS_ON_REPLIES:
            longest, allowed = self.too_long
            which = f"A reply has {longest:,} tokens, and no call allows more than {allowed:,}"
            return f"{text}. {which}: the model service does not keep to max_tokens"
        if unless := _UNLESS.get(self.name, ""):
            return f"{text}. Unless {unless}, this is a bug of ours: please report it, with the document and the bound"
        return f"{text}. This is a bug of ours, not of your document: please report it, with the document and the bound"

    def as_value(self) -> dict[str, Value]:
        return {"name": self.name, "seen": self.seen, "proven": self.proven, "message": self.message}


def seen_in(records: Iterable[EffectRecord]) -> dict[str, float | None]:
    """Count what the records of a run show. The cost is None if a price is not known."""
    counts: dict[str, float] = dict.fromkeys(_COMPARED, 0)
    threads: set[str] = set()
    priced = True
    for record in records:
        parts = record.path.split(_CHILD)
        threads.update(_CHILD.join(parts[:at]) for at in range(1, len(parts)))
        match record.kind:
            case "model" if not record.by and not _is_refused(record):
                counts["model_calls"] += 1
            case "tool":
                counts["tool_calls"] += 1
            case "ask" if not record.path.endswith(UNCERTAIN):
                counts["questions"] += 1
        if record.usage is not None:
            counts["input_tokens"] += record.usage.input_tokens
            counts["output_tokens"] += record.usage.output_tokens
            priced = priced and record.usage.cost is not None
            if record.usage.input_tokens or record.usage.output_tokens:
                counts["cost"] += record.usage.cost or 0.0
    return {**counts, "threads": len(threads), "cost": counts["cost"] if priced else None}


def broken_bounds(proven: ProvenBounds, records: Iterable[EffectRecord]) -> tuple[BrokenBound, ...]:
    """Return the bounds that a run with these records has exceeded."""
    bounds = proven.as_value()
    if not bounds:
        return ()
    records = list(records)
    counts = seen_in(records)
    exceeded = [
        (name, count, bound)
        for name in _COMPARED
        if isinstance(bound := bounds.get(name), int | float) and (count := counts[name]) is not None
    ]
    exceeded = [(name, count, bound) for name, count, bound in exceeded if count > bound + TINY]
    too_long = _too_long(proven, records) if exceeded else None
    return tuple(BrokenBound(*one, too_long) for one in exceeded)


def _too_long(proven: ProvenBounds, records: Iterable[EffectRecord]) -> tuple[int, int] | None:
    """Return the tokens of the longest reply, and those that a call allows; None if no reply is longer."""
    allowed = proven.reply_tokens
    replies = (record.usage.output_tokens for record in records if record.usage is not None and record.kind == "model")
    longest = max(replies, default=0)
    return (longest, allowed) if allowed is not None and longest > allowed else None


def _count(amount: float) -> str:
    return f"{amount:,}" if isinstance(amount, int) or amount.is_integer() else f"{amount:,.6g}"


def _is_refused(record: EffectRecord) -> bool:
    kind = record.failure.kind if record.failure is not None else ""
    return kind in _REFUSALS or kind.endswith("_exceeded")
