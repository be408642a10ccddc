"""Operations on many runs: list, count and group them, add them up by day, and label one."""

from __future__ import annotations

import contextlib
import datetime
import statistics
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, TypeAlias

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from quire.display.run_json import item_data, row_data
from quire.engine.progress import Progress
from quire.engine.records import Status
from quire.errors import QuireError
from quire.operations.field_types import (
    After,
    Format,
    Input,
    Limit,
    Name,
    Object,
    OfRun,
    Page,
    State,
    operation,
    shape,
    words,
)
from quire.operations.problems import Problem
from quire.operations.results import ListedRun, Run
from quire.patterns import late_pattern
from quire.stores.contract import ANSWERABLE, MOST_NAME, MOST_NOTE
from quire.stores.run_pages import MOST_COUNTED, RunFilters, words_of
from quire.values import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quire.engine.records import RunRow
    from quire.operations.host import Host
    from quire.values import Value

MOST_GROUPED = 20_000
MOST_GROUPS = 100
MOST_OF_GROUP = 100
MOST_MESSAGE = 500
PULSE_SECONDS = 10.0
"""The time for which a pulse is kept while nothing changes here."""
_MASKED = late_pattern(
    r"\b(?=[a-z-]*\d)[0-9a-z]{7}-[0-9a-z]{5}\b|\b(?=[a-f-]*\d)[0-9a-f][0-9a-f-]{7,}\b|\d+(?:[.,:]\d+)*"
)
"""Ids of runs, other ids, and numbers: messages that differ in nothing else are alike."""

OfDocument: TypeAlias = Annotated[
    Name, Meta(description="Only runs of this document: its name, or the end of its path.")
]
Amount: TypeAlias = Annotated[float, Meta(ge=0, le=10**12)]


class Filters(Input, frozen=True, kw_only=True):
    document: OfDocument = ""
    format: Annotated[Format, Meta(description="Only runs of documents in this format.")] = ""
    since: (
        Annotated[float, Meta(description="Only runs that were started since then, in seconds since 1970.")] | UnsetType
    ) = UNSET
    until: Annotated[float, Meta(description="Only runs that were started before then.")] | UnsetType = UNSET
    q: Annotated[
        str,
        Meta(max_length=1000, description="Words in the id, name, note, subject, title, document, error or inputs."),
    ] = ""
    origin: Annotated[Name, Meta(description="Only forks of this run.")] = ""
    min_cost: Annotated[Amount, Meta(description="Only runs that cost as much, in US dollars.")] | UnsetType = UNSET
    min_took: Annotated[Amount, Meta(description="Only runs that took as long, in seconds.")] | UnsetType = UNSET
    tries: Annotated[bool, Meta(description="Also tries, which end after one step.")] = False

    def read(self) -> RunFilters:
        statuses = tuple(Status(text) for text in getattr(self, "status", ()))
        return RunFilters(
            statuses=statuses,
            document=self.document,
            format=self.format,
            since=self.since or None,
            before=self.until or None,
            words=words_of(self.q),
            origin=self.origin,
            asks=getattr(self, "asks", False),
            min_cost=self.min_cost or None,
            min_took=self.min_took or None,
            tries=self.tries,
        )


class StatusFilters(Filters, frozen=True, kw_only=True):
    status: Annotated[tuple[State, ...], Meta(description="Only runs of this status; may be given several times.")] = ()
    asks: Annotated[bool, Meta(description="Only runs with an open question.")] = False


class ListRuns(StatusFilters, frozen=True, kw_only=True):
    sort: Annotated[
        str,
        words("started", "took", "cost", "subject"),
        Meta(description="The newest, longest or most expensive first, or by subject."),
    ] = "started"
    after: After = ""
    limit: Limit = 100


