"""An answer that was given beforehand and does not fit is never dropped without a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.given import given

from quire.cli import main

DOCUMENT = """# Choose

## INPUTS

- `d` (string: red): A colour

## STEP 1: Think

Think.

## STEP 2: Choose

@elicit(select, "Which?", "{{d}}", "blue"%s)

## STEP 3: Say

Say {{__elicit_step_2}}.
"""


@pytest.fixture
def run(workspace: Path) -> list[str]:
    Path("replies.json").write_text(json.dumps([{"default": "fine"}]))
    return ["run", "page.playbook.md", "--script", "replies.json", "--answer", "2=green"]


def page(default: str = "") -> None:
    Path("page.playbook.md").write_text(DOCUMENT % default)


def test_it_waits_and_says_why(run: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    page()
    assert main(run) == 4
    said = capsys.readouterr().err
    assert 'the answer "green" does not fit, the question waits (answer one of: red | blue)' in said
    assert main(["answer", "last", "blue", "-q"]) == 0


def test_unattended_takes_the_default_and_says_so(run: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    page(', default:"blue"')
    assert main([*run, "--unattended", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = [line["message"] for line in lines if line["type"] == "warning"]
    assert told == ['the answer "green" does not fit, "blue" is taken instead (answer one of: red | blue)']
    assert lines[-1]["named"]["__elicit_step_2"] == "blue"


def test_unattended_without_a_default_fails_and_says_what_helps(
    run: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    page()
    assert main([*run, "--unattended", "-q"]) == 3
    said = capsys.readouterr().err
    assert said.startswith(
        "failed at step 2: the answer does not fit, and no person can be asked: answer one of: red | "
    )
    assert "--answer 2=VALUE" in said


def test_a_default_that_does_not_fit_is_no_answer_either(run: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    page(', default:"{{d}}"')
    assert main([*run[:4], "--unattended", "-q"]) == 0
    given({"page.playbook.md": Path("page.playbook.md").read_text().replace('"{{d}}", "blue"', '"a{{d}}", "b"')})
    assert main([*run[:4], "--unattended", "-q"]) == 3


def test_one_that_fits_is_taken_without_a_word(run: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    page()
    assert main([*run[:4], "--answer", "2=blue", "--unattended"]) == 0
    assert "warning" not in capsys.readouterr().err
