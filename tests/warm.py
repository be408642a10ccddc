"""Commands as processes of their own, without the time that Python takes to import what they need.

A parent that has imported all of Quire forks a child for each command, which runs `quire.cli.main`: a process with its
own memory, folder, environment, streams and death. Tests of what a start imports, and of code that lies in wait for
one, start Python themselves. Where the system has no `pidfd_open`, each command is a cold start.

The parent is a separate program (this file, run as a script): forking a test runner with its threads would not do. A
child that has ended stays until its exit code is asked for, so that its id cannot come to mean another process.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import io
import json
import os
import pkgutil
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Timer
from typing import Any

PATIENCE = 120.0
_ORDER_BYTES = 1_000_000
_NEEDED = (
    "asyncio",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "cryptography.hazmat.primitives.ciphers.algorithms",
    "cryptography.hazmat.primitives.serialization",
    "encodings.utf_8_sig",
    "lxml.etree",
    "mcp",
    "pwd",
    "re2",
    "resource",
)
"""What Quire imports along the way, where it is installed; none of it starts a thread."""
_LEFT_OUT = re.compile(r"__main__|pytest_plugin|models\.(compatible|failures|messages|providers)")
"""Modules that are programs, or that need libraries of providers, which hardly any command asks."""


class WarmProcess:
    """A command that runs. It has the methods of `subprocess.Popen` that tests need."""

    def __init__(self, parent: _Parent, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._parent = parent
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._handle], [], [], 0)[0]:
            self.returncode = self._parent.reap(self.pid)
            os.close(self._handle)
        return self.returncode

    def wait(self, timeout: float = PATIENCE) -> int:
        if self.returncode is None and not select.select([self._handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("quire", timeout)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start_quire(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
    terminal: bool = False,
    code: str = "",
) -> WarmProcess | subprocess.Popen[bytes]:
    """Starts `quire ARGUMENTS` in a session of its own. Streams are file descriptors; with `terminal` the input is the
    terminal of the session. `code` is run first, in the same process."""
    if not hasattr(os, "pidfd_open"):
        return _cold(arguments, cwd, env, (stdin, stdout, stderr), terminal, code)
    order = {"arguments": list(arguments), "folder": str(cwd), "environ": dict(env), "terminal": terminal, "code": code}
    nowhere = os.open(os.devnull, os.O_RDWR)
    try:
        streams = [nowhere if one == subprocess.DEVNULL else one for one in (stdin, stdout, stderr)]
        return WarmProcess(_parent(), _parent().ask(order, streams))
    finally:
        os.close(nowhere)


@contextlib.contextmanager
def running_quire(arguments: Sequence[str], **options: Any) -> Iterator[WarmProcess | subprocess.Popen[bytes]]:
    """Starts `quire ARGUMENTS` as `start_quire` does and kills it in the end, or after `PATIENCE` seconds, so that a
    test that reads its pipes fails instead of hanging."""
    process = start_quire(arguments, **options)
    alarm = Timer(PATIENCE, process.kill)
    alarm.daemon = True
    alarm.start()
    try:
        yield process
    finally:
        alarm.cancel()
        process.kill()
        process.wait()


def run_quire(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float = PATIENCE
) -> subprocess.CompletedProcess[str]:
    """Runs `quire ARGUMENTS` to its end, with nothing to read, and keeps what it prints."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start_quire(arguments, cwd=cwd, env=env, stdout=out.fileno(), stderr=err.fileno())
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode())
        return subprocess.CompletedProcess(list(arguments), code, *said)


def _cold(
    arguments: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    terminal: bool,
    code: str,
) -> subprocess.Popen[bytes]:
    enter = "\nimport sys\nfrom quire.cli import main\nsys.exit(main(sys.argv[1:]))\n"
    return subprocess.Popen(
        [sys.executable, "-c", code + enter, *arguments],
        cwd=cwd,
        env=env,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        start_new_session=True,
        preexec_fn=_own_terminal if terminal else None,
    )


def _own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class _Parent:
    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            for side in (self._ours, theirs):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ORDER_BYTES)
            number = theirs.fileno()
            self._process = subprocess.Popen([sys.executable, __file__, str(number)], pass_fds=[number])

    def ask(self, order: object, streams: Sequence[int] = ()) -> int:
        socket.send_fds(self._ours, [json.dumps(order).encode()], streams)
        answer = self._ours.recv(100)
        assert answer, "the parent of the processes has ended"
        return int(answer)

    def reap(self, pid: int) -> int:
        return self.ask({"reap": pid})

    def close(self) -> None:
        self._ours.close()
        self._process.wait()


@cache
def _parent() -> _Parent:
    parent = _Parent()
    atexit.register(parent.close)
    return parent


def _serve(door: socket.socket) -> None:
    for name in (*_NEEDED, *_modules()):
        with contextlib.suppress(ImportError):
            import_module(name)
    # The children share this memory until it is touched, and a collection of garbage touches all of it.
    gc.collect()
    gc.freeze()
    while True:
        data, streams, _, _ = socket.recv_fds(door, _ORDER_BYTES, 3)
        if not data:
            return
        order = json.loads(data)
        if "reap" in order:
            answer = os.waitstatus_to_exitcode(os.waitpid(order["reap"], 0)[1])
        elif not (answer := os.fork()):
            door.close()
            _become(order, streams)
        for stream in streams:
            os.close(stream)
        door.send(str(answer).encode())


def _modules() -> list[str]:
    import quire

    found = (module.name for module in pkgutil.walk_packages(quire.__path__, "quire.", onerror=lambda name: None))
    return [name for name in found if not _LEFT_OUT.search(name)]


def _become(order: dict[str, Any], streams: Sequence[int]) -> None:
    """Never returns."""
    code = 99
    try:
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        if order["terminal"]:
            _own_terminal()
        # A shell that starts the tests in the background has them ignore Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(order["environ"])
        os.chdir(order["folder"])
        sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.FileIO(0, "r", closefd=False), "utf-8")  # type: ignore[misc]
        sys.stdout = sys.__stdout__ = _writer(1, "strict")  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = _writer(2, "backslashreplace")  # type: ignore[misc]
        sys.argv = ["quire", *order["arguments"]]
        exec(compile(order["code"], "<before>", "exec"), {})
        from quire.cli import main

        code = main(order["arguments"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _writer(number: int, errors: str) -> io.TextIOWrapper:
    raw = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
    return io.TextIOWrapper(raw, "utf-8", errors, line_buffering=number == 2 or os.isatty(number))


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if entry != str(Path(__file__).parent)]
    _serve(socket.socket(fileno=int(sys.argv[1])))
