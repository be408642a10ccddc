"""The outcome of a run, for every format: how it ended or where it rests, what came out, what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.records import Status
from quire.plan.thread import THREAD_PATH
from quire.plan.ways import JOINT, last_label
from quire.values import Value, encode, pretty

if TYPE_CHECKING:
    from quire.engine.driver.drive import DriveResult
    from quire.engine.progress import Progress
    from quire.engine.proven_bounds import ProvenBounds
    from quire.engine.records import EffectRecord, Question, RunRow
    from quire.engine.step_progress import StepView
    from quire.runs.pins import PinnedState


class RunOutcome(Struct, frozen=True):
    """How a run ended, or where it rests. `RunView` and the report of a drive add how it came to that."""

    row: RunRow
    progress: Progress
    rest: DriveResult
    """The end of the last drive, or the same from the journal."""
    questions: Sequence[Question]

    @property
    def status(self) -> Status:
        return self.rest.status

    @property
    def result(self) -> Mapping[str, Value]:
        """The result in the words of the format's interpreter; empty if the run has not reached its end."""
        return returned(self.rest)

    @property
    def value(self) -> Value:
        """The result of the run; for a directive its outputs. Before the end it is the empty text, or null for a
        pipeline."""
        return self.result.get("output", None if self.row.format == "pipeline" else "")

    @property
    def output(self) -> str:
        """The output as text: a value that is not text is encoded as JSON."""
        return pretty(self.value)

    @property
    def artifact(self) -> str:
        """The output for a person or a file: for a playbook without fence and closing object."""
        return str(self.result.get("artifact", self.output))

    @property
    def artifact_type(self) -> str:
        """The type that a playbook declares; empty for other formats."""
        return str(self.result.get("artifact_type") or "")

    @property
    def file_type(self) -> str:
        """The type of a file with the artifact; a pipeline or a directive ends in a text or in JSON."""
        if not self.result or "artifact_type" in self.result:
            return self.artifact_type
        return "text" if isinstance(self.value, str) else "json"

    @property
    def named(self) -> Mapping[str, str]:
        return self.progress.named

    @property
    def stores(self) -> Mapping[str, Value]:
        """The named stores of a pipeline so far: its inputs, and the values that its steps have written."""
        if self.row.format != "pipeline":
            return {}
        final, inputs = self.result.get("stores"), self.row.pins.get("inputs")
        so_far = {**(inputs if isinstance(inputs, Mapping) else {}), **self.progress.stores}
        return final if isinstance(final, Mapping) else so_far

    @property
    def ending(self) -> Mapping[str, Value]:
        """The end of the thread of a directive, in the words of its `Ending`; empty while it has not ended."""
        outermost = self.progress.threads.get(THREAD_PATH) if self.result or self.rest.failure else None
        return (outermost.ended if outermost else None) or {}

    @property
    def details(self) -> dict[str, Value]:
        """The keys of a run's JSON that only its format has."""
        match self.row.format:
            case "pipeline":
                return {"stores": dict(self.stores)}
            case "directive":
                ending = self.ending
                return {
                    "outputs": ending.get("outputs", {}),
                    "result": ending.get("result", ""),
                    "closing_message": ending.get("closing_message"),
                    "limit_type": ending.get("limit_type"),
                    "used": ending.get("cost"),
                }
        return {}

    @property
    def error(self) -> dict[str, Value] | None:
        """The failure as JSON; for a pipeline with its path."""
        failure = self.rest.failure
        if failure is None:
            return None
        error = {"kind": failure.kind, "message": failure.message, "step": self.position, "way": self.way}
        return {**error, "path": self.row.failed_at} if self.row.format == "pipeline" else {**error}

    @property
    def position(self) -> str:
        """The label of the step where the run stands; for a failed pipeline, its top-level step."""
        failed = self._failed
        return failed.label if failed else last_label(self._stands)

    @property
    def way(self) -> str:
        """The same for people, as a way through callees. A failure may come before the first write of its step."""
        failed = self._failed
        return failed.way if failed and JOINT not in self._stands else self._stands

    @property
    def _failed(self) -> StepView | None:
        return self.progress.step_of(self.row.failed_at) if self.row.failed_at else None

    @property
    def _stands(self) -> str:
        return self.rest.position or self.row.position

    @property
    def own_steps(self) -> list[StepView]:
        """The steps of the document. The turns of threads count in a directive only."""
        turns = self.row.format == "directive"
        return [step for step in self.progress.steps.values() if turns or not step.thread]


def by_label(steps: Iterable[StepView]) -> dict[str, StepView]:
    """Return the steps by label; repeated labels get a number from the second on."""
    found: dict[str, StepView] = {}
    for step in steps:
        key, count = step.label, 1
        while key in found:
            count += 1
            key = f"{step.label}#{count}"
        found[key] = step
    return found


def returned(ended: DriveResult) -> Mapping[str, Value]:
    """Return the result of a drive by its names; empty if the drive did not reach the end of the run."""
    return ended.result if isinstance(ended.result, Mapping) else {}


def limit_to_raise(row: RunRow) -> str:
    """Return the thread limit at which a run stopped and with more of which it goes on; empty if there is none. The
    limits of a directive that a run calls are not those of the run."""
    return limit_of(row.failure.kind) if row.failure and row.format == "directive" else ""


def limit_of(kind: str) -> str:
    """Return the thread limit that a failure kind refers to; empty for any other failure."""
    from quire.engine.interpreter.thread.limits import DEFAULTS

    name = "tokens" if kind == "spend_unknown" else kind.removesuffix("_exceeded")
    return name if name != kind and name in DEFAULTS else ""


def bounds_that_hold(
    format: str, start: PinnedState, now: PinnedState, records: Iterable[EffectRecord]
) -> ProvenBounds | None:
    """Return the bounds that were proven at the start of a run, as far as they still hold; None if none do.

    They are those of the document, the inputs and the limits of the start: a fork, a value that a person set at a
    breakpoint, or another limit makes it another run. Another model has other prices and other settings, and with a
    budget a pipeline may make more calls than without.
    """
    if not start.proven or now.origin or now.limits != start.limits:
        return None
    if any(one.kind == "break" and one.value for one in records):
        return None
    from quire.engine.proven_bounds import ProvenBounds

    proven = ProvenBounds.of(start.proven)
    same_calls = format != "pipeline" or (now.budget is None) == (start.budget is None)
    if now.instead == start.instead and same_calls:
        return proven
    return replace(proven, input_tokens=None, output_tokens=None, reply_tokens=None, cost=None)


EXIT_FAILED, EXIT_WAITING = 3, 4
EXIT_LIMIT, EXIT_REFUSED = 5, 6


def exit_of(ended: DriveResult) -> int:
    """Return the exit code of a command whose drive ended so."""
    match ended.status:
        case Status.COMPLETED:
            return 0
        case Status.PAUSED | Status.AWAITING_INPUT:
            return EXIT_WAITING
    kind = ended.failure.kind if ended.failure else ""
    if kind == "denied":
        return EXIT_REFUSED
    return EXIT_LIMIT if kind in ("limit", "too_many_calls") or limit_of(kind) else EXIT_FAILED


def letter_text(row: RunRow, ended: DriveResult) -> str:
    """Return the `[pipeline]` message to a launcher that did not wait: the run, its end, and its output as JSON or its
    error."""
    head = f"[pipeline] run {row.id} (pipeline '{row.title}') finished: status="
    if ended.failure is not None:
        return f"{head}error\nError: {ended.failure.message}"
    return f"{head}ok\nOutput:\n{encode(returned(ended).get('output'))}"
