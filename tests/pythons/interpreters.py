"""The CPythons of this machine that Quire supports: on the path, of the system, of pyenv and of uv."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 11)
NEWEST = (3, 14)
"""The newest minor version that is out: what is missing up to here is said."""

_NAME = re.compile(r"python3(?:\.[0-9]+)?")
_ASK = (
    "import sys; print(sys.implementation.name, *sys.version_info[:3], sys.version_info.releaselevel, sys.base_prefix)"
)
_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Interpreter:
    version: tuple[int, int, int]
    program: Path

    @property
    def name(self) -> str:
        return ".".join(map(str, self.version))


def find_interpreters(environ: Mapping[str, str] = os.environ) -> list[Interpreter]:
    """One for each version, the oldest first."""
    found: dict[tuple[int, int, int], Interpreter] = {}
    for program in dict.fromkeys(_programs(environ)):
        version = _version(program)
        if version is not None and version[:2] >= OLDEST:
            found.setdefault(version, Interpreter(version, program))
    return [found[version] for version in sorted(found)]


def missing_minors(found: Iterable[Interpreter]) -> list[str]:
    """The minor versions that are out and not on this machine."""
    there = {one.version[1] for one in found}
    return [f"3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1) if minor not in there]


def _programs(environ: Mapping[str, str]) -> Iterator[Path]:
    for folder in _folders(environ):
        try:
            programs = sorted(folder.iterdir())
        except OSError:
            continue
        yield from (program for program in programs if _NAME.fullmatch(program.name))


def _folders(environ: Mapping[str, str]) -> Iterator[Path]:
    home = Path(environ.get("HOME") or Path.home())
    yield from (Path("/usr/bin"), Path("/usr/local/bin"))
    yield from sorted(Path(environ.get("PYENV_ROOT") or home / ".pyenv").glob("versions/*/bin"))
    yield from sorted((home / ".local" / "share" / "uv" / "python").glob("cpython-*/bin"))
    # A shim stands for whatever its tool chooses in this folder; the versions themselves are listed above.
    path = map(Path, filter(None, environ.get("PATH", "").split(os.pathsep)))
    yield from (folder for folder in path if folder.name != "shims")


def _version(program: Path) -> tuple[int, int, int] | None:
    """None for what is not CPython, not released, a virtual environment, or does not start."""
    try:
        done = subprocess.run([program, "-I", "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS)
        kind, major, minor, micro, level, prefix = done.stdout.strip().split(" ", 5)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if kind != "cpython" or level != "final" or not program.resolve().is_relative_to(Path(prefix).resolve()):
        return None
    return int(major), int(minor), int(micro)
