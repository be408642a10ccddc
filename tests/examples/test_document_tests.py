"""The tests of the examples: they pass, they take every decision, and they notice nearly every mutant."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.cli import main
from quire.formats import format_of
from quire.formats.test.parse import parse
from quire.library.collect import collect
from quire.source import read_source
from quire.testing.discovery import find_tests, open_document

EXAMPLES = Path(__file__).parents[2] / "examples"
TESTED = sorted({path.relative_to(EXAMPLES).parts[0] for path in EXAMPLES.rglob("*.test.yaml")})
MUTANTS_NOTICED = 95


@pytest.mark.parametrize("name", TESTED)
def test_an_example_is_tested(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which coverage is asked for, each file says itself."""
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path))
    arguments = ["test", str(EXAMPLES / name), "-j", "1", "--mutate", "--mutate-fail-under", str(MUTANTS_NOTICED)]
    code = main(arguments)
    assert code == 0, capsys.readouterr().out
    files = [path.read_text(encoding="utf-8") for path in (EXAMPLES / name).rglob("*.test.yaml")]
    assert any("\ncoverage: {" in text for text in files)


def document_of_test(path: Path) -> Path:
    reading = parse(read_source(path))
    assert reading.file is not None and reading.file.cases, path
    return Path(open_document(reading.source, reading.file).document.source.name).resolve()


def test_every_document_has_tests() -> None:
    wanted, _ = collect([str(EXAMPLES)])
    formats = ("playbook", "pipeline", "directive")
    documents = {one.path.resolve() for one in wanted if format_of(read_source(one.path)) in formats}
    targets, _ = find_tests([str(EXAMPLES)])
    tested = {document_of_test(Path(target.path)) for target in targets}
    missing = {one.relative_to(EXAMPLES).as_posix() for one in documents - tested}
    assert missing == set()
