"""Find the tests of a document, saved or not, and count their cases. Lenses and the command that runs tests agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from quire.formats import TEST_SUFFIX

if TYPE_CHECKING:
    from quire.formats.test.syntax import TestFile
    from quire.lsp.views import View


def tests_of(view: View) -> Iterator[View]:
    """Yield the tests of a document: those that name it, and one that has its name and names none."""
    from quire.lsp.test.tested import tested

    for path in view.folder.files:
        test = view.folder.view(path) if path.endswith(TEST_SUFFIX) else None
        if test is not None and test.format == "test" and _may_mean(test, view) and tested(test).path == view.path:
            yield test


def count_cases(view: View) -> int:
    """Return how many cases the tests of a document have. Tests with errors are left out."""
    files: list[TestFile | None] = [test.reading.file for test in tests_of(view)]
    return sum(len(file.cases) for file in files if file is not None)


def _may_mean(test: View, view: View) -> bool:
    """Tell whether a test can be about a document. Finding its document reads that from the disk."""
    file: TestFile | None = test.reading.file
    if file is None:
        return True
    named = file.document.text if file.document else PurePath(test.path).name.removesuffix(TEST_SUFFIX)
    own, last = PurePath(view.path).name, PurePath(named).name
    return last in (own, own.partition(".")[0]) or (view.format == "pipeline" and named in view.source.text)
