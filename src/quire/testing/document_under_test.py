"""Find and read the document of a test file, and make the bench on which its cases run."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from quire.library.library import Library
from quire.library.tested_document import find_tested
from quire.source import real_path
from quire.testing.case_run import Bench
from quire.testing.virtual_loop import VirtualLoop
from quire.testing.world.workspace import rehearsal_settings

if TYPE_CHECKING:
    from quire.formats.test.syntax import TestFile
    from quire.library.document import Document
    from quire.source import Source
    from quire.workspace.settings import Settings


def open_document(source: Source, file: TestFile, *, shell: bool = False) -> Bench:
    """Return the bench of a test file. Raises `QuireError` if its document cannot be found or read."""
    folder = real_path(Path(source.name)).parent
    settings = _settings(str(folder))
    document = find_tested(source, file, Library(settings))
    document.runnable()
    return Bench(document, settings, folder, _loop(), shell)


def bench_for(document: Document) -> Bench:
    """Return a bench for a document that has no test yet. Raises `QuireError` if it cannot run."""
    document.runnable()
    folder = real_path(Path(document.source.name)).parent
    return Bench(document, _settings(str(folder)), folder, _loop())


@lru_cache(maxsize=8)
def _settings(folder: str) -> Settings:
    """Read the settings once for all files of a folder."""
    return rehearsal_settings(Path(folder))


@lru_cache(maxsize=1)
def _loop() -> VirtualLoop:
    """Return the one loop of this process: it serves all cases, one after the other."""
    return VirtualLoop()
