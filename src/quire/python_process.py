"""Start Python for Quire's own work, and name the signals that end it. No other module starts Python.

Python puts the current folder, or the folder that an empty entry of `PYTHONPATH` stands for, before its own libraries.
The current folder is usually a workspace, and a workspace is data: a `click.py` in it must not be taken for the
library. Packages in the user's site-packages must keep working, which is why `-I` is not used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from asyncio.subprocess import Process
    from subprocess import CompletedProcess, Popen

_FOLDERS = ("PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX", "PYTHONPLATLIBDIR")
"""Variables that name a folder to load code from: a relative one would be a folder of the workspace."""

_NEEDED = frozenset(("PATH", "HOME", "SYSTEMROOT", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV"))
LONGEST_LINE = 64_000_000
"""Bytes of a line that a helper process may write."""


def start_module(module: str, *arguments: str) -> Popen[bytes]:
    """Start `python -m MODULE` in the current folder, in a new session, with all standard streams on the null
    device.
    """
    import subprocess

    nowhere = subprocess.DEVNULL
    return subprocess.Popen(  # noqa: S603  # our own interpreter
        _command(module, arguments),
        env=clean_environ(os.environ),
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        start_new_session=True,
    )


def run_module(module: str, *arguments: str, folder: Path) -> CompletedProcess[str]:
    """Run `python -m MODULE` to its end and return its output. `folder` must not contain files of others."""
    import subprocess

    return subprocess.run(  # noqa: S603  # our own interpreter
        _command(module, arguments),
        env=clean_environ(os.environ),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


async def start_helper(module: str) -> Process:
    """Start `python -m MODULE`, connected by its standard streams, for work on texts from outside. Its environment has
    no secrets, and a Ctrl-C on the terminal does not reach it."""
    import asyncio
    import subprocess

    environ = {name: value for name, value in os.environ.items() if name in _NEEDED or name in _FOLDERS}
    return await asyncio.create_subprocess_exec(
        *_command(module, ()),
        env=clean_environ(environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        limit=LONGEST_LINE,
    )


def become_module(module: str, *arguments: str) -> NoReturn:
    """Replace this process by `python -m MODULE` in the current folder."""
    os.execve(sys.executable, _command(module, arguments), clean_environ(os.environ))  # noqa: S606  # our own interpreter


def is_alive(process: int) -> bool:
    """Tell whether this host has a process with this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # It runs as another user.
    return True


def ending_signals() -> tuple[int, ...]:
    """Return the signals that end a process of Quire in good order: Ctrl-C, SIGTERM, and SIGHUP of a terminal that is
    closed, unless it is ignored, as under `nohup`."""
    import signal

    if not hasattr(signal, "SIGHUP") or signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return (signal.SIGINT, signal.SIGTERM)
    return (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndingSignals:
    """Call a function in an event loop at each signal that ends the process, inside of a `with` block. The handlers of
    before come back after it."""

    def __init__(self, loop: AbstractEventLoop, handle: Callable[[], None]) -> None:
        self._loop = loop
        self._handle = handle
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        import signal

        self._before = {number: signal.getsignal(number) for number in ending_signals()}
        for number in self._before:
            try:
                self._loop.add_signal_handler(number, self._handle)
            except NotImplementedError:
                signal.signal(number, lambda *_: self._loop.call_soon_threadsafe(self._handle))

    def __exit__(self, *_: object) -> None:
        import signal
        from contextlib import suppress

        for number, handler in self._before.items():
            with suppress(NotImplementedError):
                self._loop.remove_signal_handler(number)
            signal.signal(number, handler)


def clean_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without everything that makes Python look into the current folder."""
    clean = dict(environ)
    for name in _FOLDERS:
        if name in clean and not Path(clean[name]).is_absolute():
            del clean[name]
    entries = [entry for entry in clean.pop("PYTHONPATH", "").split(os.pathsep) if Path(entry).is_absolute()]
    if entries:
        clean["PYTHONPATH"] = os.pathsep.join(entries)
    # This protects the processes started by that process too.
    return clean | {"PYTHONSAFEPATH": "1"}


def leave_current_folder(path: list[str] = sys.path, environ: Mapping[str, str] = os.environ) -> None:
    """Remove the current folder from the module path.

    It is the first entry under `python -m`, and also an empty entry of `PYTHONPATH`, as left by
    `PYTHONPATH=$PYTHONPATH:/more` in a shell.
    """
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:
        return
    stray = any(entry in ("", ".") for entry in environ.get("PYTHONPATH", "-").split(os.pathsep))
    unsafe = not sys.flags.safe_path and _is_module_start()
    if stray or unsafe or "" in path:
        path[:] = [entry for entry in path if entry and entry != here]


def _is_module_start() -> bool:
    """Tell whether this process was started as `python -m quire`."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name == "quire.__main__"


def _command(module: str, arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-P", "-m", module, *arguments]
