"""`quire serve`: the HTTP API and the web page of this workspace."""

from __future__ import annotations

import re
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.app import say
from quire.cli.options import filled
from quire.cli.stdio import look, put
from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), help="The port; without it, 8377 or the next free one.")
@click.option("--open/--no-open", "opens", default=True, help="Open the page in a browser.")
@click.option("--edit", is_flag=True, help="Let the page save documents.")
@click.option("--allow", metavar="TOOL", multiple=True, callback=filled, help="Let runs of the page use a tool.")
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--allow-host", "names", metavar="NAME", multiple=True, help="Another name that the server is reached by."
)
@click.option("--base-path", "base", metavar="PATH", default="", help="The path below which a proxy serves the page.")
@click.option("--uds", metavar="FILE", callback=filled, help="Listen on a Unix socket instead of a port.")
@click.option("--url", "prints", is_flag=True, help="Print the address of the running server with its token, and end.")
@click.option("--new-token", is_flag=True, help="Make a new token: open pages have to be opened again.")
@click.pass_context
def command(
    context: click.Context,
    port: int | None,
    opens: bool,
    edit: bool,
    allow: tuple[str, ...],
    host: str,
    names: tuple[str, ...],
    base: str,
    uds: str | None,
    prints: bool,
    new_token: bool,
) -> None:
    """Open the page of this workspace. PAID: runs that are started in the page call a model; WRITES their journals.

    The page shows what needs you, every document and every run, and lets you answer, resume, fork and compare. It needs
    no account and no network: only programs on this machine that know the token reach the server. Ctrl-C ends it; runs
    rest after their current step and go on when the next server starts.
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise CannotStart("quire serve needs starlette and uvicorn: pip install 'quire[web]'")
    from quire.runs.runtime import Runtime
    from quire.server.token import running_address
    from quire.workspace.consent import require_trusted

    base = _checked_base(base)
    if uds is not None and port is not None:
        raise click.UsageError("--uds and --port exclude each other")
    runtime = Runtime.open()
    if prints:
        put(running_address(runtime.settings) + "\n")
        return
    require_trusted(runtime.settings)
    if allow:
        from quire.cli.allow import require_known

        require_known(allow, runtime.settings)
    door = _Door(port, opens, edit, allow, host, names, base, uds, new_token)
    look(door.serve, runtime)


def _checked_base(base: str) -> str:
    """Return the base path without a slash at its end. Raises `UsageError` for one that is not a path."""
    base = base.rstrip("/")
    if base and not re.fullmatch(r"(?:/[A-Za-z0-9._~-]+)+", base):
        raise click.UsageError(f"--base-path {base}: write a path such as /quire")
    return base


class _Door:
    """The server as the options describe it."""

    def __init__(
        self,
        port: int | None,
        opens: bool,
        edit: bool,
        allow: tuple[str, ...],
        host: str,
        names: tuple[str, ...],
        base: str,
        uds: str | None,
        new_token: bool,
    ) -> None:
        self._port = port
        self._opens = opens
        self._edit = edit
        self._allow = allow
        self._host = host
        self._names = names
        self._base = base
        self._uds = uds
        self._new_token = new_token

    async def serve(self, runtime: Runtime) -> None:
        from quire.cli.session import start_alone
        from quire.loopback import place_of
        from quire.server.app import application
        from quire.server.serving import open_listener, open_unix_listener, serve
        from quire.server.site import Site, SiteOptions
        from quire.server.token import forget_address, remember_address, token_of

        settings = runtime.settings
        token = token_of(settings, renew=self._new_token)
        if self._uds is not None:
            listener, hosts = open_unix_listener(Path(self._uds)), ["localhost"]
        else:
            listener = open_listener(self._host, self._port, anywhere=self._anywhere())
            place = place_of(listener)
            hosts = [place, f"localhost:{place.rpartition(':')[2]}"]
        hosts += [name.lower() for name in self._names]
        url = f"http://{hosts[0]}{self._base}/"
        options = SiteOptions(self._allow, self._edit, self._base, url)
        site = Site(runtime, options, hand_over=start_alone, report=say)
        origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
        app = application(site, token=token, hosts=hosts, origins=origins, report=say)
        remember_address(settings, url)
        try:
            self._announce(url, token, settings.workspace.folder)
            await serve(app, [listener], site.leave)
        finally:
            forget_address(settings)
            if self._uds is not None:
                Path(self._uds).unlink(missing_ok=True)  # noqa: ASYNC240  # nothing else runs any more

    def _anywhere(self) -> bool:
        """Return True if addresses other than loopback may be listened on: only with a name that clients must use."""
        if self._host in ("0.0.0.0", "::") and not self._names:  # noqa: S104  # refused here
            raise CannotStart(f"--host {self._host} is reached by any name: say which, with --allow-host NAME")
        return bool(self._names)

    def _announce(self, url: str, token: str, folder: Path) -> None:
        say(f"serving {folder}")
        if self._uds is not None:
            say(f"at {self._uds}; clients send  Authorization: Bearer {token}")
            return
        put(f"{url}#token={token}\n")
        say("Ctrl-C ends")
        if self._opens:
            webbrowser.open(f"{url}#token={token}")
