"""Set the limits of a sandbox and end it: nothing of a command outlives its call.

Bubblewrap delays the start of the command until the limits are set on the process that holds the sandbox. The
kernel enforces the limits of single processes, and the number of processes: for root by a control group. A thread
checks the memory of all processes together, and their number without such a group.
"""

from __future__ import annotations

import json
import os
import select
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.errors import ToolFailed
from quire.tools.blocking import in_thread
from quire.tools.sandbox import ControlGroup, filter_program

if TYPE_CHECKING:
    from quire.workspace.settings import SandboxSettings

MB = 1024 * 1024
_PAUSE = 0.03
_LONGEST_END = 30.0
_COUNTED_PER_NAMESPACE = (5, 14)
"""The Linux release since which `RLIMIT_NPROC` counts the processes of a user namespace, not all of the account."""


class Watch:
    """One sandbox from start to end. Use it as a context manager: call `told`, start the process, then `released`, then
    `emptied`."""

    def __init__(self, limits: SandboxSettings, *, network: bool) -> None:
        half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MB // 2
        self._limits = replace(limits, memory=min(limits.memory, half))
        self._info, self._tell = os.pipe()
        self._wait, self._go = os.pipe()
        self._filter, end = os.pipe()
        os.write(end, filter_program(network=network))
        os.close(end)
        self._open = {self._info, self._tell, self._wait, self._go, self._filter}
        self._line: list[str] = []
        self._holder = 0
        self._over = ""
        self._ended = threading.Event()
        self._group: ControlGroup | None = None

    @property
    def passed(self) -> tuple[int, ...]:
        """The handles that bubblewrap gets. The last one keeps it waiting if this process dies before the limits are
        set."""
        return self._tell, self._wait, self._filter, self._go

    def told(self, command: Sequence[str]) -> list[str]:
        """Return the command line of `sandboxed` with these handles added."""
        handles = {"--info-fd": self._tell, "--block-fd": self._wait, "--seccomp": self._filter}
        self._line = [command[0], *(str(word) for pair in handles.items() for word in pair), *command[1:]]
        return self._line

    def released(self, seconds: float) -> None:
        """Set the limits and let the command start; return without that if bubblewrap has failed. Blocks shortly."""
        self._close(self._tell, self._wait, self._filter)
        self._holder = self._told_holder()
        if not self._holder or self._ended.is_set():
            return
        try:
            if os.geteuid() == 0:
                self._join_group()
            _set_limits(self._holder, self._limits, seconds, counted=bool(self._group) or os.geteuid() != 0)
        except ProcessLookupError:
            return
        except OSError as error:
            self._over = f"could not be limited ({error})"
            self._kill()
            return
        threading.Thread(target=self._look, name="quire-sandbox", daemon=True).start()
        with suppress(BrokenPipeError):
            os.write(self._go, b"x")

    def end(self) -> None:
        """Let `released` return, even if bubblewrap was killed before it reported anything."""
        self._ended.set()

    def _told_holder(self) -> int:
        text, poll = bytearray(), select.poll()
        poll.register(self._info, select.POLLIN)
        while True:
            readable = poll.poll(0 if self._ended.is_set() else int(_PAUSE * 1000))
            if not readable and self._ended.is_set():
                return 0
            piece = os.read(self._info, 65_536) if readable else b""
            text += piece
            with suppress(ValueError, KeyError):
                return int(json.loads(text)["child-pid"])
            if readable and not piece:
                return 0

    def check(self) -> None:
        """Raise `ToolFailed` if the sandbox was ended because of a limit."""
        if self._over:
            raise ToolFailed(f"the command {self._over} and was ended", kind="limit")

    async def emptied(self) -> None:
        """Wait until the sandbox is empty, after bubblewrap has ended. The kernel ends all other processes in it before
        the holder is gone."""
        import asyncio

        until, pause = time.monotonic() + _LONGEST_END, 0.001
        while self._holder and time.monotonic() < until and self._runs():
            self._kill()
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        if self._group:
            await in_thread(self._group.remove)

    def _join_group(self) -> None:
        group = ControlGroup.make(self._limits.processes)
        if group is None:
            return
        try:
            group.add(self._holder)
        except OSError:
            group.remove()
        else:
            self._group = group

    def _look(self) -> None:
        while not self._ended.wait(_PAUSE):
            self._over = _excess(self._holder, self._limits)
            if self._over:
                if self._runs():
                    self._kill()
                return

    def _kill(self) -> None:
        with suppress(OSError):
            os.kill(self._holder, signal.SIGKILL)

    def _runs(self) -> bool:
        """Tell whether the holder is still this sandbox's: a zombie has no command line, and a number may be reused."""
        try:
            return Path(f"/proc/{self._holder}/cmdline").read_bytes() == "\0".join([*self._line, ""]).encode()
        except OSError:
            return False

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._close(*self._open)

    def _close(self, *handles: int) -> None:
        for handle in handles:
            if handle in self._open:
                self._open.discard(handle)
                os.close(handle)


def _set_limits(holder: int, limits: SandboxSettings, seconds: float, *, counted: bool) -> None:
    """Set the limits of the holder. `counted` states whether the kernel limits the number of processes."""
    import resource

    bounds = {
        # 1 and not 0: with 0 the kernel would still start the program that `core_pattern` pipes to, outside the
        # sandbox.
        resource.RLIMIT_CORE: 1,
        resource.RLIMIT_CPU: int(seconds * (os.cpu_count() or 1)) + 1,
        resource.RLIMIT_DATA: 2 * limits.memory * MB,
        resource.RLIMIT_FSIZE: limits.file * MB,
    }
    if _release() >= _COUNTED_PER_NAMESPACE:
        bounds[resource.RLIMIT_NPROC] = limits.processes
    for which, most in bounds.items():
        _, hard = resource.prlimit(holder, which)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(holder, which, (most, most))
    # If memory runs out all the same, and when processes compete for the processor, the rest of the machine comes
    # first.
    Path(f"/proc/{holder}/oom_score_adj").write_text("1000")
    later = 5 if counted else 19
    os.setpriority(os.PRIO_PROCESS, holder, min(19, os.getpriority(os.PRIO_PROCESS, 0) + later))


def _release() -> tuple[int, ...]:
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdigit())


def _excess(holder: int, limits: SandboxSettings) -> str:
    """Return the limit that the processes of a sandbox exceed together, or the empty text."""
    processes, pending = [], [holder]
    while pending:
        pid = pending.pop()
        processes.append(pid)
        if len(processes) > limits.processes:
            return f"had more than {limits.processes:,} processes"
        pending += _children(pid)
    most = limits.memory * MB
    # Resident size counts shared pages for each process; the proportional size does not, but takes longer.
    if sum(map(_resident, processes)) > most and sum(map(_proportional, processes)) > most:
        return f"used more than {limits.memory:,} MB of memory"
    return ""


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                yield from map(int, (thread / "children").read_text().split())


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    """Return the memory with shared pages divided among their users; files that are only read are not counted."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return _resident(pid)
    sizes = (line.split() for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return sum(int(size[1]) * 1024 for size in sizes)
