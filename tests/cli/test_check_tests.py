"""`quire check` prints findings about tests, and other verbs say that a test is not run by them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

from quire.cli import main

TEST = "cases:\n  - name: a\n    expct: {output: 1}\n"


@pytest.fixture
def here(here: Path) -> Path:
    steps = "pipeline: x\ndescription: x\nsteps:\n  - transform: {value: '1'}\n"
    return given({"x.test.yaml": TEST, "x.yaml": steps}, here)


@pytest.mark.parametrize("argument", ["x.test.yaml", ".", "*.yaml"])
def test_findings_are_printed(argument: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", argument]) == 1
    out = capsys.readouterr().out
    assert "TS002" in out and "x.test.yaml:3:5" in out and "did you mean expect?" in out


DOCUMENTS = {
    "document: y.yaml\n": ("TS003", "no document y.yaml exists"),
    "document: ../y.yaml\n": ("TS003", "no document ../y.yaml exists"),
    'defaults: {model: {"9": x}}\n': ("TS005", 'unknown step "9"'),
}


@pytest.mark.parametrize("head", DOCUMENTS)
def test_the_document_is_looked_at(head: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, message = DOCUMENTS[head]
    (here / "x.test.yaml").write_text(f"{head}cases: [{{name: a, expect: {{output: x}}}}]\n")
    assert main(["check", "x.test.yaml"]) == 1
    out = capsys.readouterr().out
    assert code in out and message in out


def test_a_document_with_errors(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given({"x.yaml": "pipeline: x\nsteps: []\n", "x.test.yaml": "cases: [{name: a, expect: {output: x}}]\n"}, here)
    assert main(["check", "x.test.yaml"]) == 1
    assert "x.yaml has errors" in capsys.readouterr().out


def test_a_large_test_is_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "x.test.yaml").write_text("cases: [{name: a}]\n#" + "x" * 300_000)
    assert main(["check", "x.test.yaml"]) == 0


@pytest.mark.parametrize("verb", ["run", "show", "parse"])
def test_other_verbs_say_one_line(verb: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "x.test.yaml"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "x.test.yaml is a test" in captured.err
    assert len(captured.err.strip().splitlines()) == 1


def test_a_test_without_a_verb(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["x.test.yaml"]) == 2
    assert "quire test x.test.yaml" in capsys.readouterr().err
