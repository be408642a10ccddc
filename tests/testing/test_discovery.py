"""Arguments of `quire test` mean test files, cases of them, folders, globs and documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.directives import directive
from tests.given import given

from quire.testing.discovery import TestTarget, find_tests

FILES = (
    "a.playbook.md",
    "a.test.yaml",
    "b.yaml",
    "b.test.yaml",
    "lonely.playbook.md",
    "deep/c.test.yaml",
    "deep/c.yaml",
    ".ai/directives/team/tidy.md",
    ".ai/directives/team/tidy.test.yaml",
    ".hidden/d.test.yaml",
    "node_modules/e.test.yaml",
    "odd[1].test.yaml",
    "9:12.test.yaml",
)


@pytest.fixture(autouse=True)
def folder(here: Path) -> Path:
    (given(dict.fromkeys(FILES, "x: 1\n"), here) / "link").symlink_to(here / "deep")
    return here


def found(*arguments: str) -> list[str]:
    targets, problems = find_tests(arguments)
    assert problems == [] and all(target.is_whole for target in targets)
    return [target.path for target in targets]


def test_a_folder_is_searched_as_check_searches_it() -> None:
    assert found(".") == [
        "9:12.test.yaml",
        "a.test.yaml",
        "b.test.yaml",
        "odd[1].test.yaml",
        ".ai/directives/team/tidy.test.yaml",
        "deep/c.test.yaml",
    ]


@pytest.mark.parametrize(
    ("argument", "path"),
    [
        ("a.test.yaml", "a.test.yaml"),
        ("a.playbook.md", "a.test.yaml"),
        ("b.yaml", "b.test.yaml"),
        ("deep", "deep/c.test.yaml"),
        ("dee?/*", "deep/c.test.yaml"),
        (".ai/directives/team/tidy.md", ".ai/directives/team/tidy.test.yaml"),
        ("odd[1].test.yaml", "odd[1].test.yaml"),
        ("9:12.test.yaml", "9:12.test.yaml"),
        ("missing.test.yaml", "missing.test.yaml"),
    ],
)
def test_an_argument_means_a_file(argument: str, path: str) -> None:
    assert found(argument) == [path]


def test_a_document_may_be_named() -> None:
    Path(".ai/directives/team/tidy.md").write_text(DIRECTIVE)
    assert found("tidy") == [".ai/directives/team/tidy.test.yaml"]


DIRECTIVE = directive(
    "tidy",
    "<execute><tool>rye.file-system.read</tool></execute>",
    '<process><step name="a">Tidy.</step></process>',
    category="team",
    tier="fast",
    meta="<limits><turns>3</turns></limits>",
)


def test_each_file_comes_once_and_in_order() -> None:
    assert found("deep", "a.test.yaml", "./deep/c.test.yaml", "a.playbook.md") == ["deep/c.test.yaml", "a.test.yaml"]


def test_single_cases() -> None:
    targets, problems = find_tests(["a.test.yaml::one: and::two", "a.test.yaml:12", "b.test.yaml::x", "b.yaml"])
    assert problems == []
    assert targets == [
        TestTarget("a.test.yaml", frozenset({"one: and::two"}), frozenset({12})),
        TestTarget("b.test.yaml"),
    ]


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        (
            "lonely.playbook.md",
            "lonely.playbook.md has no test: lonely.test.yaml does not exist; `quire new test` begins one",
        ),
        ("quire.toml", "quire.toml has no test: quire.toml.test.yaml does not exist"),
        ("node_modules/x", "node_modules/x does not exist"),
        ("*.nothing", "*.nothing matches nothing"),
        (".hidden/deeper", ".hidden/deeper does not exist"),
        ("home", "home does not exist"),
        ("x" * 5000, f"{'x' * 5000} does not exist"),
        ("nul\0", "nul\0 does not exist"),
    ],
)
def test_an_argument_without_tests_is_a_problem(argument: str, problem: str) -> None:
    assert find_tests([argument]) == ([], [problem])


def test_an_empty_folder_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert find_tests(["empty"]) == ([], ["empty holds no tests (files that end in .test.yaml)"])
