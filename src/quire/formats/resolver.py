"""Documents as other documents see them: the port through which checks ask about the workspace, and circles of calls.

`DocumentResolver` is that port, for all formats; `quire.library.library.Library` is behind it. `DocumentInterface` is
all that a check needs to know about a callee.

`circles` finds documents that can reach themselves by calling each other. The calls of playbooks and pipelines are
known before they run, so a run with such a circle never starts. The calls of a directive are decided by a model: a run
with a circle through one starts, and fails at the call that closes the circle. Directives that only start each other
are not reported: their `depth` limits that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from quire.wording import did_you_mean, first_of, listed, nearest

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline
    from quire.plan.nodes import Arguments, Plan
    from quire.schema import FieldType
    from quire.source import Source
    from quire.values import Value

ItemKind: TypeAlias = Literal["directive", "knowledge"]

_SHOWN = 8


class DocumentInterface(Struct, frozen=True):
    """A callee as its callers see it."""

    format: str
    name: str
    required: tuple[str, ...] = ()
    """Names of inputs that must be passed."""
    known: tuple[str, ...] | None = None
    """All names that it accepts; None if it accepts any."""
    gives: FieldType | None = None
    """The type of its result; None if that is not known."""
    wrong: Callable[[str, Value], str] = lambda name, value: ""
    """Returns what is wrong with a value for an input, else an empty text."""

    def missing(self, names: Collection[str]) -> str:
        """Return a sentence that lists the required inputs that are not among the names; empty if none is missing."""
        owed = [name for name in self.required if name not in names]
        return f"the {self.format} {self.name} needs {listed(owed, _SHOWN)}, which it is not given" if owed else ""

    def unknown(self, names: Mapping[str, object]) -> list[tuple[str, str]]:
        """Return the names that the callee does not accept, each with a hint at what may be meant."""
        known = self.known
        if known is None:
            return []
        takes = f"it takes {', '.join(known[:_SHOWN]) or 'none'}"
        return [(name, did_you_mean(nearest(name, known), takes)) for name in names if name not in known]


MAX_DOCUMENTS = 1_000
MAX_CIRCLES = 20
_MAX_STEPS = 200_000
_CALLS_SHOWN = 8


class CallTarget(Struct, frozen=True):
    """The name by which a document calls another one."""

    name: str
    kind: str = ""
    """The format that the caller states; empty if it may be any."""


class Caller(Struct, frozen=True):
    """A document and the names that it calls."""

    key: str
    """Identifies the document, independent of the name that found it."""
    name: str
    format: str
    calls: tuple[CallTarget, ...]

    @property
    def decides(self) -> bool:
        """True if a model decides which of the calls are made, so that none of them is certain."""
        return self.format == "directive"


class Circle(Struct, frozen=True):
    """Documents that can reach themselves."""

    call: CallTarget
    """The call by which the checked document enters the circle."""
    names: tuple[str, ...]
    """The documents of the circle, each once."""
    decided: bool
    """True if a directive is part of the circle or of the way to it, so that a model decides whether it happens."""

    def __str__(self) -> str:
        first = self.names[0]
        way = " → ".join([*first_of(self.names, _CALLS_SHOWN), first])
        return f"{first} can reach itself: {way}"


class Parent(Struct, frozen=True):
    """A directive that another one extends."""

    id: str
    extends: str
    """The id of the directive that it extends itself."""
    suppress: tuple[str, ...] = ()
    """Ids that it keeps out of prompts."""
    layers: tuple[str, ...] = ()
    """Layers that it adds to prompts: ids of knowledge items, and of hooks that add some."""


class DocumentResolver(Protocol):
    """The workspace around a document: its documents, items, tools and settings.

    A resolver that inherits from this class knows nothing about the questions that it does not answer itself.
    """

    def document(self, name: str) -> DocumentInterface | None:
        """Return the document of a name, of any format."""
        return None

    def circles(self, source: Source, calls: Sequence[CallTarget], declared: str = "") -> Sequence[Circle]:
        """Return the circles that the calls of a document lead into; `declared` names it in a file of several."""
        return ()

    def pipeline(self, name: str, caller: Pipeline) -> Pipeline | None:
        """Return the registered pipeline that a target means inside `caller`: the same object each time."""
        return None

    def plans(self) -> dict[str, Plan]:
        """Return the registered pipelines by name."""
        return {}

    def directive(self, item_id: str) -> Parent | None:
        """Return a directive; None if it is in no space. Raises `QuireError` if it exists but cannot be used."""
        return None

    def has_knowledge(self, item_id: str) -> bool:
        """Tell whether an item exists. Raises `QuireError` if it exists but cannot be used."""
        return False

    def ids(self, kind: ItemKind) -> Collection[str]:
        """Return the ids of all items of a kind, for suggestions."""
        return ()

    def project_layers(self) -> Collection[str]:
        """Return the layers that the project's own hooks add to prompts."""
        return ()

    def distrust(self, item_id: str) -> str:
        """Return the problem with the signature of a directive; empty if it has none or if it is valid."""
        return ""

    def is_built_in(self, name: str) -> bool:
        """Tell whether `@tool(quire, NAME)` is a tool of Quire's own."""
        return False

    def tools(self) -> Collection[str] | None:
        """Return all names by which a tool can be called; None if that takes starting a server or a module."""
        return None

    def connections(self) -> Collection[str] | None:
        """Return the names that `@tool(NAME, …)` can have; None if they are not known."""
        return None

    def parameters(self, tool: str) -> Mapping[str, Value] | None:
        """Return the JSON Schema of the arguments of a built-in tool; None for every other name."""
        return None

    def tool_problems(self, connection: str, tool: str, given: Arguments) -> Sequence[str]:
        """Return the problems of a call of a built-in or Python tool of the workspace; empty for other tools."""
        return ()

    def python_problem(self, tool: str) -> str:
        """Return why a Python tool of the workspace cannot be used; empty for every other name."""
        return ""

    def identities(self) -> Collection[str] | None:
        """Return all identities that an agent can run under; None if they are not known."""
        return None

    def models(self) -> Collection[str] | None:
        """Return all names that `@model` of a playbook can have; None if they are not known."""
        return None

    def caps(self) -> tuple[int, int]:
        """Return how many model calls a run may make, and how deep fans may be nested; 0 means no limit."""
        return 0, 0


