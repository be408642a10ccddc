"""Handlers for pictures: the flowchart of a document or of a run, as data to draw and as a file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import Response

from quire.display.flowchart_json import chart_data
from quire.display.flowchart_svg import svg
from quire.errors import CannotStart
from quire.plan.flowchart import MOST_NODES
from quire.server.endpoints import Call, Reply

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.server.site import Site

SVG = "image/svg+xml"
SVG_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Content-Disposition": "attachment",
}


async def run_graph(site: Site, call: Call) -> Reply:
    """Return the chart of the document as the run has pinned it: an edit of the file does not change it."""
    run = await site.runtime.find(call.path["run"])
    held = await site.runtime.stored(await site.runtime.row(run))
    return await _chart(held.plan, call)


async def document_graph(site: Site, call: Call) -> Reply:
    return await _chart(_plan(site, call.path["id"]), call)


async def document_svg(site: Site, call: Call) -> Response:
    plan = _plan(site, call.path["id"])
    text = await asyncio.to_thread(svg, plan, most=MOST_NODES, opened=call.texts("open"))
    return Response(text, media_type=SVG, headers=SVG_HEADERS)


async def _chart(plan: Plan, call: Call) -> Reply:
    chart = await asyncio.to_thread(chart_data, plan, opened=call.texts("open"))
    return Reply({"title": plan.title, "format": plan.format, **chart})


def _plan(site: Site, id: str) -> Plan:
    """Return the plan of a document. Raises `CannotStart` for one that cannot be read."""
    shelved = site.shelf.one(id)
    if shelved.document is None:
        raise CannotStart(shelved.error or f"{id} has no steps to draw")
    return shelved.document.runnable()
