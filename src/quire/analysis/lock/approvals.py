"""Compare the gates of two locks: which effects happen without a question that stood before them, or open by themselves
if no person answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.analysis.lock.file import OPENS, OPENS_WITHOUT, STAYS_SHUT
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.analysis.lock.file import LockedDocument


Direction = Literal["wider", "narrower", "other"]

_PARTS = late_pattern(r"([0-9]{0,9})([^0-9]+|$)")


class GateChange(Struct, frozen=True):
    """An effect that has another gate."""

    direction: Direction
    effect: str
    old: str = ""
    """Empty if the effect is new."""
    new: str = ""
    """Empty if it is gone."""
    steps: tuple[str, ...] = ()


def gate_changes(old: LockedDocument, new: LockedDocument) -> Iterator[GateChange]:
    """Yield the effects that have another gate. Where the effects of a tool have different gates, each is compared with
    those of the same details, so that a question does not move from one command to another unseen."""
    present = {detail for capability in new.may for detail in capability.details}
    gates = comparable_gates(old.gates, new.gates)
    for tool in sorted({tool_of(effect) for effect in (*old.gates, *gates)}):
        before = {effect: gate for effect, gate in old.gates.items() if tool_of(effect) == tool}
        now = {effect: gate for effect, gate in gates.items() if tool_of(effect) == tool}
        old_details, new_details = by_details(before), by_details(now)
        if old_details and new_details:
            for details in sorted({*old_details, *new_details}):
                yield from _gates_of(tool, old_details.get(details, {}), new_details.get(details, {}))
            continue
        same = [*_gates_of(tool, before, now)]
        if not any(change.direction == "wider" for change in same):
            still = (gated for details, gated in old_details.items() if present.issuperset(details))
            yield from _opened({effect: gate for gated in still for effect, gate in gated.items()}, now)
        yield from same


def _opened(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[GateChange]:
    """Yield the first of the effects that had a gate of their own and have now, as all others of their tool, a weaker
    one."""
    for was in old.values():
        for now, gate in new.items():
            if unnumbered_gate(was) != unnumbered_gate(gate) and _gate_direction(was, gate) == "wider":
                yield GateChange("wider", now, was, gate, _step(now))
                return


def _gates_of(tool: str, before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[GateChange]:
    """Yield the effects of one tool that have another gate. Labels of steps do not count: a step that is inserted
    changes those of all others."""
    if len(before) == len(now):
        yield from _moved_gates(before, now)
        return
    fresh = Counter(map(unnumbered_gate, now.values())) - Counter(map(unnumbered_gate, before.values()))
    lost = Counter(map(unnumbered_gate, before.values())) - Counter(map(unnumbered_gate, now.values()))
    replaced = [gate for gate in before.values() if lost[unnumbered_gate(gate)]]
    for effect, gate in now.items():
        if not fresh[unnumbered_gate(gate)]:
            continue
        fresh[unnumbered_gate(gate)] -= 1
        was = before.get(effect) or next(iter(replaced), "")
        wider = gate == NONE or how_open(gate) > 0 or (bool(replaced) and was != NONE)
        direction: Direction = "wider" if wider else "narrower" if was == NONE else "other"
        yield GateChange(direction, effect, was, gate, _step(effect))
    if len(before) > len(now) and not sum(fresh.values()):
        gone = next((effect for effect, gate in before.items() if lost[unnumbered_gate(gate)]), tool)
        yield GateChange("narrower", gone, before.get(gone, ""))


def _moved_gates(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[GateChange]:
    """Yield the effects of one tool that have another gate, in the order of the document: a yes that is asked for
    before another effect than it was is a change too."""
    for before, now in zip(sorted(old, key=_in_order), sorted(new, key=_in_order), strict=True):
        was, gate = old[before], new[now]
        if unnumbered_gate(was) != unnumbered_gate(gate):
            yield GateChange(_gate_direction(was, gate), now, was, gate, _step(now))


def _gate_direction(old: str, new: str) -> Direction:
    """Return how a gate has changed. Another question, or one that shows other values, counts as wider."""
    if old == NONE:
        return "narrower"
    if unnumbered_gate(without_note(old)) != unnumbered_gate(without_note(new)):
        return "wider"
    before, now = how_open(old), how_open(new)
    return "wider" if now > before else "narrower" if now < before else "other"


def _in_order(effect: str) -> list[tuple[int, str]]:
    """Return a key that sorts the labels of steps in the order of a document: 9 before 10."""
    return [(int(digits or 0), other) for digits, other in _PARTS.findall(effect)]


def _step(effect: str) -> tuple[str, ...]:
    return (effect.partition(" ")[0],)


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
    match = _NOTE.search(gate.partition(_SHOWN)[0])
    return match[1] if match else ""


def without_note(gate: str) -> str:
    """Return a gate without its note."""
    questions, shown, names = gate.partition(_SHOWN)
    return _NOTE.sub("", questions) + shown + names


def how_open(gate: str) -> int:
    """Return how far a gate opens without a person: not at all, without a default, by its default."""
    return {OPENS: 2, OPENS_WITHOUT: 1}.get(_note(gate), 0)


def tool_of(effect: str) -> str:
    """Return the tool of an effect: `4.do path=a.md file__write` is one of `file__write`."""
    return effect.rpartition(" ")[2]


def by_details(gates: Mapping[str, str]) -> dict[tuple[str, ...], dict[str, str]]:
    """Return the gates of the effects of one tool by the details between step and tool; empty if any of them has
    none."""
    several: dict[tuple[str, ...], dict[str, str]] = {}
    for effect, gate in gates.items():
        details = tuple(word for word in effect.split(" ")[1:-1] if "=" in word)
        if not details:
            return {}
        several.setdefault(details, {})[effect] = gate
    return several
