"""Views that show a run while it is driven. All of them get the same events; `quire.cli.drive` chooses one.

`QuietView` prints only messages. `PlainView` prints lines, for logs, pipes and terminals that cannot do more: the
line of a step is begun when the step starts and completed when it ends, so that a waiting user sees the current step.
`JsonLines` is for programs: each event is a line of JSON on stdout, the last line is the result.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TextIO

from quire.display.text import duration, fan_words, one_line, place
from quire.display.turns import agent_heading, answered, called, hook_words, turn_title
from quire.display.visible import escaped
from quire.engine.thread_progress import CallView, call_number, thread_of, turn_of
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.engine.progress import Progress, StepView
    from quire.engine.records import Event


class View:
    """A view of a run. `show` is called for every event and must be cheap; code that asks the user pauses the view
    meanwhile."""

    def start(self) -> None:
        """Begin to show the run."""

    def show(self, event: Event) -> None:
        """Show an event."""

    def say(self, line: str) -> None:
        """Print a line for people between the rest of the output."""

    def note(self, line: str) -> None:
        """Show a line from now on; an empty one removes it."""

    def pause(self) -> None:
        """Leave the terminal to others."""

    def resume(self) -> None:
        """Continue after a pause."""

    def stop(self) -> None:
        """Stop the view. Does nothing if it was not started."""


def end_fan(step: StepView, event: Event) -> None:
    """Limit the time of a step with concurrent items to the time that it was running, because the times of its items
    add up to more."""
    if step.fan and step.started_at is not None and event.at and not event.replayed:
        step.elapsed = min(step.elapsed, max(0.0, event.at - step.started_at))


class QuietView(View):
    """Prints lines on stderr and nothing else: the view of a quiet run, and the base of other views."""

    def __init__(self, err: TextIO) -> None:
        self._err = err

    def show(self, event: Event) -> None:
        if event.type == "bound_broken" and not event.replayed:
            self.say(warning_line(event))

    def say(self, line: str) -> None:
        # The reader of stderr may be gone; that does not stop the run.
        with contextlib.suppress(OSError, ValueError):
            self._err.write(line + "\n")
            self._err.flush()

    def note(self, line: str) -> None:
        if line:
            self.say(line)


LONG_READING = 10.0
"""Seconds after which a model that reads a prompt is mentioned."""
_ENDS = {"step_completed": "done", "step_skipped": "skipped", "step_failed": "failed"}


class PlainView(QuietView):
    """Progress as lines. The caller applies an event to `progress` before showing it."""

    def __init__(self, progress: Progress, err: TextIO) -> None:
        super().__init__(err)
        self._progress = progress
        self._open = ""
        self._reading: dict[str, float] = {}
        """When each model call began to read its prompt; 0 once that has been said."""
        self._total = sum(step.depth == 0 for step in progress.steps.values())

    def show(self, event: Event) -> None:
        if event.replayed:
            return
        step = self._progress.steps.get(event.path)
        if event.type in ("warning", "bound_broken", "model_switched"):
            self.say(warning_line(event))
        elif event.type == "fan_item" and event.data.get("state") == "failed":
            which = event.data.get("name", event.data.get("index", ""))
            self.say(f"  {event.way} {which} failed: {one_line(str(event.data.get('message', '')))}")
        elif event.type == "hook_action":
            self._show_hook(event)
        elif event.type in ("agent_called", "agent_told"):
            self._show_agent(event)
        elif event.type == "reading":
            self._show_reading(event)
        elif event.type in ("effect", "tool_told", "thread_ended"):
            self._reading.pop(event.path, None)
            self._show_turn(event)
        elif step is not None and event.type == "step_started":
            self.pause()
            self._write(self._head(step))
            self._open = step.path
        elif step is not None and event.type in _ENDS:
            end_fan(step, event)
            if not step.thread:
                self._end(step, _ENDS[event.type])

    def _show_reading(self, event: Event) -> None:
        """Say once that a model still reads its prompt, so that a slow machine is not taken for a broken one."""
        began = self._reading.setdefault(event.path, event.at)
        if began and event.at - began >= LONG_READING and self._progress.reading:
            self._reading[event.path] = 0
            self.say(f"  {self._progress.reading}")

    def _show_turn(self, event: Event) -> None:
        """Show the progress of a thread: the replies and calls of its model, and the results that it gets."""
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
                return  # The model belongs to a document that the turn has called.
            self._complete(step, f"{f' {turn_title(step)}' if step.output else ''} ({duration(event.record.elapsed)})")
            for call in step.calls.values():
                self.say(f"{indent}> {one_line(called(call))}")

    def _show_agent(self, event: Event) -> None:
        """Show a call of a pipeline's agent, or the result that it gets."""
        data = event.data
        tool, passed = str(data.get("tool", "")), data.get("arguments")
        arguments = passed if isinstance(passed, Mapping) else {}
        call = CallView("", arguments, tool, path=event.path, said=str(data.get("text", "")))
        # Among parallel items the lines of several agents are mixed.
        item = f"[{one_line(call.item)}] " if call.item else ""
        if event.type == "agent_called":
            if event.path.endswith("/tool[0]"):
                self.say(f"  {agent_heading(call)}")
            self.say(f"  {item}> {one_line(called(call))}")
            return
        call.result, call.kind = str(data.get("result", "")), str(data.get("kind", ""))
        self.say(f"  {item}{'!' if call.kind else '<'} {one_line(tool)} {answered(call)}")

    def _show_hook(self, event: Event) -> None:
        """Show a hook below its turn; before the first turn and after the last one, at the level of the turns."""
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
        # The time of its effects and those of its sub-steps, without the time of waiting for people.
        inside = [view.elapsed for path, view in self._progress.steps.items() if path.startswith(step.path + "/")]
        took = "" if word == "skipped" else " " + duration(step.elapsed + sum(inside))
        fan = f" ({fan_words(step.fan)})" if step.fan else ""
        survived = f", survived: {one_line(step.survived)}" if step.survived else ""
        self._complete(step, f" {word}{took}{fan}{survived}")

    def _complete(self, step: StepView, rest: str) -> None:
        """Complete the line of a step, which is begun again if other lines came between."""
        if self._open != step.path:
            self.pause()
            self._write(self._head(step))
        self._open = ""
        self._write(f"{rest}\n")

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
    message = event.data.get("message") or f"{event.data.get('to')} is asked: {event.data.get('reason')}"
    return f"{event.type.replace('_', ' ')}: {where}{one_line(str(message))}"


class JsonLines(QuietView):
    """Events as lines of JSON on stdout, in UTF-8 regardless of the terminal's encoding.

    If stdout cannot be written any more, `gone` is called once with the error, which is also kept in `broken`. A
    failed write never breaks the run.
    """

    def __init__(self, out: TextIO, err: TextIO) -> None:
        super().__init__(err)
        self._out = out
        with contextlib.suppress(AttributeError):
            out.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[attr-defined]
        self.gone: Callable[[OSError], None] = lambda error: None
        self.broken: OSError | None = None

    def show(self, event: Event) -> None:
        if not event.replayed:
            self.line(event.as_json())

    def line(self, entry: Mapping[str, Value]) -> None:
        if self.broken is not None:
            return
        try:
            self._out.write(escaped(encode(entry)) + "\n")
            self._out.flush()
        except OSError as error:
            self.broken = error
            self._drop()
            self.gone(error)

    def _drop(self) -> None:
        """Redirect the stream to the null device, so that the rest of its buffer does not fail again when it is
        closed."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._out.fileno())
            os.close(nowhere)
