"""Let pytest collect document tests: one item for each case and row of a `*.test.yaml` file.

pytest loads this module in every project of an environment that has Quire. So nothing of Quire is imported before a
test file is found, and a `*.test.yaml` file without `cases:` belongs to another tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, assert_never

import pytest

if TYPE_CHECKING:
    from quire.testing.case_results import CaseResult, FileResult
    from quire.testing.case_rows import CaseRow
    from quire.testing.file_run import OpenTest

_SUFFIX = ".test.yaml"
_CASES = re.compile(r"^(['\"]?)cases\1[ \t]*:", re.MULTILINE)
_TAG = re.compile(r"[A-Za-z][\w.-]*")
_MOST_SNIFFED = 2_000_000


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> DocumentTestFile | None:
    """Collect a file of document tests."""
    if not file_path.name.endswith(_SUFFIX) or not _is_ours(file_path):
        return None
    return DocumentTestFile.from_parent(parent, path=file_path)


def _is_ours(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return _CASES.search(file.read(_MOST_SNIFFED)) is not None
    except OSError:
        return False


class DocumentTestFile(pytest.File):
    """A test file. Its document is opened once for all items."""

    def collect(self) -> Iterator[DocumentTestItem]:
        opened = self.opened
        for row in opened.rows:
            item = DocumentTestItem.from_parent(self, name=row.name)
            item.wanted = row
            for tag in row.case.tags:
                if _TAG.fullmatch(tag):
                    self.config.addinivalue_line("markers", f"{tag}: a tag of document tests")
                    item.add_marker(tag)
            if row.case.skip is not None:
                item.add_marker(pytest.mark.skip(reason=row.case.skip))
            yield item

    @cached_property
    def opened(self) -> OpenTest:
        from quire.errors import Unreadable
        from quire.formats.test.parse import parse
        from quire.source import MAX_TEST_BYTES, read_source, relative_to_here
        from quire.testing.case_results import FileResult
        from quire.testing.file_run import FileOptions, open_test
        from quire.testing.snapshots import SnapshotMode

        # The commands in messages can be pasted, so the file has the name that one types here.
        name = Path(relative_to_here(self.path) or self.path)
        try:
            source = read_source(name, limit=MAX_TEST_BYTES)
        except Unreadable as error:
            raise self.CollectError(str(error)) from None
        # As in CI: several processes may run cases of one file, so none of them writes its snapshots.
        opened = open_test(parse(source), FileOptions(snapshots=SnapshotMode(ci=True)))
        if isinstance(opened, FileResult):
            raise self.CollectError(_text_of(opened))
        if opened.problems:
            raise self.CollectError(_text_of(FileResult(str(name), source, problems=opened.problems)))
        return opened


class DocumentTestItem(pytest.Item):
    """A case, or one row of it."""

    wanted: CaseRow
    parent: DocumentTestFile
    funcargs: ClassVar[Mapping[str, object]] = {}
    """No fixtures. pytest-lsp ends its wrapper before the call, which pytest refuses, for an item without this name."""

    def runtest(self) -> None:
        """Run the case, and tell pytest the outcome."""
        from quire.testing.case_results import FileResult, Outcome

        opened = self.parent.opened
        result = opened.run(self.wanted)
        self.user_properties += _properties(opened, result)
        match result.outcome:
            case Outcome.PASSED:
                return
            case Outcome.FAILED:
                source = opened.reading.source
                raise CaseFailed(FileResult(source.name, source, cases=(result,)))
            case Outcome.SKIPPED:
                pytest.skip(result.reason)
            case Outcome.TODO:
                pytest.xfail(result.reason)
            case Outcome.FLAKY:
                pytest.xfail(f"flaky: {result.reason}")
            case _:
                assert_never(result.outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """Return the text that `quire test` would print; for a bug, the traceback."""
        if isinstance(excinfo.value, CaseFailed):
            return _text_of(excinfo.value.result)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        line = self.parent.opened.reading.source.position(self.wanted.case.span.start).line
        return self.path, line - 1, f"{self.path.name}::{self.name}"


class CaseFailed(Exception):
    """A case failed. The result has the one case."""

    def __init__(self, result: FileResult) -> None:
        super().__init__("the case failed")
        self.result = result


def _text_of(result: FileResult) -> str:
    from quire.display.test_report import FullPrinter

    return FullPrinter().file(result).rstrip("\n")


def _properties(opened: OpenTest, result: CaseResult) -> list[tuple[str, object]]:
    """Return the figures of a case for reports such as JUnit files."""
    used = result.used.as_value() if result.used else {}
    figures: dict[str, object] = {name: value for name, value in used.items() if value}
    return [("document_sha256", opened.bench.document.sha256), *figures.items()]
