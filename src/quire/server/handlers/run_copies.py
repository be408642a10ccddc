"""Handlers for copies of runs: fork with its receipt, compare, export, import and verify."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from starlette.responses import Response

from quire.display.commands import compare_command, import_command
from quire.display.fork_json import fork_form_data, receipt_data
from quire.display.run_json import row_data
from quire.display.transfer_json import imported_data, verdict_data
from quire.display.why import diff_data
from quire.errors import RunState
from quire.runs.diff import diff
from quire.runs.export import export_lines
from quire.runs.fork import Changes, fork
from quire.runs.fork_receipt import fork_steps, receipt
from quire.runs.imports import import_run, parse_export
from quire.runs.verify import verify_export, verify_run
from quire.server.endpoints import Call, Reply
from quire.server.handlers.runs import answer
from quire.server.problems import Problem
from quire.server.run_options import allowed
from quire.server.site import DOOR
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.server.site import Site

JSON_LINES = "application/jsonl"
MOST_CHARACTERS = 40_000
"""Characters of both values of a difference in a brief comparison."""


async def show_fork(site: Site, call: Call) -> Reply:
    run = await site.runtime.find(call.path["run"])
    view = (await site.views.of(run)).view
    return Reply(fork_form_data(view, fork_steps(view)))


async def preview_fork(site: Site, call: Call) -> Reply:
    run, changes = await site.runtime.find(call.path["run"]), _changes(site, call)
    return Reply(receipt_data(await receipt(site.runtime, run, str(call.body["from"]), changes), changes))


async def fork_run(site: Site, call: Call) -> Reply:
    run, body = await site.runtime.find(call.path["run"]), call.body
    made = await fork(site.runtime, run, str(body["from"]), _changes(site, call))
    call.request.state.begun = True
    site.hub.touch(made.run)
    if body.get("detach") is True:
        site.detach(made.run)
    else:
        await site.runs.go_on(made.run, goes_on=body.get("goes_on") is True)
    return await answer(site, call, made.run, 201)


def _changes(site: Site, call: Call) -> Changes:
    body = call.body
    budget = body.get("budget")
    return Changes(
        sets=cast("Mapping[str, Value]", body.get("set") or {}),
        model=cast("str | None", body.get("model")) or None,
        allow=allowed(site, cast("list[str]", body.get("allow") or [])),
        budget=float(budget) if isinstance(budget, int | float) else None,
        unlimited="budget" in body and budget is None,
        limits=cast("Mapping[str, Value]", body.get("limits") or {}),
        answers=cast("Mapping[str, str]", body.get("answers") or {}),
        unattended=bool(body.get("unattended")),
        says_yes=body.get("unattended") == "yes",
        force=body.get("force") is True,
        door=DOOR,
    )


async def diff_runs(site: Site, call: Call) -> Reply:
    """Compare two runs. `brief` leaves the values of steps out, and large inputs, and counts the changes of each step;
    `step` selects one step, of whose changes `after` are skipped."""
    names = [await site.runtime.find(call.path[name]) for name in ("a", "b")]
    a, b = [(await site.views.of(name)).view for name in names]
    found = await asyncio.to_thread(diff, a, b)
    data = diff_data(a, b, found)
    steps = cast("list[dict[str, Value]]", data["steps"])
    step, after, limit = call.text("step"), call.number("after", 0), call.number("limit", 100)
    if step:
        data["about"] = []
        steps = [one for one in steps if one["path"] == step]
        if not steps:
            raise Problem.of("no-such-step", f"neither run has a step at {step}")
    for one in steps:
        changes = cast("list[dict[str, Value]]", one["changes"])
        one["changes_total"] = len(changes)
        one["kinds"] = list(dict.fromkeys(str(change["what"]) for change in changes))
        one["changes"] = [] if call.flag("brief") else list(changes[after : after + limit])
    if call.flag("brief"):
        data["about"] = [_without_bulk(change) for change in cast("list[dict[str, Value]]", data["about"])]
    rows: dict[str, Value] = {"a": row_data(a.row), "b": row_data(b.row)}
    return Reply({**data, "steps": list(steps), "rows": rows, "command": compare_command(a.row.id, b.row.id)})


def _without_bulk(change: dict[str, Value]) -> Value:
    """Return a difference; in place of values that are too long to look at, their sizes."""
    a, b = (len(encode(change[side])) for side in ("a", "b"))
    return change if a + b < MOST_CHARACTERS else {**change, "a": None, "b": None, "sizes": [a, b]}


async def export_run(site: Site, call: Call) -> Response:
    run = await site.runtime.find(call.path["run"])
    lines = await export_lines(site.runtime, run)
    name = re.sub(r"[^\w.-]", "_", run, flags=re.ASCII)
    headers = {"Content-Disposition": f'attachment; filename="{name}.jsonl"'}
    return Response("".join(f"{line}\n" for line in lines).encode(), 200, headers, JSON_LINES)


async def verify_stored(site: Site, call: Call) -> Reply:
    run = await site.runtime.find(call.path["run"])
    return Reply(verdict_data(await verify_run(site.runtime, run)))


async def verify_text(site: Site, call: Call) -> Reply:
    """Verify an exported run without keeping it, and tell whether the store has a run of this id already."""
    name, data = _file(call)
    verdict = await verify_export(lambda: parse_export(data, Path(name)), name, site.runtime.settings)
    exported = verdict.exported
    more: dict[str, Value] = {"command": import_command(name)}
    if exported is not None:
        known = await site.runtime.store.get(verdict.run) is not None
        more |= {"row": row_data(exported.row), "effects": len(exported.effects), "known": known}
    return Reply({**verdict_data(verdict, name), **more})


async def import_text(site: Site, call: Call) -> Reply:
    name, data = _file(call)
    exported = parse_export(data, Path(name))
    if await site.runtime.store.get(exported.row.id) is not None:
        raise RunState(f"run {exported.row.id} is in this store already")
    run = await import_run(site.runtime, exported)
    site.hub.touch(run)
    location = f"{site.options.base}/api/v1/runs/{run}"
    return Reply(imported_data(exported), 201, {"Location": location})


def _file(call: Call) -> tuple[str, bytes]:
    return str(call.body.get("name") or "the file"), str(call.body["text"]).encode(errors="replace")
