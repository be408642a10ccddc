"""Report the end of a drive: messages for the user, the output on stdout, and the exit code."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from quire.cli import BROKEN_PIPE, INTERRUPTED
from quire.cli.advice import after_failure, limit_of
from quire.cli.app import CLOSED
from quire.cli.output import Target, write
from quire.cli.stdio import as_utf8
from quire.cli.terminal import answer_text, question_text
from quire.display.tables import short
from quire.display.text import one_line, output_text, place, visible
from quire.display.turns import denied_capability, element_for, error_text
from quire.engine.records import Question, RunRow, Status
from quire.plan.ways import JOINT, last_label
from quire.values import Value, as_texts
from quire.wording import cut

if TYPE_CHECKING:
    from quire.engine.driver.drive import DriveResult
    from quire.engine.progress import Progress, StepView
    from quire.engine.requests import Failure

EXIT_FAILED, EXIT_WAITING = 3, 4
EXIT_LIMIT, EXIT_REFUSED = 5, 6
STDOUT = 1
_SHOWN_VALUE = 60
_SHOWN_REFUSAL = 600


class RunReport(Struct, frozen=True):
    """The end of a drive, with everything known about the run."""

    row: RunRow
    progress: Progress
    questions: Sequence[Question]
    ended: DriveResult | None
    """None if the drive was stopped at once."""
    interrupted: bool
    permissions: str = ""
    """The file and line where the permissions of a directive are."""

    @property
    def failed_at(self) -> str:
        """The path of the effect or step that failed; empty if it is not known."""
        return self.row.ended_by[0] if self.row.failure and self.row.ended_by else ""

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
        return self.progress.step_of(self.failed_at) if self.is_pipeline and self.failed_at else None

    @property
    def _stands(self) -> str:
        return (self.ended.position if self.ended else "") or self.row.position

    @property
    def status(self) -> Status:
        return self.ended.status if self.ended else Status.PAUSED

    @property
    def result(self) -> Mapping[str, Value]:
        found = self.ended.result if self.ended else None
        return found if isinstance(found, Mapping) else {}

    @property
    def is_pipeline(self) -> bool:
        return self.row.format == "pipeline"

    @property
    def is_directive(self) -> bool:
        return self.row.format == "directive"

    @property
    def thread(self) -> Mapping[str, Value]:
        """How the thread of a directive ended, successfully or not; empty while it has not ended."""
        from quire.plan.thread import THREAD_PATH

        outermost = self.progress.threads.get(THREAD_PATH) if self.is_directive else None
        over = self.status in (Status.COMPLETED, Status.FAILED)
        return outermost.ended or {} if outermost and over else {}

    @property
    def output(self) -> str:
        """The output as it is written: the artifact of a playbook; for a pipeline or a directive, values other than
        text as JSON."""
        value = self.result.get("artifact", self.result.get("output", ""))
        return output_text(value) if self.is_pipeline or self.is_directive else str(value)

    @property
    def artifact_type(self) -> str:
        if self.is_pipeline or self.is_directive:
            return "text" if isinstance(self.result.get("output"), str) else "json"
        return str(self.result.get("artifact_type") or "")

    @property
    def exit_code(self) -> int:
        match self.status:
            case Status.COMPLETED:
                return 0
            case Status.FAILED:
                return _failed(self.ended.failure.kind if self.ended and self.ended.failure else "")
            case Status.PAUSED | Status.AWAITING_INPUT:
                return INTERRUPTED if self.interrupted else EXIT_WAITING
        return INTERRUPTED if self.interrupted else EXIT_FAILED


def _failed(kind: str) -> int:
    if kind == "denied":
        return EXIT_REFUSED
    return EXIT_LIMIT if kind in ("limit", "too_many_calls") or limit_of(kind) else EXIT_FAILED


def result_line(end: RunReport) -> dict[str, Value]:
    """Return the last line of `--json`."""
    failure = end.ended.failure if end.ended else None
    steps: dict[str, Value] = {}
    for step in end.progress.steps.values():
        if step.thread and not end.is_directive:
            continue
        key, count = step.label, 1
        while key in steps:
            count += 1
            key = f"{step.label}#{count}"
        steps[key] = step.status
    result: dict[str, Value] = {
        "type": "result",
        "run": end.row.id,
        "status": str(end.status),
        "output": end.result.get("output"),
        "artifact": end.result.get("artifact", end.result.get("output")),
        "artifact_type": end.result.get("artifact_type") or None,
        "named": end.result.get("named", dict(end.progress.named)),
        "steps": steps,
        "cost": end.row.cost,
        "input_tokens": end.row.input_tokens,
        "output_tokens": end.row.output_tokens,
        "error": _error(end, failure) if failure else None,
    }
    if end.is_pipeline:
        inputs = end.row.pins.get("inputs")
        known = {**(inputs if isinstance(inputs, Mapping) else {}), **end.progress.stores}
        result["stores"] = end.result.get("stores", known)
        if failure:
            result["error"] = {**_error(end, failure), "path": end.failed_at}
    if end.is_directive:
        thread = end.thread
        result |= {
            "outputs": thread.get("outputs", {}),
            "result": thread.get("result", ""),
            "closing_message": thread.get("closing_message"),
            "limit_type": thread.get("limit_type"),
            "used": thread.get("cost"),
        }
    return result


def _error(end: RunReport, failure: Failure) -> dict[str, Value]:
    return {"kind": failure.kind, "message": failure.message, "step": end.position, "way": end.way}


def tell(end: RunReport) -> None:
    """Print on stderr what the user needs to know next. A completed run needs no message."""
    run, position = end.row.id, end.way
    where = place(position) if position else "its start"
    _tell_of_thread(end)
    match end.status:
        case Status.COMPLETED:
            return
        case Status.FAILED:
            failure = end.ended.failure if end.ended else None
            message = visible(failure.message if failure else "").strip().replace("\n", "\n  ")
            deeper = end.is_pipeline and "/" in end.failed_at
            where = f"{where} ({end.failed_at})" if deeper else where
            if end.is_directive:
                message = error_text(message).removesuffix("; resume with a higher limit")
            _say(f"failed at {where}: {message}" if position else f"failed: {message}")
            for line in after_failure(end.row, end.progress) if failure else ():
                _say(line)
        case Status.CANCELLED:
            _say(f"cancelled at {where}; to go on anyway: quire resume {run}")
        case Status.AWAITING_INPUT:
            # After an interrupt the question is still on the user's screen.
            ways = [question.way for question in end.questions]
            for question in () if end.interrupted else end.questions:
                _say(question_text(question, by_path=ways.count(question.way) > 1))
            by_path = "STEP|PATH " if len(set(ways)) < len(ways) else "STEP "
            step = by_path if len(ways) > 1 else ""
            _say(f"waiting for an answer: quire answer {run} {step}VALUE")
            for question in () if end.interrupted else end.questions:
                of = f" of {place(question.way)}" if len(ways) > 1 else ""
                _say(f"  VALUE{of} is {answer_text(question)}")
            if end.interrupted:
                _say(f"to be asked here again: quire resume {run}")
        case Status.PAUSED if not end.interrupted:
            _say(f"paused after {where}")
            for name, value in {**end.progress.named, **as_texts(end.progress.stores)}.items():
                short = one_line(value)
                _say(f"  {name} = {cut(short, _SHOWN_VALUE, _SHOWN_VALUE)}")
            _say(f"to go on: quire resume {run} [--set NAME=VALUE]")
        case _:
            _say(f"paused at {where}: quire resume {run}")


def _tell_of_thread(end: RunReport) -> None:
    """Print the permissions that a directive was denied, and its closing message."""
    denied = {
        (step.title if step.depth else "", denied_capability(call.result or "") or error_text(call.result or "")): None
        for step in end.progress.steps.values()
        for call in step.calls.values()
        if call.kind == "denied"
    }
    over = end.is_directive and end.status in (Status.COMPLETED, Status.FAILED)
    file = re.sub(r":\d+$", "", end.permissions)
    for child, what in denied if over else ():
        if " " in what:
            # No missing capability: the refusal itself says what would help.
            _say(f"denied: {short(what.removeprefix('permission denied: '), _SHOWN_REFUSAL)}")
        elif child and what:
            _say(f"denied: {what} is not granted to {one_line(child)}, or not to the thread that started it")
        elif what:
            _say(f"denied: {what} is not among the permissions at {end.permissions}")
            _say(f"  to grant it, write {element_for(what)} there and sign the file again: quire sign {file}")
    closing = end.thread.get("closing_message")
    if isinstance(closing, str) and closing.strip():
        _say(visible(closing.strip()))


def write_output(end: RunReport, to: Target, quiet: bool) -> bool:
    """Write the output to its file. Return False if that failed."""
    artifact_type = end.artifact_type
    try:
        path, warnings = write(to, end.output, artifact_type)
    except OSError as error:
        _say(f"{to.file(artifact_type)} could not be written ({error.strerror or error}); the output goes to stdout")
        return False
    for warning in warnings:
        _say(f"warning: {warning}")
    if not quiet:
        _say(f"wrote {path}")
    return True


def print_output(end: RunReport) -> int:
    """Print the output and return the exit code. On a terminal control characters are made visible; elsewhere the
    bytes are exact."""
    text = _for_terminal(end) if sys.stdout.isatty() else end.output
    if not text:
        return 0
    if closed_stdout(end, "--output"):
        return 0
    if sys.stdout.isatty():
        # A reply may contain characters that the terminal's encoding does not have.
        with contextlib.suppress(AttributeError):
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    else:
        as_utf8(sys.stdout)
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        nobody_reads()
    except OSError as error:
        nobody_reads()
        _say(f"{unwritten(error)}: quire runs {end.row.id} --output")
        return EXIT_FAILED
    return 0


def _for_terminal(end: RunReport) -> str:
    """Format the output for a terminal: Markdown is rendered; in other texts control characters are made visible and
    lines break between words."""
    if not end.output.strip() or os.environ.get("TERM", "") in ("dumb", "unknown", ""):
        return visible(end.output)
    from quire.display.text import rendered

    return rendered(end.output, end.artifact_type)


def closed_stdout(end: RunReport, side: str) -> bool:
    """Return True if the caller has closed stdout, and print where to find the output. This is not a failure: a caller
    that closes stdout does not want the output there."""
    if STDOUT in CLOSED:
        _say(f"stdout is closed: quire runs {end.row.id} {side}")
    return STDOUT in CLOSED


def unwritten(error: OSError) -> str:
    return f"stdout could not be written ({error.strerror or error})"


def unread(end: RunReport, error: OSError) -> int:
    """Return the exit code of a run whose events could not be written to stdout, and print where its result is."""
    if end.status is Status.COMPLETED:
        _say(f"{unwritten(error)}: quire runs {end.row.id} --json")
    if end.status is Status.FAILED:
        return end.exit_code
    return BROKEN_PIPE if isinstance(error, BrokenPipeError) else EXIT_FAILED


def nobody_reads() -> None:
    """Redirect stdout to the null device, so that the rest of its buffer does not fail again when the process ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(line, err=True)
