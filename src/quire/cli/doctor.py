"""`quire doctor`: print what is available and what is missing, and with `--check` ask the model and the servers."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from quire.cli.stdio import columns, write_json, write_lines
from quire.display.text import folded, one_line
from quire.errors import BadConfiguration, QuireError
from quire.runs.doctor import Finding, examine
from quire.wording import counted
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

if TYPE_CHECKING:
    from quire.tools.mcp import McpConnection
    from quire.workspace.settings import Settings

PATIENCE = 60.0
"""Seconds that a model or a server may take."""
_COLOURS = {"ok": "green", "missing": "yellow", "problem": "red"}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--check", is_flag=True, help="Ask the model for one token and each server for its tools. PAID.")
@click.pass_context
def command(context: click.Context, as_json: bool, check: bool) -> None:
    """Show what Quire finds on this machine: settings, trust, models, servers, the sandbox.

    Python tools of a folder that you trust are loaded. Exit 1 when something is wrong.
    """
    workspace = find_workspace(Path.cwd())
    findings = list(examine(workspace))
    with contextlib.suppress(BadConfiguration):  # It is among the findings already.
        settings = load_settings(workspace)
        for ask in [_cluster] * bool(settings.cluster.temporal) + [_check] * check:
            import asyncio

            findings += asyncio.run(ask(settings))
    if as_json:
        write_json([finding.data() for finding in findings])
    else:
        room = (columns() or 100_000) - 9
        for row in findings:
            detail = folded(one_line(f"{row.what}: {row.detail}"), room, "").replace("\n", f"\n{'':9}")
            write_lines([f"{click.style(f'{row.state:8}', fg=_COLOURS[row.state])} {detail}"])
    context.exit(1 if any(finding.state == "problem" for finding in findings) else 0)


async def _cluster(settings: Settings) -> list[Finding]:
    from quire.cluster.client import connect, require_cluster

    try:
        client = await connect(require_cluster(settings))
    except QuireError as error:
        return [Finding("cluster", "problem", str(error).partition("\n")[0])]
    return [Finding("cluster", "ok", f"Temporal at {settings.cluster.temporal} takes namespace {client.namespace}")]


async def _check(settings: Settings) -> list[Finding]:
    """Ask the model that a run would use for one token, and every server for its tools. Nothing is sent or started
    before the user has agreed to the workspace's requests."""
    from quire.errors import Untrusted
    from quire.runs.workspace_gate import redactor_of
    from quire.tools.mcp import McpConnection
    from quire.workspace.consent import require_trusted

    try:
        code = require_trusted(settings)
    except Untrusted:
        detail = "nothing is asked before you agree to what is asked for: quire trust workspace"
        return [Finding("check", "missing", detail)]
    redact = redactor_of(settings).text
    answers = [await _model(settings)]
    for name, server in sorted(settings.servers.items()):
        confirmed = code.servers[name].files if server.command else None
        folder = settings.workspace.folder
        connection = McpConnection(server, folder, os.environ, confirmed=confirmed, redact=redact)
        answers.append(await _server(name, connection))
    return [replace(answer, detail=redact(answer.detail)) for answer in answers]


async def _model(settings: Settings) -> Finding:
    import asyncio

    from quire.display.text import duration, money
    from quire.engine.conversation import Message
    from quire.engine.ports import ModelCall
    from quire.errors import NoModel
    from quire.models.choose import choose_model
    from quire.models.open import open_model

    try:
        choice = choose_model(None, None, settings.models, os.environ)
    except NoModel as error:
        return Finding("model", "missing", str(error).partition("\n")[0])
    except QuireError as error:
        return Finding("model", "problem", str(error))
    what = f"model {choice.spec}"
    since = time.monotonic()
    try:
        model = open_model(choice.spec, settings.models)
        call = ModelCall("", (Message("user", "Say ok."),), max_tokens=1)
        reply = await asyncio.wait_for(model.complete(call, lambda text: None), PATIENCE)
    except QuireError as error:
        return Finding(what, "problem", str(error).partition("\n")[0])
    except TimeoutError:
        return Finding(what, "problem", f"no answer in {PATIENCE:.0f} seconds")
    count = reply.usage.input_tokens + reply.usage.output_tokens
    price = money(reply.usage.cost) or "free"
    return Finding(what, "ok", f"answers after {duration(time.monotonic() - since)}: {count} tokens, {price}")


async def _server(name: str, connection: McpConnection) -> Finding:
    import asyncio

    from quire.display.text import duration
    from quire.tools.mcp import in_one_line

    what, since = f"mcp server {name}", time.monotonic()
    try:
        tools = await asyncio.wait_for(connection.tools(), PATIENCE)
    except QuireError as error:
        return Finding(what, "problem", in_one_line(error))
    except TimeoutError:
        return Finding(what, "problem", f"no answer in {PATIENCE:.0f} seconds")
    finally:
        await connection.close()
    took = duration(time.monotonic() - since)
    return Finding(what, "ok", f"answers after {took} with {counted(len(tools), 'tool')}")
