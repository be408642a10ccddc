"""Connect a session to an editor: by the standard streams, or by a socket of this machine.

One loop waits for the editor, for the time of the next check, and for processes that do long work. Each of those
is a copy of this one (`fork`), so it knows every unsaved text, and its end leaves nothing behind. Where no process can
be copied, such work is done in between.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from quire.lsp.protocol import BadFraming, FrameReader, framed
from quire.lsp.session import Session
from quire.os_flags import IS_WINDOWS
from quire.python_process import is_alive

if TYPE_CHECKING:
    import socket

    from quire.lsp.jobs import Job

SECONDS_BETWEEN_LOOKS = 5.0
"""The editor's process is looked for this often. Its end usually closes the connection as well."""
SECONDS_BEFORE_COLLECTING = 2.0
"""Garbage is collected once the editor has been quiet for so long."""
_PIECE = 65_536
_CERTAIN = 4_096
"""Bytes that can be written to a pipe without waiting once it is ready."""
_LARGEST_PIPE = 1 << 20
"""Bytes of the largest pipe that a user of Linux may have."""
_LENGTH = 8
"""Bytes that give the length of a message from another process."""
CAN_FORK = hasattr(os, "fork")


class _Child:
    """The process that does one job."""

    def __init__(self, job: Job, process: int, pipe: int) -> None:
        self.job = job
        self.process = process
        self.pipe = pipe
        self._read = bytearray()

    def read(self) -> bool:
        """Read the output of the process. Return False at the end."""
        piece = os.read(self.pipe, _PIECE)
        self._read += piece
        return bool(piece)

    def messages(self) -> Iterator[bytes]:
        """Yield the messages that were read. The value after an empty one is the result."""
        while len(self._read) >= _LENGTH and (length := int.from_bytes(self._read[:_LENGTH])):
            if len(self._read) < _LENGTH + length:
                return
            message = bytes(self._read[_LENGTH : _LENGTH + length])
            del self._read[: _LENGTH + length]
            yield message

    def end(self) -> bytes | None:
        """Return the result, once the process is gone; None if it died."""
        os.close(self.pipe)
        _, status = os.waitpid(self.process, 0)
        return bytes(self._read[_LENGTH:]) if status == 0 else None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        self.end()


class Connection:
    """A session that reads from one file descriptor and writes to another."""

    def __init__(self, session: Session, reads: int, writes: int, *, collects: bool = False) -> None:
        """With `collects` the garbage of this process is collected when the editor is quiet, and seldom otherwise."""
        self._session = session
        self._collects = collects
        self._is_collected = True
        self._reads = reads
        self._writes = writes
        self._frames = FrameReader()
        self._out = bytearray()
        self._children: list[_Child] = []

    def serve(self) -> int:
        """Serve until the editor ends the session or is gone. Return the exit code."""
        try:
            while self._session.ended is None:
                if not self._turn(self._session.wait):
                    return self._session.ended if self._session.ended is not None else 1
                self._work()
            self._flush()
            return self._session.ended
        except BadFraming as error:
            print(f"quire: {error}", file=sys.stderr)
            return 2
        except (BrokenPipeError, ConnectionError):
            return 1
        finally:
            for child in self._children:
                child.kill()

    def _turn(self, wait: float | None) -> bool:
        """Wait until something can be read, written or done. Return False once the editor is gone."""
        most = SECONDS_BETWEEN_LOOKS if self._is_collected else SECONDS_BEFORE_COLLECTING
        seconds = most if wait is None else min(wait, most)
        reads = [self._reads, *(child.pipe for child in self._children)]
        ready, writable = self._wait(reads, seconds)
        if writable:
            self._write()
        for child in [child for child in self._children if child.pipe in ready]:
            goes_on = child.read()
            for heard in child.messages():
                self._session.hear(child.job, heard)
            if not goes_on:
                self._children.remove(child)
                self._session.finish(child.job, child.end())
        if self._reads in ready:
            data = self._read()
            if not data:
                return False
            for message in self._frames.feed(data):
                self._session.take(message)
        if ready or writable:
            self._is_collected = not self._collects
        elif not self._is_collected and seconds == most:
            _collect()
            self._is_collected = True
        return bool(ready or writable) or self._editor_lives()

    def _wait(self, reads: list[int], seconds: float) -> tuple[list[int], bool]:
        """Return the readable files, and whether the editor can be written to, if there is something to write."""
        ready, writable, _ = select.select(reads, [self._writes] if self._out else [], [], seconds)
        return ready, bool(writable)

    def _read(self) -> bytes:
        return os.read(self._reads, _PIECE)

    def _work(self) -> None:
        """Do the possible work. New messages are taken in between, so that a cancellation is seen in time."""
        while self._session.wait == 0 and self._session.ended is None:
            job = self._session.work()
            for child in [child for child in self._children if child.job.is_old()]:
                self._children.remove(child)
                child.kill()
                self._session.finish(child.job, None)
            if job is not None:
                self._children.append(_begin(job, self._reads))
            for message in self._session.sent():
                self._out += framed(message)
            if self._out or self._wait([self._reads], 0)[0]:
                return
        for message in self._session.sent():
            self._out += framed(message)

    def _write(self) -> None:
        """Write as much as the editor can take now. Only the first bytes are certain not to wait, so for more than
        these the pipe says how many it takes: findings about a large document fill it many times."""
        if len(self._out) <= _CERTAIN or not hasattr(os, "set_blocking"):
            del self._out[: os.write(self._writes, self._out[:_CERTAIN])]
            return
        os.set_blocking(self._writes, False)
        try:
            with contextlib.suppress(BlockingIOError):
                del self._out[: os.write(self._writes, self._out[:_LARGEST_PIPE])]
        finally:
            os.set_blocking(self._writes, True)

    def _flush(self) -> None:
        for message in self._session.sent():
            self._out += framed(message)
        while self._out:
            del self._out[: os.write(self._writes, self._out[:_CERTAIN])]

    def _editor_lives(self) -> bool:
        return self._session.process is None or os.name == "nt" or is_alive(self._session.process)


