"""The tests of a document for the page and MCP clients: its cases, their last results, the coverage of its lines.

Results are kept in memory until the server ends, with the texts that they belong to: after an edit they are old.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.display.test_measures import coverage_data
from quire.display.test_report import case_data, problem_data
from quire.errors import QuireError
from quire.formats.test.parse import parse
from quire.source import MAX_TEST_BYTES, read_source
from quire.testing.discovery import find_tests, open_document, own_test
from quire.testing.file_run import FileOptions, run_file
from quire.testing.snapshots import SnapshotMode

if TYPE_CHECKING:
    from quire.formats.test.syntax import TestReading
    from quire.library.document_state import DocumentState
    from quire.testing.case_results import FileResult
    from quire.testing.coverage.report import DocumentCoverage
    from quire.values import Value


_SHOWN = ("case", "line", "outcome", "reason", "tags", "seconds", "problems")
"""The members of a case that the page shows."""
RUNNING = threading.Lock()
MOST_SEARCHED = 500
"""Test files of a workspace that are looked at for a document without a test of its own name."""


class _Finished(Struct, frozen=True):
    """The result of a test file, with the hashes of the texts that it belongs to."""

    at: float
    hashes: tuple[str, str]
    result: FileResult


class DocumentTests:
    """The tests of the documents of one workspace. Requests may ask it from several threads; tests run one by one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._finished: dict[str, _Finished] = {}

    def look(self, state: DocumentState) -> dict[str, Value]:
        """Return the cases of a document with their last results. Runs nothing."""
        reading = self._reading(state)
        if reading is None:
            name = Path(own_test(str(state.path))).name
            return {"file": None, "cases": [], "problems": [], "coverage": None, "at": None, "old": False, "make": name}
        return self._data(state, reading)

    def run(self, state: DocumentState) -> dict[str, Value]:
        """Run all cases of a document, and return them with their results. Nothing is written."""
        reading = self._reading(state)
        if reading is not None:
            options = FileOptions(snapshots=SnapshotMode(ci=True), coverage=True)
            with RUNNING:
                result = run_file(reading, options)
                self._finished[state.id] = _Finished(time.time(), _hashes(state, reading), result)
        return self.look(state)

    def _reading(self, state: DocumentState) -> TestReading | None:
        path = self._test_of(state)
        try:
            return parse(read_source(path, limit=MAX_TEST_BYTES)) if path else None
        except QuireError:
            return None

    def _test_of(self, state: DocumentState) -> Path | None:
        """Return the test file of a document: the one with its name beside it, else one that names it."""
        beside = Path(own_test(str(state.path)))
        if beside.is_file():
            return beside
        targets, _ = find_tests([str(self._folder)])
        return next((Path(target.path) for target in targets[:MOST_SEARCHED] if _tests(target.path, state.path)), None)

    def _shown(self, name: str) -> str:
        """Return the path of a test file in the workspace."""
        path, folder = Path(name).resolve(), self._folder.resolve()
        return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else name

    def _data(self, state: DocumentState, reading: TestReading) -> dict[str, Value]:
        finished = self._finished.get(state.id)
        result = finished.result if finished else None
        source = reading.source
        data: dict[str, Value] = {
            "file": self._shown(source.name),
            "cases": [],
            "problems": [problem_data(result.source, problem) for problem in result.problems] if result else [],
            "coverage": None,
            "at": finished.at if finished else None,
            "old": finished is not None and finished.hashes != _hashes(state, reading),
            "make": None,
        }
        if result is not None:
            cases = (case_data(result, case) for case in result.cases)
            data["cases"] = [{name: case[name] for name in _SHOWN} for case in cases]
            if result.coverage is not None:
                data["coverage"] = {**coverage_data(result.coverage), "lines": _lines(result.coverage)}
        elif reading.file is not None:
            data["cases"] = [
                {"case": case.name, "line": source.position(case.span.start).line, "outcome": None, "problems": []}
                for case in reading.file.cases
            ]
        return data


def _tests(test: str, document: Path) -> bool:
    """Tell whether a test file is for a document."""
    try:
        reading = parse(read_source(Path(test), limit=MAX_TEST_BYTES))
        if reading.file is None:
            return False
        return Path(open_document(reading.source, reading.file).document.name).resolve() == document.resolve()
    except QuireError:
        return False


def _hashes(state: DocumentState, reading: TestReading) -> tuple[str, str]:
    return (state.source.sha256 if state.source else ""), reading.source.sha256


def _lines(coverage: DocumentCoverage) -> dict[str, Value]:
    """Return the colour of each line that has decisions: all of them taken, some, or none."""
    taken: dict[int, list[bool]] = {}
    for decision in coverage.decisions:
        taken.setdefault(coverage.line(decision), []).append(coverage.count(decision) > 0)
    return {str(line): "all" if all(marks) else "some" if any(marks) else "none" for line, marks in taken.items()}
