"""The document that an argument means: a file, or else what the workspace knows by that name.

A name is that of a registered pipeline, of a playbook or of a directive; a bare one is enough where it means one thing.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quire.documents import Document, load, read
from quire.errors import CannotStart, Unreadable
from quire.source import Source
from quire.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quire.formats.pipeline.syntax import Pipeline
    from quire.workspace.items import Entry
    from quire.workspace.pipelines import Registry
    from quire.workspace.spaces import Spaces

_PART = r"[A-Za-z0-9_][A-Za-z0-9_-]*+"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})?|{_PART}(?:/{_PART})+")
_FILES = (".md", ".markdown", ".yaml", ".yml", ".txt", ".json")
_SHOWN = 12


def document_of(argument: str, start: Path | None = None) -> Document:
    """Find a document by its file, else by its name in the workspace around `start` (the current folder).

    Raises `CannotStart` with the nearest names, or with all that the name means."""
    is_name = _NAME.fullmatch(argument) is not None and not argument.lower().endswith(_FILES)
    if not is_name or os.path.lexists(argument):
        try:
            return load(argument)
        except Unreadable as error:
            from quire.workspace.near_file import with_near_file

            raise with_near_file(error) from None
    from quire.workspace.configuration import load_settings
    from quire.workspace.find import find_workspace
    from quire.workspace.pipelines import load_registry
    from quire.workspace.spaces import Spaces

    settings = load_settings(find_workspace(start or Path.cwd()))
    registry, spaces = load_registry(settings), Spaces(settings)
    meant = list(_meant(argument, registry, spaces))
    if len(meant) > 1:
        listed = ", ".join(f"the {entry.type} {entry.id} ({_shown(entry)})" for entry in meant)
        raise CannotStart(f"{argument} means several things: {listed}; say which by its file, or by its whole id")
    if not meant:
        raise CannotStart(_nothing(argument, _known(registry, spaces), registry.problems))
    (entry,) = meant
    if entry.type == "pipeline":
        found = registry.pipelines[entry.id]
        return found.document
    if entry.type == "playbook":
        return load(_shown(entry))
    item = spaces.read(entry)
    # Its whole path says what it is; what is said about it names the path that people would type.
    return replace(read(Source.of(item.text, str(entry.path))), source=Source.of(item.text, _shown(entry)))


def tree_of(document: Document) -> Pipeline:
    """The syntax tree behind the plan of a pipeline that can run."""
    from quire.formats.pipeline.parse import parse

    file = parse(document.source, registered=bool(document.declared)).file
    assert file is not None  # noqa: S101  # it has a plan
    return next(one for one in file.pipelines if document.declared in ("", one.name.text))


def _meant(name: str, registry: Registry, spaces: Spaces) -> Iterator[Entry]:
    """All that has this name. A whole name wins over the last part of another, within each kind."""
    from quire.workspace.items import Entry

    if name in registry.pipelines:
        yield Entry(name, "pipeline", "project", Path(registry.pipelines[name].source.name))
    for kind in ("playbook", "directive"):
        entries = [entry for entry in spaces.entries(kind) if name in (entry.id, entry.name)]
        yield from [entry for entry in entries if entry.id == name] or entries


def _known(registry: Registry, spaces: Spaces) -> dict[str, list[str]]:
    found = {"pipeline": list(registry.pipelines)}
    for kind in ("playbook", "directive"):
        found[kind] = [entry.id for entry in spaces.entries(kind)]
    return found


def _nothing(name: str, known: dict[str, list[str]], problems: tuple[str, ...]) -> str:
    names = [one for ids in known.values() for one in ids]
    last_parts = {one.rpartition("/")[2]: one for one in names}
    close = nearest(name, names) or last_parts.get(nearest(name, list(last_parts)) or "")
    own = [one for one in names if not one.startswith("rye/")]
    if close:
        hint = f"did you mean {close}?"
    elif own:
        hint = f"known here are {', '.join(own[:_SHOWN])}" + (" and more" if len(own) > _SHOWN else "")
    else:
        hint = "no document here has a name"
    return "\n".join([f"there is no file, no pipeline, playbook or directive {name}; {hint}", *problems])


def _shown(entry: Entry) -> str:
    """The path as people would type it, from the current folder where it is below."""
    path = entry.path.absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
