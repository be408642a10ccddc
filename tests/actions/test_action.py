"""The action is run by bash in a repository: what it finds, what it skips, and what it refuses, hostile values too."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.actions.job import ACTION, Job
from tests.docs.pages import ROOT
from tests.given import given

CLEAN = (
    "# Greeting\n\n## INPUTS\n\n- `name` (string): The name\n\n## STEP 1: Greet\n\nGreet {{name}} in one sentence.\n"
)
WRONG = "# Greeting\n\n## STEP 1: Greet\n\nGreet {{nobody}} in one sentence.\n"
TEST = """\
document: greeting.playbook.md
cases:
  - name: greets
    inputs: {name: Ada}
    model: {"1": "Hello, Ada."}
    expect: {output: "Hello, Ada."}
"""
ONLY_RUN = {"check": "false", "test": "false", "lock": "false"}
HOSTILE = (
    "$(touch ran)",
    "`touch ran`",
    "; touch ran",
    "' ; touch ran; '",
    '" ; touch ran; "',
    "a\ntouch ran\n",
    "--help",
    "$RUNNER_TEMP && touch ran",
    "a\n::error::said by the input\n",
)
STEPS = ACTION["runs"]["steps"]
BIN = Path(sys.executable).parent


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = given({"greeting.playbook.md": CLEAN, "greeting.test.yaml": TEST}, tmp_path / "repository")
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


@pytest.fixture
def job(repository: Path, tmp_path: Path) -> Callable[..., Job]:
    return lambda **about: Job(repository, tmp_path / "runner", **about)


def git(folder: Path, *arguments: str) -> str:
    named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=x")
    return git(folder, "rev-parse", "HEAD").strip()


def test_documents_that_are_well_pass(job: Callable[..., Job]) -> None:
    done = job().use()
    assert done.outcomes == {"Install Quire": 0, "Check": 0, "Test": 0, "Hold the documents to the lock": 0}, (
        done.printed
    )
    assert "There is no quire.lock" in done.printed


def test_each_step_is_run_although_another_fails(job: Callable[..., Job], repository: Path) -> None:
    (repository / "wrong.playbook.md").write_text(WRONG)
    (repository / "greeting.test.yaml").write_text(TEST.replace('output: "Hello', 'output: "Bye'))
    done = job().use()
    assert done.outcomes == {"Install Quire": 0, "Check": 1, "Test": 1, "Hold the documents to the lock": 0}
    assert "::warning file=wrong.playbook.md,line=5" in done.printed
    assert "::error file=greeting.test.yaml" in done.printed


def test_a_run_does_not_start_after_a_failure(job: Callable[..., Job], repository: Path) -> None:
    (repository / "wrong.playbook.md").write_text(WRONG)
    assert "Run" not in job().use(run="greeting.playbook.md", budget="1").outcomes


def test_a_repository_without_tests_passes(job: Callable[..., Job], repository: Path) -> None:
    (repository / "greeting.test.yaml").unlink()
    done = job().use()
    assert done.outcomes["Test"] == 0 and "There are no document tests" in done.printed


def test_paths_are_lines_with_spaces_in_them(job: Callable[..., Job], repository: Path) -> None:
    given({"my documents/a.playbook.md": CLEAN, "other.playbook.md": WRONG}, repository)
    done = job().use(paths="my documents\ngreeting.playbook.md\r\n\n", test="false")
    assert done.outcomes["Check"] == 0, done.printed
    assert "2 files" in done.printed


@pytest.mark.parametrize("off", ["check", "test", "lock"])
def test_a_part_can_be_left_out(job: Callable[..., Job], off: str) -> None:
    step = {"check": "Check", "test": "Test", "lock": "Hold the documents to the lock"}[off]
    assert step not in job().use(**{off: "false"}).outcomes


@pytest.mark.parametrize("strict", ["true", "false"])
def test_warnings_fail_where_it_is_strict(job: Callable[..., Job], repository: Path, strict: str) -> None:
    (repository / "greeting.playbook.md").write_text(CLEAN.replace("{{name}}", "them"))
    assert job().use(strict=strict, test="false").outcomes["Check"] == (1 if strict == "true" else 0)


@pytest.mark.parametrize("flag", ["strict", "check", "test", "lock", "comment"])
@pytest.mark.parametrize("value", ["True", "yes", "", "true|true", *HOSTILE])
def test_a_flag_that_is_misspelt_turns_nothing_off(job: Callable[..., Job], flag: str, value: str) -> None:
    done = job().use(**{flag: value})
    assert done.outcomes == {"Install Quire": 2}
    assert done.printed == "::error::strict, check, test, lock and comment are true or false\n"


class TestPullRequest:
    @pytest.fixture
    def base(self, repository: Path) -> str:
        subprocess.run([BIN / "quire", "lock"], cwd=repository, check=True, capture_output=True, env=here(repository))
        base = commit(repository)
        calls = "pipeline: post\ndialect: quire\nsteps:\n- tool: {name: file__write, args: {path: a.md, content: b}}\n"
        (repository / "post.yaml").write_text(calls)
        commit(repository)
        return base

    def test_the_difference_is_said_and_not_in_the_lock(self, job: Callable[..., Job], base: str) -> None:
        done = job(event="pull_request", base=base).use(strict="false")
        assert done.outputs["diff"]["wider"] == "true", done.printed
        assert "post.yaml" in done.summary()
        assert done.outcomes["Hold the documents to the lock"] == 1
        assert "Write the comment" not in done.outcomes

    def test_a_lock_that_is_removed_still_holds(self, job: Callable[..., Job], base: str, repository: Path) -> None:
        (repository / "quire.lock").unlink()
        done = job(event="pull_request", base=base).use(strict="false")
        assert done.outcomes["Hold the documents to the lock"] == 1 and "LK101" in done.printed

    def test_the_comment_is_written_with_the_token_of_the_job(
        self, job: Callable[..., Job], base: str, tmp_path: Path
    ) -> None:
        tools = tmp_path / "tools"
        tools.mkdir()
        (tools / "gh").write_text(f'#!/bin/sh\necho "$GH_TOKEN $*" >> {tmp_path / "calls"}\n')
        (tools / "gh").chmod(0o755)
        path = f"{tools}{os.pathsep}{BIN}{os.pathsep}{os.environ['PATH']}"
        done = job(event="pull_request", base=base, environ={"PATH": path}).use(comment="true", strict="false")
        assert done.outcomes["Write the comment"] == 0, done.printed
        calls = (tmp_path / "calls").read_text().splitlines()
        assert calls[-1].startswith("a token api --method POST repos/team/documents/issues/3/comments ")

    @pytest.mark.parametrize("base", ["--upload-pack=touch ran", "--output=ran", "$(touch ran)", "x\ntouch ran"])
    def test_a_base_that_is_not_a_commit_is_refused(self, job: Callable[..., Job], base: str, repository: Path) -> None:
        commit(repository)
        git(repository, "remote", "add", "origin", str(repository))
        done = job(event="pull_request", base=base).use()
        assert done.outcomes["Compare with the base"] != 0
        assert not list(repository.parent.rglob("ran"))


def here(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "QUIRE_HOME": str(folder.parent / "home")}


class TestRun:
    @pytest.mark.parametrize("budget", ["", "lots", "1e9", "-1", "inf", "1 --model=x", *HOSTILE])
    def test_it_needs_a_budget(self, job: Callable[..., Job], budget: str) -> None:
        done = job().use(run="greeting.playbook.md", budget=budget)
        assert done.outcomes == {"Install Quire": 2} and "run needs budget" in done.printed

    def test_it_is_refused_where_strangers_have_the_secrets(self, job: Callable[..., Job]) -> None:
        done = job(event="pull_request_target").use(run="greeting.playbook.md", budget="1")
        assert done.outcomes == {"Install Quire": 2}
        assert done.printed == "::error::run is refused on pull_request_target\n"

    def test_checks_are_not_refused_there(self, job: Callable[..., Job]) -> None:
        assert not job(event="pull_request_target").use().failed

    def test_a_document_is_run_and_its_output_is_a_file(self, job: Callable[..., Job], repository: Path) -> None:
        (repository / "sum.yaml").write_text(
            'pipeline: sum\ndialect: quire\ninput: {n: {type: number}}\nsteps:\n- transform: {value: "n + 1"}\n'
        )
        done = job().use(run="sum.yaml", inputs='{"n": 5}', budget="0.50", strict="false")
        assert done.outcomes["Run"] == 0, done.printed
        assert Path(done.outputs["run"]["result"]).read_text() == "6\n"

    @pytest.mark.parametrize("inputs", ["", "[]", "{", '{"other": 1}', *HOSTILE])
    def test_inputs_are_checked(self, job: Callable[..., Job], inputs: str, repository: Path) -> None:
        done = job().use(run="greeting.playbook.md", inputs=inputs, budget="1", **ONLY_RUN)
        assert done.outcomes["Run"] == 2, done.printed
        assert not list(repository.parent.rglob("ran"))

    def test_a_run_cannot_speak_to_the_service(self, job: Callable[..., Job], repository: Path) -> None:
        """All that it prints stands between a word and its end, and no document knows the word."""
        said = "::warning::said by the run"
        (repository / "says.yaml").write_text(f"pipeline: says\nsteps:\n- wait: {{mode: approval, prompt: '{said}'}}\n")
        done = job().use(run="says.yaml", budget="1", **ONLY_RUN)
        word = re.search(r"^::stop-commands::(\w{32})$", done.printed, re.MULTILINE)
        assert word and done.outcomes["Run"] != 0
        before, _, rest = done.printed.partition(word[0])
        inside, end, after = rest.partition(f"\n::{word[1]}::\n")
        assert said in inside and end and said not in before + after


@pytest.mark.parametrize("name", ["paths", "inputs", "model", "run", "package"])
@pytest.mark.parametrize("value", HOSTILE)
def test_no_value_is_read_as_a_program(job: Callable[..., Job], repository: Path, name: str, value: str) -> None:
    """The one of the package is read by pip, which finds no such requirement."""
    inputs = {
        "paths": "greeting.playbook.md",
        "run": "greeting.playbook.md",
        "budget": "1",
        "inputs": '{"name": "Ada"}',
    }
    inputs = {**(ONLY_RUN if name != "paths" else {}), **inputs, name: value}
    done = job(installs=name == "package", environ={"PIP_NO_INDEX": "1"}).use(**inputs)
    assert done.failed, done.printed
    assert not list(repository.parent.rglob("ran"))
    if name != "package":
        assert not re.search("^::error::said by the input", re.sub(r"(?s)::stop-commands::.*", "", done.printed), re.M)


def test_nothing_of_the_repository_is_imported(job: Callable[..., Job], repository: Path, tmp_path: Path) -> None:
    for name in ("json.py", "sitecustomize.py", "click.py", "secrets.py", "venv.py", "quire.py", "usercustomize.py"):
        (repository / name).write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()\n")
    done = job().use(run="greeting.playbook.md", inputs='{"name": "Ada"}', budget="1", model="none:x")
    assert done.outcomes["Check"] == 0 and "Run" in done.outcomes
    assert not (tmp_path / "imported").exists()


def test_no_script_of_a_step_contains_an_expression() -> None:
    """The service would put the value into the text of the script."""
    for file in ("action.yml", "actions/lock-diff/action.yml"):
        steps = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["runs"]["steps"]
        assert [step["name"] for step in steps if "${{" in step["run"]] == []
    assert len((ROOT / "action.yml").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_part_about_the_lock_keeps_its_inputs() -> None:
    alias = yaml.safe_load((ROOT / "actions/lock-diff/action.yml").read_text(encoding="utf-8"))
    assert set(alias["inputs"]) == {"base", "comment", "token"} and set(alias["outputs"]) == {"wider"}
    for step in alias["runs"]["steps"]:
        for script in re.findall(r'\$GITHUB_ACTION_PATH/([\w.-]+)"', step["run"]):
            assert (ROOT / "actions/lock-diff" / script).is_file()
            assert any(f"actions/lock-diff/{script}" in one["run"] for one in STEPS)


def test_values_of_a_summary_are_those_of_json(job: Callable[..., Job], repository: Path) -> None:
    commit(repository)
    done = job(event="pull_request", base="main").use()
    assert done.outputs["diff"]["wider"] == "true"
    assert json.loads((done.temp / "lock-diff.json").read_text())["wider"] is True