@operation("Runs, the newest first, in pages.", ListRuns, Page[ListedRun])
async def list_runs(host: Host, given: ListRuns) -> Value:
    try:
        store = host.runtime.store
        page = await store.page(given.read(), given.after or None, given.limit, given.sort)  # type: ignore[arg-type]
    except ValueError as error:
        raise Problem.of("unfit-parameters", f"after: {error}", help="use `next` of the page before") from None
    host.list_goes_on(page.next)
    return {"items": await listed(host, page.rows), "next": page.next}


_labels: dict[tuple[str, ...], tuple[str, ...]] = {}
_MOST_LABELS = 500


async def own_labels(host: Host, row: RunRow) -> Sequence[str]:
    """Return the labels of the top-level steps of a run's document; none for a directive, or for a document that cannot
    be read. Each document is read once."""
    key = (row.format, *(str(row.pins.get(name)) for name in ("document", "declared", "key")))
    if key not in _labels:
        labels: tuple[str, ...] = ()
        with contextlib.suppress(QuireError):
            steps = Progress.of((await host.runtime.stored(row)).plan).steps.values()
            labels = tuple(step.label for step in steps if not step.depth)
        if len(_labels) >= _MOST_LABELS:
            _labels.clear()
        _labels[key] = labels
    return _labels[key]


async def listed(host: Host, rows: Sequence[RunRow]) -> list[Value]:
    """Return runs as a list shows them, each with its result, its place among its steps, and the time it took."""
    now = host.runtime.clock.now()
    heads = await host.heads([row.id for row in rows if row.status is Status.COMPLETED])
    store = host.runtime.store
    asked = [(await store.questions(row.id))[:1] for row in rows if row.status in ANSWERABLE]
    questions = {question.run: question.prompt for (question,) in filter(None, asked)}
    results = {**heads, **questions, **{row.id: row.failure.message for row in rows if row.failure}}
    results |= {row.id: words for row in rows if (words := row.waits)}
    return [item_data(row, now, results.get(row.id), await own_labels(host, row)) for row in rows]


Count: TypeAlias = Annotated[int, Meta(ge=0)]


@operation(
    "The number of runs of each status, up to 10,000 each.",
    Filters,
    shape(statuses=dict[str, Count], total=Count, most=int, more=list[str]),
)
async def count_runs(host: Host, given: Filters) -> Value:
    """Count the runs of each status. The filters hold, but for the status."""
    runs, filters = host.runtime.store, given.read()
    counts = await runs.counts(filters)
    asks = await runs.count(replace(filters, asks=True))
    capped: dict[str, Value] = {str(status): min(count, MOST_COUNTED) for status, count in counts.items()}
    more: list[Value] = [str(status) for status, count in counts.items() if count > MOST_COUNTED]
    total = sum(counts.values())
    return {
        "statuses": capped,
        "asks": min(asks, MOST_COUNTED),
        "total": min(total, MOST_COUNTED),
        "most": MOST_COUNTED,
        "more": [*more, *(["total"] if total > MOST_COUNTED else [])],
    }


class GroupRuns(StatusFilters, frozen=True, kw_only=True):
    by: Annotated[str, words("document", "error"), Meta(description="The property that the runs of a group share.")] = (
        "document"
    )


@operation(
    "Runs in groups: by document, or failed ones by error.",
    GroupRuns,
    shape(by=Name, groups=list[Object], more=Count),
)
async def group_runs(host: Host, given: GroupRuns) -> Value:
    filters, by_error = given.read(), given.by == "error"
    if by_error and not filters.statuses:
        filters = replace(filters, statuses=(Status.FAILED,))
    store = host.runtime.store
    groups: dict[tuple[str, ...], list[RunRow]] = {}
    for run in (await store.page(filters, limit=MOST_GROUPED, pins=False)).rows:
        if run.failure or not by_error:
            groups.setdefault((run.document, *(error_of(run) if by_error else ())), []).append(run)
    shown = list(groups.items())[:MOST_GROUPS]
    latest = {row.id: row_data(row) for row in await store.named([runs[0].id for _, runs in shown])}
    return {
        "by": given.by,
        "groups": [group_data(key, runs, latest.get(runs[0].id)) for key, runs in shown],
        "more": max(0, len(groups) - MOST_GROUPS),
    }


