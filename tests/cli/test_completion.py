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

from quire.cli.shell_completion import SHELLS, command

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
    assert completed(["quire", "fork", run[:4]], workspace) == [run]
    assert completed(["quire", "cancel", "la"], workspace) == ["last"]
    (workspace / "quire.toml").write_text("this is [not toml")
    assert completed(["quire", "cancel", run[:4]], workspace) == []


ASKS = '# T\n\n## STEP 1: A\n\n@elicit(confirm, "Sure?")\n'


def test_run_ids_fit_the_verb(workspace: Path, make_run: MakeRun) -> None:
    """G14: a run that has ended is neither resumed nor answered nor cancelled."""
    ended = make_run("# T\n\n## STEP 1: A\n\nGo.\n", ["ok"])
    waits = make_run(ASKS)
    for verb in ("cancel", "resume", "answer"):
        offered = completed(["quire", verb, ""], workspace)
        assert waits in offered and ended not in offered
    assert {ended, waits} <= set(completed(["quire", "runs", ""], workspace))


PAGE = """# P

## INPUTS
- `colour` (enum: red, green)
- `nice` (boolean)
- `who` (string)

## STEP 1: A

{{who}}
"""
SETTINGS = """[models]
default = "x:big"
[models.tiers]
fast = "x:small"
[models.providers.x]
base_url = "http://[::1]:9"
"""


@pytest.fixture
def project(workspace: Path) -> Path:
    """A page with inputs, a pipeline with a name, and models."""
    (workspace / "page.md").write_text(PAGE)
    (workspace / "tagline.playbook.md").write_text("# T\n\n## STEP 1: A\n\nGo.\n")
    (workspace / "pipelines").mkdir()
    (workspace / "pipelines" / "tagger.yaml").write_text("pipeline: tagger\nsteps:\n  - transform: {value: doc}\n")
    (workspace / "quire.toml").write_text(SETTINGS)
    return workspace


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["quire", "run", "tag"], {"tagger", "tagline", "tag"}),
        (["quire", "run", "page.md", "-i", "c"], {"colour="}),
        (["quire", "run", "page.md", "-i", "colour="], {"colour=red", "colour=green"}),
        (["quire", "run", "page.md", "-i", "nice=t"], {"nice=true"}),
        (["quire", "run", "page.md", "-i", "who=@pag"], {"who=@page.md"}),
        (["quire", "run", "page.md", "-i", "who=@pip"], {"who=@pipelines/"}),
        (["quire", "run", "tagger", "-i", ""], {"doc="}),
        (["quire", "run", "page.md", "--model", "x"], {"x:big", "x:"}),
        (["quire", "run", "page.md", "--model", "fa"], {"fast"}),
        (["quire", "run", "page.md", "--inputs", "in"], {"in"}),
        (["quire", "check", "ta"], {"ta"}),
    ],
)
def test_documents_inputs_models_and_files(project: Path, words: list[str], expected: set[str]) -> None:
    """G14. A file is completed by the shell: its item has what was typed."""
    assert set(completed(words, project)) == expected


@pytest.fixture
def on_path(tmp_path: Path) -> dict[str, str]:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    quire = bin_folder / "quire"
    quire.write_text(f"#!{sys.executable}\n{FRONT_DOOR}\n")
    quire.chmod(0o755)
    return {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("quire ru", ["run", "runs"]),
        ("quire run tag", ["tagger", "tagline", "tagline.playbook.md"]),
        ("quire run page.md -i colour=r", ["red"]),
        ("quire run page.md --model x:b", ["big"]),
    ],
)
def test_a_real_bash_completes(project: Path, on_path: dict[str, str], line: str, expected: list[str]) -> None:
    """The completion function is called as bash calls it; bash tears words at = and at :."""
    words = line.replace("=", " = ").replace(":", " : ").split()
    script = (
        'eval "$(quire completion bash)"; function=$(complete -p quire | grep -o "_[a-z_]*completion"); '
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}; "
        '$function quire; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=on_path, cwd=project, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == expected, done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_a_real_fish_completes(project: Path, on_path: dict[str, str]) -> None:
    script = "quire completion fish | source; complete --do-complete 'quire run tag'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], env=on_path, cwd=project, capture_output=True, text=True, timeout=60
    )
    offered = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert sorted(offered) == ["tagger", "tagline", "tagline.playbook.md"], done.stderr


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("quire run page.md -i col", "described_parts|-V unsorted described_parts -U -S |colour="),
        ("quire run page.md -i colour=r", "|-U -V unsorted -a plain|colour=red"),
    ],
    ids=["a name that a value follows", "a value"],
)
def test_a_real_zsh_puts_no_space_behind_a_name(
    project: Path, on_path: dict[str, str], line: str, expected: str
) -> None:
    """The completion function is called as zsh calls it; `-S ''` is what keeps the space away."""
    words = line.split()
    script = (
        'compdef() { }; _path_files() { }; compadd() { print -r -- "|$*|${(P)@[-1]}" }\n'
        '_describe() { print -r -- "$3|$*|${${(P)3}%%:*}" }\n'
        'eval "$(quire completion zsh)"\n'
        f"words=({' '.join(words)}); CURRENT={len(words)}; _quire_completion"
    )
    done = subprocess.run(
        ["zsh", "-f", "-c", script], env=on_path, cwd=project, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines() == [expected], done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_a_real_fish_keeps_commas_and_puts_no_space_behind_a_name(project: Path, on_path: dict[str, str]) -> None:
    """Fish itself leaves the space out behind `=`."""
    script = "quire completion fish | source; complete --do-complete 'quire run page.md -i col'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], env=on_path, cwd=project, capture_output=True, text=True, timeout=60
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["colour="], done.stderr
