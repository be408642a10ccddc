"""Handlers for the list of runs: pages, counts, what can be done with several runs, delete and prune."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode

from msgspec.structs import replace

from quire.display.commands import cancel_command, export_command, prune_command, resume_command
from quire.display.run_json import row_data
from quire.display.transfer_json import pruned_data
from quire.engine.records import RunRow, Status
from quire.errors import RunState
from quire.server.endpoints import Call, Reply
from quire.server.problems import Problem
from quire.stores import contract
from quire.stores.contract import CANCELLABLE, ENDED, RESUMABLE, keeper
from quire.stores.run_list import MOST_COUNTED, RunFilters, lister, words_of

if TYPE_CHECKING:
    from quire.server.site import Site
    from quire.stores.contract import Pruned
    from quire.values import Value


def filters_of(call: Call) -> RunFilters:
    """Return the filters of a query."""
    since = call.query.get("since")
    return RunFilters(
        statuses=tuple(Status(text) for text in call.texts("status")),
        document=call.text("document"),
        format=call.text("format"),
        since=float(since) if isinstance(since, int | float) else None,
        words=words_of(call.text("q")),
        origin=call.text("origin"),
        asks=call.flag("asks"),
    )


async def list_runs(site: Site, call: Call) -> Reply:
    try:
        page = await lister(site.runtime.store).page(
            filters_of(call), call.text("after") or None, call.number("limit", 100)
        )
    except ValueError as error:
        raise Problem.of("unfit-parameters", f"after: {error}", help="use `next` of the page before") from None
    headers = {}
    if page.next is not None:
        given = [(name, value) for name, value in call.request.query_params.multi_items() if name != "after"]
        query = urlencode([*given, ("after", page.next)])
        headers["Link"] = f'<{site.options.base}/api/v1/runs?{query}>; rel="next"'
    return Reply({"items": [row_data(row) for row in page.rows], "next": page.next}, 200, headers)


async def count_runs(site: Site, call: Call) -> Reply:
    """Count the runs of each status. The filters hold, but for the status."""
    runs, filters = lister(site.runtime.store), filters_of(call)
    found = await runs.counts(filters)
    asks = await runs.count(replace(filters, statuses=(), asks=True))
    capped: dict[str, Value] = {str(status): min(count, MOST_COUNTED) for status, count in found.items()}
    more: list[Value] = [str(status) for status, count in found.items() if count > MOST_COUNTED]
    total = sum(found.values())
    return Reply(
        {
            "statuses": capped,
            "asks": min(asks, MOST_COUNTED),
            "total": min(total, MOST_COUNTED),
            "most": MOST_COUNTED,
            "more": [*more, *(["total"] if total > MOST_COUNTED else [])],
        }
    )


async def list_actions(site: Site, call: Call) -> Reply:
    """Tell what can be done with the named runs now, to how many of them, and by which commands."""
    rows = [row for run in _named(call) if (row := await site.runtime.store.get(run)) is not None]
    own = [row for row in rows if not row.pins.get("imported")]
    cancel = [row.id for row in own if row.status in (*CANCELLABLE, Status.INTERRUPTED)]
    resume = [row.id for row in own if row.status in RESUMABLE and row.id not in site.runs]
    removed = await keeper(site.runtime.store).remove([row.id for row in rows], dry_run=True)
    return Reply(
        {
            "runs": [row.id for row in rows],
            "cancel": {"runs": cancel, "command": _lines(cancel_command(run) for run in cancel)},
            "resume": {"runs": resume, "command": _lines(resume_command(run) for run in resume)},
            "prune": {**pruned_data(removed, dry_run=True), "command": _prune_words(rows)},
            "export": {"runs": [row.id for row in rows], "command": _lines(export_command(row.id) for row in rows)},
        }
    )


def _named(call: Call) -> list[str]:
    return list(dict.fromkeys(str(run) for run in cast("list[str]", call.body.get("runs") or [])))


def _lines(commands: Iterable[str]) -> str:
    return "\n".join(commands)


def _prune_words(rows: list[RunRow]) -> str:
    """Return the command that removes ended runs; the command line removes them by age and status."""
    return prune_command("30d", dict.fromkeys(str(row.status) for row in rows if row.status in ENDED))


async def delete_run(site: Site, call: Call) -> Reply:
    run = await site.runtime.find(call.path["run"])
    row = await site.runtime.row(run)
    if row.status not in ENDED:
        raise RunState(f"run {run} is {row.status.words}: only a run that has ended is removed; cancel it first")
    removed = await keeper(site.runtime.store).remove([run], dry_run=False)
    if run not in removed.runs:
        raise contract.busy(run)
    _forget(site, removed)
    return Reply(pruned_data(removed, dry_run=False))


async def prune_runs(site: Site, call: Call) -> Reply:
    body, dry_run = call.body, call.body.get("dry_run") is True
    store = keeper(site.runtime.store)
    if ("runs" in body) == ("older_than" in body):
        raise Problem.of("unfit-body", "say which runs: either `older_than` in seconds, or `runs` by their ids")
    if "runs" in body:
        removed = await store.remove(_named(call), dry_run=dry_run)
    else:
        wanted = tuple(Status(text) for text in cast("list[str]", body.get("statuses") or [])) or ENDED
        before = site.runtime.clock.now() - float(cast("float", body["older_than"]))
        removed = await store.prune(before, wanted, dry_run=dry_run, vacuum=False)
    if not dry_run:
        _forget(site, removed)
    return Reply(pruned_data(removed, dry_run=dry_run))


def _forget(site: Site, removed: Pruned) -> None:
    for run in removed.runs:
        site.views.forget(run)
        site.hub.touch(run)
