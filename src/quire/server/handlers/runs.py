"""Handlers for runs: start, look at, resume, pause and cancel."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from quire.display.run_head_json import head_data, unreadable_head
from quire.display.run_json import row_data
from quire.engine.records import Status
from quire.errors import JournalMismatch, LimitReached, RunState
from quire.runs.live_views import last_event
from quire.runs.resume import Given, checked_overrides
from quire.server.endpoints import Call, Reply
from quire.server.pinned_file import pinned_file
from quire.server.run_options import options_of

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.server.site import Site
    from quire.values import Value

LONGEST_WAIT = 600


def etag(row: RunRow) -> str:
    return f'"{row.epoch}.{row.updated_at!r}.{row.status}"'


async def show_run(site: Site, call: Call) -> Reply:
    run = await site.runtime.find(call.path["run"])
    driven = run in site.runs
    try:
        seen = await site.views.head(run)
    except (JournalMismatch, LimitReached, RunState) as error:
        # What its row says can be shown, and the journal can be read.
        row = await site.runtime.row(run)
        seq = await last_event(site.runtime.store, run)
        return Reply({**unreadable_head(row, str(error)), "seq": seq, **_document(site, row)})
    asked = ",".join(f"{one.path}:{one.hash}" for one in seen.view.questions)
    about = _document(site, seen.view.row)
    broken = None if driven else await site.runtime.broken_seal(run)
    state = hashlib.sha256(f"{driven} {asked} {about} {broken}".encode()).hexdigest()[:12]
    tag = f'"{seen.version.tag}.{state}"'
    if call.request.headers.get("if-none-match") == tag:
        return Reply(None, 304, {"ETag": tag})
    head = head_data(seen.view, driven_here=driven, broken_seal=str(broken or ""))
    return Reply({**head, "seq": seen.version.seq, **about}, 200, {"ETag": tag})


def _document(site: Site, row: RunRow) -> dict[str, Value]:
    """Return the id of the document of a run, and whether its file has changed since."""
    file = pinned_file(site.folder, row)
    return {"document_id": file.id if file else None, "document_changed": file.changed() if file else False}


async def start_run(site: Site, call: Call) -> Reply:
    body = call.body
    document = await asyncio.to_thread(site.shelf.meant, str(body["document"]))
    options = options_of(site, body)
    inputs = cast("Mapping[str, Value]", body.get("inputs") or {})
    run = await site.runtime.start(document, inputs, options)
    call.request.state.begun = True
    if body.get("detach") is True:
        site.detach(run)
    else:
        await site.runs.go_on(run, goes_on=body.get("goes_on") is True)
    return await answer(site, call, run, 201)


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
        unattended=bool(body.get("unattended")),
        says_yes=body.get("unattended") == "yes",
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
        if name.strip().lower() == "wait" and (value := value.strip()).isdecimal():
            return float(min(int(value[:9]), LONGEST_WAIT))  # Python reads no number of thousands of digits
    return 0.0


def is_amount(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
