"""`quire sign`: sign documents with the user's key."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.stdio import write_json
from quire.display.visible import visible
from quire.errors import CannotStart, Refused

if TYPE_CHECKING:
    from quire.values import Value


@click.command("sign")
@click.argument("paths", nargs=-1, metavar="PATH…")
@click.option("--lock", is_flag=True, help="Sign quire.lock: what the documents here may do and cost.")
@click.option("--key", "key_name", metavar="NAME", help="Which of your keys signs, where you have several.")
@click.option("--yes", is_flag=True, help="Sign what a folder or a glob holds without asking: you have looked at it.")
@click.option("--json", "as_json", is_flag=True, help="For machines: signed, failed, total, issues.")
@click.pass_context
def command(
    context: click.Context, paths: tuple[str, ...], lock: bool, key_name: str | None, yes: bool, as_json: bool
) -> None:
    """Sign directives, knowledge, playbooks and pipelines with your key.

    A PATH is a file, a folder, a glob in quotes, or the name of a document. Each file is validated first, and one with
    errors is left as it is. The signature becomes its first line, in place of an older one, and covers all the rest of
    the file.

    A folder or a glob may hold files that other people have put there. Files that are not signed as they are now are
    listed with what they may do, and signed when you say yes; without a terminal to ask on, only with --yes.

    With --lock the quire.lock of the workspace is signed, if it is up to date: the signature vouches for all documents
    in it, with the authority and the bounds that it lists.

    FREE, WRITES the files. Exit 0 when all are signed, 1 when one has issues, 2 when one cannot be read or you have no
    key (see quire keys new), 6 when one is not yours to sign, or you have not agreed to what is new.
    """
    from quire.cli.sign_consent import require_consent, survey
    from quire.cli.trust_prompt import somebody_is_here
    from quire.library.lock_check import lock_issues
    from quire.library.lookup import find_signables
    from quire.library.signed_authority import forget
    from quire.source import read_source, relative_to_here
    from quire.trust.own_keys import own_key
    from quire.trust.sign_file import sign_file, warnings
    from quire.trust.trusted_keys import Home, TrustedKeys
    from quire.workspace.locate import user_space

    if lock:
        from quire.library.lock_file import lock_path
        from quire.workspace.locate import find_workspace

        file = lock_path(find_workspace(Path.cwd()))
        paths = (*paths, relative_to_here(file) or str(file))
    if not paths:
        raise click.UsageError("name a document, a folder or a glob", context)
    home = Home(user_space())
    key = own_key(home, key_name)
    found, problems = find_signables(paths)
    seen = survey(found, TrustedKeys.load(home))
    require_consent(seen.fresh, yes=yes, ask=not as_json and somebody_is_here())
    signed: list[str] = []
    failed: dict[str, list[str]] = {}
    status = 2 if problems else 0
    now = datetime.now(UTC)
    items = {str(one.item.path): one.item for one in found}
    for one in found:
        path = str(one.item.path)
        try:
            issues = lock_issues(one.item.path) if one.item.kind == "lock" else []
            issues = issues or sign_file(one.item, key, now, seen.digests.get(one.item.path, ""))
            worst = 1 if issues else 0
        except (Refused, CannotStart) as error:
            issues, worst = [str(error)], error.exit_code
        status = max(status, worst)
        if issues:
            failed[path] = issues
        else:
            forget(home.user, one.item.path)
            signed.append(path)
    if as_json:
        total = len(signed) + len(failed)
        report: dict[str, Value] = {"signed": signed, "failed": list(failed), "total": total, "issues": failed}
        write_json({**report, "problems": problems, "key_id": key.key_id})
    else:
        for path in signed:
            click.echo(visible(path))
            for warning in warnings(items[path], read_source(Path(path), limit=items[path].limit)):
                click.echo(f"quire: warning: {visible(f'{path}: {warning}')}", err=True)
        for path, issues in failed.items():
            for issue in issues:
                told = issue if issue.startswith(path) else f"{path}: {issue}"
                click.echo(f"quire: {visible(told)}", err=True)
        for problem in problems:
            click.echo(f"quire: {visible(problem)}", err=True)
        told = f"{len(signed)} signed with the key {key.name} ({key.key_id})"
        click.echo(told + (f", {len(failed)} not signed" if failed else ""), err=True)
    context.exit(status)
