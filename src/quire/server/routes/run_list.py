"""Endpoints: the list of runs, and several runs at once."""

from __future__ import annotations

from quire.server.endpoints import Endpoint, Parameter, Schema
from quire.server.handlers import run_list
from quire.server.schemas import (
    FLAG,
    FORMAT,
    MOST_ITEMS,
    NAME,
    NAMES,
    NUMBER,
    RUN,
    STATUS,
    TEXT,
    VALUES,
    answer_of,
    page_of,
    record,
)
from quire.stores.contract import ENDED

_IDS: Schema = {"type": "array", "items": NAME, "maxItems": 500}
_ENDED: Schema = {"type": "array", "items": {"type": "string", "enum": [str(one) for one in ENDED]}, "maxItems": 4}
_AGE: Schema = {"type": "number", "minimum": 0, "maximum": 10**10}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_REMOVED: Schema = {
    "type": "object",
    "properties": {"runs": {"type": "array", "items": NAME}, "effects": _COUNT, "texts": _COUNT, "dry_run": FLAG},
    "required": ["runs", "effects", "texts", "dry_run"],
}
_FILTERS = (
    Parameter("document", NAME, "Only runs of this document: its name, or the end of its path."),
    Parameter("format", FORMAT, "Only runs of documents in this format."),
    Parameter("since", NUMBER, "Only runs that were started since then, in seconds since 1970."),
    Parameter("q", {**TEXT, "maxLength": 1000}, "Words in the id, title, document, error or inputs."),
    Parameter("origin", NAME, "Only forks of this run."),
)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/runs",
        "list_runs",
        "Runs, the newest first, in pages.",
        "FREE",
        run_list.list_runs,
        parameters=(
            Parameter("status", STATUS, "Only runs of this status; may be given several times.", many=True),
            *_FILTERS,
            Parameter("asks", FLAG, "Only runs with an open question."),
            Parameter("after", NAME, "The `next` of the page before."),
            MOST_ITEMS,
        ),
        response=page_of(RUN),
    ),
    Endpoint(
        "GET",
        "/runs/counts",
        "count_runs",
        "How many runs there are of each status, up to 10,000 each.",
        "FREE",
        run_list.count_runs,
        parameters=_FILTERS,
        response={
            "type": "object",
            "properties": {"statuses": {"type": "object", "additionalProperties": _COUNT}, "total": _COUNT},
            "required": ["statuses", "total", "most", "more"],
        },
    ),
    Endpoint(
        "POST",
        "/runs/actions",
        "list_actions",
        "What can be done with several runs now, and the commands that do it.",
        "FREE",
        run_list.list_actions,
        body=record(("runs",), runs=_IDS),
        response=answer_of(runs=NAMES, cancel=VALUES, resume=VALUES, prune=VALUES),
    ),
    Endpoint(
        "POST",
        "/runs/prune",
        "prune_runs",
        "Remove runs that have ended: those older than an age, or the named ones.",
        "WRITES",
        run_list.prune_runs,
        body=record(older_than=_AGE, statuses=_ENDED, runs=_IDS, dry_run=FLAG),
        response=_REMOVED,
    ),
    Endpoint(
        "DELETE",
        "/runs/{run}",
        "delete_run",
        "Remove a run that has ended.",
        "WRITES",
        run_list.delete_run,
        response=_REMOVED,
    ),
)
