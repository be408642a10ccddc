"""Receipts of live tests: kept, replaced, bounded, and compared with what is there now."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from quire.errors import CannotStart
from quire.testing.live import receipts
from quire.testing.live.receipts import FILE, Receipt, Subject, read_receipts, seen_cost, standings, store_receipts
from quire.testing.live.tries import Status

ONE = Receipt("x.test.yaml", "rows", "a:b", "plan", "test", Status.VERIFIED, 9, 10, 1000.0, 0.01, 2.5)
NOW = Subject("x.test.yaml", "rows", "plan", "test")


def test_keeping(tmp_path: Path) -> None:
    assert read_receipts(tmp_path) == []
    other = replace(ONE, model="c:d", at=2000.0)
    store_receipts(tmp_path, [ONE, other])
    assert read_receipts(tmp_path) == [ONE, other]
    again = replace(ONE, status=Status.FAILING, passed=1, at=3000.0)
    store_receipts(tmp_path, [again])
    assert read_receipts(tmp_path) == [other, again]
    assert [path.name for path in (tmp_path / ".quire").iterdir()] == [FILE.name]


def test_only_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "MOST", 3)
    store_receipts(tmp_path, [replace(ONE, case=str(place), at=float(place)) for place in (3, 1, 4, 2)])
    assert [one.case for one in read_receipts(tmp_path)] == ["2", "3", "4"]


@pytest.mark.parametrize(
    "text", ["", "no", "[]", '{"receipts": [{}]}', '{"receipts": [], "format": 9}', "[" * 90_000, "\0"]
)
def test_a_file_that_is_not_ours_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / ".quire").mkdir()
    (tmp_path / FILE).write_text(text)
    assert read_receipts(tmp_path) == []
    store_receipts(tmp_path, [ONE])
    assert read_receipts(tmp_path) == [ONE]


def test_results_stay_in_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".quire").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CannotStart, match="is a link"):
        store_receipts(tmp_path / "work", [ONE])
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("subject", "status", "changed"),
    [
        (NOW, Status.VERIFIED, ()),
        (replace(NOW, plan="new"), Status.STALE, ("document",)),
        (replace(NOW, test="new"), Status.STALE, ("test",)),
        (replace(NOW, plan="new", test="new"), Status.STALE, ("document", "test")),
    ],
)
def test_standings(subject: Subject, status: Status, changed: tuple[str, ...]) -> None:
    (found,) = standings([subject], [ONE, replace(ONE, case="gone")])
    assert (found.status, found.changed, found.receipt) == (status, changed, ONE)


def test_a_case_that_was_never_measured_is_unverified() -> None:
    (found,) = standings([replace(NOW, case="new")], [ONE])
    assert (found.model, found.status) == ("", Status.UNVERIFIED)
    both = standings([NOW], [ONE, replace(ONE, model="A:first", status=Status.FLAKY)])
    assert [(one.model, one.status) for one in both] == [("A:first", Status.FLAKY), ("a:b", Status.VERIFIED)]


def test_the_price_that_was_seen() -> None:
    assert seen_cost([ONE], "x.test.yaml", "rows", "a:b") == 0.01
    assert seen_cost([ONE], "x.test.yaml", "rows", "c:d") is None
