"""A watched test depends on the files that it opened, and on nothing else."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from tests.given import given

from quire.testing.file_run import FileOptions
from quire.testing.suite import Job
from quire.testing.watched_files import Watched, WatchedRun, run_watched, stamp_of
from quire.testing.worker_processes import one_each

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def folder(here: Path) -> Path:
    return given(
        {
            "other.txt": "not read",
            "pipelines/callee.yaml": "pipeline: callee\nsteps:\n  - transform: {value: \"'x'\"}\n",
            "main.yaml": "pipeline: main\nsteps:\n  - call: {pipeline: callee}\n",
            "main.test.yaml": "cases:\n  - name: rows\n    each: rows.csv\n    expect: {output: '{row.wanted}'}\n",
            "rows.csv": "wanted\nx\n",
        },
        here,
    )


def watched(path: str) -> WatchedRun:
    (run,) = one_each([Job(path)], partial(run_watched, options=FileOptions()), 1)
    return run


def test_the_opened_files_are_known(folder: Path) -> None:
    run = watched("main.test.yaml")
    assert [case.problems for case in run.result.cases] == [()]
    names = {os.path.relpath(path, folder) for path in run.stamps}
    assert names == {"main.test.yaml", "main.yaml", "pipelines/callee.yaml", "rows.csv", "quire.toml"}
    assert all(stamp == stamp_of(path) for path, stamp in run.stamps.items())


def test_modules_of_a_workspace_are_not_loaded_elsewhere(folder: Path) -> None:
    assert not any(name.partition(".")[0] == "tests" for name in watched("main.test.yaml").modules)


def test_a_missing_document_may_appear(folder: Path) -> None:
    (folder / "main.yaml").rename(folder / "away.yaml")
    run = watched("main.test.yaml")
    assert run.result.failed
    watching = Watched()
    watching.note("main.test.yaml", run.stamps)
    assert watching.changed() == []
    (folder / "away.yaml").rename(folder / "main.yaml")
    assert watching.changed() == ["main.test.yaml"]


def test_a_test_that_does_not_exist_may_appear(folder: Path) -> None:
    watching = Watched()
    watching.note("new.test.yaml", watched("new.test.yaml").stamps)
    assert watching.changed() == []
    (folder / "new.test.yaml").write_text("cases: []\n")
    assert watching.changed() == ["new.test.yaml"]


@pytest.mark.parametrize("how", ["written", "replaced", "removed", "touched"])
def test_a_change_is_noticed_once_per_test(folder: Path, how: str) -> None:
    rows = folder / "rows.csv"
    watching = Watched()
    stamps = {str(path): stamp_of(str(path)) for path in (rows, folder / "main.yaml")}
    watching.note("a", stamps)
    watching.note("b", {str(folder / "main.yaml"): stamp_of(str(folder / "main.yaml"))})
    watching.note("c", dict(stamps))
    assert (watching.count, watching.changed()) == (2, [])
    match how:
        case "written":
            rows.write_text("wanted\nlonger\n")
        case "replaced":
            (folder / "new").write_text(rows.read_text())
            (folder / "new").replace(rows)
        case "removed":
            rows.unlink()
        case "touched":
            os.utime(rows, ns=(1, 1))
    assert watching.changed() == ["a", "c"]
    watching.forget(["a"])
    assert watching.changed() == ["c"]
