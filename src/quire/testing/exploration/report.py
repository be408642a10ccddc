"""Explore the document of a test file, and report each broken promise as a problem with a case to paste."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Diagnostic
from quire.errors import QuireError
from quire.formats.test import codes
from quire.formats.test.parse import parse
from quire.source import MAX_TEST_BYTES, Source, read_source, relative_to_here
from quire.testing.document_under_test import open_document
from quire.testing.exploration.explore import Counterexample, Exploration, explore
from quire.testing.results import FileResult, Problem

if TYPE_CHECKING:
    from quire.diagnostics import Code
    from quire.source import Span

_CODES: dict[str, Code] = {"bounds": codes.BOUND_BROKEN, "envelope": codes.OUTSIDE_ENVELOPE, "always": codes.ALWAYS}
_MEANINGS = {
    "traceback": "it raised an exception: this is a mistake of Quire, please report it",
    "ends": "it did not come to an end",
    "replay": "it does not replay: this is a mistake of Quire, please report it",
}


class DocumentExploration(Struct, frozen=True):
    """The exploration of the document of one test file."""

    source: Source
    """Of the test file."""
    document: str
    seed: int
    exploration: Exploration
    where: Span

    def failure(self) -> FileResult | None:
        """Return the broken promises as the result of a file; None if there are none."""
        if not self.exploration.found:
            return None
        problems = tuple(self._problem(one) for one in self.exploration.found)
        return FileResult(self.source.name, self.source, self.document, problems=problems)

    def _problem(self, found: Counterexample) -> Problem:
        broken = found.broken
        meaning = _MEANINGS.get(broken.promise, "")
        message = f"exploring {self.document}: {meaning}{': ' if meaning else ''}{broken.message}"
        help = f"the same again: quire test --explore 1 --seed {found.seed}; or paste this case"
        code = _CODES.get(broken.promise, codes.COUNTEREXAMPLE)
        return Problem(Diagnostic(code, message, self.where, "", help), found.case)


def explore_file(path: str, count: int, seed: int) -> DocumentExploration | None:
    """Explore the document of a test file; None for a file that cannot be used. Running it reports why."""
    try:
        reading = parse(read_source(Path(path), limit=MAX_TEST_BYTES))
        if reading.file is None:
            return None
        bench = open_document(reading.source, reading.file)
        found = explore(bench, reading.file, count, seed)
    except QuireError:
        return None
    name = relative_to_here(bench.document.name) or bench.document.name
    return DocumentExploration(reading.source, name, seed, found, reading.file.cases[0].span)
