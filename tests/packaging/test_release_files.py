"""Files for a release: workflows are valid and safe, actions are pinned, and one script names the repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.docs.pages import ROOT

from quire import __version__

BIN = Path(sys.executable).parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PIN = ROOT / "packaging" / "pin_actions.py"
NO_SERVERS = ("team/.github", "team/quire-", "te_am/quire", "te\u00e4m/quire", "team/q")
"""Repositories whose names the MCP registry refuses: each part begins and ends with a letter or digit."""
VALID = (
    *(("vendor.github-workflows", path.relative_to(ROOT).as_posix()) for path in WORKFLOWS),
    ("vendor.github-actions", "action.yml"),
    ("vendor.github-actions", "actions/lock-diff/action.yml"),
    ("vendor.compose-spec", "deploy/compose.yaml"),
)


def jobs() -> list[tuple[str, str, dict[str, Any]]]:
    texts = ((path, yaml.safe_load(path.read_text(encoding="utf-8"))) for path in WORKFLOWS)
    return [(path.name, name, job) for path, text in texts for name, job in text["jobs"].items()]


@pytest.mark.parametrize(("schema", "file"), VALID)
def test_it_is_valid(schema: str, file: str, tmp_path: Path) -> None:
    check = [str(BIN / "check-jsonschema"), "--builtin-schema", schema]
    done = subprocess.run([*check, ROOT / file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    text = (ROOT / file).read_text(encoding="utf-8")
    wrong = tmp_path / Path(file).name
    wrong.write_text(re.sub(r"^(jobs|runs|services):", r"\1-x:", text, flags=re.MULTILINE), encoding="utf-8")
    assert subprocess.run([*check, wrong], capture_output=True).returncode == 1


def test_no_script_of_a_workflow_contains_an_expression() -> None:
    steps = [(file, step) for file, _, job in jobs() for step in job["steps"]]
    assert [(file, step["run"]) for file, step in steps if "${{" in step.get("run", "")] == []


def test_a_job_has_only_the_rights_that_it_names() -> None:
    for path in WORKFLOWS:
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}
    writing = {
        (name, right)
        for _, name, job in jobs()
        for right, level in job.get("permissions", {}).items()
        if level == "write"
    }
    assert writing == {
        ("package", "id-token"),
        ("assets", "contents"),
        ("image", "packages"),
        ("site", "pages"),
        ("site", "id-token"),
    }


def test_nothing_is_published_before_it_was_installed() -> None:
    needs = {name: job.get("needs", []) for file, name, job in jobs() if file == "release.yml"}

    def all_before(name: str) -> set[str]:
        direct = [needs[name]] if isinstance(needs[name], str) else needs[name]
        return set(direct).union(*map(all_before, direct))

    assert all("try" in all_before(name) for name in needs.keys() - {"build", "try"})
    package = next(job for _, name, job in jobs() if name == "package")
    assert package["environment"] == "pypi" and package["steps"][-1]["with"]["attestations"] is True


def test_no_failure_is_hidden() -> None:
    """A job of macOS or Windows that fails is seen."""
    for path in WORKFLOWS:
        assert "continue-on-error" not in path.read_text(encoding="utf-8")


def test_workflows_use_targets_and_tools_that_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    used = {found for path in WORKFLOWS for found in re.findall(r"\bmake ([\w-]+)", path.read_text(encoding="utf-8"))}
    used |= set(re.findall(r"`(?:\S+ )?make ([\w-]+)`", (ROOT / "RELEASING.md").read_text(encoding="utf-8")))
    if not (ROOT / "docs-requirements.txt").exists():
        used -= {"docs"}
    assert used - targets == set()
    commands = json.dumps([step.get("run", "") for _, _, job in jobs() for step in job["steps"]])
    for module in re.findall(r"-m (tests[\w.]+)", commands):
        assert (ROOT / module.replace(".", "/")).is_dir() or (ROOT / f"{module.replace('.', '/')}.py").is_file()


@pytest.fixture
def host(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder of git repositories in place of the service: one with a light and an annotated tag, and a branch."""
    repository = tmp_path / "host" / "team" / "act"
    repository.mkdir(parents=True)

    def git(*arguments: str) -> str:
        named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return subprocess.run(
            ["git", *named, *arguments], cwd=repository, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    commits = {}
    for name in ("light", "annotated", "branch"):
        git("commit", "--quiet", "--allow-empty", f"--message={name}")
        commits[name] = git("rev-parse", "HEAD")
        if name == "light":
            git("tag", "v1")
        if name == "annotated":
            git("tag", "--annotate", "--message=x", "v2")
    git("branch", "release/v1")
    return tmp_path / "host", commits


def pin(folder: Path, host: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, PIN, folder, host], capture_output=True, text=True)


