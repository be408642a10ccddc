"""Find documents from command-line arguments: by file or by name, for running, signing and verifying.

A name is that of a registered pipeline, a playbook or a directive, in the workspace or in the user's document list; the
last part is enough if it is unique. A name that a workspace and this list both have is never decided silently:
`user:NAME` and `project:NAME` say which. For a missing file the nearest name is suggested. `sign` and `verify` take the
documents that `check` finds, and the items in `.ai`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.errors import CannotStart, NoSuchDocument, Unreadable
from quire.formats import MARKDOWN, YAML, belongs_to_test
from quire.library.document import Document, load, parse_pipelines, read, unnamed
from quire.patterns import late_pattern
from quire.source import Source, relative_to_here
from quire.wording import did_you_mean, nearest
from quire.workspace.locate import find_workspace

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline
    from quire.library.items import Entry, SpaceName
    from quire.library.library import Library
    from quire.trust.sign_file import Signable


_PART = r"[A-Za-z0-9_][A-Za-z0-9_-]*+"
_NAME = late_pattern(rf"{_PART}(?:\.{_PART})?|{_PART}(?:/{_PART})+")
_DOCUMENT = (*MARKDOWN, *YAML)
_FILES = (*_DOCUMENT, ".txt", ".json")
_SHOWN = 12


def document_of(argument: str, start: Path | None = None) -> Document:
    """Find a document by its file, else by its name in the workspace around `start` (the current folder).

    Raises `CannotStart` with the nearest names, or with all that the name means."""
    if not is_name(argument):
        try:
            return load(argument)
        except Unreadable as error:
            raise with_near_file(error) from None
    library, entry = _meant(argument, start)
    if entry is None:
        raise NoSuchDocument(_nothing(argument, library))
    if entry.type == "pipeline":
        return library.of(str(entry.path)).registry().pipelines[entry.id].document
    if entry.type == "playbook":
        return load(_shown(entry))
    item = library.spaces.read(entry)
    # Its whole path determines the format; messages about it use the path that people would type.
    return replace(read(Source.of(item.text, str(entry.path))), source=Source.of(item.text, _shown(entry)))


def is_name(argument: str) -> bool:
    """Tell whether an argument is looked up as a name: it has the form of one, and no file has it."""
    _, name = _in_space(argument)
    return not name.lower().endswith(_FILES) and not os.path.lexists(argument) and _NAME.fullmatch(name) is not None


def file_of(argument: str, start: Path | None = None) -> str:
    """Return the file of the document that a name means, as people would type it; empty for anything but a name of a
    document. Raises `CannotStart` for a name of several."""
    if not is_name(argument):
        return ""
    _, entry = _meant(argument, start)
    return _shown(entry) if entry else ""


def _in_space(argument: str) -> tuple[SpaceName | None, str]:
    """Split `user:NAME` into the space and the name."""
    if ":" not in argument:
        return None, argument
    from quire.library.items import SPACES

    space, colon, name = argument.partition(":")
    return next(((known, name) for known in SPACES if colon and known == space), (None, argument))


def _meant(argument: str, start: Path | None) -> tuple[Library, Entry | None]:
    from quire.library.items import SPACES
    from quire.library.library import Library
    from quire.workspace.configuration import load_settings

    library = Library(load_settings(find_workspace(start or Path.cwd())))
    space, name = _in_space(argument)
    meant = library.meanings(name, space)
    if len(meant) > 1:
        listed = ", ".join(f"the {entry.type} {entry.id} ({_shown(entry)})" for entry in meant)
        spaces = {entry.space for entry in meant}
        ways = f", or as {' or '.join(f'{at}:{name}' for at in SPACES if at in spaces)}" if len(spaces) > 1 else ""
        raise CannotStart(f"{name} means several things: {listed}; say which by its file, or by its whole id{ways}")
    return library, meant[0] if meant else None


def tree_of(document: Document) -> Pipeline:
    """Return the syntax tree of a pipeline that can run."""
    file = parse_pipelines(unnamed(document.source), bool(document.declared)).file
    assert file is not None  # noqa: S101  # it has a plan
    return next(pipeline for pipeline in file.pipelines if document.declared in ("", pipeline.name.text))


def _nothing(name: str, library: Library) -> str:
    from quire.library.registered import shelf_entries

    registry = library.registry()
    others = [entry.id for kind, entries in library.entries().items() if kind != "pipeline" for entry in entries]
    names = [*registry.pipelines, *others]
    names += [entry.id for entries in shelf_entries(library.settings).values() for entry in entries]
    last_parts = {whole.rpartition("/")[2]: whole for whole in names}
    close = nearest(name, names) or last_parts.get(nearest(name, list(last_parts)) or "")
    own = [whole for whole in names if not whole.startswith("rye/")]
    if close:
        hint = did_you_mean(close)
    elif own:
        hint = f"known here are {', '.join(own[:_SHOWN])}" + (" and more" if len(own) > _SHOWN else "")
    else:
        hint = "there are no documents in this folder"
    return "\n".join([f"unknown file, pipeline, playbook or directive {name}; {hint}", *registry.problems])


def _shown(entry: Entry) -> str:
    """Return the path as people would type it: relative, if it is below the current folder."""
    return relative_to_here(entry.path) or str(entry.path.absolute())


def near_file(path: Path) -> str:
    """Return the file beside a missing one with the nearest name; empty if there is none."""
    try:
        names = [beside.name for beside in path.parent.iterdir() if not beside.name.startswith(".")]
    except (OSError, ValueError):
        return ""
    # `tagline` and `tagline.md` mean tagline.playbook.md.
    documents = [name for name in names if name.endswith(_DOCUMENT) and not belongs_to_test(name)]
    begun = [name for name in documents if name.startswith(f"{path.name.split('.')[0]}.")]
    close = nearest(path.name, names) or (begun[0] if len(begun) == 1 else None)
    return str(path.parent / close) if close else ""


def with_near_file(error: Unreadable) -> Unreadable:
    """Return the same error; for a missing file, with the name that was probably meant."""
    near = "" if os.path.lexists(error.path) else near_file(error.path)
    return Unreadable(error.path, f"{error.reason}{did_you_mean(near, lead='; ')}") if near else error


class SignableFile(Struct, frozen=True):
    """A file to sign or verify."""

    item: Signable
    named: bool
    """False for a file that a search of a folder found."""
    by_name: bool = False
    """True only if the user typed its whole name: also false for a file that a glob matched."""


def find_signables(arguments: Sequence[str], *, locks: bool = False) -> tuple[list[SignableFile], list[str]]:
    """Return the files, each once and in the order of the arguments, and a line for every argument without any. An
    argument is a file, a folder, a glob or the name of a document. With `locks` a folder's lock is one of its files."""
    from quire.library.collect import collect

    files: dict[Path, SignableFile] = {}
    problems: list[str] = []
    for argument in arguments:
        try:
            argument = file_of(argument) or argument
        except CannotStart as error:
            problems.append(str(error))
            continue
        folder = Path(argument)
        if os.path.isdir(folder):  # noqa: PTH112  # a name that is too long: False, not an exception
            here = _in_folder(folder, locks)
            problems += [] if here else [f"{argument} holds nothing that can be signed"]
        else:
            collected, wrong = collect([argument])
            paths = [file.path for file in collected]
            missing = [path for path in paths if not os.path.lexists(path)]
            wrong += [str(with_near_file(Unreadable(path, "does not exist"))) for path in missing]
            by_name = not set(argument) & set("*?[") or os.path.lexists(argument)
            there = [path for path in paths if path not in missing]
            here, wrong_kind = _signables(there, named=True, by_name=by_name)
            problems += wrong + wrong_kind
        for file in here:
            if file.by_name or file.item.path not in files:
                files[file.item.path] = file
    return list(files.values()), problems


