"""Where a run stands, step by step: the sum of its events. Every display reads this."""

from __future__ import annotations

from dataclasses import dataclass, field

from quire.engine.records import EffectRecord, Event
from quire.plan.nodes import Plan
from quire.values import Value, encode

STREAM_TAIL = 10_000
"""How much of a reply under way is held: displays show its end."""


@dataclass(slots=True)
class StepView:
    path: str
    label: str
    title: str
    depth: int
    status: str = "pending"
    output: str | None = None
    displayed: str = ""
    message: str = ""
    elapsed: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    started_at: float | None = None
    below: list[StepView] = field(default_factory=list)

    def skip_the_rest(self) -> None:
        """The arms that were not taken."""
        for step in self.below:
            if step.status == "pending":
                step.status = "skipped"


@dataclass(slots=True)
class Progress:
    """The steps of a plan in document order, by path, with what is known of each."""

    steps: dict[str, StepView]
    named: dict[str, str] = field(default_factory=dict)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    streaming: str = ""
    streaming_path: str = ""

    @classmethod
    def of(cls, plan: Plan) -> Progress:
        progress = cls({})
        for path, step in plan.steps():
            view = StepView(path, step.label, step.title, path.count("/case["))
            progress.steps[path] = view
            parent = progress.steps.get(path.rpartition("/case[")[0])
            if parent:
                parent.below.append(view)
        return progress

    def apply(self, event: Event) -> None:
        step = self.step_of(event.path)
        match event.type:
            case "step_started" if step:
                step.status, step.message = "running", ""
                step.started_at = event.at or None
                self.streaming = ""
            case "step_completed" if step:
                step.status = "completed"
                step.output = _as_text(event.live.get("output", step.output or ""))
                step.displayed = _as_text(event.live.get("displayed", step.output))
                self.streaming = ""
                step.skip_the_rest()
            case "step_skipped" if step:
                step.status = "skipped"
                step.skip_the_rest()
            case "step_failed" if step:
                step.status, step.message = "failed", str(event.data.get("message", ""))
            case "question" if step:
                step.status = "awaiting_input"
            case "named":
                self.named[str(event.live["name"])] = str(event.live["value"])
            case "warning":
                self.warnings.append((event.label, str(event.data.get("message", ""))))
            case "delta":
                if event.path != self.streaming_path:
                    self.streaming, self.streaming_path = "", event.path
                self.streaming = (self.streaming + str(event.live.get("text", "")))[-STREAM_TAIL:]
            case "effect" if step and event.record:
                if step.status == "awaiting_input":
                    step.status = "running"
                self.add_effect(event.record)

    def add_effect(self, record: EffectRecord) -> None:
        """Adds what an effect took to the step that it belongs to."""
        step = self.step_of(record.path)
        if step is None:
            return
        step.elapsed += record.elapsed
        if record.usage:
            step.input_tokens += record.usage.input_tokens
            step.output_tokens += record.usage.output_tokens
            known = step.cost is not None and record.usage.cost is not None
            step.cost = (step.cost or 0.0) + (record.usage.cost or 0.0) if known else None

    def step_of(self, path: str) -> StepView | None:
        """The step that a path belongs to: `2/case[1]/1/model` is part of `2/case[1]/1`."""
        while path:
            if path in self.steps:
                return self.steps[path]
            path = path.rpartition("/")[0]
        return None


def _as_text(value: Value) -> str:
    return value if isinstance(value, str) else encode(value)
