"""Progress of one step, and of the items or rounds that it goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from quire.engine.records import Event
    from quire.engine.thread_progress import CallView
    from quire.values import Value

KEPT_FAILURES = 200
"""Failed items that are kept with their messages; the others are only counted."""


class FanView(Struct):
    """Concurrent work of one step. If the step runs one fan after the other, this is the sum of them."""

    total: int = 0
    limit: int = 0
    done: int = 0
    failed: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    """The number or the name of each failed item, and why it failed."""
    rounds: bool = False
    """True for the rounds of a loop: one after the other, and `total` is only the most that there may be."""

    @property
    def running(self) -> int:
        """Estimate the running items as all that there is room for: no event reports that an item begins."""
        return max(0, min(self.limit, self.total - self.done - self.failed))

    def begin(self, event: Event) -> None:
        self.rounds = bool(event.data.get("rounds")) and (self.rounds or not self.total)
        self.total += whole(event.data.get("total"))
        self.limit = whole(event.data.get("limit"))

    def close(self) -> None:
        """End a loop: rounds that it did not need are not missing."""
        if self.rounds:
            self.total = self.done

    def ended(self, event: Event) -> None:
        if event.data.get("state") != "failed":
            self.done += 1
            return
        self.failed += 1
        if len(self.failures) < KEPT_FAILURES:
            which = event.data.get("name", event.data.get("index", ""))
            self.failures.append((str(which), str(event.data.get("message", ""))))


class StepView(Struct):
    """Progress of one step."""

    path: str
    label: str
    title: str
    depth: int
    status: str = "pending"
    output: str | None = None
    displayed: str = ""
    message: str = ""
    survived: str = ""
    """The message of a failure that the step has survived."""
    elapsed: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    started_at: float | None = None
    below: list[StepView] = field(default_factory=list)
    store: str = ""
    """In a pipeline, the name that the value is stored under."""
    fan: FanView | None = None
    """Set once the step has begun to fan out."""
    thread: str = ""
    """Path of the thread that this step is a turn of."""
    calls: dict[int, CallView] = field(default_factory=dict)
    """The tools that the model of this step called, by number. Of the calls of agents, the last ones."""
    agent_calls: int = 0
    """The number of all calls that agents of this step made."""
    agent_turns: int = 0
    """The number of their turns with calls."""
    way: str = ""
    """The label for people, preceded by the way to the step that calls it."""

    def __post_init__(self) -> None:
        self.way = self.way or self.label

    def survive(self, message: str) -> None:
        """Record a failure that the run goes on after, and that of each step below which has caused it."""
        self.survived = message
        for step in self.below:
            if message and step.status == "failed":
                step.survive(step.message)

    def skip_the_rest(self) -> None:
        """Mark the steps below that were not reached as skipped."""
        for step in self.below:
            if step.status == "pending":
                step.status = "skipped"
                step.skip_the_rest()


def whole(value: Value) -> int:
    """Return a number of an event; 0 if there is none."""
    return value if isinstance(value, int) else 0
