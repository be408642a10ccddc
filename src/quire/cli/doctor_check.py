"""`quire doctor --check`: ask the model for one token and every server for its tools, and report the results."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from quire.errors import QuireError
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.tools.mcp import McpConnection
    from quire.workspace.settings import Settings

PATIENCE = 60.0
"""Seconds that a model or a server may take."""

Answer = tuple[str, Literal["ok", "missing", "problem"], str]
"""The subject of the check, its result, and a line about it."""


def check_live(settings: Settings) -> list[Answer]:
    """Ask the model that a run would use and the servers of the workspace. PAID: one token."""
    return asyncio.run(_check(settings))


async def _check(settings: Settings) -> list[Answer]:
    """Check the model and all servers. Nothing is sent or started before the user has agreed to the workspace's
    requests."""
    from quire.errors import Untrusted
    from quire.runs.workspace_gate import redactor_of
    from quire.workspace.consent import require_trusted

    try:
        code = require_trusted(settings)
    except Untrusted:
        return [("check", "missing", "nothing is asked before you agree to what is asked for: quire trust workspace")]
    files = {name: one.files for name, one in code.servers.items()}
    redact = redactor_of(settings).text
    answers = [await _model(settings)]
    for name, connection in _connections(settings, files, redact):
        answers.append(await _server(name, connection))
    return [(what, state, redact(detail)) for what, state, detail in answers]


async def _model(settings: Settings) -> Answer:
    from quire.display.text import duration, money
    from quire.engine.conversation import Message
    from quire.engine.ports import ModelCall
    from quire.errors import NoModel
    from quire.models.choose import choose_model
    from quire.models.open import open_model

    try:
        choice = choose_model(None, None, settings.models, os.environ)
    except NoModel as error:
        return "model", "missing", str(error).partition("\n")[0]
    except QuireError as error:
        return "model", "problem", str(error)
    what = f"model {choice.spec}"
    since = time.monotonic()
    try:
        model = open_model(choice.spec, settings.models)
        call = ModelCall("", (Message("user", "Say ok."),), max_tokens=1)
        reply = await asyncio.wait_for(model.complete(call, lambda text: None), PATIENCE)
    except QuireError as error:
        return what, "problem", str(error).partition("\n")[0]
    except TimeoutError:
        return what, "problem", f"no answer in {PATIENCE:.0f} seconds"
    count = reply.usage.input_tokens + reply.usage.output_tokens
    price = money(reply.usage.cost) or "free"
    return what, "ok", f"answers after {duration(time.monotonic() - since)}: {count} tokens, {price}"


def _connections(
    settings: Settings, files: Mapping[str, Mapping[str, str]], redact: Callable[[str], str]
) -> Iterator[tuple[str, McpConnection]]:
    from quire.tools.mcp import McpConnection

    for name, server in sorted(settings.servers.items()):
        confirmed = files[name] if server.command else None
        yield name, McpConnection(server, settings.workspace.folder, os.environ, confirmed=confirmed, redact=redact)


async def _server(name: str, connection: McpConnection) -> Answer:
    from quire.display.text import duration
    from quire.tools.mcp import in_one_line

    what, since = f"mcp server {name}", time.monotonic()
    try:
        tools = await asyncio.wait_for(connection.tools(), PATIENCE)
    except QuireError as error:
        return what, "problem", in_one_line(error)
    except TimeoutError:
        return what, "problem", f"no answer in {PATIENCE:.0f} seconds"
    finally:
        await connection.close()
    count = f"{len(tools)} {pluralize('tool', len(tools))}"
    return what, "ok", f"answers after {duration(time.monotonic() - since)} with {count}"
