"""Handlers for the workspace itself: version and links, the API's own description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse

from quire import __version__
from quire.server.endpoints import Call, Reply

if TYPE_CHECKING:
    from starlette.responses import Response

    from quire.server.site import Site


async def root(site: Site, call: Call) -> Reply:
    base = f"{site.options.base}/api/v1"
    return Reply(
        {
            "version": __version__,
            "workspace": site.folder.name,
            "folder": str(site.folder),
            "formats": ["playbook", "directive", "pipeline"],
            "features": {
                "edit": site.options.edit,
                "allow": list(site.options.allow),
                "webhooks": site.webhooks is not None,
            },
            "links": {name: f"{base}/{name}" for name in ("documents", "runs", "questions", "openapi.json")},
        }
    )


async def openapi(site: Site, call: Call) -> Reply:
    from quire.server.openapi import describe
    from quire.server.routes import ENDPOINTS

    return Reply(describe(ENDPOINTS, site.options.base))


async def docs(site: Site, call: Call) -> Response:
    from quire.server.api_page import api_page
    from quire.server.routes import ENDPOINTS

    return HTMLResponse(api_page(ENDPOINTS, site.options.base))
