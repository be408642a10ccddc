"""A run as people see it: its row, its steps, its open questions, its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import field

from quire.engine.records import EffectRecord, Status
from quire.plan.ways import last_label
from quire.runs.outcome import RunOutcome, bounds_that_hold, by_label

if TYPE_CHECKING:
    from quire.engine.driver.replay import Replay
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.interpreter.thread.setup import Setup
    from quire.engine.step_progress import StepView
    from quire.library.document import Document
    from quire.plan.nodes import Plan
    from quire.runs.pins import PinnedState
    from quire.runs.reuse import Reuse
    from quire.values import Value


class RunView(RunOutcome, frozen=True):
    """Everything that is known about a run."""

    pins: PinnedState
    document: Document
    replay: Replay
    effects: Sequence[EffectRecord]
    thread: Setup | None = None
    """The thread of a directive as it started."""
    bundle: Bundle | None = None
    """All texts that the directive is composed from."""
    documents: Mapping[str, Plan] = field(default_factory=dict)
    """The documents that this one can call, by name."""

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """The warnings from before the start and from the run, each with the label of its step, or an empty label."""
        before, beyond = ([("", one) for one in texts] for texts in (self.pins.warnings, self._broken_bounds()))
        return [*before, *self.replay.progress.warnings, *beyond]

    def _broken_bounds(self) -> list[str]:
        """Return what the run has done beyond what was proven of it: a bug of Quire."""
        if not self.pins.proven:
            return []
        from quire.engine.proven_bounds import broken_bounds
        from quire.runs.pins import PinnedState

        proven = bounds_that_hold(self.row.format, PinnedState.of(self.row.pins), self.pins, self.effects)
        return [] if proven is None else [one.message for one in broken_bounds(proven, self.effects)]

    @property
    def changes(self) -> list[tuple[StepView, Mapping[str, Value]]]:
        """The values that people set at stops, each with the step at whose end they were set."""
        found = []
        for record in self.effects:
            step = self.replay.progress.step_of(record.path) if record.kind == "break" else None
            if step is not None and isinstance(record.value, Mapping) and record.value:
                found.append((step, record.value))
        return found

    @property
    def answers(self) -> list[tuple[str, EffectRecord]]:
        """The answers of people, or given in their place: the way to each step that asked, and the record."""
        answered = [record for record in self.effects if record.kind == "ask" and record.state == "ok"]
        return [(self._way(record.path), record) for record in answered]

    @property
    def reuse(self) -> Reuse:
        """The replies that the run has taken from another one, as far as its own journal tells."""
        from quire.runs.reuse import reuse_of

        return reuse_of(self.pins.reuse, self.effects, self.progress)

    def _way(self, path: str) -> str:
        request = self.replay.asked.get(path)
        step = self.replay.progress.step_of(path)
        return request.label if request else step.way if step else path

    def step_outputs(self) -> dict[str, str]:
        """Return the outputs by label; repeated labels get a number from the second on."""
        steps = by_label(step for step in self.own_steps if step.output is not None)
        return {label: step.output or "" for label, step in steps.items()}

    def state(self) -> dict[str, Value]:
        """Return the state of an execution in the form of the playbook specification."""
        label = last_label(self.row.position)
        stopped = self.row.status in (Status.PAUSED, Status.AWAITING_INPUT) and label
        return {
            "execution_id": self.row.id,
            "playbook_id": self.row.document,
            "model_id": self.pins.model,
            "system_prompt": self.document.plan.system if self.document.plan else "",
            "input_values": self._inputs_now(),
            "step_outputs": self.step_outputs(),
            "named_outputs": dict(self.named),
            "breakpoints": dict.fromkeys(self.pins.breakpoints, True),
            "status": str(self.row.status),
            "paused_at_step": (int(label) if label.isdecimal() else label) if stopped else None,
        }

    def _inputs_now(self) -> dict[str, Value]:
        """Return the inputs with the values that people set at stops."""
        values = dict(self.pins.inputs)
        for _, changed in self.changes:
            values.update((name, value) for name, value in changed.items() if name in values)
        return values
