"""The playbooks that other documents can name: those at the top of a workspace and in its `playbooks/` folder.

A name is the path below that folder without `.playbook.md`; the last part is enough if it is unique. Two files with the
same name are reported, and neither gets it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.workspace.settings import Settings

PLAYBOOKS_FOLDER = "playbooks"
SUFFIX = ".playbook.md"
MAX_PLAYBOOKS = 10_000


@dataclass(frozen=True)
class Playbooks:
    """The playbooks of a workspace by name. `problems` has a line for each name that two files claim."""

    paths: Mapping[str, Path] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @cached_property
    def _by_last_part(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self.paths:
            found.setdefault(name.rpartition("/")[2], []).append(name)
        return found

    def find(self, name: str) -> tuple[str, Path] | None:
        """Return the full name and the file, or None. Raises `CannotStart` for a last part that several playbooks
        have."""
        if name in self.paths:
            return name, self.paths[name]
        fitting = self._by_last_part.get(name, [])
        if len(fitting) > 1:
            raise CannotStart(f"{name} means several playbooks: {', '.join(sorted(fitting))}; say which")
        return (fitting[0], self.paths[fitting[0]]) if fitting else None


def load_playbooks(settings: Settings) -> Playbooks:
    """List the playbooks by their names; no file is read."""
    folder = settings.workspace.folder
    found: dict[str, list[Path]] = {}
    for path in _playbook_files(folder):
        below = path.relative_to(folder)
        if below.parts[0] == PLAYBOOKS_FOLDER and len(below.parts) > 1:
            below = below.relative_to(PLAYBOOKS_FOLDER)
        found.setdefault(below.as_posix().removesuffix(SUFFIX), []).append(path)
    problems = [
        f"the playbook {name} is in {' and in '.join(path.relative_to(folder).as_posix() for path in several)}: "
        "rename one of them"
        for name, several in sorted(found.items())
        if len(several) > 1
    ]
    return Playbooks({name: paths[0] for name, paths in sorted(found.items()) if len(paths) == 1}, tuple(problems))


def _playbook_files(folder: Path) -> Iterator[Path]:
    """Yield the files of playbooks. Links are left out: a name must mean a file of the workspace."""
    yield from _named(folder)
    top = folder / PLAYBOOKS_FOLDER
    if top.is_symlink() or not top.is_dir():
        return
    count = 0
    for here, folders, _ in os.walk(top):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in _named(Path(here)):
            count += 1
            if count > MAX_PLAYBOOKS:
                return
            yield path


def _named(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if entry.name.endswith(SUFFIX)
                and not entry.name.startswith(".")
                and entry.is_file(follow_symlinks=False)
            ]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]
