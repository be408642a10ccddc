"""Run commands in bubblewrap: they see the system's programs and the workspace, and little else.

The workspace can be written, except for the protected places. The home folder, the rest of the machine and the network
are not visible; `/tmp` is private. `sandbox_watch` sets the limits and ends a command. A filter of system calls and a
control group cover what namespaces and `RLIMIT_NPROC` do not.
"""

from __future__ import annotations

import errno
import functools
import os
import platform
import secrets
import shutil
import socket
import stat
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from quire.errors import Denied
from quire.workspace.grants import is_everything

TMP_BYTES = 512 * 1024 * 1024
MAX_PLACES = 1000
"""The maximum number of binds of one sandbox. bubblewrap's time grows with their square, to about 2 seconds for
these."""

_NOBODY = "65534"
_MASKED = frozenset({"kcore", "keys", "key-users", "interrupts", "sched_debug", "latency_stats", "timer_stats"})
_TRIAL = "! ( : >> /proc/sys/kernel/core_pattern ) 2>/dev/null || { echo /proc/sys can be written >&2; exit 1; }"

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
# Not all of /etc: it contains secrets that a user (or root, in a container) can read.
# fmt: off
_ETC = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts",
    "gai.conf", "group", "host.conf", "hosts", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "locale.alias", "locale.conf", "lsb-release", "magic", "mime.types", "networks", "nsswitch.conf",
    "os-release", "passwd", "perl", "pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf",
    "protocols", "python3", "python3.11", "python3.12", "python3.13", "resolv.conf", "services", "ssl/certs",
    "ssl/cert.pem", "ssl/openssl.cnf", "terminfo", "timezone",
)
# fmt: on
ALWAYS_PASSED = (
    *("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_NUMERIC"),
    *("TERM", "TZ", "COLUMNS", "LINES"),
)
"""Variables that every command gets."""

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def scrubbed(environ: Mapping[str, str], granted: Iterable[str]) -> dict[str, str]:
    """Return the few variables that a command gets. This is an allowlist, because it is impossible to know which of the
    others are secret.

    `granted` are the names of further variables that the user allows.
    """
    always = {name: environ[name] for name in ALWAYS_PASSED if name in environ}
    also = {name: environ[name] for name in granted if name in environ}
    return {"PATH": _PATH, "LANG": "C.UTF-8", **always, "HOME": "/tmp", "TMPDIR": "/tmp", **also}  # noqa: S108


def require_sandbox(workspace: Path) -> None:
    """Raise `Denied` if a command could not be sandboxed here, as far as that is known without one."""
    workspace = workspace.resolve()
    if is_everything(workspace):
        raise Denied(
            f"permission denied: shell cannot be sandboxed in {workspace}, which holds your home folder; "
            "run it in a folder of its own, or grant it with --allow shell=unsandboxed"
        )
    _usable()


def sandboxed(
    command: Sequence[str],
    workspace: Path,
    *,
    read_only: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    network: bool = False,
) -> list[str]:
    """Return the command line that runs a command in the sandbox. Raises `Denied` if no sandbox is available.

    `read_only` are existing places of the workspace, not links. Folders of `hidden` outside the workspace are not
    visible anyway.
    """
    workspace = workspace.resolve()
    require_sandbox(workspace)
    program, flags = _usable()
    if len(read_only) > MAX_PLACES:
        raise Denied(
            f"permission denied: shell cannot be sandboxed here: the workspace has {len(read_only):,} protected "
            f"places, and {MAX_PLACES:,} can be made read-only; open some with --allow file__write=FOLDER"
        )
    line = [program, *_namespaces(flags), *([] if network else ["--unshare-net"]), *_system(flags)]
    line += ["--bind", str(workspace), str(workspace)]
    for path in read_only:
        line += ["--ro-bind", str(path), str(path)]
    for path in hidden:
        if path.is_relative_to(workspace):
            line += ["--tmpfs", str(path)]
    return [*line, "--remount-ro", "/", "--chdir", str(workspace), "--", *command]


