"""The changelog is short, names the version of the package, and says what an upgrade needs."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from tests.docs.pages import ROOT, text_of

from quire import __version__
from quire.versions import format_numbers

PARTS = re.split(r"^## (.+)$", text_of("CHANGELOG.md"), flags=re.MULTILINE)[1:]
VERSIONS = dict(zip(PARTS[::2], PARTS[1::2], strict=True))
MOST_LINES = {"0.2.0": 32, "0.1.0": 30}
BEFORE = {
    "semantics": ("semantics", 1),
    "sqlite_schema": ("SQLite schema", 3),
    "postgresql_schema": ("PostgreSQL schema", 2),
}
"""The numbers of 0.1.0, and how the changelog calls them."""


@pytest.mark.parametrize(("version", "most"), MOST_LINES.items())
def test_a_version_is_told_in_few_short_lines(version: str, most: int) -> None:
    lines = [line for line in VERSIONS[version].splitlines() if line.startswith("- ")]
    assert 10 < len(lines) <= most
    assert [line for line in VERSIONS[version].splitlines() if len(line) > 160] == []


def test_the_newest_version_has_the_sections_for_users() -> None:
    assert re.findall(r"^### (.+)$", VERSIONS["0.2.0"], re.MULTILINE) == ["New", "Changed", "Security", "Upgrading"]


def test_upgrading_names_the_numbers_that_rose_and_the_command() -> None:
    upgrading = VERSIONS["0.2.0"].partition("### Upgrading")[2]
    numbers = format_numbers()
    assert [
        f"{name} {old} → {numbers[key]}" for key, (name, old) in BEFORE.items() if old < numbers[key]
    ] == re.findall(r"[\w ]+? \d+ → \d+", upgrading.partition("rose: ")[2].partition(". ")[0].replace(", ", "\n"))
    assert "`quire runs seal --all --yes`" in upgrading


def test_package_extension_and_changelog_have_one_version() -> None:
    assert next(version for version in VERSIONS if version != "Unreleased") == __version__
    extension = json.loads((ROOT / "editors/vscode/package.json").read_text(encoding="utf-8"))
    assert extension["version"] == __version__


def test_a_tag_of_this_commit_is_the_version() -> None:
    command = ["git", "tag", "--points-at", "HEAD", "--list", "v*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.strip():
        pytest.skip("this commit has no tag of a version")
    assert f"v{__version__}" in done.stdout.split()
