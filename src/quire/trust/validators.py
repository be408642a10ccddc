"""What has to be true of a file before anybody puts a signature on it. Each kind is looked at by its own format."""

from __future__ import annotations

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


def warnings(source: Source) -> list[str]:
    """What whoever signs a file cannot see in it, a line each. It may be signed all the same."""
    from quire.formats.invisible import invisible

    return [f"line {source.position(one.span.start).line}: {one.code.id} {one.message}" for one in invisible(source)]


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
