"""A control group around a sandbox that root starts: the kernel does not count root's processes for `RLIMIT_NPROC`.

The group lies below one that the caller is in already, so limits of the system still hold. Nothing of the system's own
groups is changed: where none of them lets its groups count processes, there is no group.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PREFIX = "quire-"
_SECONDS = 5.0


class ControlGroup:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def make(cls, processes: int) -> ControlGroup | None:
        """Return None where the system has no group to put one into, or does not let us."""
        for above in _counting():
            _sweep(above)
            folder = above / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
            with suppress(OSError):
                folder.mkdir()
                (folder / "pids.max").write_text(str(processes))
                return cls(folder)
            with suppress(OSError):
                folder.rmdir()
        return None

    def add(self, pid: int) -> None:
        """Raises `OSError`."""
        (self._folder / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Remove the group once its processes are gone, which the kernel reports a moment later."""
        until = time.monotonic() + _SECONDS
        while self._folder.exists() and time.monotonic() < until:
            with suppress(OSError):
                self._folder.rmdir()
                return
            time.sleep(0.005)


def _counting() -> Iterator[Path]:
    """Groups whose children can count processes, the nearest first; of both versions of the kernel's interface."""
    for mount in _lines("/proc/self/mounts"):
        _, folder, kind, options, *_ = mount.split(" ")
        for line in _lines("/proc/self/cgroup"):
            number, controllers, own = line.split(":", 2)
            group = Path(folder, own.lstrip("/"))
            if kind == "cgroup" and "pids" in options.split(",") and "pids" in controllers.split(","):
                yield group
            elif kind == "cgroup2" and number == "0":
                for above in (group, *group.parents):
                    if above.is_relative_to(folder) and "pids" in _words(above / "cgroup.subtree_control"):
                        yield above
                        break


def _sweep(above: Path) -> None:
    """Remove the groups of processes that were killed. Those that hold anything stay."""
    with suppress(OSError):
        for left in above.glob(f"{_PREFIX}*"):
            owner = left.name.removeprefix(_PREFIX).partition("-")[0]
            if owner.isdigit() and not Path("/proc", owner).exists():
                with suppress(OSError):
                    left.rmdir()


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    return " ".join(_lines(str(path))).split()
