"""`quire test`: what it selects, prints, writes and remembers, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from lxml import etree
from tests.cli.conftest import Invoke, Said
from tests.given import given

from quire.cli import main
from quire.cli.test import command

DOCUMENT = """\
# Tea

## INPUTS

- `kind` (string): Which tea

## STEP 1: Describe

Describe {{kind}} in one line.
"""
CASES = """\
cases:
  - name: green tea
    tags: [green]
    inputs: {kind: sencha}
    model: {"1": "Grass."}
    expect: {output: Grass., prompts: {"1": {contains: sencha}}}
  - name: black tea
    tags: [black, slow]
    inputs: {kind: assam}
    model: {"1": "Malt."}
    expect: {output: MALT, prompts: {"1": {contains: assam}}}
  - name: all teas
    matrix: {kind: [sencha, assam]}
    model: {"1": "Leaves."}
    expect: {output: Leaves., prompts: {"1": {contains: "{row.kind}"}}}
"""
PASSING = CASES.replace("MALT", "Malt.")


@pytest.fixture(autouse=True)
def tests(workspace: Path) -> Path:
    return given({"tea.playbook.md": DOCUMENT, "tea.test.yaml": CASES}, workspace)


def cases(result: Result) -> dict[str, str]:
    """The outcomes by name, from JSON lines."""
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return {one["case"]: one["outcome"] for one in found if one["type"] == "case"}


def test_a_failure_is_shown_and_the_exit_is_1(invoke: Invoke) -> None:
    result = invoke(command)
    assert result.exit_code == 1
    assert result.stdout.startswith("FAILED tea.test.yaml::black tea\n")
    assert "output: MALT" in result.stdout and "again: quire test 'tea.test.yaml::black tea'" in result.stdout
    assert result.stderr.startswith("1 failed, 3 passed in 1 file (")


def test_nothing_is_said_about_cases_that_pass(invoke: Invoke, workspace: Path) -> None:
    (workspace / "tea.test.yaml").write_text(PASSING)
    result = invoke(command)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("4 passed in 1 file (")
    assert sorted(path.name for path in workspace.iterdir()) == ["quire.toml", "tea.playbook.md", "tea.test.yaml"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["-k", "tea"], ["green tea", "black tea", "all teas[kind=sencha]", "all teas[kind=assam]"]),
        (["-k", "sencha or black"], ["black tea", "all teas[kind=sencha]"]),
        (["-k", "tea and not teas"], ["green tea", "black tea"]),
        (["--tag", "green"], ["green tea"]),
        (["--tag", "green", "--tag", "slow"], ["green tea", "black tea"]),
        (["tea.playbook.md", "-k", "green"], ["green tea"]),
        (["tea.test.yaml::all teas[kind=assam]"], ["all teas[kind=assam]"]),
        (["tea.test.yaml::all teas"], ["all teas[kind=sencha]", "all teas[kind=assam]"]),
        (["tea.test.yaml:9"], ["black tea"]),
        (["tea.test.yaml:2", "tea.test.yaml::black tea"], ["green tea", "black tea"]),
        (["-x"], ["green tea", "black tea"]),
    ],
)
def test_cases_are_selected(invoke: Invoke, arguments: list[str], names: list[str]) -> None:
    assert list(cases(invoke(command, "--json", *arguments))) == names


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-k", "coffee"], "quire: none of the cases in 1 file is selected\n"),
        (["tea.test.yaml::coffee"], "quire: none of the cases in 1 file is selected\n"),
        (["--tag", "coffee"], "quire: none of the cases in 1 file is selected\n"),
        (["coffee.playbook.md"], "quire: coffee.playbook.md does not exist\n"),
        (["quire.toml"], "quire: quire.toml has no test: quire.toml.test.yaml does not exist\n"),
    ],
)
def test_no_cases_are_an_error(invoke: Invoke, arguments: list[str], said: str) -> None:
    result = invoke(command, *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", said)


def test_a_folder_without_tests_is_an_error(invoke: Invoke, workspace: Path) -> None:
    (workspace / "tea.test.yaml").unlink()
    result = invoke(command)
    assert (result.exit_code, result.stderr) == (2, "quire: . holds no tests (files that end in .test.yaml)\n")


def test_other_arguments_are_run_beside_a_wrong_one(invoke: Invoke) -> None:
    result = invoke(command, "coffee.test.md", "tea.test.yaml::green tea")
    assert result.exit_code == 2
    assert "1 passed" in result.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cases: [\n", "YM001"),
        ("cases:\n  - nam: x\n", "TS002"),
        ("document: coffee.playbook.md\n" + CASES, "no document coffee.playbook.md exists"),
    ],
)
def test_a_file_that_cannot_be_used_fails(invoke: Invoke, workspace: Path, text: str, said: str) -> None:
    (workspace / "tea.test.yaml").write_text(text)
    result = invoke(command)
    assert result.exit_code == 1
    assert said in result.stdout and result.stderr.startswith("1 file error in 1 file (")


def test_a_file_that_cannot_be_read_fails(invoke: Invoke, workspace: Path) -> None:
    (workspace / "tea.test.yaml").write_bytes(b"\xff")
    result = invoke(command, "tea.test.yaml", "missing.test.yaml")
    assert result.exit_code == 1
    assert "tea.test.yaml is not UTF-8" in result.stdout and "missing.test.yaml does not exist" in result.stdout


def test_failed_cases_are_remembered_until_they_pass(invoke: Invoke, workspace: Path) -> None:
    assert invoke(command).exit_code == 1
    assert list(cases(invoke(command, "--failed", "--json"))) == ["black tea"]
    assert list(cases(invoke(command, "--json", "-k", "green"))) == ["green tea"]
    assert list(cases(invoke(command, "--json", "tea.test.yaml:3"))) == ["green tea"]
    assert list(cases(invoke(command, "--failed", "--json"))) == ["black tea"]
    (workspace / "tea.test.yaml").write_text(PASSING)
    assert invoke(command, "--failed").exit_code == 0
    again = invoke(command, "--failed", "--json")
    assert len(cases(again)) == 4
    assert again.stderr.startswith("no failed cases are remembered here: all are run\n")


def test_junit_is_written_whole(invoke: Invoke, workspace: Path) -> None:
    assert invoke(command, "--junit", "report.xml").exit_code == 1
    tree = etree.parse(workspace / "report.xml").getroot()
    assert [case.get("name") for case in tree.iter("testcase")] == [
        "green tea",
        "black tea",
        "all teas[kind=sencha]",
        "all teas[kind=assam]",
    ]
    assert len(tree.findall(".//failure")) == 1
    (sha,) = (one.get("value") for one in tree.iter("property") if one.get("name") == "document_sha256")
    assert sha and len(sha) == 64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fromat", "json"], "unknown option --fromat; did you mean --format? (see quire test --help)"),
        (["--format", "xml"], "invalid value for '--format'"),
        (["-j", "0"], "invalid value for '-j'"),
        (["-k", ""], "-k is empty"),
        (["-k", "a and"], "-k a and: a part of a name is missing"),
        (["--tag", " "], "--tag is empty"),
        (["--junit", "nowhere/report.xml"], "--junit nowhere/report.xml: the folder nowhere does not exist"),
        (["--junit", "."], "--junit .: that is a folder"),
        (["--watch", "--junit", "report.xml"], "--watch and --junit exclude each other (see quire test --help)"),
        (["--watch", "--failed"], "--watch and --failed exclude each other"),
        (["--watch", "--json"], "--watch and --json exclude each other"),
        (["--watch", "--update"], "--watch and --update exclude each other"),
        (["--allow", "everything"], "invalid value for '--allow'"),
    ],
)
def test_a_wrong_option_is_one_line(said: Said, arguments: list[str], message: str) -> None:
    assert main(["test", *arguments]) == 2
    out, err = said()
    assert out == "" and err.startswith(f"quire: {message}") and err.count("\n") == 1


def test_the_schema_is_printed(invoke: Invoke, workspace: Path) -> None:
    result = invoke(command, "--schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("form", ["full", "concise", "json", "github", "tap"])
def test_the_output_is_the_same_in_any_number_of_processes(form: str, invoke: Invoke, workspace: Path) -> None:
    for number in range(12):
        given({f"{number}.playbook.md": DOCUMENT, f"{number}.test.yaml": CASES}, workspace)
    outputs = {_without_times(invoke(command, "--format", form, "-j", str(count)).stdout) for count in (1, 2)}
    assert len(outputs) == 1


def _without_times(text: str) -> str:
    return re.sub(r'"seconds": [0-9.e-]+', "", text)


def test_nothing_outside_is_touched(invoke: Invoke, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket, no process, no key: an audit hook of a process of its own would see them."""
    (workspace / "tea.test.yaml").write_text(PASSING)
    code = """
import sys
def hear(event, arguments):
    if event.startswith(("socket.connect", "socket.bind", "subprocess", "os.exec", "os.posix_spawn", "os.system")):
        sys.stderr.write(f"TOUCHED {event} {arguments}")
sys.addaudithook(hear)
from quire.cli import main
sys.exit(main(["test"]))
"""
    environ = {**os.environ, "OPENAI_API_KEY": "k"}
    done = subprocess.run([sys.executable, "-c", code], cwd=workspace, env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert "TOUCHED" not in done.stderr
