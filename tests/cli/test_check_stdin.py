"""`quire check -`: the document on standard input, with the name and so the place that --stdin-name gives it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.given import given

from quire.cli import main
from quire.source import MAX_DOCUMENT_BYTES, OPEN_TEXTS

PLAYBOOK = "# T\n\n## STEP 1: A\n\nSay hello.\n"
PIPELINE = "pipeline: p\nsteps: [{agent: {prompt: Say hello}}]\n"
TEST = "document: a.playbook.md\ncases: [{name: one, model: {'1': hi}, expect: {output: hi}}]\n"
DIRECTIVE = '# T\n\n```xml\n<directive name="t" version="1.0.0"><permissions/></directive>\n```\n'
MISSPELT = "# T\n\n## STEP 1: A\n\nSay hello.\n\n@ouptut(x)\n"
FIXED = MISSPELT.replace("ouptut", "output")

Check = Callable[..., tuple[int, str, str]]


@pytest.fixture
def check(workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    def run(text: str | bytes, *options: str) -> tuple[int, str, str]:
        data = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        status = main(["check", "-", *options])
        assert OPEN_TEXTS == {}
        return (status, *capsys.readouterr())

    return run


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (PLAYBOOK, "stdin.md"),
        (PLAYBOOK + "\n```yaml\npipeline: x\n```\n", "stdin.md"),
        (PIPELINE, "stdin.yaml"),
        ("# A comment\n" + PIPELINE, "stdin.yaml"),
        (TEST, "stdin.test.yaml"),
        (DIRECTIVE, "stdin.md"),
        ("hello\n", "stdin.md"),
    ],
)
def test_the_text_decides_on_the_format(text: str, name: str, check: Check) -> None:
    status, out, _ = check(f"{text}\u200b\n", "--json")
    assert {finding["file"] for finding in json.loads(out)} == {name}, "an invisible character is found in every format"
    assert status in (0, 1)


def test_the_name_gives_the_place(check: Check, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given({"sub/a.playbook.md": PLAYBOOK, "sub/a.test.yaml": f"{TEST}\u200b\n"}, workspace)
    assert main(["check", "sub/a.test.yaml", "--json"]) == 1
    out = capsys.readouterr().out
    assert check(f"{TEST}\u200b\n", "--stdin-name", "sub/a.test.yaml", "--json")[:2] == (1, out)
    assert check(TEST, "--stdin-name", "sub/a.test.yaml")[0] == 0
    assert "a.playbook.md" in check(TEST)[1], "its document is not in the current folder"


def test_the_text_counts_and_not_the_file_of_its_name(check: Check, workspace: Path) -> None:
    given({"a.playbook.md": MISSPELT}, workspace)
    assert check(PLAYBOOK, "--stdin-name", "a.playbook.md")[0] == 0
    assert "PB" in check(MISSPELT.replace("STEP", "Step"), "--stdin-name", "b.playbook.md")[1]
    assert sorted(path.name for path in workspace.iterdir()) == ["a.playbook.md", "quire.toml"]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_fix_prints_the_mended_text(ending: str, check: Check) -> None:
    status, out, err = check(MISSPELT.replace("\n", ending).encode(), "--fix")
    assert (status, out) == (0, FIXED.replace("\n", ending))
    assert err == "stdin.md:7: @ouptut( → @output(\nnothing found in 1 file\n"
    assert check(PLAYBOOK, "--fix")[1] == PLAYBOOK
    status, out, err = check("# T\n\n## STEP 1: A\n\nx\n\n@elicit(confirm\n", "--fix")
    assert status == 1 and out.startswith("# T\n") and "PB106" in err


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (PLAYBOOK, ["--stdin-name", "../x.md"], "--stdin-name ../x.md: give the path of a file below this folder"),
        (PLAYBOOK, ["--stdin-name", "a/../../x.md"], "give the path of a file below this folder"),
        (PLAYBOOK, ["--stdin-name", "/etc/x.md"], "give the path of a file below this folder"),
        (PLAYBOOK, ["--stdin-name", ""], "give the path of a file below this folder"),
        (PLAYBOOK, ["--stdin-name", "."], "give the path of a file below this folder"),
        (PLAYBOOK, ["a.md"], "- is checked alone"),
        (b"\xff", [], "stdin.md is not UTF-8: byte 1 is 0xff"),
        (b"# T\0", [], "stdin.md is a binary file, not text"),
        (PLAYBOOK, ["--stdin-name", "x.png"], "x.png is not a document that Quire knows"),
        (PLAYBOOK, ["--stdin-name", "a.test.snap.yaml"], "belongs to a test"),
        (b"", ["--stdin-name", "x.yaml"], "x.yaml is empty"),
        (PIPELINE + "#" * MAX_DOCUMENT_BYTES, [], "stdin.yaml is larger than 200,000 bytes"),
    ],
)
def test_what_cannot_be_checked_is_one_line_and_exit_2(
    text: str | bytes, options: list[str], says: str, check: Check
) -> None:
    status, out, err = check(text, *options)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_the_name_alone_is_a_mistake(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--stdin-name", "x.md"]) == 2
    assert "--stdin-name is for -" in capsys.readouterr().err
