"""Report the end of a drive: messages for the user, the output on stdout, and the exit code."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import TYPE_CHECKING

from quire.cli import BROKEN_PIPE, INTERRUPTED
from quire.cli.app import CLOSED
from quire.cli.output import Target, write
from quire.cli.stdio import as_utf8, tell
from quire.cli.terminal import answer_text, question_text
from quire.display.advice import after_failure
from quire.display.run_views import JsonLines, View
from quire.display.text import one_line, place, short, visible
from quire.display.turns import element_for, error_text
from quire.engine.records import Status
from quire.plan.vocabulary import last_label
from quire.runs.outcome import EXIT_FAILED, RunOutcome, by_label, exit_of
from quire.trust.capabilities import denied_capability
from quire.values import Value, as_texts
from quire.wording import cut, first_of

if TYPE_CHECKING:
    from quire.cli.drive import SessionOptions
    from quire.runs.reuse import Reuse

STDOUT = 1
_SHOWN_VALUE = 60
_MOST_CUT = 10
_SHOWN_REFUSAL = 600


class RunReport(RunOutcome, frozen=True):
    """The outcome of a drive from the command line."""

    interrupted: bool = False
    permissions: str = ""
    """The file and line where the permissions of a directive are."""
    reuse: Reuse | None = None
    """The replies that were taken from another run, if the run was started so."""

    @property
    def exit_code(self) -> int:
        if self.interrupted and self.status not in (Status.COMPLETED, Status.FAILED):
            return INTERRUPTED
        return exit_of(self.rest)


def finish(end: RunReport, view: View, manner: SessionOptions) -> int:
    """Report the end of a drive, write its output, and return the exit code."""
    print_report(end)
    if end.reuse is not None and not manner.quiet and not manner.json:
        from quire.display.copies_json import reuse_lines

        for line in reuse_lines(end.reuse):
            _say(line)
    if not manner.json:
        _say_what_was_cut(end)
    code = end.exit_code
    if isinstance(view, JsonLines):
        view.line(result_line(end))
        if view.broken is not None:
            discard_stdout()
            code = exit_code_for_broken_stdout(end, view.broken)
        closed_stdout(end, "--json")
    if end.status is not Status.COMPLETED:
        return code
    # A result is never lost because a disk is full; with --json it is in the last line already.
    written = manner.to is not None and write_output(end, manner.to, manner.quiet)
    if not written and not manner.json:
        code = print_output(end)
    if manner.to is not None and not written:
        code = EXIT_FAILED
    return code


def _say_what_was_cut(end: RunReport) -> None:
    """Print again, where it is seen, which replies were cut and which earlier results were left out."""
    lines = []
    for way, message in end.progress.warnings:
        if message.startswith(("cut ", "left out ")):
            title = next((step.title for step in end.progress.steps.values() if step.way == way), "")
            lines.append(one_line(f"warning: {place(way)} {title}".rstrip() + f": {message}"))
    for line in first_of(lines, _MOST_CUT):
        _say(line)


def result_line(end: RunReport) -> dict[str, Value]:
    """Return the last line of `--json`."""
    result = end.result
    reused: dict[str, Value] = {}
    if end.reuse:
        from quire.display.copies_json import reuse_data

        reused = {"reused": reuse_data(end.reuse)}
    warnings: list[Value] = [{"step": last_label(way), "message": text} for way, text in end.progress.warnings]
    return {
        "type": "result",
        "run": end.row.id,
        "status": str(end.status),
        "output": result.get("output"),
        "artifact": result.get("artifact", result.get("output")),
        "artifact_type": end.artifact_type or None,
        "named": result.get("named", dict(end.named)),
        "steps": {label: step.status for label, step in by_label(end.own_steps).items()},
        "cost": end.row.cost,
        "input_tokens": end.row.input_tokens,
        "output_tokens": end.row.output_tokens,
        "error": end.error,
        **({"warnings": warnings} if warnings else {}),
        **reused,
        **end.details,
    }


def print_report(end: RunReport) -> None:
    """Print the next steps of the user on stderr. A completed run needs no message."""
    run, where = end.row.id, place(end.way) if end.way else "its start"
    _print_thread(end)
    match end.status:
        case Status.COMPLETED:
            return
        case Status.FAILED:
            _tell_of_failure(end)
        case Status.CANCELLED:
            _say(f"cancelled at {where}; to continue anyway: quire resume {run}")
        case Status.AWAITING_INPUT:
            _tell_of_questions(end)
        case Status.PAUSED if not end.interrupted:
            _say(f"paused after {where}")
            for name, value in {**end.named, **as_texts(end.progress.stores)}.items():
                _say(f"  {name} = {cut(one_line(value), _SHOWN_VALUE, _SHOWN_VALUE)}")
            _say(f"to continue: quire resume {run} [--set NAME=VALUE]")
        case _:
            _say(f"paused at {where}: quire resume {run}")


def _tell_of_failure(end: RunReport) -> None:
    failure = end.rest.failure
    message = visible(failure.message if failure else "").strip().replace("\n", "\n  ")
    if end.row.format == "directive":
        message = error_text(message).removesuffix("; resume with a higher limit")
    deeper = f" ({end.row.failed_at})" if "/" in end.row.failed_at else ""
    _say(f"failed at {place(end.way)}{deeper}: {message}" if end.way else f"failed: {message}")
    for line in after_failure(end.row, end.progress) if failure else ():
        _say(line)


def _tell_of_questions(end: RunReport) -> None:
    run, ways = end.row.id, [question.way for question in end.questions]
    # After an interrupt the question is still on the user's screen.
    shown = () if end.interrupted else end.questions
    for question in shown:
        _say(question_text(question, by_path=ways.count(question.way) > 1))
    by_path = "STEP|PATH " if len(set(ways)) < len(ways) else "STEP "
    _say(f"waiting for an answer: quire answer {run} {by_path if len(ways) > 1 else ''}VALUE")
    for question in shown:
        of = f" of {place(question.way)}" if len(ways) > 1 else ""
        _say(f"  VALUE{of} is {answer_text(question)}")
    if end.interrupted:
        _say(f"to be asked here again: quire resume {run}")


def _print_thread(end: RunReport) -> None:
    """Print the permissions that a directive was denied, and its closing message."""
    denied = {
        (step.title if step.depth else "", denied_capability(call.result or "") or error_text(call.result or "")): None
        for step in end.progress.steps.values()
        for call in step.calls.values()
        if call.kind == "denied"
    }
    over = end.row.format == "directive" and end.status in (Status.COMPLETED, Status.FAILED)
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
    closing = end.ending.get("closing_message")
    if isinstance(closing, str) and closing.strip():
        _say(visible(closing.strip()))


def write_output(end: RunReport, to: Target, quiet: bool) -> bool:
    """Write the output to its file. Return False if that failed."""
    artifact_type = end.file_type
    try:
        path, warnings = write(to, end.artifact, artifact_type)
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
    text = _for_terminal(end) if sys.stdout.isatty() else end.artifact
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
        discard_stdout()
    except OSError as error:
        discard_stdout()
        _say(f"{stdout_error(error)}: quire runs {end.row.id} --output")
        return EXIT_FAILED
    return 0


def _for_terminal(end: RunReport) -> str:
    """Format the output for a terminal: Markdown is rendered; in other texts control characters are made visible and
    lines break between words."""
    if not end.artifact.strip() or os.environ.get("TERM", "") in ("dumb", "unknown", ""):
        return visible(end.artifact)
    from quire.display.text import rendered

    return rendered(end.artifact, end.file_type)


def closed_stdout(end: RunReport, side: str) -> bool:
    """Return True if the caller has closed stdout, and print where to find the output. This is not a failure: a caller
    that closes stdout does not want the output there."""
    if STDOUT in CLOSED:
        _say(f"stdout is closed: quire runs {end.row.id} {side}")
    return STDOUT in CLOSED


def stdout_error(error: OSError) -> str:
    return f"stdout could not be written ({error.strerror or error})"


def exit_code_for_broken_stdout(end: RunReport, error: OSError) -> int:
    """Return the exit code of a run whose events could not be written to stdout, and print where its result is."""
    if end.status is Status.COMPLETED:
        _say(f"{stdout_error(error)}: quire runs {end.row.id} --json")
    if end.status is Status.FAILED:
        return end.exit_code
    return BROKEN_PIPE if isinstance(error, BrokenPipeError) else EXIT_FAILED


def discard_stdout() -> None:
    """Redirect stdout to the null device, so that the rest of its buffer does not fail again when the process ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        tell(line)
