"""JSON of the timeline of a run: all effects as columns, and the times in which the run waited for a person.

Ten thousand effects are a sixth of the size as columns of what they are as objects. Times are seconds from `start`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from quire.engine.records import Event
    from quire.engine.step_progress import StepView
    from quire.runs.view import RunView
    from quire.values import Value

STOPS = {"run_paused": "paused", "run_failed": "failed", "run_cancelled": "cancelled"}
BEGINNINGS = ("run_started", "run_resumed")


class Wait(Struct, frozen=True):
    """A time in which a run waited: for the answer to a question, or to be resumed."""

    kind: Literal["question", "paused", "failed", "cancelled", "interrupted", "forked"]
    since: float
    until: float | None
    """None if the run still waits."""
    path: str = ""
    """The path of the question."""


def waits(events: Iterable[Event]) -> list[Wait]:
    """Return the waits of a run, in the order of their beginning."""
    found: list[Wait] = []
    asked: dict[str, float] = {}
    stopped: tuple[str, float] | None = None
    last = 0.0
    for event in events:
        if event.type == "question":
            asked.setdefault(event.path, event.at)
        elif event.path in asked and event.type == "effect":
            found.append(Wait("question", asked.pop(event.path), event.at, event.path))
        elif event.type in STOPS:
            stopped = STOPS[event.type], event.at
        elif event.type == "run_forked":
            stopped = "forked", last or event.at
        elif event.type in BEGINNINGS:
            kind, since = stopped or ("interrupted", last)
            # A run that rests with an open question waits for the answer, which is said already.
            if since and not asked:
                found.append(Wait(kind, since, event.at))  # type: ignore[arg-type]  # from STOPS
            stopped = None
        last = event.at
    found += (Wait("question", since, None, path) for path, since in asked.items())
    if stopped and stopped[0] == "paused":
        found.append(Wait("paused", stopped[1], None))
    return sorted(found, key=lambda one: one.since)


def timeline_data(view: RunView, events: Iterable[Event]) -> dict[str, Value]:
    """Return the timeline of a run. A lane is a step, in the order of the document; `lane` has their numbers."""
    progress, effects = view.replay.progress, view.effects
    waited = waits(events)
    steps = [progress.step_of(record.path) for record in effects]
    asking = [progress.step_of(wait.path) if wait.path else None for wait in waited]
    used = {step.path for step in (*steps, *asking) if step is not None}
    lanes = [step for step in progress.steps.values() if step.path in used]
    numbers = {step.path: at for at, step in enumerate(lanes)}
    start = min([view.row.created_at, *(record.at for record in effects[:1])])
    kinds = list(dict.fromkeys(record.kind for record in effects))
    kind_numbers = {kind: at for at, kind in enumerate(kinds)}
    states = ["ok", "failed", "intent"]
    return {
        "start": start,
        "end": _seconds(max([view.row.updated_at, *(record.ended_at for record in effects)]) - start),
        "lanes": [_lane(step) for step in lanes],
        "kinds": list(kinds),
        "states": list(states),
        "effects": {
            "path": [record.path for record in effects],
            "lane": [numbers[step.path] if step else -1 for step in steps],
            "kind": [kind_numbers[record.kind] for record in effects],
            "state": [states.index(record.state) for record in effects],
            "at": [_seconds(record.at - start) for record in effects],
            "elapsed": [_seconds(record.elapsed) for record in effects],
        },
        "waits": [
            {
                "kind": wait.kind,
                "path": wait.path or None,
                "lane": numbers[step.path] if step else -1,
                "at": _seconds(wait.since - start),
                "until": None if wait.until is None else _seconds(wait.until - start),
            }
            for wait, step in zip(waited, asking, strict=True)
        ],
    }


def _lane(step: StepView) -> Value:
    return {"path": step.path, "label": step.label, "way": step.way, "title": step.title, "status": step.status}


def _seconds(value: float) -> float:
    return round(max(0.0, value), 4)
