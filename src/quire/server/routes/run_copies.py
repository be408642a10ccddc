"""Endpoints: fork, compare, export and import runs."""

from __future__ import annotations

from quire.server.endpoints import Endpoint, Parameter, Schema
from quire.server.handlers import run_copies
from quire.server.schemas import BUDGET, FLAG, MOST_ITEMS, NAME, NAMES, RUN, SEQ, TEXTS, UNATTENDED, VALUES, record

_FILE: Schema = {"type": "string", "maxLength": 10_000_000}
_CHANGES: dict[str, Schema] = {
    "from": NAME,
    "set": VALUES,
    "model": {**NAME, "type": ["string", "null"]},
    "budget": BUDGET,
    "limits": VALUES,
    "answers": TEXTS,
    "allow": NAMES,
    "unattended": UNATTENDED,
    "force": FLAG,
}
_VERDICT: Schema = {"type": "object", "properties": {"ok": FLAG}, "required": ["ok"]}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/runs/import",
        "import_run",
        "Take in an exported run, to look at and to fork. It is verified first.",
        "WRITES",
        run_copies.import_text,
        body=record(("text",), text=_FILE, name=NAME),
        status=201,
        response={"type": "object", "properties": {"run": NAME, "head": NAME}, "required": ["run", "effects", "head"]},
    ),
    Endpoint(
        "POST",
        "/runs/verify",
        "verify_export",
        "Whether an exported run is as it was written. Nothing is kept.",
        "FREE",
        run_copies.verify_text,
        body=record(("text",), text=_FILE, name=NAME),
        response=_VERDICT,
    ),
    Endpoint(
        "GET",
        "/runs/{run}/verify",
        "verify_run",
        "Whether a stored run is as its user wrote it.",
        "FREE",
        run_copies.verify_stored,
        response=_VERDICT,
    ),
    Endpoint(
        "GET",
        "/runs/{run}/export",
        "export_run",
        "A run as a file of JSON Lines, each with the hash of the line before.",
        "FREE",
        run_copies.export_run,
        media=run_copies.JSON_LINES,
    ),
    Endpoint(
        "GET",
        "/runs/{a}/diff/{b}",
        "diff_runs",
        "Two runs, step by step.",
        "FREE",
        run_copies.diff_runs,
        parameters=(
            Parameter("brief", FLAG, "Leave the values out; count the changes of each step."),
            Parameter("step", NAME, "Only the step at this path."),
            Parameter("after", SEQ, "Changes of each step to skip."),
            MOST_ITEMS,
        ),
        response={"type": "object", "properties": {"same": FLAG}, "required": ["a", "b", "same", "about", "steps"]},
    ),
    Endpoint(
        "GET",
        "/runs/{run}/fork",
        "show_fork",
        "The steps at which a run can be forked, and the values that can be set.",
        "FREE",
        run_copies.show_fork,
        response=RUN,
    ),
    Endpoint(
        "POST",
        "/runs/{run}/fork/preview",
        "preview_fork",
        "The receipt of a fork: what it keeps, what it does again, and how much at most.",
        "FREE",
        run_copies.preview_fork,
        body=record(("from",), **_CHANGES),
        response={"type": "object", "required": ["summary", "kept", "again", "bounds", "command"]},
    ),
    Endpoint(
        "POST",
        "/runs/{run}/fork",
        "fork_run",
        "Start a new run in the middle of this one; this server drives it.",
        "PAID",
        run_copies.fork_run,
        body=record(("from",), **_CHANGES, goes_on=FLAG, detach=FLAG),
        status=201,
        response=RUN,
    ),
)
