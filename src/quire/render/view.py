"""What shows a run while it goes on. All of them read the same feed; `quire.cli.driving` chooses one."""

from __future__ import annotations

import contextlib
from typing import Protocol, TextIO

from quire.engine.progress import StepView
from quire.engine.records import Event


class View(Protocol):
    """`show` is called for every event and must be cheap; whoever asks a person something pauses the view meanwhile."""

    def start(self) -> None: ...

    def show(self, event: Event) -> None: ...

    def say(self, line: str) -> None:
        """A line for people, between whatever else is shown."""
        ...

    def note(self, line: str) -> None:
        """A line that holds from now on; an empty one takes it back."""
        ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None:
        """Does nothing where nothing was started."""
        ...


def end_fan(step: StepView, event: Event) -> None:
    """A step whose items went on side by side took no longer than it was under way, whatever they add up to."""
    if step.fan and step.started_at is not None and event.at and not event.replayed:
        step.elapsed = min(step.elapsed, max(0.0, event.at - step.started_at))


class Talk:
    """Lines on stderr and nothing else: a quiet run, and the base of the views that need no more than that."""

    def __init__(self, err: TextIO) -> None:
        self._err = err

    def start(self) -> None:
        pass

    def show(self, event: Event) -> None:
        pass

    def say(self, line: str) -> None:
        # Whoever read this may have gone away; that stops no run.
        with contextlib.suppress(OSError, ValueError):
            self._err.write(line + "\n")
            self._err.flush()

    def note(self, line: str) -> None:
        if line:
            self.say(line)

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def stop(self) -> None:
        pass
