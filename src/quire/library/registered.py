"""The pipelines and playbooks of a workspace, and of the user's own shelf, that have a name.

Registered pipelines are those in its `pipelines/` folder with all below it, and the entries of its settings. Playbooks
that other documents can name are those at the top of a workspace and in its `playbooks/` folder. A name is the path
below that folder without `.playbook.md`; the last part is enough if it is unique. A file that cannot be read, and a
name that two files have, is reported and left out.

The user's document list is `playbooks/` and `pipelines/` of the user folder; its documents have a name in every
workspace. They call documents of that list and take library prompts of the user folder, never those of the workspace in
which they run: a cloned folder must not put its own text in the place of the user's. A document of a workspace does not
see them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from quire.diagnostics import Severity
from quire.errors import CannotStart, QuireError
from quire.formats import YAML, belongs_to_test
from quire.library.document import Document, parse_pipelines, unnamed
from quire.source import Source, is_open_text, read_source, real_path, unsaved_below
from quire.workspace.locate import Workspace

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline
    from quire.library.items import Entry, ItemType, SpaceName
    from quire.plan.nodes import Plan
    from quire.workspace.settings import Settings


PIPELINES_FOLDER = "pipelines"
MAX_PIPELINES = 10_000


class Registered(Struct, frozen=True):
    """A pipeline under its name. `declared` is the name in its file; in a file of several it is only the last part of
    the name."""

    name: str
    declared: str
    plan: Plan
    tree: Pipeline
    source: Source
    description: str

    @property
    def key(self) -> str:
        """The name of its file: that of the pipeline without the part after the dot, which selects one in a file of
        several."""
        return self.name.rpartition(".")[0] or self.name

    @property
    def document(self) -> Document:
        return Document(self.source, "pipeline", self.plan, (), self.declared, self.key, self.name)


class RegisteredPipelines(Struct, frozen=True):
    """The registered pipelines. `problems` has a line for each problem of a file that was not loaded; `claimed` are
    names in several files."""

    pipelines: Mapping[str, Registered] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    claimed: Mapping[str, tuple[Registered, ...]] = field(default_factory=dict)


def load_registry(settings: Settings) -> RegisteredPipelines:
    """Read all files again; a registry that was loaded before does not change."""
    problems: list[str] = []
    named: dict[str, list[Registered]] = {}
    for key, file, description in _pipeline_files(settings):
        for registered in _load(key, file, description, problems):
            named.setdefault(registered.name, []).append(registered)
    claimed = {name: tuple(several) for name, several in named.items() if len(several) > 1}
    for name, several in claimed.items():
        files = " and ".join(pipeline.source.name for pipeline in several)
        problems.append(f"the pipeline {name} is declared by {files}: neither is loaded")
    single = {name: first for name, (first, *rest) in named.items() if not rest}
    return RegisteredPipelines(single, tuple(problems), claimed)


def read_pipelines(key: str, source: Source, description: str = "") -> tuple[list[Registered], list[str]]:
    """Return the pipelines of one text, and the errors that prevent loading."""
    text = unnamed(source)
    wrong = parse_pipelines(text, True).of(Severity.ERROR)
    if wrong:
        return [], [f"{source.name}:{source.position(finding.span.start).line}: {finding.message}" for finding in wrong]
    return [
        Registered(name, tree.name.text, plan, tree, source, description or tree.description)
        for name, tree, plan in (_open_lowered if is_open_text(text.text) else _lowered)(key, text)
    ], []


def _lower(key: str, text: Source) -> tuple[tuple[str, Pipeline, Plan], ...]:
    """Return the pipelines of a text without errors, each with its name and its plan."""
    from quire.formats.pipeline.lower import lower

    file = parse_pipelines(text, True).file
    assert file is not None  # noqa: S101  # it has no errors
    several = len(file.pipelines) > 1
    names = {tree.name.text: f"{key}.{tree.name.text}" for tree in file.pipelines} if several else {}
    trees = ((names.get(tree.name.text, tree.name.text), tree) for tree in file.pipelines)
    return tuple((name, tree, lower(file, tree, names)) for name, tree in trees)


_lowered = lru_cache(maxsize=2_000)(_lower)
"""Cached with the parse."""
_open_lowered = lru_cache(maxsize=4)(_lower)


def _load(key: str, file: Path, description: str, problems: list[str]) -> list[Registered]:
    try:
        source = read_source(file)
    except QuireError as error:
        problems.append(str(error))
        return []
    registered, wrong = read_pipelines(key, source, description)
    problems += wrong
    return registered


def _pipeline_files(settings: Settings) -> Iterator[tuple[str, Path, str]]:
    folder = settings.workspace.folder
    paths: set[Path] = set()
    for key, entry in settings.pipelines.items():
        path = folder / entry.path
        paths.add(real_path(path))
        if entry.enabled:
            yield key, path, entry.description
    for path in files_below(folder / PIPELINES_FOLDER):
        if real_path(path) not in paths:
            yield path.relative_to(folder / PIPELINES_FOLDER).with_suffix("").as_posix(), path, ""


def in_folder(path: Path, folder: Path) -> bool:
    """Tell whether a file is registered because of its place. `folder` is the `pipelines/` of the workspace, without
    links like the path."""
    if path.suffix not in YAML or belongs_to_test(path.name) or not path.is_relative_to(folder):
        return False
    return not any(part.startswith(".") for part in path.relative_to(folder).parts)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the pipeline files of a folder and those below it, saved or not. Names that begin with a dot and linked
    folders are left out."""
    count = 0
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(YAML) and not name.startswith(".") and not belongs_to_test(name):
                count += 1
                if count > MAX_PIPELINES:
                    return
                yield Path(here, name)
    yield from (path for path in unsaved_below(folder, YAML) if not belongs_to_test(path.name))


