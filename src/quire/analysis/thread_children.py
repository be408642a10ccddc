"""The cost of the threads that a thread starts, and of those that they start, level by level.

A child has at most the limits of its parent, even where its own are higher or a model overrides them, and never more
permissions. So every thread of a tree is one that the outermost one may start, and the limit of depth ends the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from quire.analysis.amounts import Amount, Reason
from quire.analysis.costs import THREADS, Cost, either, unbounded

if TYPE_CHECKING:
    from quire.analysis.facts import Place
    from quire.analysis.world import ThreadFact, World
    from quire.plan.thread import Thread

Names = tuple[str, ...]


class CostsOfOne(Protocol):
    """The cost of single threads under the limits of a tree."""

    def of(self, fact: ThreadFact, thread: Thread) -> Cost:
        """Return the cost of a thread without those that it starts."""
        ...

    def spawns(self, fact: ThreadFact, thread: Thread) -> Amount:
        """Return how many threads it can start."""
        ...


def children_cost(root: ThreadFact, thread: Thread, costs: CostsOfOne, world: World, place: Place) -> Cost:
    """Return the cost of all threads that the outermost thread of a tree starts, directly or not."""
    if root.limits.spawns == 0 or root.limits.depth == 0 or root.children == ():
        return Cost()
    if root.children is None:
        return unbounded(_reason("the directives that it may start are not known", "", place))
    tree = _Tree(root, costs, world, place)
    return tree.one_of(tuple(tree.threads), root.limits.depth).times(costs.spawns(root, thread), 0)


class _Tree:
    def __init__(self, root: ThreadFact, costs: CostsOfOne, world: World, place: Place) -> None:
        self.threads = dict(root.children or ())
        self._place = place
        self._facts = {name: world.thread(thread) for name, thread in self.threads.items()}
        self._costs = {name: costs.of(self._facts[name], thread) for name, thread in self.threads.items()}
        self._spawns = {name: costs.spawns(self._facts[name], thread) for name, thread in self.threads.items()}
        self._below = {name: self._may_start(fact) for name, fact in self._facts.items()}
        self._done: dict[tuple[Names, int | None], Cost] = {}
        self._under_way: set[Names] = set()

    def one_of(self, names: Names, depth: int | None) -> Cost:
        """Return the cost of one thread that is any of these, and of all below it. `depth` is the limit of its
        parent."""
        if not names or (depth is not None and depth < 1):
            return Cost()
        key = (names, depth)
        if key in self._done:
            return self._done[key]
        if depth is None and names in self._under_way:
            why = "threads start threads, and nothing limits how deep"
            return unbounded(_reason(why, '<limits depth="3"/>', self._place))
        self._under_way.add(names)
        self._done[key] = either([self._thread(name, None if depth is None else depth - 1) for name in names])
        self._under_way.discard(names)
        return self._done[key]

    def _thread(self, name: str, depth: int | None) -> Cost:
        cost = Cost()
        cost.add(self._costs[name])
        cost.count(THREADS, 1)
        cost.add(self.one_of(self._below[name], depth).times(self._spawns[name], 0))
        return cost

    def _may_start(self, fact: ThreadFact) -> Names:
        """Return the threads of the tree that a thread may start."""
        if fact.inherits or fact.children is None:
            return tuple(self.threads)
        return tuple(name for name, _ in fact.children if name in self.threads)


def _reason(why: str, remedy: str, place: Place) -> Reason:
    return Reason(why, remedy, place.span, place.document, place.way)
