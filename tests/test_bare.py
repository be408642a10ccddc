"""The environment of `make test-bare` has the programs of a plain machine, and none of those that it hides."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.bare import link_programs


def test_only_the_listed_programs_are_hidden(tmp_path: Path) -> None:
    places, folder = (tmp_path / "a", tmp_path / "b"), tmp_path / "bare"
    for place in (*places, folder):
        place.mkdir()
    for name in ("a/git", "a/bwrap", "b/chromium-headless-shell", "b/git", "b/make"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    link_programs(folder, os.pathsep.join(map(str, (*places, tmp_path / "missing"))))
    assert sorted(program.name for program in folder.iterdir()) == ["git", "make"]
    assert (folder / "git").resolve() == tmp_path / "a" / "git"
    assert shutil.which("bwrap", path=str(folder)) is None
