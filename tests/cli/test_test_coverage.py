"""`quire test --cov`: the table, the gates, and the LCOV file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.testing.coverage.test_measured_files import TEST
from tests.testing.coverage.tracefile import read_tracefile
from tests.walks.test_pure_walk import TAGLINE

from quire.cli.test import command


@pytest.fixture(autouse=True)
def tests(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (workspace / "tagline.playbook.md").write_text(TAGLINE)
    (workspace / "tagline.test.yaml").write_text(TEST.replace("coverage: {arms: 100, prompts: 100}\n", ""))
    monkeypatch.chdir(workspace)
    return workspace


@pytest.mark.parametrize("words", [["--cov"], ["--cov", "."], [".", "--cov"], ["--cov", "arms=100"]])
def test_the_table_follows_the_cases(invoke: Invoke, words: list[str]) -> None:
    result = invoke(command, *words)
    assert result.exit_code == 0, result.stdout
    _head, row, _blank, *missing = result.stdout.splitlines()
    assert row.split() == ["tagline.playbook.md", "92%", "100%", "100%", "100%", "-", "-", "100%", "-", "-", "66%"]
    assert missing[1:] == ["  tagline.playbook.md:28  prompts  step 3b: its prompt is looked at"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cov", "prompts=67"], "2 of 3 prompts are covered, 66 %, and 67 % is asked for"),
        (["--cov-fail-under", "93"], "13 of 14 decisions are covered, 92 %, and 93 % is asked for"),
        (["--cov", "arms=51", "-k", "yes"], "1 of 2 arms are covered, 50 %, and 51 % is asked for"),
    ],
)
def test_a_gate_that_is_not_reached_fails(invoke: Invoke, words: list[str], message: str) -> None:
    result = invoke(command, "--format", "concise", *words)
    assert result.exit_code == 1
    assert f"TS140 error: {message}" in result.stdout


@pytest.mark.parametrize("words", [["--cov", "prompts=66"], ["--cov-fail-under", "92"], ["--cov", "fans=100"]])
def test_a_gate_that_is_reached_passes(invoke: Invoke, words: list[str]) -> None:
    assert invoke(command, *words).exit_code == 0


def test_a_gate_of_the_file_counts_without_being_asked(invoke: Invoke, tests: Path) -> None:
    (tests / "tagline.test.yaml").write_text(TEST)
    result = invoke(command, "--format", "concise")
    assert result.exit_code == 1
    assert "tagline.test.yaml:2:" in result.stdout and "2 of 3 prompts are covered" in result.stdout
    assert "not covered in" not in result.stdout
    assert invoke(command, "-k", "yes").exit_code == 0  # some cases are left out


def test_a_failed_gate_is_not_a_failed_case(invoke: Invoke) -> None:
    assert invoke(command, "--cov", "prompts=100").exit_code == 1
    assert "no failed cases are remembered" in invoke(command, "--failed").stderr


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_lcov_file(invoke: Invoke, tests: Path, processes: str) -> None:
    assert invoke(command, "--lcov", "coverage.info", "-j", processes).exit_code == 0
    (record,) = read_tracefile((tests / "coverage.info").read_text())
    assert record.path == "tagline.playbook.md"
    assert record.branches[28, 0, 0] == 0
    assert (record.lines[20], record.lines[26]) == (1, 1)


def test_two_tests_of_one_document_count_together(invoke: Invoke, tests: Path) -> None:
    text = (tests / "tagline.test.yaml").read_text()
    head, first, second = text.split("  - name: ")
    (tests / "tagline.test.yaml").write_text(f"{head}  - name: {first}")
    (tests / "other.test.yaml").write_text(f"{head}  - name: {second}")
    lines = [json.loads(line) for line in invoke(command, "--cov", "--json").stdout.splitlines()]
    (coverage,) = [one for one in lines if one["type"] == "coverage"]
    assert (coverage["kinds"]["arms"]["percent"], [one["id"] for one in coverage["missing"]]) == (
        100,
        ["prompts:3/case[2]/1"],
    )


def test_formats_for_programs(invoke: Invoke) -> None:
    github = invoke(command, "--cov", "--format", "github", "-k", "yes").stdout
    assert github.startswith("::warning file=tagline.playbook.md,line=26,")
    tap = invoke(command, "--cov", "--format", "tap").stdout.splitlines()
    assert tap[-1] == "1..2" and all(line.startswith(("#", "ok", "TAP", "1..")) for line in tap)


@pytest.mark.parametrize("words", [["--cov", "arm=100"], ["--cov", "arms=many"], ["--cov-fail-under", "101"]])
def test_gates_that_cannot_be_meant(invoke: Invoke, words: list[str]) -> None:
    assert invoke(command, *words).exit_code == 2