PLAYBOOKS_FOLDER = "playbooks"
SUFFIX = ".playbook.md"
MAX_PLAYBOOKS = 10_000


class Playbooks(Struct, frozen=True, dict=True):
    """The playbooks of a workspace by name. `problems` has a line for each name that two files claim."""

    paths: Mapping[str, Path]
    problems: tuple[str, ...] = ()

    @cached_property
    def _by_last_part(self) -> Mapping[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name in self.paths:
            names.setdefault(name.rpartition("/")[2], []).append(name)
        return names

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
    named: dict[str, list[Path]] = {}
    for path in _playbook_files(folder, links=folder == settings.user):
        named.setdefault(playbook_name(path, folder), []).append(path)
    problems = [
        f"the playbook {name} is in {' and in '.join(path.relative_to(folder).as_posix() for path in paths)}: "
        "rename one of them"
        for name, paths in sorted(named.items())
        if len(paths) > 1
    ]
    return Playbooks({name: paths[0] for name, paths in sorted(named.items()) if len(paths) == 1}, tuple(problems))


def playbook_name(path: Path, folder: Path) -> str:
    """Return the name that a file in a workspace has, or would have; empty for one that documents cannot name."""
    if not path.is_relative_to(folder) or not path.name.endswith(SUFFIX):
        return ""
    below = path.relative_to(folder)
    if len(below.parts) > 1:
        if below.parts[0] != PLAYBOOKS_FOLDER or any(part.startswith(".") for part in below.parts):
            return ""
        below = below.relative_to(PLAYBOOKS_FOLDER)
    return below.as_posix().removesuffix(SUFFIX)


def _playbook_files(folder: Path, *, links: bool) -> Iterator[Path]:
    """Yield the files of playbooks, saved or not. Links are left out, because a name must mean a file of the workspace;
    in the user folder `links` may lead anywhere."""
    top = folder / PLAYBOOKS_FOLDER
    for path in unsaved_below(folder, (SUFFIX,)):
        if path.parent == folder or path.is_relative_to(top):
            yield path
    yield from _named(folder, links)
    if (top.is_symlink() and not links) or not top.is_dir():
        return
    count = 0
    for here, folders, _ in os.walk(top):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in _named(Path(here), links):
            count += 1
            if count > MAX_PLAYBOOKS:
                return
            yield path


def _named(folder: Path, links: bool) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if entry.name.endswith(SUFFIX)
                and not entry.name.startswith(".")
                and entry.is_file(follow_symlinks=links)
            ]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


SHELF: SpaceName = "user"
"""The space in which the shelf is; `user:NAME` means a document of it alone."""

KINDS: tuple[ItemType, ...] = ("pipeline", "playbook")


def shelf_settings(settings: Settings) -> Settings:
    """Return the settings with which the names in a document of the shelf are looked up."""
    return replace(settings, workspace=Workspace(settings.user), pipelines={}, prompt_folders=())


def shelf_entries(settings: Settings) -> dict[ItemType, list[Entry]]:
    """Return the documents of the user's list by kind; none if the workspace is the user folder, which has them."""
    from quire.library.items import Spaces

    if os.path.realpath(settings.user) == os.path.realpath(settings.workspace.folder):
        return {kind: [] for kind in KINDS}
    spaces = Spaces(shelf_settings(settings))
    return {kind: [replace(entry, space=SHELF) for entry in spaces.entries(kind)] for kind in KINDS}
