"""Ask the user at the terminal for missing consent: to the requests of a workspace, or to the permissions of an
unsigned directive."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from quire.errors import BadDocument, BrokenSeal, NearMisses, Refused, ToolChanged, Untrusted

if TYPE_CHECKING:
    from quire.trust.risk import Ungranted

T = TypeVar("T")
_LONGEST_REASON = 300


def with_trust(work: Callable[[], T], *, ask: bool) -> T:
    """Do the work; if it is refused for missing trust, a missing seal or a tool that has changed since it was locked,
    and the user agrees, do it again. The refusal comes before the work begins."""
    try:
        return work()
    except Untrusted:
        if not ask:
            raise
        if not _agreed():
            raise
    except ToolChanged as changed:
        from quire.cli.lock import lock_changed_tools

        if not ask or not lock_changed_tools(changed):
            raise
    except BrokenSeal as broken:
        from quire.cli.runs.seal import seal_old_runs

        if not (ask and broken.old and seal_old_runs()):
            raise
    return work()


def with_grants(work: Callable[[tuple[str, ...]], T], allow: tuple[str, ...], *, ask: bool) -> T:
    """Do the work with the grants of `--allow`, and with those that the user allows an unsigned directive at the
    terminal.

    The refusal comes before the work begins, so it can be started again.
    """
    while True:
        try:
            return work(allow)
        except Refused as refused:
            from quire.trust.risk import Ungranted

            if not isinstance(refused, Ungranted):
                raise
            # A capability that is refused although it was allowed cannot be allowed at all.
            if not ask or set(refused.missing) <= set(allow) or not _allowed(refused):
                raise
            allow = (*allow, *refused.missing)


def accepted_misses(stopped: NearMisses, *, ask: bool) -> tuple[str, ...]:
    """Show the findings that stop a run, and return their codes if the user runs it all the same. Raises
    `BadDocument`."""
    import asyncio

    from quire.cli.stdio import wants_colour
    from quire.display.diagnostics import Findings, printer

    if not ask:
        raise BadDocument(f"{stopped}\ncorrect it, or run it all the same with --force") from None
    found = [Findings(source, tuple(several)) for source, several in stopped.documents]
    click.echo(printer("full")(found, wants_colour(sys.stderr)), nl=False, err=True)
    if not asyncio.run(yes_or_no("Run anyway? yes or no [no]: ")):
        raise BadDocument("not started") from None
    return stopped.codes


def _allowed(refused: Ungranted) -> bool:
    import asyncio

    from quire.display.tables import short
    from quire.display.text import one_line

    click.echo(f"{one_line(refused.item_id)} is not signed by anybody you trust, and asks for:", err=True)
    for capability, tier in refused.missing.items():
        click.echo(f"  {one_line(capability)} ({tier.value}: {tier.meaning})", err=True)
    for tier in dict.fromkeys(refused.missing.values()):
        if reason := refused.reasons.get(tier.value, "").strip():
            click.echo(f"  why, in the words of its author: {short(reason, _LONGEST_REASON)}", err=True)
    return asyncio.run(yes_or_no("Allow that, for this run? yes or no [no]: "))


async def yes_or_no(prompt: str) -> bool:
    """Ask like a question of a run: keys typed before the prompt do not count, and Ctrl-C works at any moment."""
    from quire.cli.terminal import typed_line
    from quire.display.keyboard import drop_typed
    from quire.engine.interpreter.playbook.steps import WrongAnswer, checked_answer

    while True:
        drop_typed()
        line = await typed_line(prompt, ("yes", "no"))
        if not line or not line.strip():
            return False
        try:
            return checked_answer("confirm", (), line) == "yes"
        except WrongAnswer as wrong:
            click.echo(str(wrong), err=True)


def _agreed() -> bool:
    from quire.cli.trust import ask_to_trust
    from quire.display.text import one_line
    from quire.workspace.configuration import load_settings
    from quire.workspace.consent import requests
    from quire.workspace.locate import find_workspace

    settings = load_settings(find_workspace(Path.cwd()))
    click.echo(f"{settings.workspace.folder} requests permissions that you have not confirmed yet:", err=True)
    for line in requests(settings):
        click.echo(f"  {one_line(line)}", err=True)
    return ask_to_trust(settings)


def somebody_is_here() -> bool:
    """Return True if the user can be asked: on a terminal with this process in the foreground."""
    from quire.display.keyboard import in_foreground

    return sys.stdin.isatty() and sys.stderr.isatty() and in_foreground()
