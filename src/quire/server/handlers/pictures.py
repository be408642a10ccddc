"""Pictures: flowcharts of documents and runs, timelines, the items of fan-outs, and past runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

from msgspec import Meta
from starlette.responses import Response

from quire.display.flowchart_drawing import chart_data, svg
from quire.display.flowchart_marks import NO_OVERLAY
from quire.display.run_json import past_run_data
from quire.display.run_parts_json import counts, item_data, item_text, letters, rank, timeline_data
from quire.display.shell_commands import show_command
from quire.engine.records import WAITING
from quire.errors import CannotStart
from quire.operations.documents import OfDocument, overlay_for
from quire.operations.field_types import After, Limit, Name, Object, OfRun, OfStep, Page, Text, operation, words
from quire.operations.problems import Problem
from quire.operations.results import Chart, Fan, Timeline
from quire.operations.shelf import pinned_file
from quire.plan.flowchart import MOST_NODES
from quire.runs.fan_items import fan_items
from quire.stores.run_pages import RunFilters, lister

if TYPE_CHECKING:
    from quire.display.flowchart_marks import Overlay
    from quire.library.document import Document
    from quire.operations.host import Host
    from quire.plan.nodes import Plan
    from quire.runs.fan_items import Item
    from quire.runs.outcome import RunView
    from quire.values import Value

MOST_PAGES = 10
"""Pages of runs that are looked through for those of one document."""
SVG = "image/svg+xml"
SVG_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Content-Disposition": "attachment",
}


Opened: TypeAlias = Annotated[
    tuple[Name, ...], Meta(description="A fold to draw with all it holds: the `fold` of a node.")
]


class RunGraph(OfRun, frozen=True, kw_only=True):
    open: Opened = ()


class DocumentGraph(OfDocument, frozen=True, kw_only=True):
    open: Opened = ()


@operation("The flowchart of a run's document, placed and ready to draw.", RunGraph, Chart)
async def run_graph(host: Host, given: RunGraph) -> Value:
    """Return the chart of the document as the run has pinned it: an edit of the file does not change it."""
    row = await host.runtime.row(await host.runtime.find(given.run))
    held = await host.runtime.stored(row)
    return await _chart(held.plan, row.document, given.open)


@operation("The flowchart of a document, placed and ready to draw.", DocumentGraph, Chart)
async def document_graph(host: Host, given: DocumentGraph) -> Value:
    document = _document(host, given.id)
    overlay = await asyncio.to_thread(overlay_for, host.runtime, document)
    return await _chart(document.runnable(), given.id, given.open, overlay)


@operation("The flowchart of a document as a picture.", DocumentGraph, None)
async def document_svg(host: Host, given: DocumentGraph) -> Response:
    document = _document(host, given.id)
    overlay = await asyncio.to_thread(overlay_for, host.runtime, document)
    text = await asyncio.to_thread(svg, document.runnable(), most=MOST_NODES, opened=given.open, overlay=overlay)
    return Response(text, media_type=SVG, headers=SVG_HEADERS)


async def _chart(plan: Plan, document: str, opened: Sequence[str], overlay: Overlay = NO_OVERLAY) -> Value:
    chart = await asyncio.to_thread(chart_data, plan, opened=opened, overlay=overlay)
    return {"title": plan.title, "format": plan.format, "command": show_command(document, "--graph", "svg"), **chart}


def _document(host: Host, id: str) -> Document:
    """Return a document that can be drawn. Raises `CannotStart` for one that cannot be read."""
    shelved = host.shelf.one(id)
    if shelved.document is None:
        raise CannotStart(shelved.error or f"{id} has no steps to draw")
    shelved.document.runnable()
    return shelved.document


@operation("All effects of a run as columns, by step, and the times in which it waited.", OfRun, Timeline)
async def run_timeline(host: Host, given: OfRun) -> Value:
    run = await host.runtime.find(given.run)
    view = await host.views.head(run)
    if host.has(f'"{view.version.tag}"'):
        return None
    if _may_have_waited(view.view):
        events = await host.runtime.store.events(run, 0)
        # The head of a run that is driven here has changed meanwhile.
        view = await host.views.head(run)
    else:
        events = ()
    data = timeline_data(view.view, events)
    return {"seq": view.version.seq, **data}


def _may_have_waited(view: RunView) -> bool:
    """Tell whether the events are needed: they are many, and most runs never wait for a person."""
    stopped = view.row.epoch > 1 or view.row.status in WAITING or "origin" in view.row.pins
    return stopped or bool(view.questions) or any(record.kind == "ask" for record in view.effects)


class RunFan(OfStep, frozen=True, kw_only=True):
    q: Annotated[Text, Meta(description="Words that the text of an item or its failure contain.")] = ""
    state: Annotated[
        str, words("pending", "running", "waiting", "done", "failed"), Meta(description="Only items in this state.")
    ] = ""
    order: Annotated[
        str,
        words("failed", "document"),
        Meta(description="The order of the page: the failed first, or all as in the document."),
    ] = "failed"
    after: After = ""
    limit: Limit = 100


@operation("The items of a fan-out: the state of each, and a page of them, the failed ones first.", RunFan, Fan)
async def run_fan(host: Host, given: RunFan) -> Value:
    """Return the states of all parallel items, and one page of the items that fit, the failed ones first."""
    run, path, limit = await host.runtime.find(given.run), given.path, given.limit
    # The head of a run that is driven here needs no replay, and must be read before anything else happens.
    view = (await host.views.head(run)).view
    try:
        items = fan_items(view, path)
    except CannotStart as error:
        raise Problem.of("no-such-step", str(error)) from None
    step = view.replay.progress.steps.get(path)
    in_order = given.order == "document"
    place: Callable[[Item], tuple[int, int]] = (lambda item: (0, item.index)) if in_order else rank
    looked_for = given.q.lower().split()
    fitting = [item for item in items if given.state in ("", item.state) and _has(item, looked_for)]
    fitting.sort(key=place)
    after = _after(given.after)
    page = [item for item in fitting if place(item) > after]
    following = ".".join(map(str, place(page[limit - 1]))) if len(page) > limit else None
    return {
        "path": path,
        "label": step.label if step else path,
        "title": step.title if step else "",
        **({"rounds": True} if step and step.fan and step.fan.rounds else {}),
        "total": len(items),
        "counts": counts(items),
        "letters": letters(items),
        "fitting": len(fitting),
        "items": [item_data(item) for item in page[:limit]],
        "next": following,
    }


def _has(item: Item, words: Sequence[str]) -> bool:
    text = f"{item.index} {item_text(item)} {item.message}".lower()
    return all(word in text for word in words)


def _after(text: str) -> tuple[int, int]:
    first, _, second = text.partition(".")
    return (int(first), int(second)) if first.isdecimal() and second.isdecimal() else (-1, -1)


class DocumentHistory(OfDocument, frozen=True, kw_only=True):
    limit: Limit = 60


@operation(
    "The last runs of a document: how each ended, how long it took and what it cost.", DocumentHistory, Page[Object]
)
async def document_history(host: Host, given: DocumentHistory) -> Value:
    """Return the last runs of a document, the newest first. Documents of the same name in other folders are others."""
    id, limit = host.shelf.one(given.id).id, given.limit
    runs, after = lister(host.runtime.store), None
    items: list[Value] = []
    for _ in range(MOST_PAGES):
        page = await runs.page(RunFilters(document=id.rpartition("/")[2]), after, 200)
        for row in page.rows:
            file = pinned_file(host.folder, row)
            if file is not None and file.id == id:
                items.append(past_run_data(row))
        after = page.next
        if after is None or len(items) >= limit:
            break
    return {"items": items[:limit]}