FindTarget: TypeAlias = Callable[[Caller, CallTarget], Caller | None]
_Edges: TypeAlias = Mapping[str, Mapping[str, CallTarget]]


def circles(root: Caller, find: FindTarget) -> list[Circle]:
    """Return some of the circles that can be reached from a document. `find` says what a name means in a caller.

    If some circles are certain, those that a model decides about are left out: they are reported by the next check,
    once the certain ones are fixed. For a pipeline, circles of only pipelines are left out, because its own check finds
    them.
    """
    callers, edges = _reached(root, find)
    if not root.decides:
        made = {key: {} if callers[key].decides else targets for key, targets in edges.items()}
        certain = [key for key in _before(root.key, made) if made[key]]
        if rings := _rings(made, certain):
            if root.format == "pipeline":
                rings = _rings(made, [key for key in certain if callers[key].format == "playbook"])
            return [_circle(ring, root, callers, made) for ring in rings]
    rings = _rings(edges, [key for key in callers if not callers[key].decides])
    return [_circle(ring, root, callers, edges) for ring in rings]


def _reached(root: Caller, find: FindTarget) -> tuple[dict[str, Caller], dict[str, dict[str, CallTarget]]]:
    """Return every document that can be reached from the root, the nearest first, and the calls between them.

    The calls map each caller to its callees and the names that it calls them by.
    """
    callers = {root.key: root}
    edges: dict[str, dict[str, CallTarget]] = {}
    left = deque([root])
    while left:
        caller = left.popleft()
        targets = edges.setdefault(caller.key, {})
        for call in caller.calls:
            callee = find(caller, call)
            if callee is None or (callee.key not in callers and len(callers) >= MAX_DOCUMENTS):
                continue
            targets.setdefault(callee.key, call)
            if callee.key not in callers:
                callers[callee.key] = callee
                left.append(callee)
    return callers, edges


def _before(start: str, edges: Mapping[str, Iterable[str]], end: str = "") -> dict[str, str]:
    """Return the predecessor of each document on the shortest way to it from `start`, the nearest first.

    `start` itself is included if a way leads back to it. The search stops at `end`.
    """
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
    """Return the shortest way from each of these documents back to itself, if there is one; each ring once."""
    left = _circling(edges)
    size = sum(map(len, left.values())) + 1
    rings: dict[frozenset[str], list[str]] = {}
    for start in [key for key in through if key in left][: _MAX_STEPS // size + 1]:
        before = _before(start, left, start)
        if start in before and len(rings) < MAX_CIRCLES:
            ring = _way(before, start, before[start])
            rings.setdefault(frozenset(ring), ring)
    return list(rings.values())


def _circling(edges: _Edges) -> dict[str, list[str]]:
    """Return the part of a graph in which every way continues without end: empty if there is no circle."""
    left = {key: dict.fromkeys(targets) for key, targets in edges.items()}
    callers: dict[str, list[str]] = {}
    for key, targets in left.items():
        for target in targets:
            callers.setdefault(target, []).append(key)
    ends = [key for key, targets in left.items() if not targets]
    while ends:
        end = ends.pop()
        del left[end]
        for key in callers.get(end, ()):
            left[key].pop(end)
            if not left[key]:
                ends.append(key)
    return {key: list(targets) for key, targets in left.items()}


def _way(before: Mapping[str, str], start: str, end: str) -> list[str]:
    way = [end]
    while way[-1] != start:
        way.append(before[way[-1]])
    return way[::-1]


def _circle(ring: list[str], root: Caller, callers: Mapping[str, Caller], edges: _Edges) -> Circle:
    """Build a circle that begins at the first document of the ring that the root reaches."""
    before = _before(root.key, edges)
    entered = root.key if root.key in ring else next(key for key in before if key in ring)
    at = ring.index(entered)
    ring = [*ring[at:], *ring[:at]]
    way = _way(before, root.key, entered) if entered != root.key else [*ring, entered]
    decided = any(callers[key].decides for key in (*way, *ring))
    return Circle(edges[way[0]][way[1]], tuple(callers[key].name for key in ring), decided)
