"""The cases that failed last are remembered in the workspace, and nothing else is written there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from quire.diagnostics import Code, Diagnostic, Severity
from quire.source import NOWHERE, Source
from quire.testing.case_results import FILE_NAME, MAX_BYTES, CaseResult, FailedCases, FileResult, Outcome, Problem

BROKEN = Problem(Diagnostic(Code("TS001", "test-syntax", Severity.ERROR, ""), "m", NOWHERE))


def result(path: Path, problem: bool = False, **cases: Outcome) -> FileResult:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    made = tuple(CaseResult(name, 1, outcome) for name, outcome in cases.items())
    return FileResult(str(path), Source.of("x"), cases=made, problems=(BROKEN,) if problem else ())


def remembered(folder: Path, *names: str) -> list[list[str] | None]:
    kept = FailedCases.read(folder)
    return [None if (found := kept.of(str(folder / name))) is None else sorted(found) for name in names]


def note(folder: Path, *results: FileResult, whole: bool = False) -> None:
    kept = FailedCases.read(folder)
    kept.update(results, whole)
    kept.write()


def test_failed_cases_are_remembered_until_they_pass(tmp_path: Path) -> None:
    a, b = tmp_path / "a.test.yaml", tmp_path / "deep/b.test.yaml"
    note(tmp_path, result(a, x=Outcome.FAILED, y=Outcome.PASSED, z=Outcome.TODO), result(b, problem=True))
    assert remembered(tmp_path, "a.test.yaml", "deep/b.test.yaml", "c.test.yaml") == [["x"], [], None]
    note(tmp_path, result(a, y=Outcome.FAILED))
    assert remembered(tmp_path, "a.test.yaml") == [["x", "y"]]
    note(tmp_path, result(a, x=Outcome.PASSED, y=Outcome.PASSED))
    note(tmp_path, result(b, x=Outcome.PASSED))
    assert remembered(tmp_path, "a.test.yaml", "deep/b.test.yaml") == [None, None]
    assert not (tmp_path / ".quire" / FILE_NAME).exists()


def test_names_that_are_gone_are_forgotten_by_a_whole_run(tmp_path: Path) -> None:
    a = tmp_path / "a.test.yaml"
    note(tmp_path, result(a, old=Outcome.FAILED))
    note(tmp_path, result(a, new=Outcome.PASSED), whole=True)
    assert remembered(tmp_path, "a.test.yaml") == [None]


def test_files_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    a, b = tmp_path / "a.test.yaml", tmp_path / "b.test.yaml"
    note(tmp_path, result(a, x=Outcome.FAILED), result(b, x=Outcome.FAILED))
    a.unlink()
    note(tmp_path, result(b, x=Outcome.FAILED))
    assert remembered(tmp_path, "a.test.yaml", "b.test.yaml") == [None, ["x"]]


def test_a_suite_that_passes_writes_nothing(tmp_path: Path) -> None:
    note(tmp_path, result(tmp_path / "a.test.yaml", x=Outcome.PASSED))
    assert [path.name for path in tmp_path.iterdir()] == ["a.test.yaml"]


def test_the_file_is_for_the_user_alone_and_not_for_git(tmp_path: Path) -> None:
    note(tmp_path, result(tmp_path / "a.test.yaml", x=Outcome.FAILED))
    folder = tmp_path / ".quire"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / FILE_NAME).stat().st_mode) == 0o600
    assert (folder / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b'{"version": 2, "failed": {"a.test.yaml": ["x"]}}',
        b'{"version": 1, "failed": {"a.test.yaml": [1]}}',
        b'{"version": 1}',
        b"\xff\xfe",
        b"[" * 100_000,
        b" " * (MAX_BYTES + 1),
    ],
    ids=range(9),
)
def test_a_damaged_file_counts_as_empty(tmp_path: Path, data: bytes) -> None:
    (tmp_path / ".quire").mkdir()
    (tmp_path / ".quire" / FILE_NAME).write_bytes(data)
    assert FailedCases.read(tmp_path).failed == {}
    note(tmp_path, result(tmp_path / "a.test.yaml", x=Outcome.FAILED))
    assert remembered(tmp_path, "a.test.yaml") == [["x"]]


def test_links_are_neither_read_nor_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = elsewhere / FILE_NAME
    target.write_text('{"version": 1, "failed": {"a.test.yaml": ["x"]}}')
    before = target.read_bytes()
    for work in (tmp_path / "one", tmp_path / "two"):
        work.mkdir()
    (tmp_path / "one/.quire").symlink_to(elsewhere)
    (tmp_path / "two/.quire").mkdir()
    (tmp_path / "two/.quire" / FILE_NAME).symlink_to(target)
    for work in (tmp_path / "one", tmp_path / "two"):
        assert FailedCases.read(work).failed == {}
        note(work, result(work / "b.test.yaml", y=Outcome.FAILED))
        note(work, result(work / "b.test.yaml", y=Outcome.PASSED))
        assert target.read_bytes() == before


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".quire").mkdir()
    os.mkfifo(tmp_path / ".quire" / FILE_NAME)
    assert FailedCases.read(tmp_path).failed == {}


def test_a_folder_that_cannot_be_written_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / ".quire").write_text("a file")
    note(tmp_path, result(tmp_path / "a.test.yaml", x=Outcome.FAILED))
    assert (tmp_path / ".quire").read_text() == "a file"
