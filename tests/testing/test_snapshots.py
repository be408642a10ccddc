"""Snapshots: written when new, compared afterwards, updated on request, never in CI."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.testing.bench import run

from quire.errors import CannotStart
from quire.source import NOWHERE, Source
from quire.testing import snapshots
from quire.testing.case_results import FileResult
from quire.testing.file_run import FileOptions
from quire.testing.snapshots import CaseSnapshots, SnapshotFile, SnapshotMode, as_text
from quire.values import Value

TEST = """
defaults: {inputs: {product: a bakery, tone: dry}, answers: {"2": "yes"}, model: {"1": '{"best": "Bread."}'}}
cases:
  - {name: one, model: {"3a": x}, expect: {output: !snapshot , prompts: {"1": !snapshot }}}
  - {name: two, model: {"3a": y}, expect: {output: !snapshot }}
"""


def play(folder: Path, mode: SnapshotMode, test: str = TEST) -> FileResult:
    return run(folder, "tagline", test, options=FileOptions(snapshots=mode))


def codes(result: FileResult) -> list[str]:
    of_cases = [one.finding.code.id for case in result.cases for one in case.problems]
    return of_cases + [one.finding.code.id for one in result.problems]


def test_new_ones_are_written_and_then_compared(tmp_path: Path) -> None:
    first = play(tmp_path, SnapshotMode())
    assert [(one.case, one.place, one.before) for one in first.snapshots] == [
        ("one", "output", None),
        ("one", "prompts.1", None),
        ("two", "output", None),
    ]
    kept = (tmp_path / "tagline.test.snap.yaml").read_text()
    again = play(tmp_path, SnapshotMode())
    assert (codes(again), again.snapshots) == ([], ())
    assert (tmp_path / "tagline.test.snap.yaml").read_text() == kept


def test_a_difference_fails_until_it_is_updated(tmp_path: Path) -> None:
    play(tmp_path, SnapshotMode())
    changed = TEST.replace("{3a: x}", "{3a: z}").replace('"3a": x', '"3a": z')
    assert codes(play(tmp_path, SnapshotMode(), changed)) == ["TS120"]
    updated = play(tmp_path, SnapshotMode(update=True), changed)
    assert [(one.case, one.place, one.before, one.after) for one in updated.snapshots] == [
        ("one", "output", "x\n", "z\n")
    ]
    assert codes(play(tmp_path, SnapshotMode(), changed)) == []


def test_nothing_is_written_in_ci(tmp_path: Path) -> None:
    assert codes(play(tmp_path, SnapshotMode(ci=True))) == ["TS121", "TS121", "TS121"]
    assert not (tmp_path / "tagline.test.snap.yaml").exists()
    with pytest.raises(CannotStart, match="CI is set"):
        SnapshotMode.of({"CI": "true"}, update=True)
    assert not SnapshotMode.of({"CI": "false"}, update=True).ci


def test_unused_ones_fail_a_whole_run_and_are_removed_by_an_update(tmp_path: Path) -> None:
    play(tmp_path, SnapshotMode())
    fewer = TEST.replace("  - {name: two", "  - {name: three")
    found = play(tmp_path, SnapshotMode(), fewer)
    assert codes(found) == ["TS122"]
    assert "'two'" in found.problems[0].finding.message
    removed = play(tmp_path, SnapshotMode(update=True), fewer)
    assert [(one.case, one.after) for one in removed.snapshots] == [("two", None)]
    assert codes(play(tmp_path, SnapshotMode(), fewer)) == []


def test_a_failing_case_writes_nothing(tmp_path: Path) -> None:
    found = play(tmp_path, SnapshotMode(), TEST.replace("expect: {output", "expect: {exit: 1, output"))
    assert found.snapshots == ()
    assert not (tmp_path / "tagline.test.snap.yaml").exists()


@pytest.mark.parametrize("text", ["- a list\n", "one: [\n", "one: !file x\n"])
def test_a_broken_file_is_a_problem_with_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "tagline.test.snap.yaml").write_text(text)
    found = play(tmp_path, SnapshotMode())
    assert codes(found) == ["TS108"]
    assert "tagline.test.snap.yaml:" in found.problems[0].finding.message


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=VALUES)
@settings(max_examples=150, deadline=None)
def test_any_value_is_read_as_it_was_written(value: Value) -> None:
    book = CaseSnapshots({}, SnapshotMode())
    assert book("output", value, NOWHERE) is None
    kept = book.seen["output"]
    read = snapshots.read_value(Source.of(as_text({"case": {"output": kept}}), "x.snap.yaml"))
    assert read == {"case": {"output": kept}}
    assert CaseSnapshots({"output": kept}, SnapshotMode(ci=True))("output", value, NOWHERE) is None


def test_a_file_that_is_not_there_has_no_snapshots(tmp_path: Path) -> None:
    assert SnapshotFile.beside(str(tmp_path / "x.test.yaml")).cases == {}
