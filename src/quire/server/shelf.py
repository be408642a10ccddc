"""The documents of the workspace as the server lists them: read anew when their files change, broken ones included."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Diagnostic, Severity
from quire.errors import QuireError
from quire.library.check import DocumentCheck
from quire.library.collect import collect
from quire.library.document import Document, read
from quire.server.problems import Problem
from quire.source import Source, read_source
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime

Stamp = tuple[int, int]


class Shelved(Struct, frozen=True):
    """A document of the workspace. `id` is its path in the workspace; `error` says why it cannot be read at all."""

    id: str
    path: Path
    document: Document | None
    findings: tuple[Diagnostic, ...] = ()
    error: str = ""

    @property
    def errors(self) -> int:
        return sum(one.severity is Severity.ERROR for one in self.findings) + bool(self.error)

    @property
    def warnings(self) -> int:
        return sum(one.severity is Severity.WARNING for one in self.findings)


class Shelf:
    """All documents below the workspace's folder."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._folder = runtime.settings.workspace.folder
        self._known: dict[str, tuple[Stamp, Shelved]] = {}
        self._stamp: tuple[tuple[str, Stamp], ...] = ()

    def stamp(self) -> tuple[tuple[str, Stamp], ...]:
        """Return a value that changes when a document is added, removed or written."""
        return tuple((id, stamp) for id, _, stamp in self._files())

    def all(self) -> list[Shelved]:
        """Return all documents. Findings may depend on other documents, so all are checked again when one changes."""
        files = list(self._files())
        stamp = tuple((id, found) for id, _, found in files)
        if stamp != self._stamp:
            check = DocumentCheck()
            self._known = {id: (found, _shelved(id, path, check)) for id, path, found in files}
            self._stamp = stamp
        return [shelved for _, shelved in self._known.values()]

    def one(self, id: str) -> Shelved:
        """Return one document as its file is now. Raises `Problem` for an id that is not in the list."""
        known = {found: path for found, path, _ in self._files()}
        if id not in known:
            close = nearest(id, list(known))
            raise Problem.of("no-such-document", f"there is no document {id}", help=did_you_mean(close))
        return _shelved(id, known[id], DocumentCheck())

    def _files(self) -> Iterator[tuple[str, Path, Stamp]]:
        wanted, _ = collect([str(self._folder)])
        for one in wanted:
            try:
                found = one.path.stat()
            except OSError:
                continue
            id = one.path.relative_to(self._folder).as_posix()
            yield id, one.path, (found.st_mtime_ns, found.st_size)


def checked(source: Source) -> tuple[Diagnostic, ...]:
    """Return all findings about a text, as `quire check` would print them."""
    return DocumentCheck().of(source)


def _shelved(id: str, path: Path, check: DocumentCheck) -> Shelved:
    try:
        source = read_source(path)
        # People know a document by its path in the workspace; the library needs the path on disk.
        findings = check.of(source)
        document = None if _is_knowledge(id) else read(source)
    except QuireError as error:
        return Shelved(id, path, None, error=str(error).replace(str(path), id))
    except OSError as error:
        return Shelved(id, path, None, error=os.strerror(error.errno or 0))
    return Shelved(id, path, document, findings)


def _is_knowledge(id: str) -> bool:
    return id.startswith(".ai/knowledge/") or "/.ai/knowledge/" in id
