"""Share work among processes that are copies of this one, and yield the results in order.

A copy has everything loaded already, so it costs a few milliseconds, where a new Python costs a hundred. Only systems
on which a process can be copied safely are used so; elsewhere the work is done here. This process works alone first:
most suites end before a copy would pay.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Generic, TypeVar, cast

from quire.errors import CannotStart, QuireError

Job = TypeVar("Job")
Result = TypeVar("Result")

ALONE = 0.05
"""Seconds that this process works alone."""
WORTH = 0.05
"""Seconds of work that must probably be left for copies to pay."""
_LENGTH = struct.Struct("!Q")


class WorkerFailed(RuntimeError):
    """A bug in a worker process; the text is its traceback."""


def usable_processes(count: int | None = None) -> int:
    """Return the number of processes to use: the wanted one, or that of the cores this process may use."""
    if not _can_copy():
        return 1
    if count is not None:
        return count
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _can_copy() -> bool:
    """Tell whether copying is safe. The system libraries of macOS are not made for it, and a copy has only one of the
    threads: a lock that another one holds is never released."""
    return hasattr(os, "fork") and sys.platform != "darwin" and threading.active_count() == 1


def one_each(jobs: Sequence[Job], work: Callable[[Job], Result], processes: int) -> Iterator[Result]:
    """Do each job in a copy of its own, so that nothing of one job is left for the next; else as `in_order`."""
    return _Pool(jobs, work, min(processes, len(jobs)), fresh=True).results()


def in_order(
    jobs: Sequence[Job], work: Callable[[Job], Result], processes: int, *, alone: float | None = None
) -> Iterator[Result]:
    """Do all jobs and yield their results in the order of the jobs. Ending the iteration ends the processes.

    Raises the `QuireError` of a job, `WorkerFailed` for any other exception in a worker, and `CannotStart` if a worker
    was killed.
    """
    alone = ALONE if alone is None else alone
    began = time.monotonic()
    for number, job in enumerate(jobs):
        left = len(jobs) - number
        spent = time.monotonic() - began
        pays = number > 0 and left > 1 and spent >= alone and spent / number * left >= WORTH
        if processes > 1 and (pays or (alone == 0 and number == 0 and left > 1)):
            yield from _Pool(jobs[number:], work, min(processes, left)).results()
            return
        yield work(job)


class _Worker(Generic[Job, Result]):
    """One copy of this process, with a pipe in each direction."""

    def __init__(self, jobs: Sequence[Job], work: Callable[[Job], Result], others: Sequence[_Worker[Job, Result]]):
        orders, self.orders = os.pipe()
        self.results, results = os.pipe()
        self.job: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                # A copy that held the ends of its siblings' pipes would keep them alive after this process.
                for other in others:
                    os.close(other.orders)
                    os.close(other.results)
                os.close(self.orders)
                os.close(self.results)
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                _serve(jobs, work, orders, results)
                code = 0
            finally:
                os._exit(code)
        os.close(orders)
        os.close(results)

    def give(self, number: int) -> None:
        self.job = number
        with suppress(BrokenPipeError):  # it was killed; reading its result says so
            os.write(self.orders, _LENGTH.pack(number))

    def take(self) -> object:
        """Read one result. Raises `EOFError` if the process has ended."""
        length = _LENGTH.unpack(_read(self.results, _LENGTH.size))[0]
        return pickle.loads(_read(self.results, length))  # noqa: S301  # from a copy of this process

    def end(self) -> int:
        """End the process and return its status."""
        with suppress(OSError):
            os.close(self.orders)
        with suppress(OSError):
            os.close(self.results)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            return os.waitpid(self.pid, 0)[1]
        return 0

    def status(self) -> str:
        """Say how a process ended by itself."""
        with suppress(ChildProcessError):
            status = os.waitpid(self.pid, 0)[1]
            if os.WIFSIGNALED(status):
                return f"was killed by signal {os.WTERMSIG(status)}"
        return "ended"


def _serve(jobs: Sequence[Job], work: Callable[[Job], Result], orders: int, results: int) -> None:
    while True:
        try:
            number = _LENGTH.unpack(_read(orders, _LENGTH.size))[0]
        except EOFError:
            return
        try:
            answer: object = (True, work(jobs[number]))
            data = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        except QuireError as error:
            data = pickle.dumps((False, error.exit_code, str(error)))
        except BaseException:
            data = pickle.dumps((False, None, traceback.format_exc()))
        _write(results, _LENGTH.pack(len(data)) + data)


class _Pool(Generic[Job, Result]):
    """Workers that each get the next job when they are done with the one before."""

    def __init__(
        self, jobs: Sequence[Job], work: Callable[[Job], Result], processes: int, *, fresh: bool = False
    ) -> None:
        self.jobs = jobs
        self.work = work
        self.fresh = fresh
        """True to replace each worker after one job."""
        self.workers: list[_Worker[Job, Result]] = []
        gc.freeze()  # so that collections in a copy do not touch, and thereby duplicate, the memory of this process
        try:
            for _ in range(processes):
                self._start()
        except CannotStart:
            self._end()
            raise

    def _start(self) -> _Worker[Job, Result]:
        try:
            self.workers.append(_Worker(self.jobs, self.work, self.workers))
        except OSError as error:
            raise CannotStart(f"no process can be started: {error.strerror or error}; -j 1 needs none") from None
        return self.workers[-1]

    def results(self) -> Iterator[Result]:
        waiting: dict[int, Result] = {}
        selector = selectors.DefaultSelector()
        pending = iter(range(len(self.jobs)))
        awaited = 0
        try:
            for worker in self.workers:
                selector.register(worker.results, selectors.EVENT_READ, worker)
                worker.give(next(pending))
            while awaited < len(self.jobs):
                for key, _ in selector.select():
                    worker = key.data
                    waiting[worker.job] = self._result(worker)
                    number = next(pending, None)
                    if number is None or self.fresh:
                        selector.unregister(worker.results)
                    if number is not None and self.fresh:
                        self.workers.remove(worker)
                        worker.end()
                        worker = self._start()
                        selector.register(worker.results, selectors.EVENT_READ, worker)
                    if number is not None:
                        worker.give(number)
                while awaited in waiting:
                    yield waiting.pop(awaited)
                    awaited += 1
        finally:
            selector.close()
            self._end()

    def _result(self, worker: _Worker[Job, Result]) -> Result:
        try:
            answer = worker.take()
        except EOFError:
            raise CannotStart(f"a process that ran tests {worker.status()}; -j 1 runs them in this one") from None
        match answer:
            case (True, result):
                return cast("Result", result)
            case (False, None, str(text)):
                raise WorkerFailed(text)
            case (False, _, str(text)):
                raise CannotStart(text)
        raise WorkerFailed("a worker process sent something else than a result")

    def _end(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers = []
        gc.unfreeze()


def _read(file: int, length: int) -> bytes:
    pieces: list[bytes] = []
    while length:
        piece = os.read(file, min(length, 1 << 20))
        if not piece:
            raise EOFError
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
