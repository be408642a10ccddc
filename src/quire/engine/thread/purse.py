"""Money of threads: what one may spend, what its children hold back from it, and what is left."""

from __future__ import annotations


class Purse:
    """A thread's budget in dollars. A child's purse is filled from its parent's, which has that much less until the
    child gives back what it did not need; so nothing is ever promised twice.

    A price that nobody knows is not counted: the limit on tokens bounds such a thread.
    """

    def __init__(self, limit: float, parent: Purse | None = None, share: float = 1.0) -> None:
        """`share` is the part of what the parent has left that may be taken at most."""
        self._parent = parent
        self._open = parent is not None
        self._told = 0.0
        self._held = 0.0
        self.limit = limit if parent is None else max(0.0, min(limit, parent.left * share))
        self.spent = 0.0
        if parent is not None:
            parent.hold(self.limit)

    @property
    def left(self) -> float:
        return self.limit - self.spent - self._held

    def pay(self, cost: float | None) -> None:
        self.spent += cost or 0.0

    def raise_to(self, limit: float) -> None:
        """A person gives more; never more than the parent has left."""
        more = limit - self.limit
        if self._parent is not None and self._open:
            more = min(more, max(0.0, self._parent.left))
            self._parent.hold(more)
        self.limit += more

    def close(self) -> None:
        """Gives back what is left. What was spent, the parent has spent."""
        if self._parent is not None and self._open:
            self._open = False
            self._parent.hold(-self.limit)
            self._tell(self.spent)

    def settle(self, spent: float) -> None:
        """Closes the purse of a thread that was stopped. `spent` is what its records come to: that may be more than the
        thread has counted, which a replay stops before it has walked through all of them again."""
        self.close()
        self._tell(spent - self._told)

    def _tell(self, more: float) -> None:
        if self._parent is not None and more > 0:
            self._told += more
            self._parent.pay(more)

    def hold(self, amount: float) -> None:
        """Sets so much aside: for a child, or for a call that is under way. A negative amount gives it back."""
        self._held += amount


class SharedPurse(Purse):
    """A purse without money of its own, for a document that a thread calls: what is paid from it is paid from the
    thread's. Several of them can be open side by side. `spent` is what went through this one."""

    def __init__(self, owner: Purse) -> None:
        super().__init__(owner.limit)
        self._owner = owner

    @property
    def left(self) -> float:
        return self._owner.left

    def pay(self, cost: float | None) -> None:
        super().pay(cost)
        self._owner.pay(cost)

    def settle(self, spent: float) -> None:
        if spent > self.spent:
            self.pay(spent - self.spent)

    def raise_to(self, limit: float) -> None:
        self._owner.raise_to(limit)

    def hold(self, amount: float) -> None:
        self._owner.hold(amount)
