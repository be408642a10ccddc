"""Coverage on the page on good tests: its example prints what it shows, and its table has every kind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.docs.pages import section, text_of

from quire.cli.test import command
from quire.testing.coverage.decisions import KINDS

PAGE = "docs/guides/good-tests.md"
DOCUMENT = """# Tea

## STEP 1: Describe

Describe a tea.

## STEP 2: Agree

@elicit(confirm, "Good?")

## STEP 3: Praise

```if __elicit_step_2 == "yes"```

### STEP 3a: Praise

Praise it.

```endif```
"""
TEST = """cases:
  - name: a yes
    model: {"1": Green., "3a": Splendid.}
    answers: {"2": "yes"}
    expect: {output: Splendid.}
"""


def test_the_example_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tea.playbook.md").write_text(DOCUMENT)
    (tmp_path / "tea.test.yaml").write_text(TEST)
    monkeypatch.chdir(tmp_path)
    printed = CliRunner().invoke(command, ["--cov"]).stdout
    shown = re.search(r"```console\n\$ quire test --cov\n(.*?)```", text_of(PAGE), re.DOTALL)
    assert shown is not None
    assert printed == shown[1]


def test_the_table_has_every_kind() -> None:
    assert re.findall(r"^\| `(\w+)` \|", section(PAGE, "## Coverage"), re.MULTILINE) == list(KINDS)
