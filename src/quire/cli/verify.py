"""`quire verify`: check that documents are unchanged since a trusted key signed them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.stdio import write_json
from quire.display.visible import visible
from quire.errors import Refused, Unreadable

if TYPE_CHECKING:
    from quire.values import Value


@click.command("verify")
@click.argument("paths", nargs=-1, metavar="PATH…")
@click.option("--json", "as_json", is_flag=True, help="For machines: the outcome of each file.")
@click.pass_context
def command(context: click.Context, paths: tuple[str, ...], as_json: bool) -> None:
    """Check for each document that it is signed by a key that you trust, unchanged, and in its place.

    A PATH is a file, a folder or a glob in quotes. Playbooks, pipelines and the lock need no signature: in a folder,
    those without one are skipped, unless [trust] documents is set.

    FREE: reads only. Exit 0 when all are fine, 6 when one is not, 2 when one cannot be read.
    """
    from quire.library.lookup import find_signables
    from quire.source import read_source
    from quire.trust.signatures import is_signed
    from quire.trust.trusted_keys import TrustedKeys
    from quire.workspace.configuration import load_settings
    from quire.workspace.locate import find_workspace

    if not paths:
        raise click.UsageError("name a document, a folder or a glob", context)
    settings = load_settings(find_workspace(Path.cwd()))
    trusted = TrustedKeys.load(settings)
    found, problems = find_signables(paths, locks=True)
    rows, passed_over = [], 0
    for one in found:
        item = one.item
        try:
            text = read_source(item.path, limit=item.limit).text
        except Unreadable as error:
            problems.append(str(error))
            continue
        optional = not item.required and not settings.trust.documents and not one.named
        if optional and not is_signed(text, item.kind):
            passed_over += 1
            continue
        rows.append((item, item.verify(text, trusted)))
    refused = sum(not verdict.ok for _, verdict in rows)
    if as_json:
        files: list[Value] = [
            {
                "path": str(item.path),
                "kind": item.kind,
                "id": item.id,
                "outcome": verdict.outcome.value,
                "key_id": verdict.key_id or None,
                "message": verdict.message or None,
            }
            for item, verdict in rows
        ]
        write_json({"files": files, "total": len(rows), "refused": refused, "problems": problems})
    else:
        for item, verdict in rows:
            click.echo(f"{verdict.outcome.value}\t{visible(str(item.path))}")
        for _, verdict in rows:
            if not verdict.ok:
                click.echo(f"quire: {visible(verdict.message)}", err=True)
        for problem in problems:
            click.echo(f"quire: {visible(problem)}", err=True)
        told = f"{len(rows) - refused} of {len(rows)} verified"
        click.echo(told + (f", {passed_over} without a signature passed over" if passed_over else ""), err=True)
    context.exit(2 if problems else Refused.exit_code if refused else 0)
