"""The tests of the examples: they pass, they take every decision, and they notice nearly every mutant."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
TESTS = sorted(EXAMPLES.rglob("*.test.yaml"))
MUTANTS_NOTICED = 95


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name.removesuffix(".test.yaml"))
def test_an_example_is_tested(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path))
    assert "coverage: {all: 100}" in path.read_text(encoding="utf-8")
    code = main(["test", str(path), "-j", "1", "--cov", "--mutate", "--mutate-fail-under", str(MUTANTS_NOTICED)])
    assert code == 0, capsys.readouterr().out
