"""`quire mcp`: serve the documents of this workspace as tools of an MCP server."""

from __future__ import annotations

import os
import secrets
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli import INTERRUPTED
from quire.cli.app import say
from quire.cli.completers import complete_document
from quire.cli.options import Amount, check_exclusive, require_text
from quire.cli.stdio import with_runtime
from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.mcp_server.server import Offer
    from quire.runs.runtime import Runtime

TOKEN = "QUIRE_MCP_TOKEN"  # noqa: S105  # the name of a variable
SHORTEST_TOKEN = 16


@click.command("mcp")
@click.argument("documents", metavar="[DOC]...", nargs=-1, shell_complete=complete_document)
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of stdin and stdout.")
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="A loopback address.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; without it, a free one.")
@click.option("--allow-inline", is_flag=True, help="Let clients launch pipelines that they wrote themselves.")
@click.option("--answers", is_flag=True, help="Let clients answer questions for a text or a choice by a tool call.")
@click.option("--model", metavar="SPEC", callback=require_text, help="The model of the runs, as PROVIDER:NAME.")
@click.option(
    "--script", metavar="FILE", callback=require_text, help="Take the replies from a file instead of a model."
)
@click.option("--allow", metavar="TOOL", multiple=True, callback=require_text, help="Grant a tool to the runs.")
@click.option("--budget", type=Amount(min=0), metavar="USD", help="Stop each run once this much is spent.")
@click.pass_context
def command(
    context: click.Context,
    documents: tuple[str, ...],
    http: bool,
    host: str,
    port: int,
    allow_inline: bool,
    answers: bool,
    model: str | None,
    script: str | None,
    allow: tuple[str, ...],
    budget: float | None,
) -> None:
    """Serve this workspace to MCP clients. PAID: runs call a model; WRITES the journals of the runs.

    Registered pipelines, the playbooks right in the workspace and in playbooks/, directives that are signed by a key
    that you trust, and each DOC become tools. Questions of a run are asked by a form of the client; a question without
    an answer waits for `quire answer`, and no tool call says yes or no to one. With --http the URL and the token that a
    client needs are printed on stderr; QUIRE_MCP_TOKEN sets the token. stdout carries the protocol and nothing else.
    Where the workspace has a [cluster], its workers drive the runs.
    """
    check_exclusive(context)
    if find_spec("mcp") is None:
        raise CannotStart("quire mcp needs the package mcp: pip install 'quire[mcp]'")
    from quire.library.document import load
    from quire.mcp_server.server import Offer
    from quire.runs.options import RunOptions
    from quire.runs.runtime import Runtime
    from quire.runs.scripts import pinned_spec
    from quire.workspace.consent import require_trusted

    for document in documents:
        load(document).runnable()
    runtime = Runtime.open()
    require_trusted(runtime.settings)
    if allow:
        from quire.runs.allowed_names import require_known

        require_known(allow, runtime.settings)
    asked = f"script:{script}" if script else model
    options = RunOptions(model=pinned_spec(asked) if asked else None, allow=allow, budget=budget)
    offer = Offer([Path(document).absolute() for document in documents], allow_inline, answers, options, say)
    if not http and sys.stdin.isatty():
        say("speaking MCP on stdin and stdout, which is for a client that starts this itself; Ctrl-C ends")
    with_runtime(lambda runtime: _serve(runtime, offer, http=http, address=host, port=port), runtime)
    if http:
        context.exit(INTERRUPTED)


async def _serve(runtime: Runtime, offer: Offer, *, http: bool, address: str, port: int) -> None:
    from quire.mcp_server.server import Host

    runtime.notice = say
    if runtime.settings.cluster.temporal:
        from quire.cluster.client import Cluster, require_cluster
        from quire.cluster.dispatch import ClusterRuntime

        cluster = await Cluster.connect(require_cluster(runtime.settings))
        runtime = ClusterRuntime(runtime.settings, runtime.store, cluster)
        # The workers themselves look for runs without a driver.
        host = Host(runtime, offer, hand_over=_goes_on, takes_over=False)
    else:
        from quire.runs.scripts import reopened

        host = Host(runtime, offer, reopen=reopened, hand_over=_hand_over)
    if not http:
        from quire.mcp_server.server import serve_stdio

        await serve_stdio(host)
        return
    from quire.loopback import listening
    from quire.mcp_server.http import serve_http

    def ready(url: str) -> None:
        say(f"serving {runtime.settings.workspace.folder} at {url}")
        if not given:
            say(f"clients send the header  Authorization: Bearer {token}")

    given = _given_token()
    token = given or secrets.token_urlsafe(32)
    await serve_http(host, listening(address, port), token, ready)


def _hand_over(run: str) -> None:
    """Leave a run that no client waits for to its own process, so that it continues after the server ends."""
    from quire.cli.session import start_alone

    start_alone(run)
    say(f"run {run} goes on by itself: quire runs {run}")


def _goes_on(run: str) -> None:
    say(f"run {run} goes on in the cluster: quire runs {run}")


def _given_token() -> str:
    """Return the user's own token and remove it from the environment, so that no tool of a run can see it."""
    token = os.environ.pop(TOKEN, "")
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or token != token.strip()):
        raise CannotStart(f"{TOKEN} must have at least {SHORTEST_TOKEN} characters, ASCII, no blanks around it")
    return token
