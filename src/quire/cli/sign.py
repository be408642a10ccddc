"""`quire sign` signs documents with the user's key; `quire sign --check` checks that they are unchanged since a trusted
key signed them.

Other people may have put files into a folder. A file that the user names is meant; a file that a search finds may not
be, and a signature may be all that keeps it from running. So `sign` shows files that would be signed for the first
time, with what they may do, and asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from quire.cli.stdio import complain, tell, write_json
from quire.display.text import one_line
from quire.display.visible import visible
from quire.errors import CannotStart, QuireError, Refused, Unreadable
from quire.source import Source, read_source
from quire.trust.sign_file import Signable, warnings
from quire.trust.signature_line import digest_of
from quire.trust.signatures import Verification
from quire.wording import counted, first_of

if TYPE_CHECKING:
    from quire.library.lookup import SignableFile
    from quire.trust.trusted_keys import TrustedKeys
    from quire.values import Value


@click.command("sign")
@click.argument("paths", nargs=-1, metavar="PATH…")
@click.option("--check", is_flag=True, help="Verify signatures; sign nothing.")
@click.option("--lock", is_flag=True, help="Sign quire.lock, which vouches for all documents in it.")
@click.option("--key", "key_name", metavar="NAME", help="The key to sign with, if you have several.")
@click.option("--yes", is_flag=True, help="Sign new files of a folder or glob without asking.")
@click.option("--json", "as_json", is_flag=True, help="For machines: signed, failed, total, issues.")
@click.pass_context
def sign_command(
    context: click.Context,
    paths: tuple[str, ...],
    check: bool,
    lock: bool,
    key_name: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Sign documents with your key.

    PATH is a file, a folder, a quoted glob or a name. A document with errors is not signed. Files that you have not
    signed before are listed with what they may do, and you are asked. With --check, exit 6 when a file was changed,
    moved, or signed by a key that you do not trust.
    """
    if check:
        if lock or key_name or yes:
            raise click.UsageError("--check signs nothing: it does not go with --lock, --key or --yes")
        context.invoke(verify_command, paths=paths, as_json=as_json)
        return
    from quire.cli.terminal import somebody_is_here
    from quire.library.lock_check import lock_issues
    from quire.library.lookup import find_signables
    from quire.library.signed_authority import forget
    from quire.source import relative_to_here
    from quire.trust.sign_file import sign_file
    from quire.trust.trusted_keys import Home, TrustedKeys, own_key
    from quire.workspace.locate import user_space

    if lock:
        from quire.library.lock_check import lock_path
        from quire.workspace.locate import find_workspace

        file = lock_path(find_workspace(Path.cwd()))
        paths = (*paths, relative_to_here(file) or str(file))
    if not paths:
        raise click.UsageError("name a document, a folder or a glob", context)
    home = Home(user_space())
    key = own_key(home, key_name)
    files, problems = find_signables(paths)
    surveyed = survey(files, TrustedKeys.load(home))
    require_consent(surveyed.fresh, yes=yes, ask=not as_json and somebody_is_here())
    signed: list[str] = []
    failed: dict[str, list[str]] = {}
    status = 2 if problems else 0
    now = datetime.now(UTC)
    items = {str(file.item.path): file.item for file in files}
    for path, item in items.items():
        try:
            issues = lock_issues(item.path) if item.kind == "lock" else []
            issues = issues or sign_file(item, key, now, surveyed.digests.get(item.path, ""))
            worst = 1 if issues else 0
        except (Refused, CannotStart) as error:
            issues, worst = [str(error)], error.exit_code
        status = max(status, worst)
        if issues:
            failed[path] = issues
        else:
            forget(home.user, item.path)
            signed.append(path)
    if as_json:
        total = len(signed) + len(failed)
        report: dict[str, Value] = {"signed": signed, "failed": list(failed), "total": total, "issues": failed}
        write_json({**report, "problems": problems, "key_id": key.key_id})
    else:
        for path in signed:
            click.echo(visible(path))
            for warning in warnings(items[path], read_source(Path(path), limit=items[path].limit)):
                complain(f"warning: {path}: {warning}")
        for path, issues in failed.items():
            for issue in issues:
                complain(issue if issue.startswith(path) else f"{path}: {issue}")
        for problem in problems:
            complain(problem)
        others = f", {len(failed)} not signed" if failed else ""
        tell(f"{len(signed)} signed with the key {key.name} ({key.key_id}){others}")
    context.exit(status)


MOST_SHOWN = 200


class Fresh(Struct, frozen=True):
    """A file whose current text is not signed by a trusted key."""

    item: Signable
    outcome: Verification
    lines: tuple[str, ...]
    """The permissions and limits of the file, for the user to read."""


class FoundFiles(Struct, frozen=True):
    """The files that a search has found."""

    fresh: Sequence[Fresh]
    """The files whose current text is not signed by a trusted key."""
    digests: Mapping[Path, str]
    """The digests of all texts that were looked at. Only these texts may be signed later."""


