"""What `make test-pythons` finds, and what it puts into an environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.pythons.environment import base_packages, requirements
from tests.pythons.interpreters import Interpreter, find_interpreters, missing_minors


def test_interpreters_are_found_once_for_each_version(tmp_path: Path) -> None:
    folder = tmp_path / ".pyenv" / "versions" / "mine" / "bin"
    folder.mkdir(parents=True)
    for name, says in [
        ("python3", f"cpython 3 99 1 final {folder}"),
        ("python3.99", f"cpython 3 99 1 final {folder}"),
        ("python3.10", f"cpython 3 10 1 final {folder}"),
        ("python3.98", f"pypy 3 98 0 final {folder}"),
        ("python3.97", f"cpython 3 97 0 alpha {folder}"),
        ("python3.96", "nothing that can be read"),
        ("python3-config", f"cpython 3 95 0 final {folder}"),
    ]:
        (folder / name).write_text(f"#!/bin/sh\necho {says}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    found = find_interpreters({"HOME": str(tmp_path), "PATH": ""})
    assert [one.name for one in found if one.version >= (3, 90, 0)] == ["3.99.1"]


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="this Python is not that of a virtual environment")
def test_the_environment_of_this_test_is_not_an_interpreter() -> None:
    assert Path(sys.executable) not in [
        one.program for one in find_interpreters({"PATH": str(Path(sys.prefix, "bin"))})
    ]


def test_versions_that_are_not_there_are_named() -> None:
    there = [Interpreter((3, 11, 2), Path("a")), Interpreter((3, 13, 0), Path("b"))]
    assert missing_minors(there) == ["3.12", "3.14"]


def test_an_environment_gets_what_is_needed_and_nothing_else() -> None:
    names = [
        line.partition("==")[0] for line in requirements((*base_packages(), "pytest")).splitlines() if "==" in line
    ]
    assert {"click", "lxml", "pytest", "pluggy"} <= set(names)
    assert not {"mypy", "pydantic-ai-slim", "mcp"} & set(names)
    assert "--hash=sha256:" in requirements(["click"])
