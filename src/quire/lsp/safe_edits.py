"""Keep the edits of formatting that leave the meaning of a text as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from quire.formats.yaml.nodes import Mapping, Scalar
from quire.formats.yaml.nodes import Sequence as YamlSequence

if TYPE_CHECKING:
    from quire.diagnostics import Edit
    from quire.formats.yaml.nodes import Node

MOST_CHECKS = 20
"""Texts that are read to find the edits that change the meaning. Edits that are not looked at by then are dropped."""
Plain: TypeAlias = tuple[str, object] | list["Plain"] | dict[str, "Plain"] | None


def safe_edits(text: str, edits: Sequence[Edit], means_the_same: Callable[[str], bool]) -> list[Edit]:
    """Return the edits that keep the meaning of a text: all of them, or those halves that do."""
    kept: list[Edit] = []
    waiting = [list(edits)] if edits else []
    checks = 0
    while waiting and checks < MOST_CHECKS:
        some = waiting.pop()
        checks += 1
        if means_the_same(edited(text, [*kept, *some])):
            kept += some
        elif len(some) > 1:
            middle = len(some) // 2
            waiting += [some[middle:], some[:middle]]
    return sorted(kept, key=lambda edit: edit.span.start)


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return a text after some edits, which do not touch each other."""
    parts, last = [], 0
    for edit in sorted(edits, key=lambda edit: edit.span.start):
        parts += [text[last : edit.span.start], edit.new]
        last = edit.span.end
    return "".join(parts) + text[last:]


def plain_value(node: Node | None) -> Plain:
    """Return the value of a node, for comparing two of them: without places and without the order of keys."""
    if isinstance(node, Mapping):
        return {
            f"{type(entry.key.value).__name__} {entry.key.value}": plain_value(entry.value) for entry in node.entries
        }
    if isinstance(node, YamlSequence):
        return [plain_value(item) for item in node.items]
    if isinstance(node, Scalar):
        return f"{node.tag} {type(node.value).__name__}", node.value
    return None
