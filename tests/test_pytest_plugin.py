"""pytest collects document tests: one item for each case and row, with the failures that `quire test` prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree
from tests.cli.test_test import DOCUMENT
from tests.given import given

from quire.cli import main

ROOT = Path(__file__).parent.parent
TEST = """\
cases:
  - name: green tea
    tags: [green, "not a word", odd-one]
    inputs: {kind: sencha}
    model: {"1": "Grass."}
    expect: {output: Grass., prompts: {"1": {contains: sencha}}}
  - name: black tea
    tags: [black]
    inputs: {kind: assam}
    model: {"1": "Malt."}
    expect: {output: MALT, prompts: {"1": {contains: assam}}}
  - name: all teas
    matrix: {kind: [sencha, assam]}
    model: {"1": "Leaves."}
    expect: {output: Leaves., prompts: {"1": {contains: "{row.kind}"}}}
  - name: left out
    skip: needs water
    inputs: {kind: x}
  - name: known
    todo: the cup is missing
    inputs: {kind: x}
    model: {"1": "a"}
    expect: {output: b}
  - name: no more
    todo: the pot was missing
    inputs: {kind: x}
    model: {"1": "a"}
    expect: {output: a}
  - name: shaky
    flaky: the table
    inputs: {kind: x}
    model: {"1": "a"}
    expect: {output: b}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return given({"quire.toml": "", "tea.playbook.md": DOCUMENT, "tea.test.yaml": TEST}, tmp_path)


def run(project: Path, *arguments: str) -> tuple[dict[str, int], list[str]]:
    """Run pytest in a process of its own; return its outcomes and its lines.

    The fixture `pytester` would forget the modules that a test of this process has loaded, and load them again.
    """
    # Other plugins of this environment take seconds to load. The last test sees that pytest finds Quire's own.
    plugins = ["--disable-plugin-autoload", "-p", "quire.pytest_plugin", "-p", "xdist.plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, "--color=no", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    counted = re.findall(r"(\d+) (passed|failed|skipped|xfailed|error)", lines[-1])
    return {name: int(count) for count, name in counted}, lines


def test_each_case_and_row_is_an_item(project: Path) -> None:
    _, lines = run(project, "--collect-only", "-q")
    assert [line for line in lines if "::" in line] == [
        f"tea.test.yaml::{name}"
        for name in (
            "green tea",
            "black tea",
            "all teas[kind=sencha]",
            "all teas[kind=assam]",
            "left out",
            "known",
            "no more",
            "shaky",
        )
    ]


def test_outcomes_are_those_of_pytest(project: Path) -> None:
    outcomes, lines = run(project, "-rA")
    assert outcomes == {"passed": 3, "failed": 2, "skipped": 1, "xfailed": 2}
    for said in (
        "SKIPPED .*needs water",
        "XFAIL tea.test.yaml::known - .*the cup is missing",
        "XFAIL tea.test.yaml::shaky - .*flaky: the table",
        "FAILED tea.test.yaml::no more",
    ):
        assert any(re.match(said, line) for line in lines), said


def test_a_failure_has_the_text_of_the_command(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    assert main(["test", "tea.test.yaml::black tea"]) == 1
    said = capsys.readouterr().out.strip().splitlines()
    printed = "\n".join(run(project, "-k", "black")[1])
    assert len(said) > 5 and "\n".join(said) in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["-m", "green"], 1),
        (["-m", "green or black"], 2),
        (["-m", "odd-one"], 1),
        (["-k", "sencha"], 1),
        (["tea.test.yaml::all teas[kind=assam]"], 1),
        (["--strict-markers", "-m", "not green"], 7),
    ],
)
def test_items_are_selected_as_usual(project: Path, arguments: list[str], count: int) -> None:
    _, lines = run(project, "--collect-only", "-q", *arguments)
    assert len([line for line in lines if "::" in line]) == count


def test_items_are_shared_among_processes(project: Path) -> None:
    assert run(project, "-n", "2")[0] == {"passed": 3, "failed": 2, "skipped": 1, "xfailed": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cases:\n  - nam: x\n", "TS002"),
        ("document: coffee.playbook.md\n" + TEST, "no document coffee.playbook.md exists"),
        (TEST.replace("matrix: {kind: [sencha, assam]}", "each: missing.csv"), "missing.csv"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(project: Path, text: str, said: str) -> None:
    (project / "tea.test.yaml").write_text(text)
    outcomes, lines = run(project)
    printed = "\n".join(lines)
    assert outcomes == {"error": 1}
    assert said in printed and "Traceback" not in printed


def test_snapshots_are_compared_and_never_written(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "tea.test.yaml").write_text(SNAPSHOT)
    outcomes, lines = run(project)
    assert outcomes == {"failed": 1} and "TS121" in "\n".join(lines)
    assert not list(project.glob("*.snap.yaml"))
    monkeypatch.chdir(project)
    monkeypatch.delenv("CI", raising=False)
    assert main(["test"]) == 0
    assert run(project)[0] == {"passed": 1}
    (project / "tea.playbook.md").write_text(DOCUMENT.replace("one line", "two lines"))
    outcomes, lines = run(project)
    assert outcomes == {"failed": 1} and "TS120" in "\n".join(lines)


SNAPSHOT = """\
cases:
  - name: green tea
    inputs: {kind: sencha}
    model: {"1": "Grass."}
    expect: {prompts: !snapshot }
"""


def test_files_of_other_tools_are_left_alone(project: Path) -> None:
    (project / "tea.test.yaml").write_text("name: integration\nsteps: [a, b]\n")
    assert "no tests ran" in run(project)[1][-1]


def test_the_junit_file_of_pytest_has_the_figures(project: Path) -> None:
    run(project, "-k", "green", "--junitxml", "report.xml")
    case = etree.parse(project / "report.xml").getroot().find(".//testcase")
    assert case is not None
    found = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert found["model_calls"] == "1" and len(found["document_sha256"] or "") == 64


def test_a_project_without_tests_of_documents_loads_nothing(tmp_path: Path) -> None:
    """Only the plugin itself, and the name of the package."""
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    code = """
import json, pytest, sys
pytest.main(["-q", "-p", "no:cacheprovider"])
print(json.dumps(sorted(name for name in sys.modules if name.partition(".")[0] == "quire")))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == ["quire", "quire.pytest_plugin"]


def test_it_works_beside_other_plugins(project: Path) -> None:
    """newcomer M1: pytest-lsp, pytest-xdist, pytest-asyncio and all others of the environment, loaded as usual."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "-k", "green or sencha"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout


def test_it_works_in_the_checkout() -> None:
    """newcomer M1: the command of docs/guides/testing.md, with the settings of this project."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "examples/hello"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert re.search(r"\d+ passed", done.stdout), done.stdout
