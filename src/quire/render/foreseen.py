"""Bounds and envelope of a document, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator

from quire.plan.bounds import COUNTED, Bounds, Range
from quire.plan.envelope import Envelope
from quire.render.tables import paragraph, table
from quire.render.text import one_line
from quire.values import Value

_NOTHING = Range()


def foreseen_lines(bounds: Bounds, envelope: Envelope) -> Iterator[str]:
    """Threads are said only of a document that can start some."""
    said = [one for one in COUNTED if one != "threads" or bounds.threads != _NOTHING]
    lines = table([(one.replace("_", " "), str(getattr(bounds, one))) for one in said])
    if bounds.unknown:
        lines.append(one_line(f"{', '.join(bounds.unknown)}: not found, so it can be anything"))
    yield from paragraph("bounds", lines)
    needs = [one_line(f"{need.capability} ({_steps(need.steps)})") for need in envelope.needs] or ["nothing"]
    if envelope.unknown:
        needs.append(one_line(f"and what {', '.join(envelope.unknown)} needs, which is not known here"))
    yield from paragraph("envelope (what it has to be allowed, at most)", needs)


def foreseen_data(bounds: Bounds, envelope: Envelope) -> dict[str, Value]:
    """Null is infinity: JSON has no other word for it."""
    counts: dict[str, Value] = {one: _range(getattr(bounds, one)) for one in COUNTED}
    return {
        "bounds": {**counts, "unknown": list(bounds.unknown)},
        "envelope": {
            "capabilities": [{"capability": need.capability, "steps": list(need.steps)} for need in envelope.needs],
            "unknown": list(envelope.unknown),
        },
    }


def _range(count: Range) -> Value:
    return {"least": count.least, "most": count.most}


def _steps(labels: tuple[str, ...]) -> str:
    return f"step{'' if len(labels) == 1 else 's'} {', '.join(labels)}"
