"""The document that an argument means: a file, or else a registered pipeline of the workspace by its name."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from quire.diagnostics import nearest
from quire.documents import Document, load
from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*+(?:\.[A-Za-z_][A-Za-z0-9_-]*+)?")
_FILES = (".md", ".markdown", ".yaml", ".yml", ".txt", ".json")
_SHOWN = 12


def document_of(argument: str) -> Document:
    """A file wins over a name. Raises `CannotStart` with the nearest names."""
    is_name = _NAME.fullmatch(argument) is not None and not argument.lower().endswith(_FILES)
    if not is_name or os.path.lexists(argument):
        return load(argument)
    from quire.workspace.configuration import load_settings
    from quire.workspace.find import find_workspace
    from quire.workspace.pipelines import load_registry

    registry = load_registry(load_settings(find_workspace(Path.cwd())))
    found = registry.pipelines.get(argument)
    if found is None:
        raise CannotStart(_nothing(argument, list(registry.pipelines), registry.problems))
    key = found.name.partition(".")[0]
    return Document(found.source, "pipeline", found.plan, (), declared=found.declared, key=key)


def tree_of(document: Document) -> Pipeline:
    """The syntax tree behind the plan of a pipeline that can run."""
    from quire.formats.pipeline.parse import parse

    file = parse(document.source, registered=bool(document.declared)).file
    assert file is not None  # noqa: S101  # it has a plan
    return next(one for one in file.pipelines if document.declared in ("", one.name.text))


def _nothing(name: str, known: list[str], problems: tuple[str, ...]) -> str:
    close = nearest(name, known)
    if close:
        hint = f"did you mean {close}?"
    elif known:
        hint = f"registered are {', '.join(known[:_SHOWN])}" + (" and more" if len(known) > _SHOWN else "")
    else:
        hint = "none is registered here"
    return "\n".join([f"there is no file and no registered pipeline {name}; {hint}", *problems])
