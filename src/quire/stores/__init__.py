"""Durable storage of runs. `open_store` chooses the implementation behind the engine's `Store` port."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from quire.errors import StoreError
from quire.installed import add_extra
from quire.trust.seal import PUBLIC_SEAL, Seal

if TYPE_CHECKING:
    from quire.engine.ports import Store

__all__ = ["DEFAULT_PATH", "file_of", "is_server", "open_store"]

DEFAULT_PATH = Path(".quire", "quire.db")
"""Relative to the workspace."""


def open_store(
    where: Path | str,
    *,
    durability: Literal["power", "process"] = "power",
    now: Callable[[], float] = time.time,
    busy_timeout: float = 5.0,
    seal: Seal = PUBLIC_SEAL,
    read_only: bool = False,
) -> Store:
    """Return the store of a path or URL: `sqlite:///relative.db`, `sqlite:////absolute.db` or just the path of the
    file; `postgresql://USER@HOST/DATABASE` for a store that several hosts share.

    `seal` is the seal of the user for whom runs are driven. Nothing is opened yet, so this never fails because of the
    disk or the network; the first method that needs them does. With `read_only` a file is read without a trace.
    """
    if isinstance(where, str):
        if is_server(where):
            return _open_postgres(where, durability, now, seal)
        scheme, separator, rest = where.partition("://")
        if separator and scheme != "sqlite":
            raise StoreError(
                f"a store at {scheme}:// is not known to this Quire: use a path, sqlite:///PATH or "
                "postgresql://USER@HOST/DATABASE"
            )
        if separator and not rest.startswith("/"):
            raise StoreError(f"{where} names a host: write sqlite:///PATH, with three slashes")
    # sqlite3 costs milliseconds of start-up that only the verbs about runs should pay.
    from quire.stores.sqlite.store import SqliteStore

    return SqliteStore(
        file_of(where), durability=durability, now=now, busy_timeout=busy_timeout, seal=seal, read_only=read_only
    )


def file_of(where: Path | str) -> Path:
    """Return the path of a store that is a file."""
    _, separator, rest = str(where).partition("://")
    return Path(rest[1:]) if separator else Path(where)


def is_server(where: Path | str) -> bool:
    """Tell whether a store is behind a network: its methods wait. Those of a file that only read never do."""
    return isinstance(where, str) and where.partition("://")[0] in ("postgresql", "postgres") and "://" in where


def _open_postgres(url: str, durability: Literal["power", "process"], now: Callable[[], float], seal: Seal) -> Store:
    try:
        from quire.stores.postgres.store import PostgresStore
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != "psycopg":
            raise
        raise StoreError(f"a PostgreSQL store needs psycopg: {add_extra('cluster')}") from None
    return PostgresStore(url, durability=durability, now=now, seal=seal)
