"""Snapshots, recordings and exploring on the page on good tests: examples and codes are those of the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.docs.pages import section, text_of

from quire.cli.test import command
from quire.formats.test import codes

PAGE = "docs/guides/good-tests.md"
SECTIONS = ("## Coverage", "## Mutants", "## Exploring", "## Snapshots", "## Recordings")
TEA = re.search(r"````markdown\n(.*?)````", text_of("docs/guides/testing.md"), re.DOTALL)


@pytest.fixture(autouse=True)
def tea(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert TEA is not None
    (tmp_path / "tea.playbook.md").write_text(TEA[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


@pytest.mark.parametrize("heading", SECTIONS)
def test_codes_of_the_page_exist(heading: str) -> None:
    named = set(re.findall(r"TS\d{3}", section(PAGE, heading)))
    assert named and named <= {code.id for code in codes.codes()}


def test_the_snapshot_of_the_page_is_kept_and_compared(tea: Path) -> None:
    shown = re.search(r"```yaml\n(.*?)```", section(PAGE, "## Snapshots"), re.DOTALL)
    assert shown is not None
    (tea / "tea.test.yaml").write_text(shown[1])
    first = CliRunner().invoke(command, [])
    assert (first.exit_code, "1 new snapshot written" in first.output) == (0, True)
    (tea / "tea.playbook.md").write_text((tea / "tea.playbook.md").read_text().replace("in one line", "in two lines"))
    second = CliRunner().invoke(command, [])
    assert (second.exit_code, "TS120" in second.output, "{+two lines+}" in second.output) == (1, True, True)
    assert CliRunner().invoke(command, ["--update"]).exit_code == 0
    assert CliRunner().invoke(command, []).exit_code == 0


def test_exploring_prints_what_the_page_says(tea: Path) -> None:
    shown = re.search(r"```yaml\n(always:.*?\n)", section(PAGE, "## Exploring"))
    assert shown is not None
    case = "cases: [{name: it, inputs: {kind: x, tone: dry}, answers: {'2': 'yes'}, model: {'1': a, 3a: b}}]\n"
    (tea / "tea.test.yaml").write_text(shown[1] + case)
    found = CliRunner().invoke(command, ["--explore", "1000", "--seed", "7"])
    line = re.search(r"```console\n\$ quire test --explore 1000 --seed 7\n(.*?)\n```", section(PAGE, "## Exploring"))
    assert line is not None and line[1] in found.output, found.output
