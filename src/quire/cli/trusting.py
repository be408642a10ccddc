"""A run that needs what a workspace asks for: the person at the terminal is asked once, then it goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from quire.errors import Untrusted

T = TypeVar("T")


def with_trust(work: Callable[[], T], *, ask: bool) -> T:
    """Does the work, and once more when the user agrees to what it was refused for. It is refused before it begins."""
    try:
        return work()
    except Untrusted:
        if not ask:
            raise
        if not _agreed():
            raise
    return work()


def _agreed() -> bool:
    from quire.cli.trust import ask_to_trust
    from quire.workspace.configuration import load_settings
    from quire.workspace.find import find_workspace
    from quire.workspace.requests import requests

    settings = load_settings(find_workspace(Path.cwd()))
    click.echo(f"{settings.workspace.folder} asks for things that nobody has confirmed:", err=True)
    for line in requests(settings):
        click.echo(f"  {line}", err=True)
    return ask_to_trust(settings)


def somebody_is_here() -> bool:
    """Whether questions can be asked: on a terminal that listens to this process."""
    from quire.render.keys import in_foreground

    return sys.stdin.isatty() and sys.stderr.isatty() and in_foreground()
