"""`quire serve`: the HTTP API and the web page of this workspace."""

from __future__ import annotations

import ipaddress
import os
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from quire.cli.app import say
from quire.cli.options import Amount, require_text
from quire.cli.stdio import with_runtime, write_text
from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime
    from quire.workspace.settings import Settings


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), help="The port; without it, 8377 or the next free one.")
@click.option("--open/--no-open", "opens", default=True, help="Open the page in a browser.")
@click.option("--edit", is_flag=True, help="Let the page save documents.")
@click.option("--allow", metavar="TOOL", multiple=True, callback=require_text, help="Let runs of the page use a tool.")
@click.option("--model", metavar="SPEC", callback=require_text, help="The model of runs that name none.")
@click.option("--budget", type=Amount(min=0), metavar="USD", help="Stop each run that names no budget at this much.")
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--allow-host",
    "names",
    metavar="NAME",
    multiple=True,
    callback=require_text,
    help="Another name that the server is reached by, as NAME or NAME:PORT.",
)
@click.option("--base-path", "base", metavar="PATH", default="", help="The path below which a proxy serves the page.")
@click.option(
    "--proxy",
    metavar="URL",
    default="",
    help="The address of a proxy in front of the server: its host, and its path as --base-path.",
)
@click.option("--uds", metavar="FILE", callback=require_text, help="Listen on a Unix socket instead of a port.")
@click.option("--url", "prints", is_flag=True, help="Print the address of the running server with its token, and end.")
@click.option("--new-token", is_flag=True, hidden=True, help="Does nothing: each start makes a new token.")
@click.option("--webhooks", is_flag=True, help="Send events to the addresses under [webhooks] of your own settings.")
@click.option("--debug", is_flag=True, help="Report each request, and answer mistakes of Quire with a traceback.")
def command(**given: Any) -> None:
    """Open the page of this workspace. PAID: runs that are started in the page call a model; WRITES their journals.

    The page shows what needs you, every document and every run, and lets you answer, resume, fork and compare. It needs
    no account and no network: only programs on this machine that know the token reach the server. Ctrl-C ends it; runs
    rest after their current step and go on when the next server starts. The address with the token is printed on a
    terminal only; --url prints it elsewhere. Each start makes a new token; QUIRE_SERVE_TOKEN sets it, with --uds or
    --proxy.
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise CannotStart("quire serve needs starlette and uvicorn: pip install 'quire[web]'")
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
    if door.allow:
        from quire.runs.allowed_names import require_known

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
    uds: str | None
    new_token: bool
    webhooks: bool
    debug: bool

    def check(self) -> None:
        """Raise `UsageError` or `CannotStart` for options that do not go together, before anything is opened."""
        from quire.server.address import names_of

        if self.uds is not None and self.port is not None:
            raise click.UsageError("--uds and --port exclude each other")
        names_of(None if self.uds else "127.0.0.1:1", self.names, self.base, self.proxy)
        if not self.names and not self.uds and _is_reached_from_outside(self.host):
            raise CannotStart(f"--host {self.host} is reached by other names: say which, with --allow-host NAME")

    async def serve(self, runtime: Runtime) -> None:
        from quire.cli.session import start_alone
        from quire.loopback import place_of
        from quire.runs.scripts import pinned_spec
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
            report=say,
        )
        remember_address(settings, names.url, "" if fixed else token)
        try:
            await serve(
                app,
                listeners,
                site.leave,
                lambda: self._announce(names.url, token, settings),
                settings.listeners,
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
