"""Pictures: flowcharts of documents and runs, and past runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

from msgspec import Meta
from starlette.responses import Response

from quire.display.flowchart_drawing import chart_data, svg
from quire.display.flowchart_marks import NO_OVERLAY
from quire.display.run_json import past_run_data
from quire.display.shell_commands import show_command
from quire.errors import CannotStart
from quire.operations.documents import OfDocument, overlay_for
from quire.operations.field_types import Limit, Name, Object, OfRun, Page, operation
from quire.operations.results import Chart
from quire.operations.shelf import pinned_file
from quire.plan.flowchart import MOST_NODES
from quire.stores.run_pages import RunFilters, newest_runs

if TYPE_CHECKING:
    from quire.display.flowchart_marks import Overlay
    from quire.library.document import Document
    from quire.operations.host import Host
    from quire.plan.nodes import Plan
    from quire.values import Value

MOST_RUNS = 2_000
"""Runs that are looked through for those of one document."""
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


class DocumentHistory(OfDocument, frozen=True, kw_only=True):
    limit: Limit = 60


@operation(
    "The last runs of a document: how each ended, how long it took and what it cost.", DocumentHistory, Page[Object]
)
async def document_history(host: Host, given: DocumentHistory) -> Value:
    """Return the last runs of a document, the newest first. Documents of the same name in other folders are others."""
    id, limit = host.shelf.one(given.id).id, given.limit
    items: list[Value] = []
    async for row in newest_runs(host.runtime.store, RunFilters(document=id.rpartition("/")[2]), MOST_RUNS, 200):
        file = pinned_file(host.folder, row)
        if file is not None and file.id == id:
            items.append(past_run_data(row))
        if len(items) == limit:
            break
    return {"items": items}
