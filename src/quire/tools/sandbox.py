"""Commands behind bubblewrap: they see the system's programs and the workspace, and little else.

The workspace can be written, except for what no tool may write. The home folder, the rest of the machine and the
network are not there; `/tmp` is its own. When bubblewrap ends, all that the command started ends with it.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from quire.errors import Denied
from quire.workspace.grants import is_everything

TMP_BYTES = 512 * 1024 * 1024

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
# Not all of /etc: there are secrets in it that a user (or root, in a container) can read.
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
_KEPT = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_NUMERIC", "TERM", "TZ", "COLUMNS", "LINES")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def scrubbed(environ: Mapping[str, str], home: str) -> dict[str, str]:
    """The few variables that a command gets. An allowlist: nobody can know which of the others are secret."""
    kept = {name: environ[name] for name in _KEPT if name in environ}
    return {"PATH": _PATH, "LANG": "C.UTF-8", **kept, "HOME": home, "TMPDIR": "/tmp"}  # noqa: S108


def sandboxed(
    command: Sequence[str],
    workspace: Path,
    *,
    read_only: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    network: bool = False,
) -> list[str]:
    """The command line that runs a command in the sandbox. Raises `Denied` where there is none to be had.

    `read_only` and `hidden` are existing paths; those outside of the workspace are not there anyway.
    """
    workspace = workspace.resolve()
    if is_everything(workspace):
        raise Denied(
            f"permission denied: shell cannot be sandboxed in {workspace}, which holds your home folder; "
            "run it in a folder of its own, or grant it with --allow shell=unsandboxed"
        )
    program, flags = _usable()
    line = [program, *_namespaces(flags), *([] if network else ["--unshare-net"]), *_system(flags)]
    line += ["--bind", str(workspace), str(workspace)]
    for path in read_only:
        # A link is part of its folder: it can be replaced, but what it leads to is bound by its own name.
        if not path.is_symlink():
            line += ["--ro-bind", str(path), str(path)]
    for path in hidden:
        if path.is_relative_to(workspace):
            line += ["--tmpfs", str(path)]
    return [*line, "--remount-ro", "/", "--chdir", str(workspace), "--", *command]


class Watch:
    """Sees to it that a sandbox is empty in the end.

    Bubblewrap itself is gone a moment before what runs in it; and killed in its first moments, it has not yet told
    the kernel that the rest is to die with it.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._line: list[str] = []

    @property
    def passed(self) -> tuple[int, ...]:
        return (self._write,)

    def told(self, command: Sequence[str]) -> list[str]:
        """The command line of `sandboxed`, such that it tells us which process holds the sandbox."""
        self._line = [command[0], "--info-fd", str(self._write), *command[1:]]
        return self._line

    async def emptied(self) -> None:
        """Called when bubblewrap has ended. The kernel ends all others in the sandbox before the holder is gone."""
        import asyncio

        os.set_blocking(self._read, False)
        try:
            holder = json.loads(os.read(self._read, 65_536))["child-pid"]
        except (BlockingIOError, ValueError, KeyError):
            return  # It did not come so far as to start anything.
        pause = 0.001
        while pause < 2 and self._runs(holder):
            with suppress(OSError):
                os.kill(holder, signal.SIGKILL)
            await asyncio.sleep(pause)
            pause *= 1.5

    def _runs(self, pid: int) -> bool:
        """Whether that is still ours: a zombie has no command line, and a number may be given out again."""
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes() == "\0".join([*self._line, ""]).encode()
        except OSError:
            return False

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._read)
        os.close(self._write)


def _namespaces(flags: frozenset[str]) -> list[str]:
    line = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    line += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
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
    line += ["--proc", "/proc", "--dev", "/dev"]
    if "--size" in flags:
        line += ["--size", str(TMP_BYTES)]
    return [*line, "--tmpfs", "/tmp"]  # noqa: S108


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
    """Tried once: bubblewrap may be there and still not be allowed to make namespaces, as in many containers."""
    if program is None:
        raise OSError("bubblewrap is not installed")
    told = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    flags = frozenset(flag for flag in ("--disable-userns", "--size") if f" {flag} " in told.stdout)
    line = [program, *_namespaces(flags), "--unshare-net", *_system(flags), "--", "/bin/sh", "-c", ":"]
    tried = subprocess.run(line, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    if tried.returncode:
        raise OSError(f"bubblewrap does not work: {tried.stderr.strip()[-300:]}")
    return program, flags
