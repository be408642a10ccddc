"""Places of the keys of steps in the YAML of a pipeline, where the Plan keeps only that of the whole step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from quire.formats.yaml import Entry, Mapping, Node, Sequence, label_of, read_yaml

if TYPE_CHECKING:
    from quire.source import Source, Span


class YamlPositions(Struct, frozen=True):
    """The entries of all mappings of a file, by the place of their key."""

    entries: dict[Span, Entry]

    @classmethod
    def of(cls, source: Source) -> YamlPositions:
        found: dict[Span, Entry] = {}
        stack: list[Node] = list(read_yaml(source).documents)
        while stack:
            node = stack.pop()
            if isinstance(node, Sequence):
                stack.extend(node.items)
            elif isinstance(node, Mapping):
                for entry in node.entries:
                    if entry.key.span not in found:  # an alias leads to the same node again
                        found[entry.key.span] = entry
                        stack.append(entry.value)
        return cls(found)

    def find(self, step: Span, *keys: str) -> Span:
        """Return the place of a key in the body of the step whose kind stands at a place.

        Each further key is looked for in the value of the one before; if it is not there, in the same mapping. Returns
        the last place that was found, at least that of the step.
        """
        entry = self.entries.get(step)
        place, node = step, entry.value if entry else None
        for key in keys:
            found = _find(node, key)
            if found is not None:
                place = found.key.span
                node = found.value if isinstance(found.value, Mapping) else node
        return place


def _find(node: Node | None, key: str) -> Entry | None:
    if not isinstance(node, Mapping):
        return None
    return next((entry for entry in node.entries if label_of(entry.key) == key), None)
