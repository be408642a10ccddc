"""Share one store per place and event loop; close it when its last user releases it.

Opening a SQLite file costs more than all the writes of a short run. A store belongs to one thread and one event loop,
so it is never shared beyond those.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from quire.stores import open_store

if TYPE_CHECKING:
    from quire.engine.ports import Store
    from quire.stores.sqlite.database import Durability
    from quire.trust.seal import Seal


class _Opened:
    __slots__ = ("store", "users")

    def __init__(self, store: Store) -> None:
        self.store = store
        self.users = 0


_Places = dict[Hashable, _Opened]
# Weak: a loop that is dropped in the middle of its runs drops their stores too.
_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Places] = WeakKeyDictionary()
_guard = threading.Lock()


class Sharing:
    """One user's share of a store. `release` ends it; a second call does nothing."""

    def __init__(self, places: _Places, key: Hashable, opened: _Opened) -> None:
        self.store = opened.store
        self._places = places
        self._key = key
        self._opened: _Opened | None = opened

    async def release(self) -> None:
        opened, self._opened = self._opened, None
        if opened is None:
            return
        opened.users -= 1
        if opened.users == 0:
            # Before closing: a user that arrives meanwhile opens a new store.
            del self._places[self._key]
            await opened.store.close()


def share_store(where: Path | str, *, durability: Durability, seal: Seal, seal_source: Hashable) -> Sharing:
    """Return a share of the store of `where` in the running event loop; the first user creates the store.

    `seal_source` identifies the key of the seal: users with different keys do not share. Nothing is opened yet.
    """
    # A URL may have a relative path, which names another file after the process has changed its folder.
    folder = os.getcwd() if isinstance(where, str) else ""  # noqa: PTH109
    key = (str(where), folder, durability, seal_source, threading.get_ident())
    with _guard:
        places = _loops.setdefault(asyncio.get_running_loop(), {})
    opened = places.get(key)
    if opened is None:
        opened = places[key] = _Opened(open_store(where, durability=durability, seal=seal))
    opened.users += 1
    return Sharing(places, key, opened)
