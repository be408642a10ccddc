"""Mutants on the page on good tests: the example prints what it shows, the advice works, the table is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.docs.pages import section, text_of

from quire.cli.test import command
from quire.testing.mutation.mutants import OPERATORS

PAGE = "docs/guides/good-tests.md"
DOCUMENT = """# Tea

## INPUTS

- `kind` (string): The kind

## STEP 1: Describe

@output(praise)

Describe a {{kind}} tea.

## STEP 2: Agree

@output(said)

@elicit(confirm, "Say this: {{praise}}?")
"""
TEST = """cases:
  - name: a yes
    inputs: {kind: green}
    model: {"1": Splendid.}
    answers: {"2": "yes"}
    expect: {output: "yes", named: {praise: Splendid.}}
"""


@pytest.fixture(autouse=True)
def tea(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tea.playbook.md").write_text(DOCUMENT)
    (tmp_path / "tea.test.yaml").write_text(TEST)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_prints_what_the_page_shows() -> None:
    printed = CliRunner().invoke(command, ["--mutate"]).stdout
    shown = re.search(r"```console\n\$ quire test --mutate\n(.*?)```", text_of(PAGE), re.DOTALL)
    assert shown is not None
    assert printed == shown[1]


def test_with_the_expectations_of_the_page_all_are_noticed(tea: Path) -> None:
    offered = re.findall(r"^    tea\.test\.yaml::a yes: (.*)$", text_of(PAGE), re.MULTILINE)
    assert len(offered) == 2
    (tea / "tea.test.yaml").write_text(TEST.replace("named:", ", ".join([*offered, "named:"])))
    result = CliRunner().invoke(command, ["--mutate-fail-under", "100"])
    assert (result.exit_code, "100%" in result.stdout) == (0, True), result.stdout


def test_the_table_has_every_operator() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section(PAGE, "## Mutants"), re.MULTILINE)
    assert dict(rows) == {name: operator.change for name, operator in OPERATORS.items()}
