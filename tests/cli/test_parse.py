"""`quire parse`, through the front door."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quire.cli import main


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_parse(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    path = tmp_path / "a.playbook.md"
    path.write_text("# T\n\n## STEP 2: A\n\nHi {{x}}\n@output(o: int)\n")
    assert main(["parse", str(path), *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {
        "valid": True,
        "definition": {
            "title": "T",
            "description": "",
            "system_prompt": "",
            "inputs": [],
            "steps": [
                {
                    "number": 2,
                    "label": "2",
                    "title": "A",
                    "content": "Hi {{x}}",
                    "output_var": "o",
                    "output_type": "number",
                    "extract_field": "",
                    "is_branching": False,
                    "line": 3,
                }
            ],
            "artifact_type": "",
        },
        "warnings": [{"line": 3, "message": "Non-sequential step number: expected 1, got 2"}],
        "errors": [],
    }


def test_an_invalid_document_is_printed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.md"
    path.write_text("x")
    assert main(["parse", str(path)]) == 1
    shape = json.loads(capsys.readouterr().out)
    assert shape["valid"] is False and shape["definition"] is None and len(shape["errors"]) == 2


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", str(tmp_path / "gone.md")]) == 2
    assert capsys.readouterr().err == f"quire: {tmp_path / 'gone.md'} does not exist\n"
