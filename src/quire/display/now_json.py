"""JSON of what needs the user now: runs that stopped, each with the one action that helps, and runs under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.display.advice import by_other_means, fails_again
from quire.display.commands import Blank, resume_command
from quire.display.run_json import row_data
from quire.engine.records import Status
from quire.plan.ways import first_label
from quire.runs.outcome import limit_to_raise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quire.engine.progress import Progress
    from quire.engine.records import RunRow
    from quire.values import Value

MORE = Blank("MORE")


def stopped_data(row: RunRow) -> dict[str, Value]:
    """Return a run that stopped and can go on, with the action that helps."""
    return {**row_data(row), "budget": row.pins.get("budget"), "action": _action(row)}


def _action(row: RunRow) -> dict[str, Value]:
    """Return the action: its kind, the words of its button, the reason, and the command that does the same.

    `resume` goes on as it is, `more` needs an amount for `budget` or a limit, `look` can only be done after looking at
    the run: with another text, another model or another grant.
    """
    command = resume_command(row.id)
    if row.status is Status.PAUSED:
        where = f" at step {row.position}" if row.position else ""
        return _button("resume", "Go on", f"stands{where}", command)
    if row.status is Status.INTERRUPTED:
        return _button("resume", "Go on", "its process is gone; everything that it did is kept", command)
    failure = row.failure
    if failure is None:
        return _button("resume", "Try again", "", command)
    if name := limit_to_raise(row):
        with_more = resume_command(row.id, limit=f"{name}={MORE}")
        return {**_button("more", "Raise the limit", failure.message, with_more), "limit": name}
    if failure.kind == "limit":
        with_more = resume_command(row.id, budget=MORE)
        return {**_button("more", "Raise the budget", failure.message, with_more), "limit": "budget"}
    if failure.kind == "denied" or fails_again(row) or by_other_means(row):
        return _button("look", "See what helps", failure.message, resume_command(row.id, document=True))
    return _button("resume", "Try again", failure.message, command)


def _button(kind: str, label: str, reason: str, command: str) -> dict[str, Value]:
    return {"kind": kind, "label": label, "reason": reason, "command": command}


def running_data(row: RunRow, progress: Progress | None, labels: Sequence[str]) -> dict[str, Value]:
    """Return a run under way with its place: step `at` of `of`, and the items of its fan-outs.

    `labels` are the top-level steps of its document. A run that another process drives has no `progress`.
    """
    reached = first_label(row.position)
    at = labels.index(reached) + 1 if reached in labels else 0
    fans = [step.fan for step in progress.steps.values() if step.fan and step.status == "running"] if progress else []
    return {
        **row_data(row),
        "budget": row.pins.get("budget"),
        "at": at,
        "of": len(labels),
        "items": {
            "total": sum(fan.total or 0 for fan in fans),
            "done": sum(fan.done for fan in fans),
            "failed": sum(fan.failed for fan in fans),
        }
        if fans
        else None,
    }
