"""The hooks of pre-commit: their commands as they stand there, and `try-repo`, which installs the package."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.docs.pages import ROOT
from tests.given import given

BIN = Path(sys.executable).parent
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
HOOKS = {hook["id"]: hook for hook in yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Documents that check clean, with a test and a lock, in a git repository."""
    folder = tmp_path / "documents"
    shutil.copytree(ROOT / "examples" / "hello", folder)
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home")}
    subprocess.run([BIN / "quire", "lock"], cwd=folder, env=environ, check=True, capture_output=True)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    return folder


def git(folder: Path, *arguments: str) -> str:
    named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_manifest_is_one() -> None:
    subprocess.run([BIN / "pre-commit", "validate-manifest", MANIFEST], check=True)
    assert set(HOOKS) == {"quire-check", "quire-check-locked", "quire-test"}
    assert {hook["language"] for hook in HOOKS.values()} == {"python"}


@pytest.mark.parametrize("hook", HOOKS)
def test_the_command_of_a_hook_finds_mistakes(hook: str, repository: Path, tmp_path: Path) -> None:
    command = shlex.split(HOOKS[hook]["entry"])
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home"), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    fine = subprocess.run(command, cwd=repository, env=environ, capture_output=True, text=True)
    assert fine.returncode == 0, fine.stdout + fine.stderr
    document = next(repository.glob("*.playbook.md"))
    changed = document.read_text(encoding="utf-8").replace("along to {{place}} in the morning", "along to {{plaice}}")
    document.write_text(changed, encoding="utf-8")
    assert subprocess.run(command, cwd=repository, env=environ, capture_output=True).returncode == 1


def test_pre_commit_installs_the_package_and_runs_the_hooks(repository: Path, tmp_path: Path) -> None:
    """pip builds Quire from a copy of this tree, and takes what it needs from the index that this machine has."""
    environ = {name: value for name, value in os.environ.items() if name not in ("SSL_CERT_FILE", "PYTHONPATH")}
    probe = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "0", "--timeout", "10"]
    reached = subprocess.run(
        [*probe, "-d", tmp_path, "hatchling", "click"], env=environ, capture_output=True, text=True
    )
    if reached.returncode:
        pytest.skip("no package index is reachable: pre-commit cannot install the hooks")
    source = tmp_path / "quire"
    for name in git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (ROOT / name).is_file() and not name.startswith(("tests/", "editors/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    git(source, "init", "--quiet")
    git(source, "add", "--all")
    git(source, "commit", "--quiet", "--message=x")
    environ |= {"PRE_COMMIT_HOME": str(tmp_path / "hooks"), "HOME": str(tmp_path)}
    command = [str(BIN / "pre-commit"), "try-repo", str(source), "--all-files", "--verbose"]
    fine = subprocess.run(command, cwd=repository, env=environ, capture_output=True, text=True)
    assert (fine.returncode, fine.stdout.count("Passed")) == (0, 3), fine.stdout + fine.stderr
    assert "3 passed in 1 file" in fine.stdout
    given({"wrong.playbook.md": "# Wrong\n\n## STEP 1: Greet\n\nGreet {{nobody}}.\n"}, repository)
    git(repository, "add", "--all")
    wrong = subprocess.run(command, cwd=repository, env=environ, capture_output=True, text=True)
    assert wrong.returncode == 1 and "PB201" in wrong.stdout, wrong.stdout
