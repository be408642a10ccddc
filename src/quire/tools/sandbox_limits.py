"""System-call filter and control group of the sandbox, for what namespaces and `RLIMIT_NPROC` do not cover.

Keyrings of the kernel, the sockets between a virtual machine and its host and, with a shared network, the abstract
sockets of other programs can be reached from every namespace. The filter is classic BPF, as `bwrap --seccomp` takes it.

The kernel does not count root's processes for `RLIMIT_NPROC`, so a sandbox that root starts gets a control group. The
group lies below one that the caller is already in, so limits of the system still hold. The system's own groups are not
changed: if none of them lets its children count processes, no group is made.
"""

from __future__ import annotations

import errno
import os
import platform
import secrets
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
_VSOCK, _ALG = 40, 38
_X32 = 0x40000000


class _Machine(Struct, frozen=True):
    """Numbers of system calls. `refused` are add_key, request_key, keyctl, perf_event_open, bpf and io_uring_setup: the
    last one opens sockets past any filter."""

    architecture: int
    socket: int
    socketpair: int
    refused: tuple[int, ...]
    ptrace: int = 117


_GENERIC = (217, 218, 219, 241, 280, 425)
_MACHINES = {
    "x86_64": _Machine(0xC000003E, 41, 53, (248, 249, 250, 298, 321, 425), 101),
    "aarch64": _Machine(0xC00000B7, 198, 199, _GENERIC),
    "riscv64": _Machine(0xC00000F3, 198, 199, _GENERIC),
    "loongarch64": _Machine(0xC0000102, 198, 199, _GENERIC),
}


def filter_program(*, network: bool) -> bytes:
    """Return the filter for this machine. With `network`, sockets of the Unix family are refused. Raises `OSError`."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(f"its filter of system calls does not know the machine {platform.machine()}")
    families = (_VSOCK, _ALG, *((socket.AF_UNIX,) if network else ()))
    no_call, no_family = _ERRNO | errno.ENOSYS, _ERRNO | errno.EAFNOSUPPORT
    program = [
        _step(_LOAD, _ARCHITECTURE),
        # Programs for another architecture number their calls differently.
        *_unless(machine.architecture, no_call),
        _step(_LOAD, _NUMBER),
    ]
    if machine.architecture == _MACHINES["x86_64"].architecture:
        program += [_step(_AT_LEAST, _X32, 0, 1), _step(_RETURN, no_call)]
    for number in machine.refused:
        program += _when(number, no_call)
    # A command that stops the first process of its sandbox would hang until its time is over.
    of_trace = [_step(_LOAD, _SECOND), *_when(1, _ERRNO | errno.EPERM), _step(_RETURN, _ALLOW)]
    program += [_step(_EQUAL, machine.ptrace, 0, len(of_trace)), *of_trace]
    refusals = [step for family in families for step in _when(int(family), no_family)]
    of_socket = [_step(_LOAD, _FIRST), *refusals, _step(_RETURN, _ALLOW)]
    program += [_step(_EQUAL, machine.socket, 0, len(of_socket)), *of_socket]
    if network:
        # Datagrams of a pair can be sent to any address; streams cannot.
        of_pair = [_step(_LOAD, _SECOND), _step(_AND, 0xF), *_when(int(socket.SOCK_DGRAM), no_family)]
        program += [_step(_EQUAL, machine.socketpair, 0, len(of_pair)), *of_pair]
    return b"".join([*program, _step(_RETURN, _ALLOW)])


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)


def _when(value: int, result: int) -> list[bytes]:
    return [_step(_EQUAL, value, 0, 1), _step(_RETURN, result)]


def _unless(value: int, result: int) -> list[bytes]:
    return [_step(_EQUAL, value, 1, 0), _step(_RETURN, result)]


_PREFIX = "quire-"
_SECONDS = 5.0


class ControlGroup:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def make(cls, processes: int) -> ControlGroup | None:
        """Make a group; return None if the system has no suitable parent group or does not permit it."""
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
        """Move a process into the group. Raises `OSError`."""
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
    """Yield groups whose children can count processes, the nearest first, for both versions of the kernel's
    interface."""
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
    """Remove the groups of owners that were killed. Groups that still contain processes stay."""
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
