"""Endpoints: runs."""

from __future__ import annotations

from quire.server.endpoints import Endpoint
from quire.server.handlers import runs
from quire.server.schemas import BUDGET, FLAG, NAME, NAMES, RUN, RUN_OPTIONS, TEXTS, UNATTENDED, VALUES, record

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/runs",
        "start_run",
        "Start a run; this server drives it.",
        "PAID",
        runs.start_run,
        body=record(
            ("document",),
            document=NAME,
            **RUN_OPTIONS,
            goes_on=FLAG,
            detach=FLAG,
        ),
        status=201,
        response=RUN,
    ),
    Endpoint("GET", "/runs/{run}", "show_run", "One run with its steps.", "FREE", runs.show_run, response=RUN),
    Endpoint(
        "POST",
        "/runs/{run}/resume",
        "resume_run",
        "Go on with a run; this server drives it.",
        "PAID",
        runs.resume_run,
        body=record(
            set=VALUES,
            model=NAME,
            budget=BUDGET,
            limits=VALUES,
            answers=TEXTS,
            breakpoints=NAMES,
            unattended=UNATTENDED,
        ),
        status=202,
        response=RUN,
    ),
    Endpoint(
        "POST",
        "/runs/{run}/pause",
        "pause_run",
        "Pause a run after its current step.",
        "WRITES",
        runs.pause_run,
        body=record(),
        status=202,
        response=RUN,
    ),
    Endpoint(
        "POST",
        "/runs/{run}/cancel",
        "cancel_run",
        "Cancel a run.",
        "WRITES",
        runs.cancel_run,
        body=record(),
        status=202,
        response=RUN,
    ),
)
