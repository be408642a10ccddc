"""`quire check` does not print what a comment hides, and counts it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.given import given

import quire
from quire.cli import main
from quire.cli.start import _findings
from quire.library.document import load

REPORT = "---\nschema: report\nfields:\n  note: {type: string, required: false}\n"
TEXT = """pipeline: p
description: x
steps:
  - agent: {prompt: go, schema: report, output: r}
  # quire: allow PL209 because "every report has a note"
  - transform: {value: ctx.r.note}
"""


@pytest.fixture
def here(here: Path) -> Path:
    return given({"p.yaml": TEXT + REPORT}, here)


def test_a_hidden_finding_is_counted_and_does_not_fail(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "p.yaml", "--strict"]) == 0
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "nothing found in 1 file (1 allowed by comments)\n"
    (here / "p.yaml").write_text(TEXT.replace("# quire:", "# not quire:") + REPORT)
    assert main(["check", "p.yaml", "--strict"]) == 1


def test_sarif_has_the_reason(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "p.yaml", "--format", "sarif"])
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert result["ruleId"] == "PL209"
    assert result["suppressions"] == [{"kind": "inSource", "justification": "every report has a note"}]


@pytest.mark.parametrize(("comment", "count"), [("", 1), ('<!-- quire: allow PB105 because "it is text" -->\n', 0)])
def test_a_run_does_not_count_hidden_warnings(comment: str, count: int, here: Path) -> None:
    (here / "a.playbook.md").write_text(f'{comment}# T\n\n## STEP 1: A\n\nGo.\n@elicit(confrim, "Go?")\n')
    assert len(_findings(load("a.playbook.md"))) == count


def test_the_python_function_hides_too_and_does_not_say_what_hides_nothing(here: Path) -> None:
    assert [one.code.id for one in quire.check(here / "p.yaml")] == []
    unused = TEXT.replace("ctx.r.note", "'1'")
    assert [one.code.id for one in quire.check(unused + REPORT)] == []
    assert [one.code.id for one in quire.check(TEXT.replace("PL209", "PL999") + REPORT)] == ["AL102", "PL209"]