def _namespaces(flags: frozenset[str]) -> list[str]:
    line = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    line += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        # New files still belong to root outside, but programs do not behave differently for root.
        line += ["--uid", _NOBODY, "--gid", _NOBODY]
    if "--disable-userns" in flags:
        line.append("--disable-userns")
    return line


def _system(flags: frozenset[str]) -> list[str]:
    line: list[str] = []
    for folder in _SYSTEM:
        if Path(folder).is_symlink():
            line += ["--symlink", str(Path(folder).readlink()), folder]
        else:
            line += ["--ro-bind-try", folder, folder]
    for name in _ETC:
        line += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    size = ["--size", str(TMP_BYTES)] if "--size" in flags else []
    line += ["--proc", "/proc", *_proc(), "--dev", "/dev", *size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    return [*line, *size, "--tmpfs", "/tmp"]  # noqa: S108


@functools.cache
def _proc() -> tuple[str, ...]:
    """Return binds over the parts of `/proc` that belong to the machine: root, whom a user namespace does not restrict
    there, could write them. Files that only root can read are hidden."""
    line: list[str] = []
    for entry in sorted(os.scandir("/proc"), key=lambda entry: entry.name):
        if entry.name.isdigit() or entry.is_symlink():
            continue
        mode = entry.stat().st_mode
        if stat.S_ISDIR(mode):
            line += ["--ro-bind", entry.path, entry.path]
        elif entry.name in _MASKED or not mode & stat.S_IROTH:
            line += ["--ro-bind", "/dev/null", entry.path]
        elif mode & 0o222:
            line += ["--ro-bind", entry.path, entry.path]
    return tuple(line)


def _usable() -> tuple[str, frozenset[str]]:
    try:
        return _probe(shutil.which("bwrap"))
    except OSError as error:
        raise Denied(
            f"permission denied: shell runs in a sandbox, which is not available here ({error}); install bubblewrap, "
            "or grant it by --allow shell=unsandboxed, or [tools] allow in the quire.toml of your user folder"
        ) from None


@functools.cache
def _probe(program: str | None) -> tuple[str, frozenset[str]]:
    """Test bubblewrap once: it may be installed and still not be allowed to make namespaces, as in many containers.
    Raises `OSError`."""
    if program is None:
        raise OSError("bubblewrap is not installed")
    process = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    flags = frozenset(flag for flag in ("--disable-userns", "--size") if f" {flag} " in process.stdout)
    line = [program, *_namespaces(flags), "--unshare-net", *_system(flags), "--", "/bin/sh", "-c", _TRIAL]
    tried = subprocess.run(line, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    if tried.returncode:
        raise OSError(f"bubblewrap does not work: {tried.stderr.strip()[-300:]}")
    if not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
        raise OSError("this kernel does not list the children of a process, so their number cannot be limited")
    filter_program(network=False)
    return program, flags


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
    """Return the filter for this machine: classic BPF, as `bwrap --seccomp` takes it. Raises `OSError`.

    Keyrings of the kernel, the sockets between a virtual machine and its host and, with a shared network, the abstract
    sockets of other programs can be reached from every namespace. With `network`, sockets of the Unix family are
    refused.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(f"its filter of system calls does not know the machine {platform.machine()}")
    families = (_VSOCK, _ALG, *((socket.AF_UNIX,) if network else ()))
    no_call, no_family = _ERRNO | errno.ENOSYS, _ERRNO | errno.EAFNOSUPPORT
    program = [
        _step(_LOAD, _ARCHITECTURE),
        # Programs for another architecture number their calls differently.
        *(_step(_EQUAL, machine.architecture, 1, 0), _step(_RETURN, no_call)),
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


_PREFIX = "quire-"
_SECONDS = 5.0


class ControlGroup:
    """A limit on the number of processes for a sandbox that root starts: the kernel does not count root's processes for
    `RLIMIT_NPROC`.

    The group lies below one that the caller is already in, so limits of the system still hold. The system's own groups
    are not changed: if none of them lets its children count processes, no group is made.
    """

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
