"""Servers of a workspace: `quire serve` (HTTP API and web page; tokens of users), `quire mcp` (documents as tools of an
MCP server) and `quire lsp` (language server, for editors)."""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from quire.cli import INTERRUPTED
from quire.cli.app import say
from quire.cli.completers import complete_document
from quire.cli.options import Amount, check_exclusive, log_option, require_known, require_text
from quire.cli.stdio import with_runtime, write_text
from quire.errors import CannotStart
from quire.installed import add_extra
from quire.workspace.settings import ROLES, Role

if TYPE_CHECKING:
    from quire.mcp_server.server import Offer
    from quire.runs.runtime import Runtime
    from quire.server.access import Users
    from quire.workspace.settings import Settings


@click.group("serve", invoke_without_command=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="PORT", help="The port (default: 8377 or the next free one)."
)
@click.option("--open/--no-open", "opens", default=True, help="Open the page in a browser.")
@click.option("--edit", is_flag=True, help="Let the page save documents.")
@click.option("--allow", metavar="TOOL", multiple=True, callback=require_text, help="Let runs of the page use a tool.")
@click.option("--model", metavar="SPEC", callback=require_text, help="The model of runs that name none.")
@click.option("--budget", type=Amount(min=0), metavar="USD", help="The budget of runs that name none.")
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--allow-host",
    "names",
    metavar="NAME",
    multiple=True,
    callback=require_text,
    help="Another name of the server, as NAME or NAME:PORT.",
)
@click.option("--base-path", "base", metavar="PATH", default="", help="The path below which a proxy serves the page.")
@click.option(
    "--proxy",
    metavar="URL",
    default="",
    help="The address of a proxy in front of the server: its host, and its path as --base-path.",
)
@click.option("--identity-header", "identity", metavar="NAME", default="", help="The proxy's header with the person.")
@click.option("--uds", metavar="FILE", callback=require_text, help="Listen on a Unix socket instead of a port.")
@click.option("--url", "prints", is_flag=True, help="Print the address of the running server with its token, and end.")
@click.option("--new-token", is_flag=True, hidden=True, help="Does nothing: each start makes a new token.")
@click.option("--webhooks", is_flag=True, help="Send events to the addresses under [webhooks] of your own settings.")
@log_option
@click.option("--debug", is_flag=True, help="Report each request, and answer mistakes of Quire with a traceback.")
def serve_command(**given: Any) -> None:
    """Serve the web page and the HTTP API of this folder.

    Only programs on this machine that know the token reach it. The address with the token is printed on a terminal;
    --url prints it elsewhere. Ctrl-C ends the server; its runs pause after their step, and the next server continues
    them.
    """
    if click.get_current_context().invoked_subcommand:
        return
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise CannotStart(f"quire serve needs starlette and uvicorn: {add_extra('web')}")
    from quire.runs.runtime import Runtime
    from quire.server.address import running_address
    from quire.workspace.consent import require_trusted

    prints = given.pop("prints")
    door = _Door(**given)
    door.check()
    runtime = Runtime.open()
    if prints:
        write_text(running_address(runtime.settings) + "\n")
        return
    require_trusted(runtime.settings)
    require_known(door.allow, runtime.settings)
    with_runtime(door.serve, runtime)


