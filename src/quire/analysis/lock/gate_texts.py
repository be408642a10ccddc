"""Read the gates of a lock: the questions before an effect, and what happens if no person answers."""

from __future__ import annotations

from collections.abc import Mapping

from quire.analysis.lock.file import OPENS, OPENS_WITHOUT, STAYS_SHUT
from quire.patterns import late_pattern

NONE = "none"
"""The gate of an effect that no question stands before."""
_SHOWN = ", shown: "
_NOTE = late_pattern(rf", ({OPENS_WITHOUT}|{OPENS}|{STAYS_SHUT})$")
_QUESTION = late_pattern(r"(?:[0-9][^ ,]*|thread)(?: › [^ ,]+)* (confirm|select|input)\b")


def comparable_gates(old: Mapping[str, str], new: Mapping[str, str]) -> Mapping[str, str]:
    """Return the new gates without the notes that a lock from before there were notes cannot have: those of gates that
    no default opens. A gate that a default opens is wider than what such a lock says."""
    if any(_note(gate) for gate in old.values()):
        return new
    return {effect: gate if _note(gate) == OPENS else without_note(gate) for effect, gate in new.items()}


def unnumbered_gate(text: str) -> str:
    """Return a gate without the labels of its steps: `2 confirm, shown: a` as `confirm, shown: a`."""
    return _QUESTION.sub(r"\1", text)


def _note(gate: str) -> str:
    """Return the note of a gate about runs in which no person answers; empty if it has none. It stands before the
    values that are shown, whose names may be anything."""
    found = _NOTE.search(gate.partition(_SHOWN)[0])
    return found[1] if found else ""


def without_note(gate: str) -> str:
    """Return a gate without its note."""
    asked, shown, names = gate.partition(_SHOWN)
    return _NOTE.sub("", asked) + shown + names


def how_open(gate: str) -> int:
    """Return how far a gate opens without a person: not at all, without a default, by its default."""
    return {OPENS: 2, OPENS_WITHOUT: 1}.get(_note(gate), 0)


def tool_of(effect: str) -> str:
    """Return the tool of an effect: `4.do path=a.md file__write` is one of `file__write`."""
    return effect.rpartition(" ")[2]


def by_details(gates: Mapping[str, str]) -> dict[tuple[str, ...], dict[str, str]]:
    """Return the gates of the effects of one tool by the details between step and tool; empty if any of them has
    none."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for effect, gate in gates.items():
        details = tuple(word for word in effect.split(" ")[1:-1] if "=" in word)
        if not details:
            return {}
        found.setdefault(details, {})[effect] = gate
    return found
