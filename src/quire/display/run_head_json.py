"""JSON of the head of a run: its row, its steps without their outputs, its questions, and the actions that are legal.

The head has no value of a step, so its size depends on the document and not on what models wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.display.advice import after_failure, next_step
from quire.display.run_json import answer_data, question_data, reused_data, row_data, step_data
from quire.display.shell_commands import (
    SETTING,
    STEP,
    answer_to,
    cancel_command,
    compare_command,
    export_command,
    fork_command,
    resume_command,
)
from quire.engine.records import Status
from quire.engine.requests import BREAK
from quire.plan.vocabulary import last_label
from quire.runs.run_tree import state_of
from quire.stores.contract import CANCELLABLE, RESUMABLE

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.runs.outcome import RunView
    from quire.values import Value

_DRIVING = ("answer", "resume")
"""Actions after which a process drives the run."""

MOST_ANSWERS = 100
"""The latest answers that the head has. A fan-out may ask thousands of times."""


def head_data(view: RunView, *, driven_here: bool, broken_seal: str = "") -> dict[str, Value]:
    """Return the head of a run. `driven_here` says that the process that makes it also drives the run; `broken_seal`
    is the reason why no process may drive it."""
    pins, row = view.pins, view.row
    return {
        **row_data(row),
        "model": pins.instead or pins.model,
        "budget": pins.budget,
        "breakpoints": list(pins.breakpoints),
        "steps": [
            {**step_data(step, output=False), "state": state_of(step.status, row.status)}
            for step in view.progress.steps.values()
        ],
        "warnings": [{"step": last_label(way), "way": way, "message": message} for way, message in view.warnings],
        "questions": [{**question_data(question), "hash": question.hash} for question in view.questions],
        "answers": [answer_data(way, record) for way, record in view.answers[-MOST_ANSWERS:]],
        "effects_total": len(view.effects),
        **reused_data(view),
        "finished": row.status is Status.COMPLETED,
        "settable": can_set(view),
        "driven_here": driven_here,
        "sealed": not broken_seal,
        "seal_problem": broken_seal or None,
        "actions": [
            action for action in _actions(view, driven_here) if not (broken_seal and action["name"] in _DRIVING)
        ],
        "advice": list(after_failure(row, view.progress)) if row.status is Status.FAILED else [],
        "next": next_step(row, view.progress, asks=bool(view.questions)),
    }


def unreadable_head(row: RunRow, problem: str) -> dict[str, Value]:
    """Return the head of a run that cannot be replayed here, such as one of a newer version, from its row alone."""
    return {
        **row_data(row),
        "model": row.pins.get("model"),
        "budget": row.pins.get("budget"),
        **{name: [] for name in ("breakpoints", "steps", "warnings", "questions", "answers", "advice")},
        **dict.fromkeys(("effects_total", "sealed", "seal_problem")),
        **dict.fromkeys(("finished", "settable", "driven_here"), False),
        "actions": [{"name": "export", "command": export_command(row.id)}],
        "next": {"verb": "none", "why": problem, "command": None},
        "problem": problem,
    }


def can_set(view: RunView) -> bool:
    """Return True if the run stands at the end of a step, where values can be set when it continues."""
    row = view.row
    return row.status is Status.PAUSED and bool(row.ended_by) and row.ended_by[0].endswith(BREAK)


def _actions(view: RunView, driven_here: bool) -> Iterator[dict[str, Value]]:
    row = view.row
    if view.questions:
        yield {"name": "answer", "command": answer_to(view.questions[0], view.questions)}
    if row.status in RESUMABLE and not driven_here:
        sets = SETTING if can_set(view) else None
        yield {"name": "resume", "command": resume_command(row.id, sets=sets)}
    if row.status is Status.RUNNING and driven_here:
        yield {"name": "pause", "command": None}
    if row.status in (*CANCELLABLE, Status.INTERRUPTED):
        yield {"name": "cancel", "command": cancel_command(row.id)}
    if view.effects:
        yield {"name": "fork", "command": fork_command(row.id, STEP)}
    yield {"name": "compare", "command": compare_command(row.id)}
    yield {"name": "export", "command": export_command(row.id)}