class _Door(Struct, frozen=True):
    """The server as the options describe it."""

    port: int | None
    opens: bool
    edit: bool
    allow: tuple[str, ...]
    model: str | None
    budget: float | None
    host: str
    names: tuple[str, ...]
    base: str
    proxy: str
    identity: str
    uds: str | None
    new_token: bool
    webhooks: bool
    debug: bool

    def check(self) -> None:
        """Raise `UsageError` or `CannotStart` for options that do not go together, before anything is opened."""
        from quire.server.address import names_of
        from quire.workspace.host_headers import HEADER_NAME

        if self.uds is not None and self.port is not None:
            raise click.UsageError("--uds and --port exclude each other")
        if self.identity and not (self.uds or self.proxy):
            raise click.UsageError("--identity-header needs --proxy or --uds: others than the proxy could send it")
        if self.identity and not HEADER_NAME.fullmatch(self.identity):
            raise click.UsageError(f"--identity-header: {self.identity!r} is not the name of a header")
        names_of(None if self.uds else "127.0.0.1:1", self.names, self.base, self.proxy)
        if not self.names and not self.uds and _is_reached_from_outside(self.host):
            raise CannotStart(f"--host {self.host} is reached by other names: say which, with --allow-host NAME")

    async def serve(self, runtime: Runtime) -> None:
        from quire.cli.drive import start_alone
        from quire.loopback import place_of
        from quire.runs.scripts import pinned_spec
        from quire.server.access import Users
        from quire.server.address import forget_address, names_of, remember_address, token_of
        from quire.server.app import application
        from quire.server.serving import open_listeners, open_unix_listener, serve
        from quire.server.site import Site, SiteOptions

        settings = runtime.settings
        runtime.notice = say
        token, fixed = token_of(fixed=bool(self.uds or self.proxy))
        if self.uds is not None:
            listeners, place = [open_unix_listener(Path(self.uds))], None
        else:
            listeners = open_listeners(self.host, self.port, anywhere=bool(self.names))
            place = place_of(listeners[0])
        names = names_of(place, self.names, self.base, self.proxy, localhost=len(listeners) == 2)
        model = pinned_spec(self.model) if self.model else None
        options = SiteOptions(
            self.allow, self.edit, names.base, names.url, self.debug, model, self.budget, self.webhooks
        )
        site = Site(runtime, options, hand_over=start_alone, report=say)
        if site.webhooks is not None:
            site.webhooks.open()
        app = application(
            site,
            token=token,
            hosts=names.hosts,
            origins=names.origins,
            proxied=bool(self.proxy),
            users=Users(settings, has_tokens=bool(self.uds or self.proxy), header=self.identity),
            report=say,
        )
        remember_address(settings, names.url, "" if fixed else token)
        try:
            await serve(
                app,
                listeners,
                site.leave,
                lambda: self._announce(names.url, token, settings),
                settings.serve.listeners,
            )
        finally:
            forget_address(settings)
            if self.uds is not None:
                Path(self.uds).unlink(missing_ok=True)  # noqa: ASYNC240  # nothing else runs any more

    def _announce(self, url: str, token: str, settings: Settings) -> None:
        """Print the address. The token is printed on a terminal only: elsewhere it would end up in a log."""
        from quire.server.address import opener_of

        say(f"serving {settings.workspace.folder}" + (f" at {self.uds}" if self.uds else ""))
        if sys.stdout.isatty():
            write_text(f"{url}#token={token}\n")
        else:
            write_text(f"{url}\n")
            say("quire serve --url prints the address with the token")
        say("Ctrl-C ends")
        if self.opens and not self.uds and _has_browser():
            webbrowser.open(opener_of(settings, f"{url}#token={token}").as_uri())


@serve_command.group("token")
def token_command() -> None:
    """Tokens of users. They open a server with --uds or --proxy, until they are revoked."""


@token_command.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="Each may do what those before it may.")
@click.option("--documents", metavar="GLOB", callback=require_text, help="Only documents with such a path.")
def token_add(name: str, role: Role, documents: str | None) -> None:
    """Make a token and print it, once. WRITES."""
    click.echo(_users().add(name, role, documents or ""))


@token_command.command("list")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def token_list(as_json: bool) -> None:
    """Show the tokens of this folder. FREE."""
    tokens = [
        {"name": name, "role": user.role, "documents": user.documents} for name, user in _users().tokens().items()
    ]
    click.echo(json.dumps(tokens, indent=2) if as_json else "\n".join("\t".join(token.values()) for token in tokens))


@token_command.command("revoke")
@click.argument("name")
def token_revoke(name: str) -> None:
    """Revoke a token: it opens nothing from now on, and its event streams end. WRITES."""
    _users().revoke(name)


def _users() -> Users:
    from quire.server.access import Users
    from quire.workspace.configuration import settings_here

    return Users(settings_here())


