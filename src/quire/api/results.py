"""The result of a run, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from quire.engine.driver.drive import DriveResult
    from quire.engine.records import Status
    from quire.runs.view import RunView
    from quire.values import Value


class Result(Struct, frozen=True):
    """How a run ended or where it waits."""

    run: str
    """The id of the run, as `quire resume` and `quire answer` take it."""
    status: Status
    output: str
    """The output of the last executed step, as text."""
    artifact: str
    """The output as it is written to a file."""
    artifact_type: str
    named: Mapping[str, str]
    steps: Mapping[str, str]
    """The status of each step, by label."""
    questions: Mapping[str, str]
    """The prompts that wait for a person, by label."""
    error: str
    """Empty unless the run failed."""
    input_tokens: int
    output_tokens: int
    cost: float | None
    value: Value = None
    """The output itself: for a pipeline any JSON value, for a directive its outputs, for a playbook the text."""
    stores: Mapping[str, Value] = field(default_factory=dict)
    """The named stores of a pipeline so far, its inputs included; empty for other formats."""
    outputs: Mapping[str, Value] = field(default_factory=dict)
    """The declared outputs of a directive that has ended; empty for other formats."""
    warnings: tuple[str, ...] = ()
    """Problems found before the start that may affect the run, and warnings of the run itself."""


def result_of(view: RunView, ended: DriveResult) -> Result:
    value = view.value
    return Result(
        run=view.row.id,
        status=ended.status,
        output=view.output,
        artifact=view.artifact,
        artifact_type=view.artifact_type,
        named=dict(view.named),
        steps={step.label: step.status for step in view.replay.progress.steps.values()},
        questions={question.label: question.prompt for question in view.questions},
        error=ended.failure.message if ended.failure else "",
        input_tokens=view.row.input_tokens,
        output_tokens=view.row.output_tokens,
        cost=view.row.cost,
        value=value,
        stores=dict(view.stores),
        outputs=dict(value) if view.thread and isinstance(value, Mapping) else {},
        warnings=tuple(f"step {label}: {text}" if label else text for label, text in view.warnings),
    )
