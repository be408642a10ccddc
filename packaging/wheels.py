"""`make image`: fetch the wheels of the image into dist/image, each by a hash of constraints.txt, and add our own.

The arguments are the extras, the Python of the image as 3.13, and its machine as x86_64.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
WHEELS = ROOT / "dist" / "image"
OURS = "quire-run"
GLIBC = (17, 24, 27, 28, 31, 34, 35, 39, 41)
"""Versions of glibc that wheels name, up to that of the image."""


def pinned() -> dict[str, str]:
    """Return the lines of constraints.txt by package: its version and hashes."""
    blocks = re.split(r"\n(?=\S)", (ROOT / "constraints.txt").read_text(encoding="utf-8"))
    return {canonicalize_name(found[0]): block for block in blocks if (found := re.match(r"[\w.-]+", block))}


def needed(extras: list[str], python: str) -> list[str]:
    """Return the packages that ours needs with the extras, under the markers of Linux and that Python."""
    target = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux", "extra": ""}
    pending, seen = [Requirement(f"{OURS}[{','.join(extras)}]")], set[tuple[str, str]]()
    while pending:
        wanted = pending.pop()
        name = canonicalize_name(wanted.name)
        for extra in ("", *wanted.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            try:
                requirements = map(Requirement, requires(name) or ())
            except PackageNotFoundError:
                continue
            pending += [
                one for one in requirements if not one.marker or one.marker.evaluate({**target, "extra": extra})
            ]
    return sorted({name for name, _ in seen} - {OURS})


def main(extras: str, python: str, machine: str) -> int:
    shutil.rmtree(WHEELS, ignore_errors=True)
    WHEELS.mkdir(parents=True)
    lines = pinned()
    listed = WHEELS / "requirements.txt"
    listed.write_text("\n".join(lines[name] for name in needed(extras.split(","), python)) + "\n", encoding="utf-8")
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in GLIBC] + [f"manylinux2014_{machine}"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "-r", str(listed), "-d", str(WHEELS)]
    command += ["--implementation", "cp", "--python-version", python]
    for platform in platforms:
        command += ["--platform", platform]
    subprocess.run(command, check=True)  # noqa: S603  # our own arguments
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(WHEELS)]
    subprocess.run(build, cwd=ROOT, check=True)  # noqa: S603
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
