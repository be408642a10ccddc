"""Know the files that a test depends on, and notice when one of them changes.

The files are those that a process opened while it ran the test: the test itself, its document and the documents that
it calls, prompts, rows, settings. A test whose file has a problem of its own also depends on the folder: the document
that it misses may appear there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

import quire

if TYPE_CHECKING:
    from quire.testing.case_results import FileResult
    from quire.testing.file_run import FileOptions
    from quire.testing.suite import Job

Stamp: TypeAlias = tuple[int, int, int] | None
"""Time of the last change, size and number of a file; None if it does not exist."""

_SYSTEM = ("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/dev/fd")
_OWN = str(Path(quire.__file__).parent)
_CODE = (".py", ".pyc", ".so", ".pth")


class WatchedRun(Struct, frozen=True):
    """The result of a test file, with everything that the watching process has to know."""

    result: FileResult
    stamps: Mapping[str, Stamp]
    """The files that were opened, as they were before the run."""
    modules: tuple[str, ...]
    """The modules that the run loaded. A process that has them already runs the next test faster."""


def run_watched(job: Job, options: FileOptions) -> WatchedRun:
    """Run a test in a process that ends afterwards: an audit hook cannot be removed."""
    from quire.testing.suite import run_job

    before = set(sys.modules)
    opened = _Opened()
    sys.addaudithook(opened.hear)
    opened.note(job.path)
    result = run_job(job, options)
    if any(problem.fails for problem in result.problems):
        opened.note(str(Path(job.path).absolute().parent))
    stamps = {path: stamp for path, stamp in opened.stamps.items() if stamp is not None and stamp_of(path) is not None}
    loaded = tuple(_installed(set(sys.modules) - before))
    return WatchedRun(result, stamps or {os.path.abspath(job.path): None}, loaded)  # noqa: PTH100


def _installed(modules: Iterable[str]) -> Iterator[str]:
    """Yield those of some modules that are Quire's own or of Python's libraries: code of a workspace is not."""
    from sysconfig import get_paths

    libraries = tuple({get_paths()[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    for module in modules:
        spec = getattr(sys.modules[module], "__spec__", None)
        origin = getattr(spec, "origin", None) or ""
        if origin in ("built-in", "frozen") or origin.startswith((*libraries, _OWN)):
            yield module


class _Opened:
    def __init__(self) -> None:
        self.stamps: dict[str, Stamp] = {}

    def hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            self.note(os.fsdecode(arguments[0]))

    def note(self, name: str) -> None:
        path = os.path.abspath(name)  # noqa: PTH100  # a path that is changed as little as possible
        if path in self.stamps or path.endswith(_CODE) or path.startswith(_SYSTEM):
            return
        self.stamps[path] = stamp_of(path)


def stamp_of(path: str) -> Stamp:
    try:
        status = os.stat(path)  # noqa: PTH116  # asked for hundreds of files, many times a second
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class Watched:
    """The tests that are watched, with the files that each depends on."""

    def __init__(self) -> None:
        self._files: dict[str, Mapping[str, Stamp]] = {}
        """By the path of the test."""

    def note(self, test: str, stamps: Mapping[str, Stamp]) -> None:
        """Remember the files that a run of a test opened."""
        self._files[test] = stamps

    def forget(self, tests: Iterable[str]) -> None:
        for test in list(tests):
            self._files.pop(test, None)

    @property
    def tests(self) -> list[str]:
        return list(self._files)

    @property
    def count(self) -> int:
        """The number of files that are watched."""
        return len({path for stamps in self._files.values() for path in stamps})

    def changed(self) -> list[str]:
        """Return the tests of which a file has changed since it was opened."""
        now: dict[str, Stamp] = {}
        changed = []
        for test, stamps in self._files.items():
            for path, before in stamps.items():
                if path not in now:
                    now[path] = stamp_of(path)
                if now[path] != before:
                    changed.append(test)
                    break
        return changed
