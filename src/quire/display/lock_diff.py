"""Show how two locks differ: lines for a terminal, a table for a pull request, and JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from quire.analysis.assumptions import Assumptions, assumptions_of
from quire.analysis.lock.difference_words import short_name, told
from quire.display.text import one_line
from quire.patterns import late_pattern
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.trust.capabilities import capability
from quire.units import size_of
from quire.wording import cut

if TYPE_CHECKING:
    from quire.analysis.lock.compare import Change
    from quire.values import Value


FORMATS = ("terminal", "markdown", "json")
MOST_ROWS = 200
LONGEST_CELL, LONGEST_TEXT = 4_000, 1_000
"""Characters of a cell, and of one difference in it."""
NOT_COMPARED = "cannot be read, or has errors: it was not compared"
NOTHING = "No document may do more, cost more or ask less than before."

_SIGNS = {"wider": "+", "narrower": "-", "other": "~"}
_ESCAPED = str.maketrans(
    {letter: f"\\{letter}" for letter in "\\`*_[]|#~"}
    | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "$": "&#36;", "@": "@&#8203;"}
)
"""Markdown, HTML and formulas are shown as they are written. A space without width keeps a name from being called."""
_LINK = late_pattern(r"(?i)(?<=[a-z])(?=://)|(?<=www)(?=\.)")
"""The places in an address behind which it would become a link."""


def diff_lines(changes: Sequence[Change], assumed: Mapping[str, str]) -> Iterator[str]:
    """Yield the differences for people, document by document."""
    sizes = _assumptions(assumed)
    for document, several in _by_document(changes).items():
        yield one_line(document or "tools and prices")
        for change in several:
            yield f"  {_SIGNS[change.direction]} {one_line(told(change, sizes))}"


def diff_markdown(changes: Sequence[Change], assumed: Mapping[str, str], not_compared: Sequence[str] = ()) -> str:
    """Return the differences as a table of Markdown. Texts of documents cannot leave their cells, and widened
    permissions are first, so that a long list does not hide them. `not_compared` are documents with errors."""
    by_document = _by_document(changes)
    if not by_document and not not_compared:
        return f"{NOTHING}\n"
    sizes = _assumptions(assumed)
    rows = ["| document | change |", "| --- | --- |"]
    rows += [f"| {_cell(cut(document, LONGEST_TEXT))} | **{NOT_COMPARED}** |" for document in not_compared[:MOST_ROWS]]
    if further := not_compared[MOST_ROWS:]:
        rows.append(f"| … | **{len(further)} more: {NOT_COMPARED}** |")
    several = sorted(by_document.items(), key=lambda entry: not _is_wider(entry[1]))
    rows += [
        f"| {_cell(cut(document, LONGEST_TEXT) or 'tools and prices')} | {_changes(of_document, sizes)} |"
        for document, of_document in several[:MOST_ROWS]
    ]
    if left := several[MOST_ROWS:]:
        rows.append(f"| … | {len(left)} more, {sum(_is_wider(changed) for _, changed in left) or 'none'} wider |")
    return "\n".join(rows) + "\n"


def _changes(changes: Sequence[Change], sizes: Assumptions) -> str:
    """Return the cell of a document: as many differences as have room, and the number of the others."""
    parts: list[str] = []
    length = 0
    ordered = sorted(changes, key=lambda change: change.direction != "wider")
    for at, change in enumerate(ordered):
        part = _cell(cut(told(change, sizes, bars=False), LONGEST_TEXT))
        signs = {"wider": f"**+ {part}**", "narrower": f"− {part}"}
        part = signs.get(change.direction, part)
        length += len(part)
        if at and length > LONGEST_CELL:
            wider = sum(change.direction == "wider" for change in ordered[at:])
            return " · ".join([*parts, f"**… {len(ordered) - at} more, {wider or 'none'} wider**"])
        parts.append(part)
    return " · ".join(parts)


def _is_wider(changes: Iterable[Change]) -> bool:
    return any(change.direction == "wider" for change in changes)


def diff_data(
    changes: Sequence[Change], assumed: Mapping[str, str], not_compared: Sequence[str] = ()
) -> dict[str, Value]:
    """Return the differences for programs."""
    listed: list[Value] = [
        {
            "document": change.document or None,
            "kind": change.kind,
            "direction": change.direction,
            "code": change.code.id,
            "name": change.name,
            "old": change.old or None,
            "new": change.new or None,
            "example": change.example or None,
            "decided": change.decided,
            "steps": list(change.steps),
        }
        for change in changes
    ]
    return {
        "wider": _is_wider(changes),
        "changes": listed,
        "assumed": dict(assumed),
        "not_compared": list(not_compared),
    }


def diff_summary(changes: Sequence[Change]) -> str:
    """Return one line that counts the differences."""
    wider = len(_by_document(change for change in changes if change.direction == "wider"))
    count = len(_by_document(changes))
    if not count:
        return "nothing has changed"
    return f"{count} changed, {wider or 'none'} wider"


def _assumptions(assumed: Mapping[str, str]) -> Assumptions:
    sizes = {name: size for name, text in assumed.items() if (size := size_of(text.replace(",", "")))}
    return assumptions_of(sizes)


def _by_document(changes: Iterable[Change]) -> dict[str, list[Change]]:
    grouped: dict[str, list[Change]] = {}
    for change in changes:
        grouped.setdefault(change.document, []).append(change)
    return grouped


def _cell(text: str) -> str:
    return _LINK.sub("&#8203;", one_line(text).translate(_ESCAPED))


def capability_name(needed: str) -> str:
    """Return a short name for people: `file__write` for a built-in tool, `mcp.tickets.create` for others."""
    return built_in_name(needed) or short_name(needed)


def built_in_name(needed: str) -> str:
    """Return the name of the built-in tool that a capability stands for; empty if it stands for none."""
    return _built_in().get(needed, "")


@cache
def _built_in() -> dict[str, str]:
    return {capability("execute", "tool", tool.id): tool.name for tool in BUILT_IN_TOOLS}
