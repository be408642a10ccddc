"""Expand the arguments of a verb to documents: files, folders and globs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path

from msgspec import Struct

from quire.errors import Unreadable
from quire.formats import MARKDOWN, TEST_SUFFIX, YAML, belongs_to_test
from quire.source import Source, open_text, read_source, real_path

_SPACE_FOLDERS = ("directives", "knowledge")
_SKIPPED = ("node_modules", "__pycache__")
_MAGIC = "*?["
_PIPELINE = re.compile(r"""^(["']?)pipeline\1[ \t]*:""", re.MULTILINE)
_CASES = re.compile(r"""^(["']?)cases\1[ \t]*:""", re.MULTILINE)
_OTHER_SPELLING = re.compile(r"pipeline|\\[xuU]")
"""A part of every text with a key `pipeline` that is written otherwise: in braces, behind a tag, with escapes."""


class FoundFile(Struct, frozen=True):
    """A file to check. A `named` file must be readable; an unreadable file that a search found is left out."""

    path: Path
    named: bool


def collect(arguments: Sequence[str], *, tests: bool = False) -> tuple[list[FoundFile], list[str]]:
    """Return the documents, each once and in the order of the arguments, and a line for every argument without any.

    With `tests` a search finds test files too; a file that is named is always returned. `documents_below` searches a
    folder that may be huge.
    """
    files: dict[Path, FoundFile] = {}
    problems: list[str] = []
    for argument in arguments:
        expanded = list(_expand(argument, tests))
        if not expanded:
            problem = "holds no documents" if Path(argument).is_dir() else "matches nothing"
            problems.append(f"{argument} {problem}")
        for file in expanded:
            files.setdefault(file.path, file)
    return list(files.values()), problems


def documents_below(folder: Path, *, deep: bool, most: int) -> Iterator[Path]:
    """Yield the documents and tests of a folder, and with `deep` of the folders below it. At most `most` files are
    looked at, so that a folder such as `/` is not searched for ever."""
    left = most
    for here, files in walk_folders(folder):
        yield from (file.path for file in _documents_in(here, files[:left], True))
        left -= len(files)
        if left <= 0 or not deep:
            return


def _expand(argument: str, tests: bool) -> Iterator[FoundFile]:
    path = Path(argument)
    if os.path.isdir(path):  # noqa: PTH112  # a name that is too long: False, not an exception
        for here, files in walk_folders(path):
            yield from _documents_in(here, files, tests)
    elif is_glob(argument):
        matches = (match for match in glob_files(path) if not belongs_to_test(match.name) or _is_test(match, tests))
        yield from (FoundFile(match, named=True) for match in matches)
    else:
        yield FoundFile(path, named=True)


def is_glob(argument: str) -> bool:
    """Tell whether an argument is a pattern, and not a file whose name has such signs."""
    return any(sign in argument for sign in _MAGIC) and not os.path.lexists(argument)


def glob_files(pattern: Path) -> list[Path]:
    """Return the matching files. Like a search, this enters neither hidden folders nor folders behind links."""
    parts = pattern.parts
    first = next(at for at, part in enumerate(parts) if any(sign in part for sign in _MAGIC))
    base, rest = Path(*parts[:first]), parts[first:]
    hidden = any(part.startswith(".") for part in rest)
    return sorted(
        match
        for match in base.glob("/".join(rest))
        if match.is_file() and (hidden or not any(_skipped(part) for part in match.relative_to(base).parts))
    )


def _skipped(name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED


def _entered(parent: str, name: str) -> bool:
    """Tell whether a search enters a folder. Hidden folders are skipped; of a space, the folders with documents are
    entered."""
    if Path(parent).name == ".ai":
        return name in _SPACE_FOLDERS
    return name == ".ai" or not _skipped(name)


def _in_space(folder: Path) -> bool:
    """Tell whether every file of a folder is a directive or knowledge."""
    parts = folder.absolute().parts
    return any(parts[at] == ".ai" and parts[at + 1] in _SPACE_FOLDERS for at in range(len(parts) - 1))


def walk_folders(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the folders that a search enters, with the names of their files in order. Folders behind links are not
    entered, so links cannot lead in a circle."""
    for here, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if _entered(here, name))
        yield here, sorted(files)


def _is_test(path: Path, tests: bool) -> bool:
    return tests and path.name.lower().endswith(TEST_SUFFIX)


def _documents_in(here: str, files: Sequence[str], tests: bool) -> Iterator[FoundFile]:
    """Yield those of the files of one folder that are documents, and with `tests` their tests."""
    in_space = _in_space(Path(here))
    registers = cache(partial(_pipelines_around, Path(here)))
    for name in files:
        if _is_test(path := Path(here, name), tests):
            yield FoundFile(path, named=True)
        elif file := _wanted(path, in_space, registers):
            yield file


def _wanted(path: Path, in_space: bool, registers: Callable[[], Path | None]) -> FoundFile | None:
    """Return a file that a search comes across, if it is a document."""
    name = path.name.lower()
    if belongs_to_test(name):
        return None
    if in_space:
        return FoundFile(path, named=True) if name.endswith((".md", ".yaml")) else None
    if path.name.endswith(".playbook.md"):
        return FoundFile(path, named=True)
    if name.endswith(MARKDOWN):
        return FoundFile(path, named=False) if _sniffed(path, lambda source: names_steps(source.text)) else None
    if name.endswith(YAML):
        if (workspace := registers()) and _is_registered(path, workspace):
            return FoundFile(path, named=True)
        return FoundFile(path, named=False) if _sniffed(path, names_pipeline) else None
    return None


LONGEST_NAME = 255
LONGEST_PATH = 4000
"""The most bytes of a file's name and characters of a path: asking a system for more is an error, not an answer."""


def document_at(folder: Path, id: str) -> Path | None:
    """Return the document with a path below a folder, if a search of the folder would find it there."""
    parts = id.split("/")
    longest = max(len(part.encode("utf-8", "surrogatepass")) for part in parts)
    if "\0" in id or longest > LONGEST_NAME or len(id) > LONGEST_PATH or not {"", ".", ".."}.isdisjoint(parts):
        return None
    here = folder
    for part in parts[:-1]:
        if not _entered(str(here), part) or (here / part).is_symlink():
            return None
        here /= part
    path = here / parts[-1]
    if not path.is_file():
        return None
    file = _wanted(path, _in_space(here), cache(partial(_pipelines_around, here)))
    return file.path if file else None


def would_be_document(path: Path, text: str) -> bool:
    """Tell whether a search would take a file for a document if it had this text."""
    name = path.name.lower()
    if belongs_to_test(name):
        return False
    if _in_space(path.parent) or path.name.endswith(".playbook.md"):
        return True
    if name.endswith(MARKDOWN):
        return names_steps(text)
    workspace = _pipelines_around(path.parent)
    return bool(workspace and _is_registered(path, workspace)) or names_pipeline(Source.of(text, str(path)))


def is_document(path: Path, text: str) -> bool:
    """Tell whether a text that is written to a file outside of a space makes it a document."""
    written = path.name.lower().endswith((*MARKDOWN, *YAML)) and not _in_space(path.parent)
    return written and would_be_document(path, Source.of(text, str(path)).text)


def _sniffed(path: Path, test: Callable[[Source], bool]) -> bool:
    """Tell whether a file can be read, and a test holds for its text."""
    try:
        status = path.stat()
    except OSError:
        return False
    return _remembered(path, test, (status.st_mtime_ns, status.st_size, status.st_ino))


@lru_cache(maxsize=20_000)
def _remembered(path: Path, test: Callable[[Source], bool], stamp: object) -> bool:
    """Test a file once, until it is written again: a server looks at all files often."""
    try:
        return test(read_source(path))
    except Unreadable:
        return False


def _pipelines_around(folder: Path) -> Path | None:
    """Return the workspace around a folder that may be in its folder of pipelines; None for any other folder."""
    if "pipelines" not in folder.absolute().parts:
        return None
    from quire.workspace.locate import find_workspace

    return find_workspace(folder.absolute()).folder


def _is_registered(path: Path, workspace: Path) -> bool:
    """Tell whether a file is in the workspace's folder of pipelines, where every file counts as one, even a broken
    one."""
    from quire.library.registered import PIPELINES_FOLDER, in_folder

    return in_folder(real_path(path), real_path(workspace / PIPELINES_FOLDER))


def names_pipeline(source: Source) -> bool:
    """Tell whether a document of a YAML text has the key `pipeline`, in any spelling that YAML allows."""
    if _PIPELINE.search(source.text):
        return True
    if not _OTHER_SPELLING.search(source.text):
        return False
    from quire.formats.yaml import Mapping, read_yaml

    documents = read_yaml(source).documents
    return any(isinstance(document, Mapping) and document.find("pipeline") is not None for document in documents)


def names_steps(text: str) -> bool:
    """Tell whether a text has the heading of a step outside of fences, as playbooks do."""
    if "STEP" not in text:
        return False
    from quire.formats.playbook.scan import scan, step_number

    return any(step_number(line) is not None for line in scan(text).lines)


def suffix_of(text: str) -> str:
    """Return the suffix that fits the format of a text without a name."""
    source = Source.of(text, "")
    if "<directive" in text or names_steps(source.text):
        return ".md"
    if names_pipeline(source):
        return ".yaml"
    return TEST_SUFFIX if _CASES.search(source.text) else ".md"


def has_file_beside(source: Source) -> Callable[[str], bool]:
    """Return a function that tells whether the folder of a document has a file of a given name, saved or not."""
    folder = Path(source.name).parent
    return lambda name: (folder / name).is_file() or open_text(folder / name) is not None
