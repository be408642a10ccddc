"""Progress as lines, for logs, pipes and terminals that cannot do more.

A step's line is begun when the step starts and ended when it ends, so that somebody who waits sees what for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TextIO

from quire.engine.progress import Progress, StepView
from quire.engine.records import Event
from quire.engine.turns import CallView, call_number, thread_of, turn_of
from quire.render.text import duration, fan_words, one_line, place
from quire.render.turns import answered, called, hook_words, turn_title
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
            self.say(f"  {event.way} {which} failed: {one_line(str(event.data.get('message', '')))}")
        elif event.type == "hook_action":
            self._show_hook(event)
        elif event.type in ("agent_called", "agent_told"):
            self._show_agent(event)
        elif event.type in ("effect", "tool_told", "thread_ended"):
            self._show_turn(event)
        elif step is not None and event.type == "step_started":
            self.pause()
            self._write(self._head(step))
            self._open = step.path
        elif step is not None and event.type in _ENDS:
            end_fan(step, event)
            if not step.thread:
                self._end(step, _ENDS[event.type])

    def _show_turn(self, event: Event) -> None:
        """A thread as it goes on: what its model says and calls, and what it is told."""
        step = self._progress.step_of(event.path)
        if step is None or not step.thread:
            return
        indent = "  " * (step.depth + 1)
        if event.type == "tool_told":
            number = call_number(event.path, turn_of(event.path))
            call = step.calls.get(0 if number is None else number, CallView())
            mark = "!" if call.kind else "<"
            self.say(f"{indent}{mark} {one_line(call.tool or call.name)} {answered(call)}")
        elif event.record is not None and event.record.kind == "model" and event.record.state == "ok":
            if not event.path.startswith(f"{step.path}/model"):
                return  # The model of a document that the turn has called.
            if self._open != step.path:
                self.pause()
                self._write(self._head(step))
            self._open = ""
            self._write(f"{f' {turn_title(step)}' if step.output else ''} ({duration(event.record.elapsed)})\n")
            for call in step.calls.values():
                self.say(f"{indent}> {one_line(called(call))}")

    def _show_agent(self, event: Event) -> None:
        """What the agent of a pipeline calls, and what it is told."""
        data = event.data
        tool, given = str(data.get("tool", "")), data.get("arguments")
        call = CallView("", given if isinstance(given, Mapping) else {}, tool)
        if event.type == "agent_called":
            self.say(f"  > {one_line(called(call))}")
            return
        call.result, call.kind = str(data.get("result", "")), str(data.get("kind", ""))
        self.say(f"  {'!' if call.kind else '<'} {one_line(tool)} {answered(call)}")

    def _show_hook(self, event: Event) -> None:
        """Below its turn; before the first turn and after the last one beside them."""
        path = thread_of(event.path)
        step = self._progress.step_of(event.path)
        within = step is not None and step.thread == path
        depth = self._progress.depth_of(f"{path}/turn[1]")
        if depth is None:
            return
        for hook in self._progress.threads[path].hooks:
            if hook.path == event.path:
                self.say(f"{'  ' * (depth + within)}{one_line(hook_words(hook))}")

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
        if step.thread:
            return f"{'  ' * step.depth}[{one_line(step.way)}]"
        number = f"{step.path}/{self._total}" if step.depth == 0 else step.label
        return f"{'  ' * step.depth}[{number}] {one_line(step.title) or step.label} …"

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._err.write(text)
            self._err.flush()


def warning_line(event: Event) -> str:
    where = f"{place(event.way)}: " if event.way else ""
    return f"warning: {where}{one_line(str(event.data.get('message', '')))}"