def _is_reached_from_outside(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # `localhost`, or not an address at all


def _has_browser() -> bool:
    """Tell whether there is a screen to open a browser on: without one, a browser for terminals would be started."""
    if sys.platform in ("darwin", "win32") or os.environ.get("BROWSER"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


TOKEN = "QUIRE_MCP_TOKEN"  # noqa: S105  # the name of a variable
SHORTEST_TOKEN = 16


@click.command("mcp")
@click.argument("documents", metavar="[DOC]...", nargs=-1, shell_complete=complete_document)
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of stdin and stdout.")
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="A loopback address.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="PORT", help="The port (default: a free one)."
)
@click.option("--allow-inline", is_flag=True, help="Let clients launch pipelines that they wrote themselves.")
@click.option("--answers", is_flag=True, help="Let clients answer questions for a text or a choice by a tool call.")
@click.option("--model", metavar="SPEC", callback=require_text, help="The model of the runs, as PROVIDER:NAME.")
@click.option("--script", metavar="FILE", callback=require_text, help="Replies from a file instead of a model.")
@click.option("--allow", metavar="TOOL", multiple=True, callback=require_text, help="Grant a tool to the runs.")
@click.option("--budget", type=Amount(min=0), metavar="USD", help="Stop each run once this much is spent.")
@click.pass_context
def mcp_command(
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
    """Offer documents as tools to AI agents over MCP.

    DOC adds a document to the registered pipelines, the playbooks here and in playbooks/, and the directives signed by
    a key that you trust. A question without an answer waits for `quire answer`; a tool call never says yes or no.
    """
    check_exclusive(context)
    if find_spec("mcp") is None:
        raise CannotStart(f"quire mcp needs the package mcp: {add_extra('mcp')}")
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
    require_known(allow, runtime.settings)
    spec = f"script:{script}" if script else model
    options = RunOptions(model=pinned_spec(spec) if spec else None, allow=allow, budget=budget)
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

        def announce(run: str) -> None:
            say(f"run {run} continues in the cluster: quire runs {run}")

        # The workers themselves look for runs without a driver.
        host = Host(runtime, offer, hand_over=announce, takes_over=False)
    else:
        from quire.runs.scripts import reopened

        host = Host(runtime, offer, reopen=reopened, hand_over=_hand_over)
    if not http:
        from quire.mcp_server.server import serve_stdio

        await serve_stdio(host)
        return
    from quire.loopback import listening
    from quire.mcp_server.http_server import serve_http

    def ready(url: str) -> None:
        say(f"serving {runtime.settings.workspace.folder} at {url}")
        if not own_token:
            say(f"clients send the header  Authorization: Bearer {token}")

    own_token = _given_token()
    token = own_token or secrets.token_urlsafe(32)
    await serve_http(host, listening(address, port), token, ready)


def _hand_over(run: str) -> None:
    """Leave a run that no client waits for to its own process, so that it continues after the server ends."""
    from quire.cli.drive import start_alone

    start_alone(run)
    say(f"run {run} continues by itself: quire runs {run}")


def _given_token() -> str:
    """Return the user's own token and remove it from the environment, so that no tool of a run can see it."""
    token = os.environ.pop(TOKEN, "")
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or token != token.strip()):
        raise CannotStart(f"{TOKEN} must have at least {SHORTEST_TOKEN} characters, ASCII, no blanks around it")
    return token


@click.command("lsp")
@click.option("--stdio", is_flag=True, help="Use standard input and output, as is the default.")
@click.option("--tcp", type=click.IntRange(0, 65535), metavar="PORT", help="Wait for one client at a port instead.")
@click.option("--clientProcessId", "process", type=int, hidden=True, help="Some editors say their process twice.")
@click.pass_context
def lsp_command(context: click.Context, stdio: bool, tcp: int | None, process: int | None) -> None:
    """Serve an editor by the Language Server Protocol.

    The editor starts this itself. It starts no process, opens no connection, imports no module of the folder, and
    writes nothing. With --tcp it listens on this machine only, and prints the port on stderr.
    """
    if stdio and tcp is not None:
        raise click.UsageError("--stdio and --tcp exclude each other")
    from quire.lsp.transport import serve_socket, serve_stdio

    if tcp is None:
        if sys.stdin.isatty():
            say("speaking LSP on stdin and stdout, which is for an editor that starts this itself; Ctrl-C ends")
        context.exit(serve_stdio())
    from quire.loopback import listening

    socket = listening("127.0.0.1", tcp)
    say(f"waiting for an editor at 127.0.0.1:{socket.getsockname()[1]}")
    context.exit(serve_socket(socket))
