"""Replies that a run has taken from another one: the table for people, and the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.display.tables import table, tokens
from quire.display.text import duration, money, one_line, place
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.engine.reused_replies import Saved
    from quire.runs.reuse import Reuse
    from quire.values import Value

STEP_LINES = 20


def reuse_lines(reuse: Reuse) -> list[str]:
    """Return the table: a row for each step with replies that were taken, and what they had used when they were paid
    for."""
    asked = _asked(reuse)
    if not reuse.steps:
        return [f"no reply of {reuse.run} was reused{f': {asked}' if asked else ''}"]
    rows = [(place(step.way), *_row(step.calls, step.saved)) for step in list(reuse.steps.values())[:STEP_LINES]]
    hidden = len(reuse.steps) - len(rows)
    if hidden:
        rows.append((f"{hidden} more", "", "", "", ""))
    rows.append(("saved", *_row(reuse.calls, reuse.saved)))
    lines = table(
        rows, (f"REUSED FROM {reuse.run}", "REPLIES", "TOKENS", "COST", "TIME"), right=frozenset({1, 2, 3, 4})
    )
    return [*lines, *([asked] if asked else [])]


def reuse_data(reuse: Reuse) -> dict[str, Value]:
    return {
        "run": reuse.run,
        "replies": reuse.calls,
        "saved": reuse.saved.as_value(),
        "asked": reuse.asked,
        **({"reasons": dict(reuse.reasons)} if reuse.reasons else {}),
        "steps": [
            {"path": path, "way": step.way, "replies": step.calls, "saved": step.saved.as_value()}
            for path, step in reuse.steps.items()
        ],
    }


def _row(calls: int, saved: Saved) -> tuple[str, str, str, str]:
    cost = "unknown" if saved.cost is None else money(saved.cost)
    return str(calls), tokens(saved.input_tokens, saved.output_tokens), cost, duration(saved.elapsed)


def _asked(reuse: Reuse) -> str:
    if not reuse.asked:
        return ""
    why = ", ".join(f"{count} {reason}" for reason, count in reuse.reasons.items())
    return one_line(f"asked anew: {reuse.asked} {pluralize('call', reuse.asked)}" + (f" ({why})" if why else ""))
