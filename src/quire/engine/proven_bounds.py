"""Compare what a run did with what was proven before it started. More than was proven is a mistake in Quire.

The whole journal is counted, over all drives of the run, and each path once. So a resume that performs a failed effect
again counts once, and a call that was under way at a crash counts as the one call that is made in its place. Calls that
a limit refused, replies that were taken from another run, and the question whether a tool may be called again after a
crash do not count.
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

    @property
    def message(self) -> str:
        """Return one sentence about the bound, and what to do."""
        what = _WORDS.get(self.name, self.name)
        text = f"{self.seen:,g} {what} were seen, and at most {self.proven:,g} were proven possible"
        if self.name in ("output_tokens", "cost"):
            text += ". Unless the service wrote more than it was allowed to, this is a bug of ours"
        else:
            text += ". This is a bug of ours, not of your document"
        return f"{text}: please report it, with the document and the bound"

    def as_value(self) -> dict[str, Value]:
        return {"name": self.name, "seen": self.seen, "proven": self.proven, "message": self.message}


def seen_in(records: Iterable[EffectRecord]) -> dict[str, float | None]:
    """Count what the records of a run show. The cost is None if a price is not known."""
    seen: dict[str, float] = dict.fromkeys(ProvenBounds.__struct_fields__, 0)
    threads: set[str] = set()
    priced = True
    for record in records:
        parts = record.path.split(_CHILD)
        threads.update(_CHILD.join(parts[:at]) for at in range(1, len(parts)))
        match record.kind:
            case "model" if not record.by and not _is_refused(record):
                seen["model_calls"] += 1
            case "tool":
                seen["tool_calls"] += 1
            case "ask" if not record.path.endswith(UNCERTAIN):
                seen["questions"] += 1
        if record.usage is not None:
            seen["input_tokens"] += record.usage.input_tokens
            seen["output_tokens"] += record.usage.output_tokens
            priced = priced and record.usage.cost is not None
            seen["cost"] += record.usage.cost or 0.0
    return {**seen, "threads": len(threads), "cost": seen["cost"] if priced else None}


def broken_bounds(proven: ProvenBounds, records: Iterable[EffectRecord]) -> tuple[BrokenBound, ...]:
    """Return the bounds that a run with these records has exceeded."""
    bounds = proven.as_value()
    if not bounds:
        return ()
    seen = seen_in(records)
    found = ((name, seen[name], bound) for name, bound in bounds.items() if isinstance(bound, int | float))
    return tuple(
        BrokenBound(name, count, bound) for name, count, bound in found if count is not None and count > bound + TINY
    )


def _is_refused(record: EffectRecord) -> bool:
    kind = record.failure.kind if record.failure is not None else ""
    return kind in _REFUSALS or kind.endswith("_exceeded")
