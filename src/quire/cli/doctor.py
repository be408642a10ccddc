"""`quire doctor`: print what is available and what is missing, without starting anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from quire.cli.stdio import write_json, write_lines
from quire.display.text import one_line
from quire.errors import BadConfiguration
from quire.runs.doctor import Finding, examine
from quire.workspace.locate import Workspace, find_workspace

_COLOURS = {"ok": "green", "missing": "yellow", "problem": "red"}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--check", is_flag=True, help="Ask the model for one token and each server for its tools. PAID.")
@click.pass_context
def command(context: click.Context, as_json: bool, check: bool) -> None:
    """Show what Quire finds here: settings, trust, store, models, servers, the sandbox.

    FREE: starts no program and opens no connection without --check; loads the Python tools of a trusted workspace.
    --check asks the model that a run would use for one token, prints the cost, and starts the servers that you have
    agreed to. Exit 1 when something is wrong.
    """
    findings = list(examine(find_workspace(Path.cwd())))
    if check:
        findings += _checked(find_workspace(Path.cwd()))
    if as_json:
        write_json([finding.data() for finding in findings])
    else:
        write_lines(
            f"{click.style(f'{row.state:8}', fg=_COLOURS[row.state])} {one_line(f'{row.what}: {row.detail}')}"
            for row in findings
        )
    context.exit(1 if any(finding.state == "problem" for finding in findings) else 0)


def _checked(workspace: Workspace) -> Iterator[Finding]:
    from quire.cli.doctor_check import check_live
    from quire.workspace.configuration import load_settings

    try:
        settings = load_settings(workspace)
    except BadConfiguration:
        return  # It is among the findings already.
    for what, state, detail in check_live(settings):
        yield Finding(what, state, detail)
