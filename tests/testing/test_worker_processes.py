"""Work is shared among copies of a process; results come in order, whatever happens to the copies."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from functools import partial
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from quire.errors import CannotStart
from quire.testing import worker_processes
from quire.testing.worker_processes import WorkerFailed, in_order, one_each, usable_processes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="needs fork")


def _children() -> list[str]:
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        return []
    found: list[str] = []
    for task in tasks.iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread of an earlier test that has ended
            found += (task / "children").read_text().split()
    return found


@pytest.fixture(autouse=True)
def no_process_is_left() -> object:
    before = _children()
    yield
    assert _children() == before


def test_results_come_in_order_from_several_processes() -> None:
    read, write = os.pipe()

    def work(job: int) -> tuple[int, int]:
        if job == 0:
            os.read(read, 1)
        if job == 30:
            os.write(write, b"x")
        return job, os.getpid()

    results = list(in_order(range(50), work, 3, alone=0))
    assert [job for job, _ in results] == list(range(50))
    assert 1 < len({process for _, process in results} - {os.getpid()}) <= 3


def test_a_small_suite_stays_in_this_process() -> None:
    assert set(in_order(range(100), lambda job: os.getpid(), 4)) == {os.getpid()}


def test_a_slow_suite_is_shared_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which every look takes 20 ms."""
    monkeypatch.setattr(worker_processes, "time", SimpleNamespace(monotonic=partial(next, count(0, 0.02))))
    processes = list(in_order(range(40), lambda job: os.getpid(), 2))
    assert processes[:2] == [os.getpid()] * 2 and os.getpid() not in processes[2:]


def test_work_for_a_moment_is_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "time", SimpleNamespace(monotonic=partial(next, count(0, 0.012))))
    assert set(in_order(range(6), lambda job: os.getpid(), 2)) == {os.getpid()}


def test_one_process_is_this_one() -> None:
    assert set(in_order(range(10), lambda job: os.getpid(), 1, alone=0)) == {os.getpid()}


def test_each_job_may_have_a_process_of_its_own() -> None:
    results = list(one_each(range(9), lambda job: (job, os.getpid()), 2))
    assert [job for job, _ in results] == list(range(9))
    assert len({process for _, process in results} - {os.getpid()}) == 9


def test_large_results_arrive_whole() -> None:
    sizes = [3_000_000, 10, 2_000_000]
    assert [len(one) for one in in_order(sizes, lambda job: b"x" * job, 2, alone=0)] == sizes


def test_an_error_of_ours_is_raised_here() -> None:
    def work(job: int) -> int:
        if job == 3:
            raise CannotStart("the document is gone")
        return job

    with pytest.raises(CannotStart, match="the document is gone"):
        list(in_order(range(8), work, 2, alone=0))


def test_a_bug_has_the_traceback_of_its_process() -> None:
    def work(job: int) -> float:
        return 1 / job

    with pytest.raises(WorkerFailed, match="ZeroDivisionError"):
        list(in_order(range(4), work, 2, alone=0))


def test_a_killed_process_is_said_in_one_line() -> None:
    def work(job: int) -> int:
        if job == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return job

    with pytest.raises(CannotStart, match=r"was killed by signal 9; -j 1 runs them in this one") as caught:
        list(in_order(range(4), work, 2, alone=0))
    assert "\n" not in str(caught.value)


def test_ending_the_iteration_ends_the_processes() -> None:
    read, _ = os.pipe()

    def work(job: int) -> int:
        if job > 3:
            os.read(read, 1)
        return job

    results = in_order(range(50), work, 2, alone=0)
    assert list(islice(results, 2)) == [0, 1]
    results.close()  # type: ignore[attr-defined]


def test_a_process_with_threads_is_not_copied() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert usable_processes(7) == 1
    finally:
        done.set()
        thread.join()


def test_the_default_is_the_cores_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert usable_processes() == len(os.sched_getaffinity(0))
    assert usable_processes(7) == 7
