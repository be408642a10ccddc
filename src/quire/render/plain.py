"""Progress as lines, for logs, pipes and terminals that cannot do more.

A step's line is begun when the step starts and ended when it ends, so that somebody who waits sees what for.
"""

from __future__ import annotations

import contextlib
from typing import TextIO

from quire.engine.progress import Progress, StepView
from quire.engine.records import Event
from quire.render.text import duration, fan_words, one_line
from quire.render.view import Talk, end_fan

_ENDS = {"step_completed": "done", "step_skipped": "skipped", "step_failed": "failed"}


class PlainView(Talk):
    """The caller applies an event to `progress` before it is shown."""

    def __init__(self, progress: Progress, err: TextIO) -> None:
        super().__init__(err)
        self._progress = progress
        self._open = ""
        self._total = sum(step.depth == 0 for step in progress.steps.values())

    def show(self, event: Event) -> None:
        if event.replayed:
            return
        step = self._progress.steps.get(event.path)
        if event.type == "warning":
            self.say(warning_line(event))
        elif event.type == "fan_item" and event.data.get("state") == "failed":
            which = event.data.get("name", event.data.get("index", ""))
            self.say(f"  {event.label} {which} failed: {one_line(str(event.data.get('message', '')))}")
        elif step is not None and event.type == "step_started":
            self.pause()
            self._write(self._head(step))
            self._open = step.path
        elif step is not None and event.type in _ENDS:
            end_fan(step, event)
            self._end(step, _ENDS[event.type])

    def say(self, line: str) -> None:
        self.pause()
        super().say(line)

    def pause(self) -> None:
        if self._open:
            self._open = ""
            self._write("\n")

    def stop(self) -> None:
        self.pause()

    def _end(self, step: StepView, word: str) -> None:
        if self._open != step.path:
            self.pause()
            self._write(self._head(step))
        self._open = ""
        took = "" if word == "skipped" else " " + duration(self._took(step))
        fan = f" ({fan_words(step.fan)})" if step.fan else ""
        self._write(f" {word}{took}{fan}\n")

    def _took(self, step: StepView) -> float:
        """What its effects took, those of its sub-steps too. Waiting for people is in neither."""
        inside = (view.elapsed for path, view in self._progress.steps.items() if path.startswith(step.path + "/"))
        return step.elapsed + sum(inside)

    def _head(self, step: StepView) -> str:
        number = f"{step.path}/{self._total}" if step.depth == 0 else step.label
        return f"{'  ' * step.depth}[{number}] {one_line(step.title) or step.label} …"

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._err.write(text)
            self._err.flush()


def warning_line(event: Event) -> str:
    where = f"step {event.label}: " if event.label else ""
    return f"warning: {where}{one_line(str(event.data.get('message', '')))}"
