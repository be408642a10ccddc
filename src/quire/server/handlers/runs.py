"""Handlers for runs: start, look at, resume, pause and cancel."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from quire.display.diagnostics import finding_data
from quire.display.run_head_json import head_data
from quire.display.run_json import row_data
from quire.engine.records import Status
from quire.errors import BadDocument, BadInputs, RunState
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.resume import Given, checked_overrides
from quire.server.endpoints import Call, Reply
from quire.server.pinned_file import pinned_file
from quire.server.problems import Problem
from quire.server.site import DOOR
from quire.source import relative_to_here

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.server.shelf import Shelved
    from quire.server.site import Site
    from quire.values import Value

LONGEST_WAIT = 600


def etag(row: RunRow) -> str:
    return f'"{row.epoch}.{row.updated_at!r}.{row.status}"'


async def show_run(site: Site, call: Call) -> Reply:
    run = await site.runtime.find(call.path["run"])
    seen = await site.views.head(run)
    driven = run in site.runs
    asked = ",".join(f"{one.path}:{one.hash}" for one in seen.view.questions)
    tag = f'"{seen.version.tag}.{driven:d}.{hashlib.sha256(asked.encode()).hexdigest()[:12]}"'
    if call.request.headers.get("if-none-match") == tag:
        return Reply(None, 304, {"ETag": tag})
    file = pinned_file(site.folder, seen.view.row)
    head: dict[str, Value] = {
        **head_data(seen.view, driven_here=driven),
        "seq": seen.version.seq,
        "document_id": file.id if file else None,
        "document_changed": file.changed() if file else False,
    }
    return Reply(head, 200, {"ETag": tag})


async def start_run(site: Site, call: Call) -> Reply:
    body = call.body
    shelved = site.shelf.one(str(body["document"]))
    document = load(relative_to_here(shelved.path) or shelved.path)
    options = RunOptions(
        model=cast("str | None", body.get("model")),
        breakpoints=tuple(cast("list[str]", body.get("breakpoints") or ())),
        answers=cast("Mapping[str, str]", body.get("answers") or {}),
        unattended=body.get("unattended") is True,
        allow=allowed(site, cast("list[str]", body.get("allow") or [])),
        budget=cast("float | None", body.get("budget")),
        limits=cast("Mapping[str, Value]", body.get("limits") or {}),
        door=DOOR,
    )
    inputs = cast("Mapping[str, Value]", body.get("inputs") or {})
    try:
        run = await site.runtime.start(document, inputs, options)
    except BadDocument as error:
        raise _bad(error, shelved) from None
    if body.get("detach") is True:
        site.detach(run)
    else:
        await site.runs.go_on(run, goes_on=body.get("goes_on") is True)
    return await answer(site, call, run, 201)


def _bad(error: BadDocument, shelved: Shelved) -> Problem:
    """Return the problem of a document with errors, with all findings as `quire check --json` prints them."""
    source = shelved.document.source if shelved.document else None
    found: list[Value] = [
        {**finding_data(source, one), "file": shelved.id} for one in shelved.findings if source is not None
    ]
    return Problem.of("bad-document", str(error), exit_code=error.exit_code, more={"diagnostics": found})


async def resume_run(site: Site, call: Call) -> Reply:
    run, body = await site.runtime.find(call.path["run"]), call.body
    row = await site.runtime.row(run)
    if row.status is Status.COMPLETED:
        raise RunState(f"run {run} is completed: there is nothing to resume")
    overrides = cast("Mapping[str, Value]", body.get("set") or {})
    if overrides:
        overrides = checked_overrides((await site.runtime.view(run)).document, overrides, way=row.position)
    budget = body.get("budget", _NOT_GIVEN)
    given = Given(
        limits=cast("Mapping[str, Value]", body.get("limits") or {}),
        budget=cast("float | None", budget) if budget is not _NOT_GIVEN else None,
        unlimited=budget is None,
        model=str(body.get("model") or ""),
        answers=cast("Mapping[str, str]", body.get("answers") or {}),
        unattended=body.get("unattended") is True,
        breakpoints=tuple(cast("list[str]", body.get("breakpoints") or ())),
    )
    await site.runs.go_on(run, given=given, overrides=overrides)
    return await answer(site, call, run, 202)


_NOT_GIVEN = object()


async def pause_run(site: Site, call: Call) -> Reply:
    run = await site.runtime.find(call.path["run"])
    if not site.runs.pause(run):
        row = await site.runtime.row(run)
        raise RunState(f"run {run} is {row.status.words} and is not driven by this server: it cannot be paused here")
    return await answer(site, call, run, 202)


async def cancel_run(site: Site, call: Call) -> Reply:
    run = await site.runtime.find(call.path["run"])
    await site.runtime.store.request_cancel(run)
    site.hub.touch(run)
    return await answer(site, call, run, 202)


async def answer(site: Site, call: Call, run: str, status: int) -> Reply:
    """Return the row of a run, after waiting for its rest if the client prefers that."""
    if seconds := _preferred_wait(call.request.headers.get("prefer", "")):
        await site.runs.ended(run, seconds)
    row = await site.runtime.row(run)
    headers = {"Location": f"{site.options.base}/api/v1/runs/{run}", "ETag": etag(row)}
    return Reply(row_data(row), status, headers)


def _preferred_wait(header: str) -> float:
    for preference in header.split(","):
        name, _, value = preference.strip().partition("=")
        if name.strip().lower() == "wait" and value.strip().isdecimal():
            return float(min(int(value), LONGEST_WAIT))
    return 0.0


def allowed(site: Site, wanted: list[str]) -> tuple[str, ...]:
    """Return the tools to grant. Raises `BadInputs` for a tool that the user has not granted to the server."""
    beyond = [tool for tool in wanted if tool not in site.options.allow]
    if beyond:
        raise BadInputs([f"allow: {tool} is granted in a terminal only: quire serve --allow {tool}" for tool in beyond])
    return tuple(wanted)


def is_amount(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
