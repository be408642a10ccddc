"""Commands of the packaging run: each must succeed, unless its failure is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.pythons.environment import ROOT


def run(*command: str, cwd: Path = ROOT, environ: Mapping[str, str] | None = None) -> str:
    """Return what the command prints; end the packaging run if it fails."""
    whole = {**os.environ, **(environ or {})}
    done = subprocess.run(command, cwd=cwd, env=whole, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def pip(*arguments: str, environ: Mapping[str, str] | None = None) -> None:
    run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments, environ=environ)


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(otherwise)
