"""A run as people see it, for every format: its end or resting place, its steps, open questions, result and errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.records import EffectRecord, Status
from quire.plan.thread import THREAD_PATH
from quire.plan.vocabulary import JOINT, last_label
from quire.values import Value, encode, pretty

if TYPE_CHECKING:
    from quire.engine.driver.drive import DriveResult
    from quire.engine.driver.replay import Replay
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.interpreter.thread.setup import Setup
    from quire.engine.progress import Progress, StepView
    from quire.engine.proven_bounds import ProvenBounds
    from quire.engine.records import Question, RunRow
    from quire.library.document import Document
    from quire.plan.nodes import Plan
    from quire.runs.pins import PinnedState
    from quire.runs.reuse import Reuse


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
        """The variables of a pipeline so far: its inputs, and the values that its steps have written."""
        if self.row.format != "pipeline":
            return {}
        final, inputs = self.result.get("stores"), self.row.pins.get("inputs")
        so_far = {**(inputs if isinstance(inputs, Mapping) else {}), **self.progress.stores}
        return final if isinstance(final, Mapping) else so_far

    @property
    def ending(self) -> Mapping[str, Value]:
        """The end of the thread of a directive, in the words of its `ThreadResult`; empty while it has not ended."""
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
        """The same for people, as a way through called documents. A step may fail before its first write."""
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
        own = f"{THREAD_PATH}/"
        return [step for path, step in self.progress.steps.items() if not step.thread or path.startswith(own)]


def by_label(steps: Iterable[StepView]) -> dict[str, StepView]:
    """Return the steps by label; repeated labels get a number from the second on."""
    views: dict[str, StepView] = {}
    for step in steps:
        key, count = step.label, 1
        while key in views:
            count += 1
            key = f"{step.label}#{count}"
        views[key] = step
    return views


def returned(ended: DriveResult) -> Mapping[str, Value]:
    """Return the result of a drive by its names; empty if the drive did not reach the end of the run."""
    return ended.result if isinstance(ended.result, Mapping) else {}


def limit_to_raise(row: RunRow) -> str:
    """Return the thread limit at which a run stopped and with more of which it continues; empty if there is none. The
    limits of a directive that a run calls are not those of the run."""
    return limit_of(row.failure.kind) if row.failure and row.format == "directive" else ""


def limit_of(kind: str) -> str:
    """Return the thread limit that a failure kind refers to; empty for any other failure."""
    from quire.engine.interpreter.thread.budgets import DEFAULTS

    name = "tokens" if kind == "spend_unknown" else kind.removesuffix("_exceeded")
    return name if name != kind and name in DEFAULTS else ""


def bounds_that_hold(
    plan: Plan, start: PinnedState, now: PinnedState, records: Iterable[EffectRecord]
) -> ProvenBounds | None:
    """Return the bounds that were proven at the start of a run, as far as they still hold; None if none do.

    They are those of the document, the inputs and the limits of the start: a fork, a value that a person set at a
    breakpoint, or another limit makes it another run. Another model has other prices and other settings, and with a
    budget a pipeline may make more calls than without.
    """
    if not start.proven or now.origin or now.limits != start.limits:
        return None
    if any(record.kind == "break" and record.value for record in records):
        return None
    from quire.engine.proven_bounds import ProvenBounds

    proven = ProvenBounds.of(start.proven)
    same_calls = not plan.has_call_cap or (now.budget is None) == (start.budget is None)
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
        before, beyond = ([("", text) for text in texts] for texts in (self.pins.warnings, self._broken_bounds()))
        return [*before, *self.replay.progress.warnings, *beyond]

    def _broken_bounds(self) -> list[str]:
        """Return the numbers of the run that exceed its proof: a bug of Quire."""
        if not self.pins.proven:
            return []
        from quire.engine.proven_bounds import broken_bounds
        from quire.runs.pins import PinnedState

        start, plan = PinnedState.of(self.row.pins), self.document.runnable()
        proven = bounds_that_hold(plan, start, self.pins, self.effects)
        return [] if proven is None else [bound.message for bound in broken_bounds(proven, self.effects)]

    @property
    def changes(self) -> list[tuple[StepView, Mapping[str, Value]]]:
        """The values that people set at stops, each with the step at whose end they were set."""
        changes = []
        for record in self.effects:
            step = self.replay.progress.step_of(record.path) if record.kind == "break" else None
            if step is not None and isinstance(record.value, Mapping) and record.value:
                changes.append((step, record.value))
        return changes

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
