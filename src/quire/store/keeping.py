"""What a store can do with whole runs: take one in with its history, remove old ones, copy itself.

Driving needs none of this, so it stands beside the engine's `Store` port and not in it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from quire.engine.ports import Store
from quire.engine.records import EffectRecord, Event, NewRun, RunUpdate, Status
from quire.errors import StoreError

ENDED = (Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.EXPIRED)
"""The states of runs that may be removed: nobody waits for them and nobody drives them."""


@dataclass(frozen=True, slots=True)
class History:
    """What a run begins with that was not driven here. Its totals are told, not added up from the effects: what a
    fork takes over was paid for by the run that it comes from."""

    update: RunUpdate
    effects: Sequence[EffectRecord]
    events: Sequence[Event]
    updated_at: float
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be. `size` is in bytes of the file, which stay free in it for what comes next."""

    runs: tuple[str, ...] = ()
    effects: int = 0
    texts: int = 0
    size: int = 0
    given_back: int = 0


@runtime_checkable
class Keeper(Protocol):
    async def restore(self, run: NewRun, history: History) -> None:
        """Makes a run with all of its history in one transaction. Raises `StoreError` where the id is taken."""
        ...

    async def prune(self, before: float, statuses: Collection[Status], *, dry_run: bool, vacuum: bool) -> Pruned:
        """Removes runs that ended before a moment, and the texts that nobody refers to any more."""
        ...

    async def backup(self, to: Path) -> int:
        """A whole and consistent copy, while others go on writing; its size in bytes. Never overwrites."""
        ...


def keeper(store: Store) -> Keeper:
    """The same store as one that keeps whole runs. Raises `StoreError` where it does not."""
    if not isinstance(store, Keeper):
        raise StoreError(f"{type(store).__name__} cannot take in, remove or copy whole runs")
    return store
