"""What a cluster needs of a store beside `quire.engine.ports.Store`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class SharedStore(Protocol):
    async def evict(self, run: str, epoch: int) -> bool:
        """Takes the lock from an owner that counts as dead, if the run is still at that epoch.

        A stopped process, or one behind a broken network, holds its lock all the same. The epoch keeps it from
        writing once the next owner has begun. False where the run is at another epoch."""
        ...

    async def answered(self) -> Sequence[str]:
        """The runs that wait although an answer is there that nobody has taken, oldest first."""
        ...
