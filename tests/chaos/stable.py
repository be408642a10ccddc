"""Processes to be killed, from one that has everything imported already.

A cold start costs most of a second, in which there is little to interrupt. So a parent that has imported what the
verbs need forks a child for each command; the child runs `quire.cli.main`, or becomes `python -m quire` where a cold
start is wanted. Either is a process of its own that dies as processes do.

The parent is a separate program (this file, run as a script): forking a test runner with its threads would not do. It
leaves a child that has ended unreaped until it is told to go on, so that its id cannot come to mean another process.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

PATIENCE = 60.0
_TICK = 0.0002
_NEEDED = (
    "asyncio",
    "difflib",
    "encodings.utf_8_sig",
    "quire.cli.resume",
    "quire.cli.app",
    "quire.cli.resume",
    "quire.cli.run",
    "quire.cli.runs",
    "quire.formats.directive.check",
    "quire.formats.pipeline.check",
    "quire.formats.playbook.check",
    "quire.display.run_page",
    "quire.library.directives",
    "quire.runs.launch",
    "quire.stores.postgres.store",
    "quire.stores.sqlite.store",
    "quire.tools.builtin.connection",
    "quire.library.item_tools.connection",
    "quire.tools.mcp",
    "quire.tools.python",
    "quire.library.item_tools.fetch",
)
"""What the verbs import along the way, where it is installed; none of it starts a thread."""


@dataclass(frozen=True, slots=True)
class Exit:
    """`killed` is false where the process ended by itself before its time came; then `code` is its own."""

    code: int
    killed: bool
    after: float
    out: str
    err: str


class Stable:
    """Starts one process after the other. Close it, or use it as a context."""

    def __init__(self, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._streams = scratch / "out", scratch / "err"
        self._parent = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert self._read() == "ready"

    def __enter__(self) -> Stable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        arguments: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        *,
        now: Callable[[float], bool] = lambda elapsed: False,
        cold: bool = False,
        file_limit: int | None = None,
        user: int | None = None,
    ) -> Exit:
        """Runs a command, and kills it as soon as `now`, asked every fraction of a millisecond, says so."""
        self.start(arguments, folder, environ, cold=cold, file_limit=file_limit, user=user)
        return self.finish(now)

    def start(
        self,
        arguments: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        *,
        cold: bool = False,
        file_limit: int | None = None,
        user: int | None = None,
    ) -> None:
        """`file_limit` is how large a file may get, in bytes; `user` the account, for those who may change theirs."""
        for stream in self._streams:
            stream.write_bytes(b"")  # a process that is killed at once opens none
        self._write(
            {
                "arguments": list(arguments),
                "folder": str(folder),
                "environ": dict(environ),
                "streams": [str(one) for one in self._streams],
                "cold": cold,
                "file_limit": file_limit,
                "user": user,
            }
        )
        self._pid = int(self._read())
        self._started = time.monotonic()

    def finish(self, now: Callable[[float], bool] = lambda elapsed: False) -> Exit:
        assert self._parent.stdout is not None
        killed = False
        while not select.select([self._parent.stdout], [], [], _TICK)[0]:
            elapsed = time.monotonic() - self._started
            if not killed and (now(elapsed) or elapsed > PATIENCE):
                killed = True
                os.kill(self._pid, signal.SIGKILL)
                assert elapsed <= PATIENCE, f"still there after {PATIENCE} s: {self._streams[1].read_text()}"
        after = time.monotonic() - self._started
        assert self._read() == "ended"
        self._write("reap")
        code = int(self._read())
        out, err = (stream.read_text(encoding="utf-8", errors="replace") for stream in self._streams)
        return Exit(code, code == -signal.SIGKILL, after, out, err)

    def close(self) -> None:
        for pipe in (self._parent.stdin, self._parent.stdout):
            assert pipe is not None
            pipe.close()
        self._parent.wait()

    def _write(self, message: object) -> None:
        assert self._parent.stdin is not None
        self._parent.stdin.write(json.dumps(message).encode() + b"\n")

    def _read(self) -> str:
        assert self._parent.stdout is not None
        line: str = json.loads(self._parent.stdout.readline())
        return str(line)


def _serve() -> None:
    for name in _NEEDED:
        with contextlib.suppress(ImportError):
            import_module(name)

    def say(message: object) -> None:
        os.write(1, json.dumps(message).encode() + b"\n")

    say("ready")
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        pid = os.fork()
        if not pid:
            _become(order)
        say(pid)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        say("ended")
        if not sys.stdin.readline():
            break
        say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _become(order: dict[str, object]) -> None:
    """Never returns."""
    code = 99
    try:
        streams = order["streams"]
        assert isinstance(streams, list)
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, 0)
        for number, name in enumerate(streams, 1):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.chdir(str(order["folder"]))
        environ = order["environ"]
        assert isinstance(environ, dict)
        os.environ.update(environ)
        limit = order["file_limit"]
        if isinstance(limit, int):
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        user = order["user"]
        if isinstance(user, int):
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        arguments = order["arguments"]
        assert isinstance(arguments, list)
        if order["cold"]:
            os.execv(sys.executable, [sys.executable, "-m", "quire", *arguments])
        if patience := os.environ.get("CHAOS_PATIENCE"):
            import quire.engine.driver.journal

            quire.engine.driver.journal.LOCK_PATIENCE_SECONDS = float(patience)
        from quire.cli import main

        code = main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve()
