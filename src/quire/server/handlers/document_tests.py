"""Handlers for the tests of a document: look at its cases, and run them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quire.server.endpoints import Call, Reply

if TYPE_CHECKING:
    from quire.server.site import Site


async def list_cases(site: Site, call: Call) -> Reply:
    state = await asyncio.to_thread(site.shelf.one, call.path["id"])
    return Reply(await asyncio.to_thread(site.tests.look, state))


async def run_cases(site: Site, call: Call) -> Reply:
    state = await asyncio.to_thread(site.shelf.one, call.path["id"])
    return Reply(await asyncio.to_thread(site.tests.run, state))
