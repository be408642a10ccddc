"""Completion, as a real bash does it and as the front door answers it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.warm import run_quire

from quire.cli.completion import SHELLS, command

Invoke = Callable[..., Result]
MakeRun = Callable[..., str]

FRONT_DOOR = "import sys; from quire.cli import main; sys.exit(main())"


def completed(words: list[str], folder: Path) -> list[str]:
    """What the front door offers for the last of the words."""
    environ = {
        **os.environ,
        "_QUIRE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = run_quire([], cwd=folder, env=environ)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_for_each_shell(invoke: Invoke, shell: str) -> None:
    result = invoke(command, shell)
    assert result.exit_code == 0
    assert f"_QUIRE_COMPLETE={shell}_complete" in result.stdout


def test_other_shells_are_refused(invoke: Invoke) -> None:
    assert invoke(command, "tcsh").exit_code == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["quire", "inb"], ["inbox"]),
        (["quire", "runs", "--jo"], ["--journal"]),
        (["quire", "runs", "--status", "aw"], ["awaiting_input"]),
        (["quire", "new", "pl"], ["playbook"]),
    ],
)
def test_verbs_and_options(workspace: Path, words: list[str], expected: list[str]) -> None:
    assert completed(words, workspace) == expected


def test_run_ids(workspace: Path, make_run: MakeRun) -> None:
    run = make_run("# T\n\n## STEP 1: A\n\nGo.\n", ["ok"])
    assert completed(["quire", "runs", run[:4]], workspace) == [run]
    for verb in ("cancel", "resume", "answer"):
        assert completed(["quire", verb, run[:4]], workspace) == [run]
    assert completed(["quire", "cancel", "la"], workspace) == ["last"]
    (workspace / "quire.toml").write_text("this is [not toml")
    assert completed(["quire", "cancel", run[:4]], workspace) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_real_bash_completes(workspace: Path, tmp_path: Path) -> None:
    """The completion function is called as bash calls it for `quire ru<TAB>`."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    quire = bin_folder / "quire"
    quire.write_text(f"#!{sys.executable}\n{FRONT_DOOR}\n")
    quire.chmod(0o755)
    script = (
        'eval "$(quire completion bash)"; function=$(complete -p quire | grep -o "_[a-z_]*completion"); '
        'COMP_WORDS=(quire ru); COMP_CWORD=1; $function quire; echo "${COMPREPLY[@]}"'
    )
    environ = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=environ, cwd=workspace, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["run", "runs"], done.stderr
