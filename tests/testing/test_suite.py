"""A suite runs many files, in several processes, and its results are the same in any number of them."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from quire.diagnostics import Code, Diagnostic, Severity
from quire.source import NOWHERE, Source
from quire.testing import worker_processes
from quire.testing.case_results import CaseResult, FailedCases, FileResult, Outcome, Problem
from quire.testing.discovery import Selection, TestTarget, keyword
from quire.testing.suite import LARGE_FILE, Job, jobs_of, joined, run_suite, until_failure

BROKEN = Problem(Diagnostic(Code("TS001", "test-syntax", Severity.ERROR, ""), "m", NOWHERE))
CASES = 10
LARGE = """\
cases: [{name: a, matrix: {x: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], y: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}, expect: {output: b}}]
"""
"""A small text with 100 cases."""


@pytest.fixture(autouse=True)
def shared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are made from the second file on, and also beside the threads of a test runner."""
    monkeypatch.setattr(worker_processes, "ALONE", 0.0)
    monkeypatch.setattr(worker_processes, "WORTH", 0.0)
    monkeypatch.setattr(worker_processes, "_can_copy", lambda: True)


def fake(job: Job) -> FileResult:
    """Run ten cases of which the last of `bad*` fails, and the whole of `broken*`."""
    name = Path(job.path).name
    numbers = [number for number in range(CASES) if job.selection.takes(number)]
    cases = tuple(
        CaseResult(str(number), number, Outcome.FAILED if name.startswith("bad") and number == 9 else Outcome.PASSED)
        for number in numbers
    )
    problems = (BROKEN,) if name.startswith("broken") else ()
    return FileResult(job.path, Source.of("x"), str(os.getpid()), cases, problems)


def names(results: list[FileResult]) -> list[tuple[str, list[str]]]:
    return [(Path(result.path).name, [case.name for case in result.cases]) for result in results]


def jobs(folder: Path, *files: str) -> list[Job]:
    for file in files:
        (folder / file).write_text(LARGE if "large" in file else "cases: []\n")
    return [Job(str(folder / file)) for file in files]


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_results_are_the_same_in_any_number_of_processes(tmp_path: Path, processes: int) -> None:
    files = [f"{number}.test.yaml" for number in range(8)] + ["large.test.yaml", "z.test.yaml"]
    results = list(run_suite(jobs(tmp_path, *files), fake, processes=processes))
    assert names(results) == [(file, [str(number) for number in range(CASES)]) for file in files]
    assert len({result.document for result in results}) > 1 or processes == 1


def test_a_file_is_divided_only_where_that_is_allowed(tmp_path: Path) -> None:
    shares: list[tuple[int, int]] = []

    def seen(job: Job) -> FileResult:
        shares.append(job.selection.share)
        return fake(job)

    (tmp_path / "snapshots.test.yaml").write_text(LARGE.replace("b", "!snapshot"))
    (tmp_path / "missing.test.yaml").unlink(missing_ok=True)
    plain = [Job(str(tmp_path / "snapshots.test.yaml")), Job(str(tmp_path / "missing.test.yaml"))]
    list(run_suite([*plain, *jobs(tmp_path, "large.test.yaml")], seen, processes=2, divide=False))
    list(run_suite(plain, seen, processes=1))
    assert shares[0] == (0, 1) and set(shares) == {(0, 1)}


@pytest.mark.parametrize(
    ("text", "divided"),
    [
        (LARGE, True),
        (LARGE.replace(", 9]", "]"), False),
        (f"cases: [{{name: a, matrix: {{x: [1]}}}}]\n# {'x' * LARGE_FILE}\n", True),
        ("cases: [{name: a, each: missing.csv}]\n", False),
        ("cases: [\n# each:", False),
    ],
)
def test_a_file_with_very_many_cases_is_divided_at_once(tmp_path: Path, text: str, divided: bool) -> None:
    (tmp_path / "a.test.yaml").write_text(text)
    (result,) = run_suite([Job(str(tmp_path / "a.test.yaml"))], fake, processes=2)
    assert len(result.cases) == CASES
    assert (result.document != str(os.getpid())) == divided


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a", "bad", "b"], [("a", CASES), ("bad", CASES)]),
        (["a", "bad-large", "b"], [("a", CASES), ("bad-large", CASES)]),
        (["broken", "bad"], [("broken", 0)]),
    ],
)
def test_the_first_failure_is_the_last_result(
    tmp_path: Path, processes: int, files: list[str], expected: list[tuple[str, int]]
) -> None:
    wanted = jobs(tmp_path, *(f"{file}.test.yaml" for file in files))
    results = list(run_suite(wanted, fake, processes=processes, stop_at_failure=True))
    assert [(name.removesuffix(".test.yaml"), len(cases)) for name, cases in names(results)] == expected


def test_the_collector_of_garbage_is_left_as_it_was(tmp_path: Path) -> None:
    before, during = gc.get_threshold(), set[tuple[int, int, int]]()

    def seen(job: Job) -> FileResult:
        during.add(gc.get_threshold())
        return fake(job)

    next(iter(run_suite(jobs(tmp_path, "a.test.yaml", "b.test.yaml"), seen, processes=1)))
    assert before not in during and gc.get_threshold() == before


def test_cases_after_the_first_failure_are_left_out() -> None:
    outcomes = (Outcome.PASSED, Outcome.FAILED, Outcome.FAILED)
    cases = tuple(CaseResult(str(at), 1, outcome) for at, outcome in enumerate(outcomes))
    assert [case.name for case in until_failure(FileResult("a", Source.of("x"), cases=cases)).cases] == ["0", "1"]


def test_shares_are_joined_in_the_order_of_the_file() -> None:
    shares = [
        FileResult("a", Source.of("x"), cases=tuple(CaseResult(str(n), 1, Outcome.PASSED) for n in range(mine, 7, 3)))
        for mine in range(3)
    ]
    assert [case.name for case in joined(shares).cases] == [str(number) for number in range(7)]


def test_jobs_select_what_the_arguments_mean(tmp_path: Path) -> None:
    word = keyword("yes")
    targets = [TestTarget("a.test.yaml"), TestTarget("b.test.yaml", frozenset({"x"}), frozenset({3}))]
    assert jobs_of(targets, Selection(word, ("slow",))) == [
        Job("a.test.yaml", Selection(word, ("slow",))),
        Job("b.test.yaml", Selection(word, ("slow",), frozenset({"x"})), frozenset({3})),
    ]


def test_only_what_failed_is_run_again(tmp_path: Path) -> None:
    paths = {name: str(tmp_path / f"{name}.test.yaml") for name in ("some", "whole", "fine")}
    failed = FailedCases(tmp_path, {"some.test.yaml": ["x", "y"], "whole.test.yaml": []})
    targets = [TestTarget(path) for path in paths.values()]
    assert jobs_of(targets, Selection(), failed) == [
        Job(paths["some"], Selection(names=frozenset({"x", "y"}))),
        Job(paths["whole"]),
    ]
    one = TestTarget(paths["some"], frozenset({"y", "z"}))
    assert jobs_of([one], Selection(), failed) == [Job(paths["some"], Selection(names=frozenset({"y"})))]
