"""The documents, files and names of settings that a playbook refers to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import QuireError
from quire.library.registered import playbook_name
from quire.lsp.call_circles import MOST_READ, CallCircles

if TYPE_CHECKING:
    from quire.library.snapshot import Snapshot
    from quire.lsp.answers import NameKind
    from quire.lsp.views import View

OWN, PYTHON = "quire", "python"
"""The connections of Quire's own tools and documents, and of the Python tools of a workspace."""


class CalledDocument(Struct, frozen=True):
    """A document that a name means."""

    kind: NameKind
    path: str
    declared: str = ""
    """The name that the file of a pipeline declares, which can be renamed there."""
    several: bool = False
    """True for a pipeline in a file of several."""

    @property
    def scope(self) -> str:
        """Tells its inputs apart from those of other pipelines of the file."""
        return self.declared if self.several else ""


def called_document(view: View, name: str) -> CalledDocument | None:
    """Return the document that `@tool(quire, NAME)` calls; None for a built-in tool, and for a name of nothing."""
    from quire.library.callees import is_built_in

    library = view.folder.snapshot
    if library is None or not name or is_built_in(name):
        return None
    try:
        if (registered := library.registry().pipelines.get(name)) is not None:
            several = registered.name != registered.declared
            return CalledDocument("pipeline", _path(registered.source.name), registered.declared, several)
        if (playbook := library.playbooks().find(name)) is not None:
            return CalledDocument("document", _path(str(playbook[1])))
        item = library.named_directive(name)
    except QuireError:
        return None
    return CalledDocument("directive", _path(str(item.path))) if item else None


def callable_documents(view: View) -> list[tuple[str, str]]:
    """Return the names of all documents that can be called, each with its kind. Those that would lead back to this
    playbook are left out."""
    library = view.folder.snapshot
    if library is None:
        return []
    found: list[tuple[str, str]] = []
    try:
        found += [(name, "pipeline") for name in sorted(library.registry().pipelines)]
        here = Path(view.path)
        found += [(name, "playbook") for name, path in library.playbooks().paths.items() if path != here]
        found += [(one, "directive") for one in sorted(library.ids("directive"))]
    except QuireError:
        pass
    circles = _circles(view, library, reads=len(found) <= MOST_READ)
    return [(name, kind) for name, kind in found if kind == "directive" or not circles.is_closed_by(name)]


def _circles(view: View, library: Snapshot, *, reads: bool) -> CallCircles:
    """Return the calls that may lead back to a playbook."""
    name = playbook_name(Path(view.path), library.settings.workspace.folder)
    last = name.rpartition("/")[2]
    try:
        is_short = name != "" and (library.playbooks().find(last) or ("",))[0] == name
    except QuireError:
        is_short = False
    names = {one: "" for one in ((name, last) if is_short else (name,)) if one}
    return CallCircles(library, "", {"": ()}, names, reads=reads)


def prompt_path(view: View, reference: str) -> str:
    """Return the file that a reference of `@prompt` means; empty if it is not there, if a run would not read it, or if
    it is known only in a run."""
    scheme, _, where = reference.partition(":")
    if scheme == "file" and "{{" not in where:
        from quire.formats.playbook.lint import leaves_folder

        home = Path(view.path).parent
        return "" if leaves_folder(where) else _file_in(home / where.replace("\\", "/"), home)
    if scheme == "library":
        homes = _prompt_homes(view)
        return next((path for folder, home in homes if (path := _file_in(folder / f"{where}.md", home))), "")
    return ""


def prompt_folders(view: View) -> list[Path]:
    """Return the folders of the prompt library, in the order in which they are searched."""
    return [folder for folder, _ in _prompt_homes(view)]


def _prompt_homes(view: View) -> Iterator[tuple[Path, Path | None]]:
    """Yield the folders of the prompt library, each with the folder that its links must not leave."""
    settings = view.folder.settings
    if settings is None:
        return
    yield settings.workspace.folder / "prompts", settings.workspace.folder
    yield from ((folder, folder) for folder in settings.prompt_folders)
    yield settings.user / "prompts", None


def _file_in(path: Path, home: Path | None) -> str:
    """Return the path of a file; empty if it is not there, or is a link that leads out of `home`."""
    try:
        inside = home is None or path.resolve().is_relative_to(home.resolve())
        return _path(str(path)) if inside and path.is_file() else ""
    except (OSError, RuntimeError, ValueError):
        return ""


def settings_file(view: View) -> str:
    """Return the path of the workspace's settings."""
    settings = view.folder.settings
    return str(settings.workspace.folder / "quire.toml") if settings else ""


def _path(name: str) -> str:
    return os.path.abspath(name)  # noqa: PTH100
