"""A document as another one sees it that calls it: what it takes and what it gives, whatever its format.

`check` needs no more than this to follow a call across formats; whoever knows the workspace makes it.

Documents that can reach themselves by calling each other, whatever their formats.

What playbooks and pipelines call is known before they run: such a circle never starts. What a directive calls, a model
decides: a run with a circle through one starts, and fails at the call that closes it. Directives that only start
each other are no finding: that is what their `depth` is for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

from quire.wording import nearest

if TYPE_CHECKING:
    from quire.schema import FieldType
    from quire.values import Value

_SHOWN = 8


def _fine(name: str, value: Value) -> str:
    return ""


class Called(Struct, frozen=True):
    """`required` has to be passed; `known` are all names that it takes, None where it takes any. `gives` is the type of
    what it returns, None where nobody knows. `wrong` says what is wrong with a value for an input, or nothing."""

    format: str
    name: str
    required: tuple[str, ...] = ()
    known: tuple[str, ...] | None = None
    gives: FieldType | None = None
    wrong: Callable[[str, Value], str] = _fine

    def missing(self, names: Mapping[str, object]) -> str:
        """What is required and not among the names, as a sentence; empty where nothing is."""
        owed = [name for name in self.required if name not in names]
        more = len(owed) - _SHOWN
        listed = ", ".join(owed[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return f"the {self.format} {self.name} needs {listed}, which it is not given" if owed else ""

    def unknown(self, names: Mapping[str, object]) -> list[tuple[str, str]]:
        """The names that it does not take, each with what could be meant."""
        known = self.known
        if known is None:
            return []
        return [(name, self._hint(name, known)) for name in names if name not in known]

    def _hint(self, name: str, known: tuple[str, ...]) -> str:
        close = nearest(name, known)
        if close:
            return f"did you mean {close}?"
        return f"it takes {', '.join(known[:_SHOWN])}" if known else "it takes none"


MAX_DOCUMENTS = 1_000
MAX_CIRCLES = 20
_MAX_STEPS = 200_000
_CALLS_SHOWN = 8


class Wanted(Struct, frozen=True):
    """How a document names another one. `kind` is the format that it says, empty where it may have any."""

    name: str
    kind: str = ""


class Caller(Struct, frozen=True):
    """A document and what it calls. `key` is its own: by it a document is known again, however it was named."""

    key: str
    name: str
    format: str
    calls: tuple[Wanted, ...]


class Circle(Struct, frozen=True):
    """`call` is the one by which the document that is checked gets there; `names` are those of the circle, each once.

    `decided` says that a directive is in it or on the way there, so that a model decides whether it is gone round."""

    call: Wanted
    names: tuple[str, ...]
    decided: bool

    def __str__(self) -> str:
        first = self.names[0]
        way = " → ".join([*self.names[:_CALLS_SHOWN], *(["…"] if len(self.names) > _CALLS_SHOWN else []), first])
        return f"{first} can reach itself: {way}"


class Reach(Protocol):
    """What checking a file needs to know from elsewhere to follow its calls."""

    def circles(self, declared: str, calls: Sequence[Wanted]) -> Sequence[Circle]:
        """Those that the calls of a document lead into; `declared` says which one of a file of several it is."""
        ...


FindTarget: TypeAlias = Callable[[Caller, Wanted], Caller | None]
_Edges: TypeAlias = Mapping[str, Mapping[str, Wanted]]


def circles(root: Caller, find: FindTarget) -> list[Circle]:
    """Those that can be reached from a document, a few at most. `find` says what a name means in a caller.

    Where some are certain, those that a model decides about are left out: whoever breaks the ones looks again. Circles
    of nothing but pipelines are left out where a pipeline is checked, which finds these by itself.
    """
    callers, edges = _reached(root, find)
    if root.format != "directive":
        made = {key: {} if callers[key].format == "directive" else found for key, found in edges.items()}
        certain = [key for key in _before(root.key, made) if made[key]]
        if rings := _rings(made, certain):
            if root.format == "pipeline":
                rings = _rings(made, [key for key in certain if callers[key].format == "playbook"])
            return [_circle(ring, root, callers, made) for ring in rings]
    rings = _rings(edges, [key for key in callers if callers[key].format != "directive"])
    return [_circle(ring, root, callers, edges) for ring in rings]


def _reached(root: Caller, find: FindTarget) -> tuple[dict[str, Caller], dict[str, dict[str, Wanted]]]:
    """Every document on any way from the root, the nearest first, and whom each calls by which name."""
    callers = {root.key: root}
    edges: dict[str, dict[str, Wanted]] = {}
    left = deque([root])
    while left:
        caller = left.popleft()
        found = edges.setdefault(caller.key, {})
        for wanted in caller.calls:
            callee = find(caller, wanted)
            if callee is None or (callee.key not in callers and len(callers) >= MAX_DOCUMENTS):
                continue
            found.setdefault(callee.key, wanted)
            if callee.key not in callers:
                callers[callee.key] = callee
                left.append(callee)
    return callers, edges


def _before(start: str, edges: Mapping[str, Iterable[str]], end: str = "") -> dict[str, str]:
    """Where the shortest way from a document to each other one comes from, the nearest first; of `start` itself too,
    where a way leads back. Looks no further than `end`."""
    before: dict[str, str] = {}
    queue = deque([start])
    while queue and end not in before:
        here = queue.popleft()
        for there in edges[here]:
            if there not in before:
                before[there] = here
                queue.append(there)
    return before


def _rings(edges: _Edges, through: Iterable[str]) -> list[list[str]]:
    """For each of these documents the shortest way from it back to it, where there is one; each ring once."""
    left = _circling(edges)
    size = sum(map(len, left.values())) + 1
    found: dict[frozenset[str], list[str]] = {}
    for start in [key for key in through if key in left][: _MAX_STEPS // size + 1]:
        before = _before(start, left, start)
        if start in before and len(found) < MAX_CIRCLES:
            ring = _way(before, start, before[start])
            found.setdefault(frozenset(ring), ring)
    return list(found.values())


def _circling(edges: _Edges) -> dict[str, list[str]]:
    """The part of a graph in which every way goes on for ever: nothing, where there is no circle."""
    left = {key: dict.fromkeys(found) for key, found in edges.items()}
    callers: dict[str, list[str]] = {}
    for key, found in left.items():
        for one in found:
            callers.setdefault(one, []).append(key)
    ends = [key for key, found in left.items() if not found]
    while ends:
        end = ends.pop()
        del left[end]
        for key in callers.get(end, ()):
            left[key].pop(end)
            if not left[key]:
                ends.append(key)
    return {key: list(found) for key, found in left.items()}


def _way(before: Mapping[str, str], start: str, end: str) -> list[str]:
    way = [end]
    while way[-1] != start:
        way.append(before[way[-1]])
    return way[::-1]


def _circle(ring: list[str], root: Caller, callers: Mapping[str, Caller], edges: _Edges) -> Circle:
    """A ring begins where the root comes upon it first."""
    before = _before(root.key, edges)
    entered = root.key if root.key in ring else next(key for key in before if key in ring)
    at = ring.index(entered)
    ring = [*ring[at:], *ring[:at]]
    way = _way(before, root.key, entered) if entered != root.key else [*ring, entered]
    decided = any(callers[key].format == "directive" for key in (*way, *ring))
    return Circle(edges[way[0]][way[1]], tuple(callers[key].name for key in ring), decided)
