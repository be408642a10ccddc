"""`quire lsp`: the language server, for editors."""

from __future__ import annotations

import sys

import click

from quire.cli.app import say


@click.command("lsp")
@click.option("--stdio", is_flag=True, help="Use standard input and output, as is the default.")
@click.option("--tcp", type=click.IntRange(0, 65535), metavar="PORT", help="Wait for one client at a port instead.")
@click.option("--clientProcessId", "process", type=int, hidden=True, help="Some editors say their process twice.")
@click.pass_context
def command(context: click.Context, stdio: bool, tcp: int | None, process: int | None) -> None:
    """Serve an editor by the Language Server Protocol: findings while one types, hover, completion, navigation, rename,
    hints and fixes, for documents of every format, their tests and quire.toml.

    The editor starts this itself; docs/editors.md says how. It starts no process and opens no connection for a
    document, imports no module of the workspace, and writes nothing: edits are made by the editor. With --tcp it
    listens on this machine only, and prints the port on standard error. FREE.
    """
    if stdio and tcp is not None:
        raise click.UsageError("--stdio and --tcp exclude each other")
    from quire.lsp.connection import serve_socket, serve_stdio

    if tcp is None:
        if sys.stdin.isatty():
            say("speaking LSP on stdin and stdout, which is for an editor that starts this itself; Ctrl-C ends")
        context.exit(serve_stdio())
    from quire.loopback import listening

    socket = listening("127.0.0.1", tcp)
    say(f"waiting for an editor at 127.0.0.1:{socket.getsockname()[1]}")
    context.exit(serve_socket(socket))