def test_actions_are_pinned_by_the_commit_of_their_tag(host: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    where, commits = host
    workflow = tmp_path / "ci.yml"
    workflow.write_text(
        "steps:\n- uses: team/act@v1\n- uses: team/act/inner@v2\n- uses: team/act@release/v1\n- uses: ./local\n"
    )
    for _ in range(2):  # what is pinned stays, and is resolved by the tag behind it
        done = pin(tmp_path, where)
        assert done.returncode == 0, done.stderr
        assert workflow.read_text() == (
            f"steps:\n- uses: team/act@{commits['light']} # v1\n- uses: team/act/inner@{commits['annotated']} # v2\n"
            f"- uses: team/act@{commits['branch']} # release/v1\n- uses: ./local\n"
        )


@pytest.mark.parametrize("uses", ["team/act@v9", "team/other@v1"])
def test_nothing_is_written_if_one_is_not_found(host: tuple[Path, dict[str, str]], tmp_path: Path, uses: str) -> None:
    workflow = tmp_path / "ci.yml"
    workflow.write_text(f"- uses: team/act@v1\n- uses: {uses}\n")
    done = pin(tmp_path, host[0])
    assert done.returncode == 1 and uses.partition("@")[0] in done.stderr
    assert workflow.read_text() == f"- uses: team/act@v1\n- uses: {uses}\n"


def test_every_action_of_the_workflows_can_be_pinned() -> None:
    pattern = re.compile(r"uses: [\w.-]+/[\w.-]+(/[\w./-]+)?@(v\d[\w.]*|release/v\d|[0-9a-f]{40} # \S+)$")
    lines = [line.strip() for path in WORKFLOWS for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if "uses: " in line and not pattern.search(line)] == []


class TestRelease:
    @staticmethod
    def run(out: Path, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the script on a copy of the files that it reads, so that it writes into the copy."""
        for name in ("packaging/release.py", "src/quire/__init__.py", "editors/vscode/package.json", "CHANGELOG.md"):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes((ROOT / name).read_bytes())
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
        (out / ".git").write_text(f"gitdir: {git_folder()}\n")
        command = [sys.executable, str(out / "packaging" / "release.py")]
        return subprocess.run(command, env={**kept, **environ}, capture_output=True, text=True)

    def test_all_files_name_the_repository(self, tmp_path: Path) -> None:
        done = self.run(tmp_path, GITHUB_REPOSITORY="team/quire")
        assert done.returncode == 0, done.stderr
        made = tmp_path / "dist" / "release"
        server = json.loads((made / "server.json").read_text())
        assert server["name"] == "io.github.team/quire" and len(server["description"]) <= 100
        assert [(package["identifier"], package["version"]) for package in server["packages"]] == [
            ("quire-run", __version__)
        ]
        manifest = json.loads((made / "vscode/package.json").read_text())
        assert manifest["repository"]["url"] == "https://github.com/team/quire.git"
        assert manifest["bugs"] == {"url": "https://github.com/team/quire/issues"}
        entries = json.loads((made / "schemastore.json").read_text())["schemas"]
        addresses = {entry["url"].rpartition("/")[2] for entry in entries}
        assert addresses == {path.name for path in (made / "schemas").iterdir()}
        assert addresses == {f"quire-{name}.schema.json" for name in ("pipeline", "test", "settings", "lock")}
        labels = (made / "labels").read_text().splitlines()
        assert "org.opencontainers.image.source=https://github.com/team/quire" in labels
        assert not [label for label in labels if " " in label or label.endswith("=")]

    @pytest.mark.parametrize(
        "repository", ["", "quire", "a/b/c", "a/b c", "a/$(touch x)", "-a/b", "a/b\n", *NO_SERVERS]
    )
    def test_it_needs_a_repository(self, tmp_path: Path, repository: str) -> None:
        done = self.run(tmp_path, GITHUB_REPOSITORY=repository)
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and "OWNER/NAME" in done.stderr
        assert not (tmp_path / "dist").exists()

    def test_the_entry_is_one_of_the_registry(self, tmp_path: Path) -> None:
        """Rules of schema 2025-12-11: lengths, fixed words, arguments with values, a version, not a range."""
        assert self.run(tmp_path, GITHUB_REPOSITORY="The-Team/quire_2.x").returncode == 0
        server = json.loads((tmp_path / "dist/release/server.json").read_text())
        assert server["$schema"].endswith("/schemas/2025-12-11/server.schema.json")
        assert server["name"] == "io.github.The-Team/quire_2.x" and len(server["name"]) <= 200
        assert server["repository"] == {"url": "https://github.com/The-Team/quire_2.x", "source": "github"}
        assert 1 <= len(server["description"]) <= 100 and server["version"] == __version__
        (package,) = server["packages"]
        assert re.fullmatch(r"\d+(\.\d+)*([a-z]+\d+)?", package["version"])
        assert (package["registryType"], package["transport"]) == ("pypi", {"type": "stdio"})
        assert package["runtimeHint"] == "uvx", "it is needed beside runtimeArguments"
        for argument in (*package["runtimeArguments"], *package["packageArguments"]):
            wanted = {"type", "value"} | ({"name"} if argument["type"] == "named" else set())
            assert argument["type"] in ("named", "positional") and argument.keys() == wanted
            assert not argument["value"].startswith(argument.get("name", " "))

    @pytest.mark.parametrize("tag", ["v9.9.9", __version__, ""])
    def test_a_tag_has_to_be_that_of_the_version(self, tmp_path: Path, tag: str) -> None:
        done = self.run(tmp_path, GITHUB_REPOSITORY="team/quire", GITHUB_REF_TYPE="tag", GITHUB_REF_NAME=tag)
        assert done.returncode == 1 and f"the version is {__version__}" in done.stderr

    def test_no_file_of_the_project_names_a_repository_of_its_own(self) -> None:
        manifest = json.loads((ROOT / "editors/vscode/package.json").read_text(encoding="utf-8"))
        assert "repository" not in manifest and "bugs" not in manifest
        assert "urls" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def git_folder() -> str:
    command = ["git", "rev-parse", "--absolute-git-dir"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def test_the_release_page_is_short() -> None:
    assert len((ROOT / "RELEASING.md").read_text(encoding="utf-8").splitlines()) <= 60
    assert len((ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()) <= 30
    assert len((ROOT / "packaging/release.py").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_container_of_developers_can_be_read() -> None:
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    assert container["postCreateCommand"] == "make setup"