def error_of(row: RunRow) -> tuple[str, str]:
    """Return the kind and the message of a failure, with a sign in place of each number and id in it."""
    failure = row.failure
    return (failure.kind, _MASKED.sub("#", failure.message[:MOST_MESSAGE])) if failure else ("", "")


def group_data(key: tuple[str, ...], runs: Sequence[RunRow], latest: Value) -> Value:
    document, *error = key
    costs = [run.cost for run in runs if run.cost is not None]
    statuses = [str(run.status) for run in runs]
    return {
        "key": fingerprint([*key])[:16] if error else document,
        "document": document,
        "title": runs[0].title,
        **(dict(zip(("kind", "message"), error, strict=True)) if error else {}),
        "count": len(runs),
        "statuses": {status: statuses.count(status) for status in dict.fromkeys(statuses)},
        "cost": sum(costs) if costs else None,
        "runs": [run.id for run in runs[:MOST_OF_GROUP]],
        "latest": latest,
    }


class Pulse(Input, frozen=True, kw_only=True):
    days: Annotated[int, Meta(ge=1, le=92, description="The number of days, today included.")] = 14


@operation(
    "Runs, cost and waits of the last days.",
    Pulse,
    shape(days=list[Object], waiting=Count, waited=float | None),
)
async def pulse(host: Host, given: Pulse) -> Value:
    store, today = host.runtime.store, datetime.datetime.fromtimestamp(host.runtime.clock.now()).date()
    key = f"pulse {given.days} {today}"
    at, kept = host.kept.get(key, (0.0, None))
    if kept is not None and time.monotonic() < at + PULSE_SECONDS:
        return kept
    days: list[Value] = []
    midnights = [_midnight(today - datetime.timedelta(days=back)) for back in range(given.days - 1, -2, -1)]
    waits = await store.waited(midnights[0])
    for since, until in pairwise(midnights):
        spent = await store.spent(since, until)
        counts: dict[str, Value] = {"runs": spent.runs, "completed": spent.completed, "failed": spent.failed}
        cost = None if spent.unknown and not spent.cost else spent.cost
        day = str(datetime.datetime.fromtimestamp(since).date())
        waited = _median([seconds for asked_at, seconds in waits if since <= asked_at < until])
        days.append({"day": day, "since": since, "until": until, **counts, "cost": cost, "waited": waited})
    _, waiting = await store.oldest_questions(1)
    answer: Value = {"days": days, "waiting": waiting, "waited": _median([seconds for _, seconds in waits])}
    host.kept[key] = (time.monotonic(), answer)
    return answer


def _median(seconds: Sequence[float]) -> float | None:
    return round(statistics.median(seconds), 3) if seconds else None


def _midnight(day: datetime.date) -> float:
    return datetime.datetime.combine(day, datetime.time()).timestamp()


class LabelRun(OfRun, frozen=True, kw_only=True):
    name: Annotated[str, Meta(max_length=MOST_NAME)] | UnsetType | None = UNSET
    note: Annotated[str, Meta(max_length=MOST_NOTE)] | UnsetType | None = UNSET
    seen: bool | UnsetType = UNSET


@operation("Set name and note of a run, or mark it as seen.", LabelRun, Run)
async def label_run(host: Host, given: LabelRun) -> Value:
    run = await host.runtime.find(given.run)
    changes: dict[str, str | float | None] = {}
    if not isinstance(given.name, UnsetType):
        changes["name"] = " ".join((given.name or "").split()) or None
    if not isinstance(given.note, UnsetType):
        changes["note"] = (given.note or "").strip() or None
    if not isinstance(given.seen, UnsetType):
        changes["seen_at"] = host.runtime.clock.now() if given.seen else None
    await host.runtime.store.label(run, changes)
    host.touch(run)
    return row_data(await host.runtime.row(run))
