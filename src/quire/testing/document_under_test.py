"""Find and read the document of a test file, and make the bench on which its cases run."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import CannotStart
from quire.formats.test.syntax import SUFFIX
from quire.library.document import Document, load
from quire.library.library import Library
from quire.source import real_path
from quire.testing.case_run import Bench
from quire.testing.virtual_loop import VirtualLoop
from quire.testing.world.workspace import rehearsal_settings

if TYPE_CHECKING:
    from quire.formats.test.syntax import TestFile
    from quire.source import Source
    from quire.workspace.settings import Settings

ENDINGS = (".playbook.md", ".yaml", ".yml", ".md")
"""The endings of a document whose name is that of its test file, in the order in which they are tried."""


def open_document(source: Source, file: TestFile, *, shell: bool = False) -> Bench:
    """Return the bench of a test file. Raises `QuireError` if its document cannot be found or read."""
    folder = real_path(Path(source.name)).parent
    settings = _settings(str(folder))
    named = file.document.text if file.document else ""
    document = find_document(folder, named or Path(source.name).name.removesuffix(SUFFIX), settings, exact=bool(named))
    document.runnable()
    return Bench(document, settings, folder, _loop(), shell)


def find_document(folder: Path, name: str, settings: Settings, *, exact: bool) -> Document:
    """Return the document that a test names by a path beside it, or by its name. Raises `CannotStart`.

    Without a name in the test (`exact` is false), the endings of documents are tried.
    """
    tried = (name,) if exact else tuple(name + ending for ending in ENDINGS)
    for one in tried:
        path = folder / one
        if path.is_file():
            if not real_path(path).is_relative_to(settings.workspace.folder.resolve()):
                raise CannotStart(f"{one} is outside of the workspace of the test")
            return load(path)
    found = Library(settings).find(name)
    if found is not None:
        return found
    beside = ", ".join(tried)
    raise CannotStart(f"there is no document {name}: neither {beside} beside the test, nor one with that name")


@lru_cache(maxsize=8)
def _settings(folder: str) -> Settings:
    """Read the settings once for all files of a folder."""
    return rehearsal_settings(Path(folder))


@lru_cache(maxsize=1)
def _loop() -> VirtualLoop:
    """Return the one loop of this process: it serves all cases, one after the other."""
    return VirtualLoop()