def survey(files: Sequence[SignableFile], trusted: TrustedKeys) -> FoundFiles:
    """Examine the files that the user has not named."""
    fresh, digests = [], {}
    for file in files:
        if file.by_name:
            continue
        try:
            source = read_source(file.item.path)
        except CannotStart:
            continue  # Signing reports it.
        digests[file.item.path] = digest_of(source.text)
        outcome = file.item.verify(source.text, trusted).outcome
        if outcome is not Verification.OK:
            lines = (*_authority(file.item, source), *(f"warning: {line}" for line in warnings(file.item, source)))
            fresh.append(Fresh(file.item, outcome, lines))
    return FoundFiles(fresh, digests)


def require_consent(fresh: Sequence[Fresh], *, yes: bool, ask: bool) -> None:
    """Raise `Refused` unless nothing is new, or the user agrees: on a terminal, otherwise with `--yes`."""
    if not fresh or yes:
        return
    documents = counted(len(fresh), "document")
    if not ask:
        names = ", ".join(first_of([one_line(str(file.item.path)) for file in fresh], 3))
        raise Refused(
            f"{documents} here would be signed for the first time, or changed since: {names}; nothing is signed. "
            "Look at them, then name the files, or say --yes"
        )
    _show(fresh)
    from quire.cli.terminal import yes_or_no

    if not yes_or_no(f"Sign {documents}? yes or no [no]: "):
        raise Refused("nothing is signed")


def _show(fresh: Sequence[Fresh]) -> None:
    for file in fresh[:MOST_SHOWN]:
        state = "changed since it was signed" if file.outcome is Verification.MODIFIED else file.outcome.value
        tell(f"{one_line(str(file.item.path))}: {file.item.kind}, {state.replace('_', ' ')}")
        for line in file.lines:
            tell(f"  {one_line(line)}")
    if len(fresh) > MOST_SHOWN:
        tell(f"and {len(fresh) - MOST_SHOWN} more")


def _authority(item: Signable, source: Source) -> Iterator[str]:
    """Yield what a document declares that it may do; nothing for a document that cannot be read, which is not signed
    either."""
    try:
        if item.kind == "directive":
            yield from _of_directive(source)
        elif item.kind in ("playbook", "pipeline"):
            yield from _of_document(source)
    except QuireError:
        return


def _of_directive(source: Source) -> Iterator[str]:
    from quire.engine.interpreter.thread.budgets import resolve_limits
    from quire.formats.directive.lower import thread
    from quire.formats.directive.parse import parse
    from quire.library.signed_authority import NUMBERS

    read = parse(source).directive
    if read is None:
        return
    meant = thread(read)
    if meant.permissions:
        yield f"may: {', '.join(permission.capability for permission in meant.permissions)}"
    elif meant.has_permissions:
        yield "may: nothing, its <permissions> are empty"
    elif meant.extends.strip():
        yield f"may: permissions of {meant.extends.strip()} may, which it extends"
    for acknowledgement in meant.acknowledged:
        yield f"acknowledges the risk {acknowledgement.risk}"
    limits = resolve_limits(meant.limits, {}, None)
    numbers = ((name, getattr(limits, name)) for name in NUMBERS)
    yield f"limits: {', '.join(f'{name} none' if value is None else f'{name} {value:g}' for name, value in numbers)}"


def _of_document(source: Source) -> Iterator[str]:
    from quire.library.document import read
    from quire.plan.uses import has_agents, tool_calls

    plan = read(source).plan
    if plan is None:
        return
    tools = dict.fromkeys(f"{place}/{tool}" if place else tool for place, tool in tool_calls([plan]))
    if tools:
        yield f"calls: {', '.join(tools)}"
    if has_agents([plan]):
        yield "has agents, which choose among the tools that they are given"


@click.command("verify")
@click.argument("paths", nargs=-1, metavar="PATH…")
@click.option("--json", "as_json", is_flag=True, help="For machines: the outcome of each file.")
@click.pass_context
def verify_command(context: click.Context, paths: tuple[str, ...], as_json: bool) -> None:
    """Verify the signatures of documents: by a trusted key, unchanged, in their place.

    PATH is a file, a folder or a quoted glob. In a folder, playbooks, pipelines and the lock without a signature are
    skipped, unless [trust] documents is set. Exit 6 when one is not fine.
    """
    from quire.library.lookup import find_signables
    from quire.trust.signatures import is_signed
    from quire.trust.trusted_keys import TrustedKeys
    from quire.workspace.configuration import settings_here

    if not paths:
        raise click.UsageError("name a document, a folder or a glob", context)
    settings = settings_here()
    trusted = TrustedKeys.load(settings)
    signables, problems = find_signables(paths, locks=True)
    rows, passed_over = [], 0
    for file in signables:
        item = file.item
        try:
            text = read_source(item.path, limit=item.limit).text
        except Unreadable as error:
            problems.append(str(error))
            continue
        optional = not item.required and not settings.trust.documents and not file.named
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
                complain(verdict.message)
        for problem in problems:
            complain(problem)
        others = f", {passed_over} without a signature passed over" if passed_over else ""
        tell(f"{len(rows) - refused} of {len(rows)} verified{others}")
    context.exit(2 if problems else Refused.exit_code if refused else 0)
