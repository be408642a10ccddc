"""Consent for `quire sign` of a folder: show the files that would be signed for the first time, with what they may do,
and ask.

Other people may have put files into a folder. A file that the user names is meant; a file that a search finds may not
be, and a signature may be all that keeps it from running.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from quire.display.text import one_line
from quire.errors import CannotStart, QuireError, Refused
from quire.source import Source, read_source
from quire.trust.sign_file import Signable, warnings
from quire.trust.signature_line import digest_of
from quire.trust.signatures import Verification
from quire.wording import first_of, pluralize

if TYPE_CHECKING:
    from quire.library.lookup import SignableFile
    from quire.trust.trusted_keys import TrustedKeys

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


def survey(found: Sequence[SignableFile], trusted: TrustedKeys) -> FoundFiles:
    """Examine the files that the user has not named."""
    fresh, digests = [], {}
    for one in found:
        if one.by_name:
            continue
        try:
            source = read_source(one.item.path)
        except CannotStart:
            continue  # Signing reports it.
        digests[one.item.path] = digest_of(source.text)
        outcome = one.item.verify(source.text, trusted).outcome
        if outcome is not Verification.OK:
            told = (*_authority(one.item, source), *(f"warning: {line}" for line in warnings(one.item, source)))
            fresh.append(Fresh(one.item, outcome, told))
    return FoundFiles(fresh, digests)


def require_consent(fresh: Sequence[Fresh], *, yes: bool, ask: bool) -> None:
    """Raise `Refused` unless there is nothing new, or the user agrees: on a terminal, otherwise with `--yes`."""
    if not fresh or yes:
        return
    counted = f"{len(fresh)} {pluralize('document', len(fresh))}"
    if not ask:
        raise Refused(
            f"{counted} here would be signed for the first time, or changed since: {_names(fresh)}; nothing is signed. "
            "Look at them, then name the files, or say --yes"
        )
    _show(fresh)
    import asyncio

    from quire.cli.trust_prompt import yes_or_no

    if not asyncio.run(yes_or_no(f"Sign {counted}? yes or no [no]: ")):
        raise Refused("nothing is signed")


def _show(fresh: Sequence[Fresh]) -> None:
    for one in fresh[:MOST_SHOWN]:
        state = "changed since it was signed" if one.outcome is Verification.MODIFIED else one.outcome.value
        click.echo(f"{one_line(str(one.item.path))}: {one.item.kind}, {state.replace('_', ' ')}", err=True)
        for line in one.lines:
            click.echo(f"  {one_line(line)}", err=True)
    if len(fresh) > MOST_SHOWN:
        click.echo(f"and {len(fresh) - MOST_SHOWN} more", err=True)


def _names(fresh: Sequence[Fresh]) -> str:
    return ", ".join(first_of([one_line(str(one.item.path)) for one in fresh], 3))


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
    from quire.engine.interpreter.thread.limits import resolve_limits
    from quire.formats.directive.lower import thread
    from quire.formats.directive.parse import parse
    from quire.library.signed_authority import NUMBERS

    read = parse(source).directive
    if read is None:
        return
    meant = thread(read)
    if meant.permissions:
        yield f"may: {', '.join(one.capability for one in meant.permissions)}"
    elif meant.has_permissions:
        yield "may: nothing, its <permissions> are empty"
    elif meant.extends.strip():
        yield f"may: what {meant.extends.strip()} may, which it extends"
    for one in meant.acknowledged:
        yield f"acknowledges the risk {one.risk}"
    limits = resolve_limits(meant.limits, {}, None)
    told = ((name, getattr(limits, name)) for name in NUMBERS)
    yield f"limits: {', '.join(f'{name} {value:g}' if value is not None else f'{name} none' for name, value in told)}"


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
