"""What has to be true of a file before anybody puts a signature on it. Each kind is looked at by its own format."""

from __future__ import annotations

from collections.abc import Iterator

from quire.diagnostics import Severity
from quire.source import Source
from quire.trust.signable import Signable


def issues(item: Signable, source: Source) -> list[str]:
    """All that is wrong, a line each; empty for a file that may be signed."""
    if item.kind == "directive":
        from quire.formats.directive.validate import issues as of_directive

        return of_directive(source, item.below)
    if item.kind == "knowledge":
        from quire.formats.directive.knowledge import knowledge_issues

        return knowledge_issues(source, item.below)
    return _errors(item, source)


def warnings(item: Signable, source: Source) -> list[str]:
    """What the person who signs a file should know of it, a line each. It may be signed all the same."""
    from quire.formats.invisible import invisible

    hidden = [f"line {source.position(one.span.start).line}: {one.code.id} {one.message}" for one in invisible(source)]
    return [*hidden, *(_blocking_risks(source) if item.kind == "directive" else ())]


def _blocking_risks(source: Source) -> Iterator[str]:
    """Capabilities that keep a directive from starting because nobody has acknowledged them."""
    from quire.formats.directive.parse import parse
    from quire.trust.risk import Tier, assess

    permissions = parse(source).partial.permissions
    if permissions is None:
        return
    asked = [one.capability for one in permissions.grants]
    found = assess(asked, [one.risk for one in permissions.acknowledged])
    if found.outcome == "block":
        yield from found.messages[: sum(tier is Tier.UNRESTRICTED for tier in found.tiers.values())]


def _errors(item: Signable, source: Source) -> list[str]:
    from quire import formats

    found = formats.format_of(source)
    if found != item.kind:
        return [f"it is a {found}, not a {item.kind}; a {found} is signed below .ai/{found}s, where it has a name"]
    return [
        f"line {source.position(one.span.start).line}: {one.code.id} {one.message}"
        for one in formats.check(source)
        if one.severity is Severity.ERROR
    ]
