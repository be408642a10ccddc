"""The page on CI is followed through a pull request in a repository with two branches; so is the action's script."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.docs.pages import ROOT, blocks, section, text_of
from tests.given import given

PAGE = "docs/guides/ci.md"
SHOWN = [block.text for block in blocks(PAGE, "yaml")]
FIRST = next(at for at, text in enumerate(SHOWN) if text.startswith("pipeline: triage"))
DOCUMENT, LOCKED, NEW_STEP, CONDITION, GATES = SHOWN[FIRST : FIRST + 5]
JOB = yaml.safe_load(SHOWN[0])
WARNING, DIFFERENCE = (block.text for block in blocks(PAGE, "text"))
ACTION = yaml.safe_load((ROOT / "actions/lock-diff/action.yml").read_text(encoding="utf-8"))
LAST = "  - tool:\n      name: file__write\n"


class Repository:
    """A git repository in which the page is followed."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        bin = str(Path(sys.executable).parent)
        self.environ = {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "QUIRE_HOME": str(home)}
        self.run("git", "init", "--quiet", "--initial-branch=main")

    def run(self, *command: str, status: int = 0, **environ: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env={**self.environ, **environ}, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
        return done.stdout

    def write(self, text: str) -> None:
        given({"pipelines/triage.yaml": text}, self.folder)

    def commit(self) -> None:
        self.run("git", "add", "--all")
        self.run("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message=x")


@pytest.fixture
def branch(tmp_path: Path) -> Repository:
    """The repository with the change on a branch, after the base was locked."""
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    made = Repository(folder, home)
    made.write(DOCUMENT)
    made.run("quire", "lock")
    assert LOCKED in _joined((folder / "quire.lock").read_text(encoding="utf-8"), LOCKED)
    made.commit()
    made.run("git", "checkout", "--quiet", "-b", "post")
    made.write(DOCUMENT.replace(LAST, NEW_STEP + LAST))
    return made


def _joined(lock: str, shown: str) -> str:
    """Return the lock without the lines between those that the page shows."""
    kept = shown.splitlines()
    return "".join(f"{line}\n" for line in lock.splitlines() if line in kept)


def test_the_change_is_followed_from_the_branch_to_the_merge(branch: Repository, tmp_path: Path) -> None:
    assert branch.run("quire", "check", "pipelines").startswith(WARNING)
    base = tmp_path / "base.lock"
    base.write_text(branch.run("git", "show", "main:quire.lock"), encoding="utf-8")
    assert branch.run("quire", "lock", "--diff", str(base)) == DIFFERENCE
    refused = branch.run("quire", "check", "--locked", "--format", "concise", status=1)
    assert all(code in refused for code in ("LK103", "LK104", "LK105"))
    branch.write(DOCUMENT.replace(LAST, NEW_STEP + CONDITION + LAST))
    branch.run("quire", "lock")
    assert GATES in _joined((branch.folder / "quire.lock").read_text(encoding="utf-8"), GATES)
    branch.run("quire", "check", "--strict", "--locked")


def _action(branch: Repository, tmp_path: Path) -> tuple[str, str]:
    """Run the first step of the action as the service does; return the summary and the outputs."""
    temp = tmp_path / "runner"
    temp.mkdir()
    summary, output = temp / "summary.md", temp / "output"
    branch.run(
        *("bash", "-e", "-o", "pipefail", "-c", ACTION["runs"]["steps"][0]["run"]),
        BASE=branch.run("git", "rev-parse", "main").strip(),
        GITHUB_ACTION_PATH=str(ROOT / "actions/lock-diff"),
        RUNNER_TEMP=str(temp),
        GITHUB_STEP_SUMMARY=str(summary),
        GITHUB_OUTPUT=str(output),
    )
    return summary.read_text(encoding="utf-8"), output.read_text(encoding="utf-8")


def test_the_action_says_what_is_new(branch: Repository, tmp_path: Path) -> None:
    summary, output = _action(branch, tmp_path)
    assert summary.startswith("<!-- quire lock diff -->\n")
    assert "**+ may http.send (elevated, write, host=hooks.example.org method=POST)" in summary
    assert output == "wider=true\n"


def test_the_action_works_for_a_base_without_a_lock(branch: Repository, tmp_path: Path) -> None:
    branch.run("git", "checkout", "--quiet", "--force", "main")
    branch.run("git", "rm", "--quiet", "quire.lock")
    branch.commit()
    assert _action(branch, tmp_path)[1] == "wider=true\n"


def test_nothing_is_wider_where_nothing_has_changed(branch: Repository, tmp_path: Path) -> None:
    branch.write(f"# A comment.\n{DOCUMENT}")
    assert _action(branch, tmp_path)[1] == "wider=false\n"


def test_the_action_imports_nothing_of_the_pull_request(branch: Repository, tmp_path: Path) -> None:
    for name in ("json.py", "sitecustomize.py", "click.py"):
        (branch.folder / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n", encoding="utf-8")
    assert _action(branch, tmp_path)[1] == "wider=true\n"
    assert not (tmp_path / "ran").exists()


def test_the_job_asks_for_the_rights_that_a_comment_needs() -> None:
    assert JOB["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert JOB["jobs"]["documents"]["steps"][-1]["with"] == {"comment": "true"}


@pytest.mark.skipif(not (ROOT / "action.yml").exists(), reason="the repository has no action.yml")
def test_the_inputs_of_the_page_are_those_of_the_action() -> None:
    rows = re.findall(r"^\| (`\w+`[^|]*) \|([^|]*)\|", section(PAGE, "## GitHub Actions"), re.MULTILINE)
    shown = {name: default.strip("` ") for names, default in rows for name in re.findall(r"`(\w+)`", names)}
    inputs = yaml.safe_load(text_of("action.yml"))["inputs"]
    assert shown.keys() == inputs.keys()
    defaults = {name: of_input["default"] for name, of_input in inputs.items() if of_input["default"] not in ("", "{}")}
    assert {name: shown[name] for name in defaults} == defaults


def test_the_comment_is_written_once_and_then_changed(branch: Repository, tmp_path: Path) -> None:
    """A stand-in for `gh` notes its calls; the second time it lists the comment that is there."""
    tools, calls = tmp_path / "tools", tmp_path / "calls"
    tools.mkdir()
    stub = tools / "gh"
    stub.write_text('#!/bin/sh\necho "$*" >> "$CALLS"\ncase "$*" in *--jq*) echo "$OLD";; esac\n')
    stub.chmod(0o755)
    script = next(one["run"] for one in ACTION["runs"]["steps"] if one["name"] == "Write the comment")
    rows = "".join(f"| {at} | {'x' * 80} |\n" for at in range(2_000))
    for old, diff in (("", "| a | b |\n"), ("17", rows)):
        (tmp_path / "lock-diff.md").write_text(diff, encoding="utf-8")
        branch.run(
            *("bash", "-e", "-o", "pipefail", "-c", script),
            PATH=f"{tools}{os.pathsep}{branch.environ['PATH']}",
            CALLS=str(calls),
            OLD=old,
            NUMBER="3",
            REPOSITORY="team/documents",
            RUNNER_TEMP=str(tmp_path),
            GITHUB_ACTION_PATH=str(ROOT / "actions/lock-diff"),
        )
        body = (tmp_path / "lock-diff-comment.md").read_text(encoding="utf-8")
        assert body == diff if len(diff) < 60_000 else len(body) < 65_000 and "more than a comment holds" in body
    made = [line for line in calls.read_text().splitlines() if "--method" in line]
    assert [line.split()[1:4] for line in made] == [
        ["--method", "POST", "repos/team/documents/issues/3/comments"],
        ["--method", "PATCH", "repos/team/documents/issues/comments/17"],
    ]


def test_the_diff_for_programs_has_the_key_that_the_action_reads(branch: Repository, tmp_path: Path) -> None:
    base = tmp_path / "base.lock"
    base.write_text(branch.run("git", "show", "main:quire.lock"), encoding="utf-8")
    assert json.loads(branch.run("quire", "lock", "--diff", str(base), "--format", "json"))["wider"] is True


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_a_comment_that_somebody_else_has_written_is_not_changed(branch: Repository, tmp_path: Path) -> None:
    """The author of a comment can change it later, so one of a stranger must not carry the difference."""
    tools, calls, listed = tmp_path / "tools", tmp_path / "calls", tmp_path / "comments.json"
    tools.mkdir()
    (tools / "gh").write_text(
        '#!/bin/sh\necho "$*" >> "$CALLS"\ncase "$*" in *--jq*) for last; do :; done; jq "$last" "$LISTED";; esac\n'
    )
    (tools / "gh").chmod(0o755)
    comments = [
        {"id": at, "body": "<!-- quire lock diff -->", "user": {"type": kind}, "author_association": role}
        for at, kind, role in ((1, "User", "NONE"), (2, "User", "CONTRIBUTOR"), (3, "Bot", "NONE"))
    ]
    script = next(one["run"] for one in ACTION["runs"]["steps"] if one["name"] == "Write the comment")
    (tmp_path / "lock-diff.md").write_text("| a | b |\n", encoding="utf-8")
    for known in (comments[:2], comments):
        listed.write_text(json.dumps(known), encoding="utf-8")
        branch.run(
            *("bash", "-e", "-o", "pipefail", "-c", script),
            PATH=f"{tools}{os.pathsep}{branch.environ['PATH']}",
            CALLS=str(calls),
            LISTED=str(listed),
            NUMBER="3",
            REPOSITORY="team/documents",
            RUNNER_TEMP=str(tmp_path),
            GITHUB_ACTION_PATH=str(ROOT / "actions/lock-diff"),
        )
    written = [line.split()[2:4] for line in calls.read_text().splitlines() if "--method" in line]
    assert written == [
        ["POST", "repos/team/documents/issues/3/comments"],
        ["PATCH", "repos/team/documents/issues/comments/3"],
    ]
