"""`quire trust`: what the user agrees to."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.trust_keys import add, list_, remove
from quire.errors import Refused
from quire.render.text import one_line
from quire.render.visible import escaped
from quire.workspace.find import find_workspace

if TYPE_CHECKING:
    from quire.workspace.settings import Settings


@click.group("trust")
def command() -> None:
    """What you agree to: the requests of a workspace's files, and the keys of others. WRITES your own space only."""


for one in (add, remove, list_):
    command.add_command(one)


@command.command("workspace")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.option("--show", is_flag=True, help="Only show what is asked for.")
@click.option("--revoke", is_flag=True, help="Take an agreement back.")
@click.option("--json", "as_json", is_flag=True, help="For machines; asks nothing.")
@click.pass_context
def workspace(context: click.Context, yes: bool, show: bool, revoke: bool, as_json: bool) -> None:
    """Look at what this workspace asks for, and agree to it or not.

    Commands of .mcp.json, tools, Python modules, addresses that models are spoken to at: nothing of that is used before
    you agree, and any change asks again. FREE: starts nothing, opens no connection.
    """
    from quire.workspace import requests as asked
    from quire.workspace.configuration import load_settings

    if yes + show + revoke > 1:
        raise click.UsageError("--yes, --show and --revoke exclude each other")
    settings = load_settings(find_workspace(Path.cwd()))
    if revoke:
        asked.revoke(settings)
    elif yes and asked.requests(settings):
        asked.confirm(settings)
    if as_json:
        _print_json(settings)
    else:
        _print_requests(settings)
    if revoke or show or asked.is_trusted(settings):
        return
    if not as_json and ask_to_trust(settings):
        click.echo("agreed; any change asks again", err=True)
        return
    if not as_json:
        click.echo("not agreed: `quire trust workspace --yes` agrees without asking", err=True)
    context.exit(Refused.exit_code)


def ask_to_trust(settings: Settings) -> bool:
    """Asks a person who is at the terminal whether the requests may be granted; False where there is none.

    The caller has shown them. An agreement is remembered.
    """
    import asyncio

    from quire.cli.trusting import yes_or_no
    from quire.workspace.requests import changes, confirm

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    if changed := changes(settings):
        click.echo("since you agreed:", err=True)
        for line in changed:
            click.echo(f"  {one_line(line)}", err=True)
    if not asyncio.run(yes_or_no("Do you trust this workspace with all of that? yes or no [no]: ")):
        return False
    confirm(settings)
    return True


def _print_requests(settings: Settings) -> None:
    from quire.workspace.requests import is_trusted, requests

    lines = requests(settings)
    for line in lines:
        click.echo(one_line(line))
    if not lines:
        click.echo(f"{settings.workspace.folder} asks for nothing that needs trust", err=True)
    else:
        state = "you agreed to this" if is_trusted(settings) else "asks for the above"
        click.echo(f"{settings.workspace.folder}: {state}", err=True)


def _print_json(settings: Settings) -> None:
    from quire.workspace.requests import is_trusted, requests

    state = {
        "workspace": str(settings.workspace.folder),
        "trusted": is_trusted(settings),
        "requests": list(requests(settings)),
    }
    click.echo(escaped(json.dumps(state, indent=2, ensure_ascii=False)))
