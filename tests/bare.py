"""`make test-bare`: runs a command without the programs that a plain machine does not have.

Tests look for programs on `PATH`. The command gets one folder instead: links to all programs of this machine but the
sandbox, browsers, editors, shells, databases and package runners. Its arguments are the command.
"""

from __future__ import annotations

import fnmatch
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HIDDEN = (
    "bwrap",
    "chrom*",
    "google-chrome*",
    "firefox*",
    "nvim*",
    "vim*",
    "emacs*",
    "psql*",
    "postgres*",
    "pg_*",
    "initdb*",
    "temporal*",
    "node*",
    "np[mx]*",
    "deno*",
    "uv",
    "uvx",
    "cargo*",
    "tmux*",
    "fish*",
    "zsh*",
    "rg",
    "ollama*",
)
"""Names of programs, as patterns."""


def link_programs(folder: Path, path: str) -> None:
    """Fill the folder with links to the programs on the path, the first of each name, without the hidden ones."""
    for place in filter(None, path.split(os.pathsep)):
        if not Path(place).is_dir():
            continue
        for program in Path(place).iterdir():
            link = folder / program.name
            if not any(fnmatch.fnmatch(program.name, pattern) for pattern in HIDDEN) and not link.is_symlink():
                link.symlink_to(program)


def main(command: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="quire-bare-") as folder:
        link_programs(Path(folder), os.environ["PATH"])
        environment = {name: value for name, value in os.environ.items() if name != "QUIRE_BROWSER"} | {"PATH": folder}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