def _in_folder(folder: Path, locks: bool) -> list[SignableFile]:
    from quire.library.collect import collect
    from quire.plan.vocabulary import LOCK_FILE

    files = list(_items(folder))
    if locks and (folder / LOCK_FILE).is_file():
        files.append(folder / LOCK_FILE)
    if not _in_ai(folder):
        files += [file.path for file in collect([str(folder)])[0]]
    return _signables(files, named=False)[0]


def _signables(paths: Sequence[Path], *, named: bool, by_name: bool = False) -> tuple[list[SignableFile], list[str]]:
    from quire.trust.sign_file import signable

    files, problems = [], []
    for path in paths:
        try:
            files.append(SignableFile(signable(path, find_workspace(path).folder), named, by_name))
        except CannotStart as error:
            problems.append(str(error))
    return files, problems


def _items(folder: Path) -> Iterator[Path]:
    """Yield directives and knowledge below a folder. Folders behind links, and hidden ones except `.ai`, are not
    entered."""
    from quire.trust.sign_file import ITEM_FOLDERS

    for here, folders, files in os.walk(folder, followlinks=False):
        at = Path(here)
        if at.name == ".ai":
            folders[:] = [name for name in folders if name in ITEM_FOLDERS]
        folders[:] = sorted(name for name in folders if name == ".ai" or not name.startswith((".", "__")))
        if _in_ai(at) and at.name != ".ai":
            yield from (at / name for name in sorted(files) if not name.startswith("."))


def _in_ai(folder: Path) -> bool:
    return ".ai" in folder.absolute().parts
