"""A child that goes on beside its parent: where it is, and how it ended."""

from __future__ import annotations

from collections.abc import Callable

from quire.engine.branches import Branch
from quire.engine.requests import Failure, Outcome
from quire.values import Value


class Spawned:
    """`on_end` are told once, when the child has ended or was stopped; whoever waits for it is among them."""

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.outcome: Outcome | None = None
        self.stopped = False
        self.on_end: list[Callable[[], None]] = []

    def end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        for told in self.on_end:
            told()

    def stop(self) -> None:
        self.stopped = True
        self.end(Outcome())

    def as_value(self) -> Value:
        """As a `Join` answers."""
        if self.outcome is None:
            return {"state": "running"}
        if self.stopped:
            return {"state": "stopped"}
        if self.outcome.failure is not None:
            failure = Failure.of(self.outcome.failure)
            return {"state": "failed", "kind": failure.kind, "message": failure.message}
        return {"state": "done", "value": self.outcome.value}