class ThreadConnection(Connection):
    """A connection for Windows, which can only wait for sockets: a thread reads, and writing waits for the editor.
    Without `fork` it has nothing else to wait for."""

    def __init__(self, session: Session, reads: int, writes: int, *, collects: bool = False) -> None:
        super().__init__(session, reads, writes, collects=collects)
        self._arrived: SimpleQueue[bytes] = SimpleQueue()
        self._next: deque[bytes] = deque()
        threading.Thread(target=self._read_on, daemon=True).start()

    def _read_on(self) -> None:
        while data := os.read(self._reads, _PIECE):
            self._arrived.put(data)
        self._arrived.put(b"")

    def _wait(self, reads: list[int], seconds: float) -> tuple[list[int], bool]:
        with contextlib.suppress(Empty):
            self._next.append(self._arrived.get(timeout=0 if self._out or self._next else seconds))
        return (reads if self._next else []), bool(self._out)

    def _read(self) -> bytes:
        return self._next.popleft()


def _begin(job: Job, reads: int) -> _Child:
    """Start a copy of this process that does a job and writes the result to a pipe."""
    pipe, writes = os.pipe()
    process = os.fork()
    if process:
        os.close(writes)
        return _Child(job, process, pipe)
    status = 1
    try:
        gc.disable()  # it would copy the pages of everything that it looks at
        os.close(pipe)
        os.close(reads)
        os.nice(5)
        with os.fdopen(writes, "wb") as file:

            def send(message: bytes) -> None:
                file.write(len(message).to_bytes(_LENGTH) + message)
                file.flush()

            job.send = send
            result = job.run()
            file.write(bytes(_LENGTH) + result)
        status = 0
    finally:
        os._exit(status)


def _collect() -> None:
    """Collect all garbage, and let later collections look only at new objects."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _collect_seldom() -> None:
    """Do not look at everything while the user types: that takes as long as a check of a large document."""
    gc.set_threshold(700, 10, 1_000)


def serve_stdio() -> int:
    """Serve the editor that has started this process. Only the protocol is written to standard output: the output of
    libraries goes to standard error."""
    reads, writes = os.dup(0), os.dup(1)
    _widen(writes)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    _collect_seldom()
    kind = ThreadConnection if IS_WINDOWS else Connection
    return kind(Session(forks=CAN_FORK), reads, writes, collects=True).serve()


def _widen(pipe: int) -> None:
    """Let a pipe hold the findings about a large document. One of the usual size holds a ninth of them: the editor and
    this process would have to take turns, and on a busy machine each turn waits."""
    if sys.platform == "linux":
        # Not a pipe, or more than the user may have; not every Python has the module.
        with contextlib.suppress(OSError, ImportError):
            import fcntl

            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _LARGEST_PIPE)


def serve_socket(listening: socket.socket) -> int:
    """Serve the first client of a socket."""
    with listening:
        client, _ = listening.accept()
    with client:
        _collect_seldom()
        return Connection(Session(forks=CAN_FORK), client.fileno(), client.fileno(), collects=True).serve()
