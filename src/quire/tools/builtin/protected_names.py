"""The list of protected names, used by the file tools, the sandbox and the documentation.

A name is compared after `fold`, at any depth unless the row says otherwise, and covers everything below it.
"""

from __future__ import annotations

import unicodedata

from msgspec import Struct


class Row(Struct, frozen=True):
    """A row of the table in `docs/tools-and-trust.md`. `names` are folded; a `*` in front marks an ending, a `*` behind
    a beginning."""

    names: tuple[str, ...]
    why: str


def fold(name: str) -> str:
    """Return a name as the most forgiving file system sees it: without case, width and invisible letters."""
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
        name = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return name.casefold().rstrip(" .")


CLOSED = (
    Row(("quire.toml", "pyproject.toml", ".mcp.json"), "they ask for servers, modules and grants"),
    Row((".quire",), "the runs, their answers and their grants"),
    Row((".git", "git~1"), "hooks and settings that start programs"),
    Row((".venv",), "the interpreter and its packages"),
)
"""Always closed; no grant opens them."""

AI = ".ai"
RULES = ("config", "keys", "trust")
"""Always closed directly below `.ai`, where risk tables and trusted keys are kept."""

# fmt: off
ASKING = (
    Row((AI, "*.playbook.md", "*.test.yaml"), "documents that run later, and their tests"),
    Row((".github", ".gitlab", ".gitlab-ci.yml", ".circleci", ".travis.yml", ".woodpecker", ".woodpecker.yml",
         ".forgejo", ".gitea", ".drone.yml", ".buildkite", "jenkinsfile", "azure-pipelines.yml",
         "bitbucket-pipelines.yml"), "runs at a push, with the secrets of the project"),
    Row((".vscode", ".idea", ".zed", ".fleet", "*.code-workspace", ".devcontainer", ".devcontainer.json", ".exrc",
         ".vimrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".claude", ".cursor", ".codex", ".gemini"),
        "runs when an editor or an assistant opens the folder"),
    Row((".envrc", ".env", ".env.*", ".mise.toml", "mise.toml", ".mise", "flake.nix", "shell.nix", "default.nix",
         ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".login", ".inputrc", ".zshrc",
         ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".cshrc", ".tcshrc", "config.fish"),
        "runs, or sets variables, when a shell comes into the folder"),
    Row((".gitattributes", ".gitmodules", ".gitconfig", ".githooks", ".husky", ".pre-commit-config.yaml",
         "lefthook.yml", ".lefthook.yml", ".lintstagedrc*"), "runs when somebody commits or checks out"),
    Row(("makefile", "gnumakefile", "justfile", ".justfile", "taskfile.yml", "taskfile.yaml", "rakefile", "gemfile",
         "*.gemspec", "build.rs", ".cargo", ".bazelrc", "build.gradle", "build.gradle.kts", "settings.gradle",
         "settings.gradle.kts", "gradlew", ".mvn", "package.json", ".npmrc", ".yarnrc", ".yarnrc.yml",
         ".pnpmfile.cjs", "setup.py", "setup.cfg"), "runs at a build or an installation"),
    Row(("conftest.py", "pytest.ini", "tox.ini", "noxfile.py"), "runs when tests are looked for"),
    Row(("sitecustomize.py", "usercustomize.py", "*.pth", "node_modules"), "runs when Python or Node starts"),
)
"""Opened by a grant for the place, or for a folder above it."""

DOCUMENT_FOLDERS = ("prompts", "pipelines", "playbooks")
"""Like `ASKING`, but only directly in the workspace: elsewhere these are ordinary names."""
# fmt: on

VENV_MARK = "pyvenv.cfg"
"""A folder that contains this file is a virtual environment, and needs a grant."""


def _sorted(rows: tuple[Row, ...]) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    names = [name for row in rows for name in row.names]
    endings = tuple(name[1:] for name in names if name.startswith("*"))
    beginnings = tuple(name[:-1] for name in names if name.endswith("*"))
    return frozenset(name for name in names if "*" not in name), endings, beginnings


_CLOSED, _, _ = _sorted(CLOSED)
_ASKING, _ENDINGS, _BEGINNINGS = _sorted(ASKING)


def is_closed_name(folded: str) -> bool:
    return folded in _CLOSED


def is_asking_name(folded: str) -> bool:
    return folded in _ASKING or folded.endswith(_ENDINGS) or folded.startswith(_BEGINNINGS)
