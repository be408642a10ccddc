"""A hostile test file, and a hostile folder around it: nothing is started, sent, imported, or written outside."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.testing.bench import run, summary, told

PLAYBOOK = """
# Reaches out

## INPUTS

- `url` (string): The address

## STEP 1: Fetch

@tool(quire, http__get, {"url": "{{url}}"})

## STEP 2: A server

@tool(shop, search, {"q": "x"})

## STEP 3: A command

@tool(quire, shell, {"command": ["touch", "PLANTED"]})
"""


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that would start a server, import a module and run a command, and a process that may do nothing."""
    marks = tmp_path / "marks"
    marks.mkdir()
    touch = f"import pathlib; pathlib.Path({str(marks / 'started')!r}).touch()"
    config = {"mcpServers": {"shop": {"command": sys.executable, "args": ["-c", touch]}}}
    (tmp_path / ".mcp.json").write_text(json.dumps(config))
    (tmp_path / "planted.py").write_text(f"import pathlib\npathlib.Path({str(marks / 'imported')!r}).touch()\n")
    (tmp_path / "files.playbook.md").write_text(PLAYBOOK.lstrip("\n"))

    def refuse(*_: object, **__: object) -> None:
        (marks / "refused").touch()
        raise AssertionError("a test of a document started a process or opened a socket")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(os, "posix_spawn", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return tmp_path


PAGE = '{status: 200, url: "https://example.com/", headers: {}, text: page}'
TOML = '[tools]\nmodules = ["planted"]\nallow = ["shell", "http__get"]\n'


def play(folder: Path, test: str) -> list[str]:
    found = run(
        folder,
        "files",
        test.replace("PAGE", PAGE),
        files={"files.playbook.md": PLAYBOOK.lstrip("\n"), "quire.toml": TOML},
    )
    assert [one.finding.message for one in found.problems] == []
    assert list((folder / "marks").iterdir()) == []
    return [line for case in found.cases for line in told(case)]


def test_tools_that_reach_outside_need_a_script(trap: Path) -> None:
    test = """
    defaults: {inputs: {url: "http://127.0.0.1:1/"}, allow: [shell, http__get]}
    cases:
      - {name: nothing is scripted, expect: {output: x}}
      - {name: real, tools: {http__get: real}, expect: {output: x}}
      - {name: the server, tools: {http__get: {returns: PAGE}}, expect: {output: x}}
      - name: the command
        tools: {http__get: {returns: PAGE}, shop/search: {returns: x}, shell: real}
        expect: {output: x}
    """
    assert play(trap, test) == [
        "TS106 rye/web/fetch was called, and it has no script",
        "TS106 rye/web/fetch was called, and `real` is for tools that stay in the folder of the case",
        "TS106 mcp/shop/search was called, and it has no script",
        "TS106 rye/bash was called, and commands run for real only with --allow shell on the command line",
    ]
    assert not (trap / "PLANTED").exists()


def test_all_of_them_can_be_scripted(trap: Path) -> None:
    test = """
    cases:
      - name: scripted
        inputs: {url: "https://example.com/"}
        allow: [shell, http__get]
        tools: {http__get: {returns: PAGE}, shop/search: {echo: true}, shell: {returns: done}}
        expect: {calls: {http__get: [{url: "https://example.com/"}], shop/search: 1, shell: 1}}
    """
    assert play(trap, test) == []


@pytest.mark.parametrize(
    "part",
    [
        "files: {../escaped.txt: x}",
        "files: {/tmp/escaped.txt: x}",
        "files: {a.txt: {file: ../../secret}}",
        "each: ../rows.csv",
        "cassette: ../other.cassette.yaml",
        "then: [{edit: {../escaped.txt: x}}]",
    ],
)
def test_paths_that_leave_the_folder_are_findings(tmp_path: Path, part: str) -> None:
    from quire.formats.test.parse import parse
    from quire.source import Source

    found = parse(Source.of(f"cases:\n  - name: it\n    {part}\n    expect: {{output: x}}\n", "x.test.yaml"))
    assert [one.code.id for one in found.diagnostics if one.code.id in ("TS012", "TS001")], found.diagnostics


def test_links_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "outside")
    test = """
    cases:
      - {name: it, inputs: {name: a.txt}, files: {a.txt: {file: link}}, model: {"2": x}, expect: {output: x}}
    """
    found = run(inside, "files", test)
    assert "secret" not in repr(found)
    assert summary(found)[0][2] == ["TS108"]


def test_the_environment_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-of-the-user")
    test = """
    cases:
      - name: it
        inputs: {name: a.txt}
        files: {a.txt: "the text"}
        model: {"2": "sorted"}
        expect: {prompts: {"2": {contains: the text}}}
    """
    found = run(tmp_path, "files", test)
    assert (summary(found), "sk-secret" in repr(found)) == ([("it", "passed", [])], False)


def test_a_case_that_never_ends_is_stopped(tmp_path: Path) -> None:
    documents = {
        "loop.yaml": """
dialect: quire
pipeline: loop
steps:
  - repeat:
      max: 1000
      until: "false"
      do: {agent: {prompt: again}}
""".lstrip("\n"),
        "loop.test.yaml": "",
    }
    test = """
    document: loop.yaml
    cases:
      - {name: it, model: [{default: again}], expect: {status: failed, used: {model_calls: {most: 1000}}}}
    """
    assert summary(run(tmp_path, "files", test, files=documents)) == [("it", "passed", [])]
