"""`quire runs share` and `quire runs export --html`: a link for another person, and a file that needs no server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from quire.cli import main
from quire.runs.shares import PREFIX, Shares
from quire.server.address import forget_address, remember_address
from quire.workspace.settings import Settings

Capture = pytest.CaptureFixture[str]
HELLO = "# Hello\n\n## STEP 1: Greet\n\nSay hello to Ann.\n"


@pytest.fixture
def run(workspace: Path, capsys: Capture) -> str:
    (workspace / "hello.playbook.md").write_text(HELLO)
    (workspace / "s.json").write_text('["Hello <b>Ann</b>."]')
    assert main(["run", "hello.playbook.md", "--model", "script:s.json", "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return str(result["run"])


def settings(workspace: Path) -> Settings:
    from quire.runs.runtime import Runtime

    return Runtime.open(workspace).settings


def test_a_link_is_printed_once_listed_and_revoked(workspace: Path, run: str, capsys: Capture) -> None:
    assert main(["runs", "share", run]) == 2
    assert "no server of this workspace runs" in capsys.readouterr().err
    own = settings(workspace)
    assert Shares(own).all() == []
    remember_address(own, "http://quire.example.org/q/", "secret-token")
    try:
        assert main(["runs", "share", "last", "--days", "3"]) == 0
    finally:
        forget_address(own)
    out, err = capsys.readouterr()
    start = f"http://quire.example.org/q/s/{run}#{PREFIX}"
    assert out.startswith(start) and "secret-token" not in out and "only this machine" not in err
    token = out.strip().partition("#")[2]
    assert Shares(own).opens(token, run) and not Shares(own).opens(token, "other")
    assert main(["runs", "share", run, "--list", "--json"]) == 0
    (share,) = json.loads(capsys.readouterr().out)
    assert share["by"] == "terminal" and share["expires_at"] - share["created_at"] == 3 * 86_400
    assert main(["runs", "share", "--revoke", share["id"]]) == 0
    assert not Shares(own).opens(token, run)
    assert main(["runs", "share", "--revoke", share["id"]]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["share"], ["share", "last", "--days", "91"], ["share", "last", "--days", "0"]])
def test_what_is_missing_or_too_long(run: str, arguments: list[str]) -> None:
    assert main(["runs", *arguments]) == 2


def test_a_file_for_people(workspace: Path, run: str, capsys: Capture) -> None:
    assert main(["runs", "export", run, "--html", "r.html"]) == 0
    text = (workspace / "r.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "Hello &lt;b&gt;Ann" in text and "Say hello to Ann" not in text
    assert os.fspath(workspace) not in text
    assert main(["runs", "export", run, "--html", "r.html"]) == 2
    assert "r.html exists" in capsys.readouterr().err
    assert main(["runs", "export", run, "--html", "r.html", "--force", "--full"]) == 0
    assert main(["runs", "export", run, "--html", "a.html", "-o", "b.jsonl"]) == 2
    capsys.readouterr()
    assert main(["runs", "export", run, "--html", "nowhere/a.html"]) == 2
    assert "nowhere/a.html cannot be written: No such file or directory" in capsys.readouterr().err
