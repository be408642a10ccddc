"""The lock in a real repository with two branches: the difference as a pull request shows it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import Said
from tests.given import given

from quire.cli import main

SETTINGS = "[assume]\nreaders = 20\n"
SERVERS = '{"mcpServers": {"tickets": {"command": "tickets", "env": {"TOKEN": "${TICKETS_TOKEN}"}}}}\n'
BASE = """pipeline: review
steps:
  - agent: {prompt: "Summarise {doc}", capabilities: {tools: []}, output: summary}
  - tool: {name: ask, args: {type: confirm, prompt: "Keep it?", show: !expr summary}, output: ok}
  - match: {on: ok, cases: {"yes": {pipeline: keep, pass: {summary: summary}}},
            default: {pipeline: leave}}
"""
KEEP = """pipeline: keep
steps:
  - tool: {name: file__write, args: {path: verdict.md, content: !expr ctx.summary}}
"""
LEAVE = "pipeline: leave\nsteps:\n  - transform: {value: \"'left'\"}\n"
HEAD = """# Every reader has a look now.
pipeline: review
steps:
  - for_each:
      over: ctx.readers
      on_error: abort
      do: {agent: {prompt: "Summarise {doc} for {item}", capabilities: {tools: []}}}
      collect: {transform: {value: pipe}}
      output: summary
  - tool: {name: tickets__create, args: {text: !expr summary}}
"""
NOTE = "# Note\n\n## STEP 1: Look\n\nSay hello.\n"


@pytest.fixture
def repository(workspace: Path) -> Path:
    git(workspace, "init", "--quiet", "--initial-branch=main")
    given({"quire.toml": SETTINGS, ".mcp.json": SERVERS, "note.playbook.md": NOTE}, workspace)
    given({"pipelines/review.yaml": BASE, "pipelines/keep.yaml": KEEP, "pipelines/leave.yaml": LEAVE}, workspace)
    assert main(["lock", "--no-tools"]) == 0
    commit(workspace, "base")
    git(workspace, "switch", "--quiet", "--create", "tickets")
    return workspace


def git(folder: Path, *arguments: str) -> str:
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environ = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", *arguments], cwd=folder, env=environ, capture_output=True, text=True, check=True)
    return done.stdout


def commit(folder: Path, subject: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", subject)


def test_a_pull_request_that_widens(repository: Path, said: Said) -> None:
    given({"pipelines/review.yaml": HEAD, "note.playbook.md": NOTE.replace("# Note", "# A note")}, repository)
    said()
    # The gate of the pull request fails until the author has written the lock again.
    assert main(["check", "--locked", "--format", "concise"]) == 1
    found = said()[0].splitlines()
    assert {line.split()[1] for line in found} >= {"LK103", "LK104", "LK105"}
    assert all(line.startswith("pipelines/review.yaml:") for line in found if " LK" in line)
    assert main(["lock", "--no-tools"]) == 0
    commit(repository, "tickets")
    assert main(["check", "--locked"]) == 0
    # The lines of the file are the review: what the title of a playbook says is not among them.
    lines = [line for line in git(repository, "diff", "main", "--", "quire.lock").splitlines() if line[:1] in "+-"]
    assert "+      - rye.execute.tool.mcp.tickets.create tier=elevated class=unknown steps=2" in lines
    assert "+        - TICKETS_TOKEN" in lines
    assert not any("note" in line for line in lines)
    # The table of the pull request.
    (repository / "base.lock").write_text(git(repository, "show", "main:quire.lock"), encoding="utf-8")
    said()
    assert main(["lock", "--diff", "base.lock", "--format", "markdown"]) == 0
    rows = said()[0].splitlines()
    assert rows[:2] == ["| document | change |", "| --- | --- |"]
    row = next(row for row in rows if row.startswith("| pipelines/review.yaml |"))
    assert "**+ may mcp.tickets.create (elevated, unknown)**" in row
    assert "− may file-system.write (write, idempotent, path=verdict.md)" in row
    assert "**+ model calls 1 → readers (1 → 20 at readers = 20)**" in row
    assert "**+ uses the variable TICKETS\\_TOKEN**" in row
    assert "**+ question before 2 tickets\\_\\_create: not there → none**" in row
    assert not any("note.playbook.md" in one for one in rows)


def test_a_pull_request_that_narrows_is_only_stale(repository: Path, said: Said) -> None:
    given({"pipelines/review.yaml": "pipeline: review\nsteps:\n  - transform: {value: '1'}\n"}, repository)
    said()
    assert main(["check", "--locked", "--format", "concise"]) == 1
    assert [line.split()[1] for line in said()[0].splitlines()] == ["LK102"]
    (repository / "base.lock").write_text(git(repository, "show", "main:quire.lock"), encoding="utf-8")
    assert main(["lock", "--diff", "base.lock", "--json"]) == 0
    assert '"wider": false' in said()[0]


def test_two_branches_that_are_merged(repository: Path, said: Said) -> None:
    given({"pipelines/review.yaml": HEAD}, repository)
    assert main(["lock", "--no-tools"]) == 0
    commit(repository, "tickets")
    git(repository, "switch", "--quiet", "main")
    given({"pipelines/review.yaml": BASE.replace("Summarise", "Sum up")}, repository)
    assert main(["lock", "--no-tools"]) == 0
    commit(repository, "words")
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "merge", "--quiet", "tickets")
    assert "<<<<<<<" in (repository / "quire.lock").read_text()
    git(repository, "checkout", "--theirs", "--", "pipelines/review.yaml")
    said()
    assert main(["check", "--locked", "--format", "concise"]) == 1
    assert "LK001 error: the lock has marks of a merge that was not finished" in said()[0]
    assert main(["lock", "--no-tools"]) == 0
    assert main(["check", "--locked"]) == 0


def test_a_clone_elsewhere_writes_the_same_lock(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "switch", "--quiet", "main")
    clone = tmp_path / "another place" / "clone"
    git(repository, "clone", "--quiet", str(repository), str(clone))
    monkeypatch.chdir(clone)
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "another home"))
    before = (clone / "quire.lock").read_bytes()
    (clone / "quire.lock").unlink()
    assert main(["lock", "--no-tools"]) == 0
    assert (clone / "quire.lock").read_bytes() == before
