"""Handlers for pictures: flowcharts of documents and runs, timelines, the items of fan-outs, and past runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from starlette.responses import Response

from quire.display.commands import show_command
from quire.display.fan_json import counts, item_data, item_text, letters, rank
from quire.display.flowchart_json import chart_data
from quire.display.flowchart_marks import NO_OVERLAY
from quire.display.flowchart_svg import svg
from quire.display.run_json import past_run_data
from quire.display.timeline_json import timeline_data
from quire.engine.records import WAITING
from quire.errors import CannotStart
from quire.plan.flowchart import MOST_NODES
from quire.runs.fan_items import fan_items
from quire.server.document_proof import overlay_for
from quire.server.endpoints import Call, Reply
from quire.server.pinned_file import pinned_file
from quire.server.problems import Problem
from quire.stores.run_list import RunFilters, lister

if TYPE_CHECKING:
    from quire.display.flowchart_marks import Overlay
    from quire.library.document import Document
    from quire.plan.nodes import Plan
    from quire.runs.fan_items import Item
    from quire.runs.view import RunView
    from quire.server.site import Site
    from quire.values import Value

MOST_PAGES = 10
"""Pages of runs that are looked through for those of one document."""
SVG = "image/svg+xml"
SVG_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Content-Disposition": "attachment",
}


async def run_graph(site: Site, call: Call) -> Reply:
    """Return the chart of the document as the run has pinned it: an edit of the file does not change it."""
    run = await site.runtime.find(call.path["run"])
    row = await site.runtime.row(run)
    held = await site.runtime.stored(row)
    return await _chart(held.plan, row.document, call)


async def document_graph(site: Site, call: Call) -> Reply:
    id = call.path["id"]
    document = _document(site, id)
    overlay = await asyncio.to_thread(overlay_for, site.runtime, document)
    return await _chart(document.runnable(), id, call, overlay)


async def document_svg(site: Site, call: Call) -> Response:
    document = _document(site, call.path["id"])
    overlay = await asyncio.to_thread(overlay_for, site.runtime, document)
    text = await asyncio.to_thread(
        svg, document.runnable(), most=MOST_NODES, opened=call.texts("open"), overlay=overlay
    )
    return Response(text, media_type=SVG, headers=SVG_HEADERS)


async def _chart(plan: Plan, document: str, call: Call, overlay: Overlay = NO_OVERLAY) -> Reply:
    chart = await asyncio.to_thread(chart_data, plan, opened=call.texts("open"), overlay=overlay)
    return Reply(
        {"title": plan.title, "format": plan.format, "command": show_command(document, "--graph", "svg"), **chart}
    )


def _document(site: Site, id: str) -> Document:
    """Return a document that can be drawn. Raises `CannotStart` for one that cannot be read."""
    shelved = site.shelf.one(id)
    if shelved.document is None:
        raise CannotStart(shelved.error or f"{id} has no steps to draw")
    shelved.document.runnable()
    return shelved.document


async def run_timeline(site: Site, call: Call) -> Reply:
    run = await site.runtime.find(call.path["run"])
    seen = await site.views.head(run)
    if call.request.headers.get("if-none-match") == (tag := f'"{seen.version.tag}"'):
        return Reply(None, 304, {"ETag": tag})
    if _may_have_waited(seen.view):
        events = await site.runtime.store.events(run, 0)
        # The head of a run that is driven here has changed meanwhile.
        seen = await site.views.head(run)
    else:
        events = ()
    data = timeline_data(seen.view, events)
    return Reply({"seq": seen.version.seq, **data}, 200, {"ETag": tag})


def _may_have_waited(view: RunView) -> bool:
    """Tell whether the events are needed: they are many, and most runs never wait for a person."""
    stopped = view.row.epoch > 1 or view.row.status in WAITING or "origin" in view.row.pins
    return stopped or bool(view.questions) or any(record.kind == "ask" for record in view.effects)


async def run_fan(site: Site, call: Call) -> Reply:
    """Return the states of all items of a fan, and one page of the items that fit, the failed ones first."""
    run = await site.runtime.find(call.path["run"])
    # The head of a run that is driven here needs no replay, and must be read before anything else happens.
    return Reply(_fan((await site.views.head(run)).view, call))


def _fan(view: RunView, call: Call) -> dict[str, Value]:
    path = call.path["path"]
    try:
        items = fan_items(view, path)
    except CannotStart as error:
        raise Problem.of("no-such-step", str(error)) from None
    step = view.replay.progress.steps.get(path)
    words, state = call.text("q").lower().split(), call.text("state")
    in_order = call.text("order") == "document"
    place: Callable[[Item], tuple[int, int]] = (lambda item: (0, item.index)) if in_order else rank
    fitting = [item for item in items if (not state or item.state == state) and (not words or _has(item, words))]
    fitting.sort(key=place)
    after = _after(call.text("after"))
    page = [item for item in fitting if place(item) > after]
    limit = call.number("limit", 100)
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


async def document_history(site: Site, call: Call) -> Reply:
    """Return the last runs of a document, the newest first. Documents of the same name in other folders are others."""
    id, limit = site.shelf.one(call.path["id"]).id, call.number("limit", 60)
    runs, found, after = lister(site.runtime.store), [], None
    for _ in range(MOST_PAGES):
        page = await runs.page(RunFilters(document=id.rpartition("/")[2]), after, 200)
        for row in page.rows:
            file = pinned_file(site.folder, row)
            if file is not None and file.id == id:
                found.append(past_run_data(row))
        after = page.next
        if after is None or len(found) >= limit:
            break
    return Reply({"items": found[:limit]})
