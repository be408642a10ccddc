"""Run commands in bubblewrap: they see the system's programs and the workspace, and little else.

The workspace can be written, except for the protected places. The home folder, the rest of the machine and the network
are not visible; `/tmp` is private. `sandbox_watch` sets the limits and ends a command.
"""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from quire.errors import Denied
from quire.tools.sandbox_limits import filter_program
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


def scrubbed(environ: Mapping[str, str], home: str, granted: Iterable[str] = ()) -> dict[str, str]:
    """Return the few variables that a command gets. This is an allowlist, because it is impossible to know which of the
    others are secret.

    `granted` are the names of further variables that the user allows.
    """
    kept = {name: environ[name] for name in ALWAYS_PASSED if name in environ}
    also = {name: environ[name] for name in granted if name in environ}
    return {"PATH": _PATH, "LANG": "C.UTF-8", **kept, "HOME": home, "TMPDIR": "/tmp", **also}  # noqa: S108


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
            f"permission denied: shell runs in a sandbox, and there is none here ({error}); install bubblewrap, or "
            "grant it without one: --allow shell=unsandboxed, or under [tools] allow in the quire.toml of your space"
        ) from None


@functools.cache
def _probe(program: str | None) -> tuple[str, frozenset[str]]:
    """Test bubblewrap once: it may be installed and still not be allowed to make namespaces, as in many containers.
    Raises `OSError`."""
    if program is None:
        raise OSError("bubblewrap is not installed")
    told = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    flags = frozenset(flag for flag in ("--disable-userns", "--size") if f" {flag} " in told.stdout)
    line = [program, *_namespaces(flags), "--unshare-net", *_system(flags), "--", "/bin/sh", "-c", _TRIAL]
    tried = subprocess.run(line, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    if tried.returncode:
        raise OSError(f"bubblewrap does not work: {tried.stderr.strip()[-300:]}")
    if not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
        raise OSError("this kernel does not list the children of a process, so their number cannot be limited")
    filter_program(network=False)
    return program, flags
