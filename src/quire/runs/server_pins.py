"""Ask MCP servers for their tools, to pin them in a lock. Servers are started only if the user has agreed to the
workspace."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.errors import QuireError, Untrusted
from quire.library.tool_pins import server_pins
from quire.runs.gate import redactor_of
from quire.workspace.consent import require_trusted

if TYPE_CHECKING:
    from quire.analysis.lock.file import LockedTool
    from quire.workspace.settings import Settings

PATIENCE = 60.0
"""Seconds for which a server may start and list its tools."""


class ServerListing(Struct, frozen=True):
    """The tools that servers have listed. `not_asked` are the others, each with the reason."""

    pins: Mapping[str, LockedTool] = field(default_factory=dict)
    not_asked: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    """The descriptions that tools give of themselves, by the names of their pins."""


async def ask_servers(
    settings: Settings, names: Iterable[str], environ: Mapping[str, str] | None = None
) -> ServerListing:
    """Start the servers of these names and return their tools. A server that does not answer is not an error: its tools
    keep their pins."""
    wanted = [name for name in names if name in settings.servers]
    if not wanted:
        return ServerListing()
    try:
        code = require_trusted(settings)
    except Untrusted:
        return ServerListing({}, dict.fromkeys(wanted, "you have not agreed to the workspace: quire trust workspace"))
    from quire.tools.mcp import McpConnection, in_one_line

    redact = redactor_of(settings).text
    folder, environ = settings.workspace.folder, os.environ if environ is None else environ

    descriptions: dict[str, str] = {}

    async def ask(name: str) -> dict[str, LockedTool] | str:
        server = settings.servers[name]
        files = code.servers[name].files if server.command else None
        connection = McpConnection(server, folder, environ, confirmed=files, redact=redact)
        try:
            specs = list((await asyncio.wait_for(connection.tools(), PATIENCE)).values())
            descriptions.update((f"{name}/{spec.name}", redact(spec.description)) for spec in specs)
            return server_pins(name, specs)
        except QuireError as error:
            return redact(in_one_line(error))
        except TimeoutError:
            return f"no answer in {PATIENCE:.0f} seconds"
        finally:
            await connection.close()

    pins: dict[str, LockedTool] = {}
    not_asked: dict[str, str] = {}
    for name, answer in zip(wanted, await asyncio.gather(*map(ask, wanted)), strict=True):
        if isinstance(answer, str):
            not_asked[name] = answer
        else:
            pins |= answer
    return ServerListing(pins, not_asked, descriptions)
