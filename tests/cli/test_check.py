"""`quire check`, through the front door."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.given import given

from quire.cli import main

GOOD = "# T\n\n## STEP 1: A\n\nx\n"
LINT = "# T\n\n## STEP 1: A\n\n{{x}}\n"
WARNING = "# T\n\n## STEP 2: A\n\nx\n"
BAD = "## STEP 1: A\n\nx\n"


@pytest.mark.parametrize(
    ("text", "arguments", "status", "summary"),
    [
        (GOOD, [], 0, "nothing found in 1 file"),
        (LINT, [], 0, "1 lint in 1 file"),
        (LINT, ["--strict"], 1, "1 lint in 1 file"),
        (WARNING, [], 0, "1 warning in 1 file"),
        (WARNING, ["--strict"], 1, "1 warning in 1 file"),
        (BAD, [], 1, "1 error in 1 file"),
        ("x\n# T\n## STEP 1: A\nx", ["--strict"], 0, "1 note in 1 file"),
    ],
)
def test_status_and_summary(
    here: Path, capsys: pytest.CaptureFixture[str], text: str, arguments: list[str], status: int, summary: str
) -> None:
    given({"a.md": text}, here)
    assert main(["check", "a.md", *arguments]) == status
    out, err = capsys.readouterr()
    assert err == f"{summary}\n"
    assert "\x1b" not in out


def test_findings_are_data_and_the_rest_is_talk(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given({"a.md": BAD, "b.md": LINT}, here)
    assert main(["check", "--format", "concise", "b.md", "a.md", "gone.md"]) == 2
    out, err = capsys.readouterr()
    assert out.split("\n") == [
        "b.md:5:1: PB201 lint: Nothing sets {{x}}",
        "a.md:1:1: PB003 error: No title found: document must contain a level-1 heading (# Title)",
        "",
    ]
    assert err.split("\n") == ["quire: gone.md does not exist", "1 error, 1 lint in 2 files", ""]


def test_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given({"a.md": LINT}, here)
    assert main(["check", "--json", "a.md"]) == 0
    assert [found["code"] for found in json.loads(capsys.readouterr().out)] == ["PB201"]


TREE = {
    "z.playbook.md": GOOD,
    "a.md": GOOD,
    "readme.md": "# Readme\n\nnothing\n",
    "about.md": "# About\n\n```\n## STEP 1: x\n```\n",
    "deep/er/b.md": GOOD,
    "deep/c.txt": GOOD,
    ".hidden/d.playbook.md": GOOD,
    ".venv/e.playbook.md": GOOD,
    "node_modules/f.playbook.md": GOOD,
    ".ai/config/g.yaml": "pipeline: x\n",
    ".ai/directives/demo/h.md": "# H\n",
    ".ai/knowledge/i.yaml": "name: i\n",
    ".ai/knowledge/j.txt": "j\n",
}


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        (["."], 5),
        ([".ai"], 2),
        ([".ai/directives"], 1),
        (["deep"], 1),
        (["deep", "./deep/er/b.md", "deep"], 1),
        (["**/*.md"], 5),
        (["*.playbook.md"], 1),
        (["deep/e*/?.md"], 1),
    ],
)
def test_folders_and_globs(here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], files: int) -> None:
    given(TREE, here)
    (here / "deep" / "loop").symlink_to(here, target_is_directory=True)
    main(["check", *arguments])
    assert f" in {files} file" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["."], ["a.yaml", "b.yaml"], ["--fix"]])
def test_settings_that_cannot_be_read_are_told_once(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """A search skips files that only look like documents, but these are: without a word a check of all would pass."""
    pipeline = "pipeline: p\nsteps:\n  - transform: {value: '1'}\n"
    given({"a.yaml": pipeline, "b.yaml": pipeline, "quire.toml": "[runs"}, here)
    assert main(["check", *arguments]) == 2
    assert capsys.readouterr().err.count("quire.toml: is not TOML") == 1
    assert main(["show", "a.yaml"]) == 0
    assert capsys.readouterr().err.count("quire.toml: is not TOML") == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nope/*.md"], "quire: nope/*.md matches nothing"),
        (["empty"], "quire: empty holds no documents"),
        (["c.txt"], "quire: c.txt is not a document that Quire knows: playbooks end in .md"),
        (["latin.md"], "quire: latin.md is not UTF-8: byte 1 is 0xe4"),
        (["fifo.md"], "quire: fifo.md is not a regular file"),
        (["x" * 300 + ".md"], f"quire: {'x' * 300}.md cannot be read: File name too long"),
    ],
)
def test_what_cannot_be_read(here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str) -> None:
    given({"c.txt": GOOD}, here)
    (here / "empty").mkdir()
    (here / "latin.md").write_bytes(b"\xe4")
    os.mkfifo(here / "fifo.md")
    assert main(["check", *arguments]) == 2
    assert capsys.readouterr().err in (f"{line}\n", f"{line}\n1 error in 1 file\n")


def test_an_empty_playbook_and_one_that_is_too_large_are_findings(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """S13: the codes are there as data; the exit status is that of a file that cannot be read."""
    given({"empty.md": " \n", "large.md": GOOD + "x" * 200_000, "empty.yaml": ""}, here)
    assert main(["check", "--json", "empty.md", "large.md", "empty.yaml"]) == 2
    out, err = capsys.readouterr()
    assert [(one["file"], one["code"]) for one in json.loads(out)] == [("empty.md", "PB001"), ("large.md", "PB002")]
    assert "quire: empty.md is empty\nquire: large.md is larger than 200,000 bytes\n" in err
    assert main(["parse", "empty.md"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"] == [{"line": 1, "message": "Document is empty"}]


@pytest.mark.parametrize("name", ["latin.md", "latin.yaml", "latin.test.yaml"])
def test_a_file_that_is_not_utf_8_is_a_finding(here: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """seeds S13, its neighbour."""
    (here / name).write_bytes(b"caf\xe4")
    assert main(["check", "--json", name]) == 2
    assert [(one["file"], one["code"]) for one in json.loads(capsys.readouterr().out)] == [(name, "TX001")]


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "pb106"]) == 0
    assert capsys.readouterr().out.startswith("PB106 near-miss-directive (warning)\n\nA line looks like")
    assert main(["check", "--explain", "PB16"]) == 2
    assert capsys.readouterr().err.startswith("quire: unknown code PB16; did you mean PB")


def test_no_path_is_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 2
    assert capsys.readouterr().err == "quire: . holds no documents\n"


def test_a_prompt_file_that_is_not_there_is_found(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """G4: what a run refuses at its start, `check` says."""
    text = "# T\n\n## STEP 1: A\n\n@prompt(file:{})\n\nDo it.\n"
    Path("there.md").write_text("Be brief.")
    for name, codes in (("nope.md", ["PB223"]), ("there.md", []), ("{{kind}}.md", [])):
        Path("x.playbook.md").write_text(text.replace("{}", name))
        assert main(["check", "--json", "x.playbook.md"]) == 0
        found = [one["code"] for one in json.loads(capsys.readouterr().out)]
        assert [code for code in found if code == "PB223"] == codes


def test_portable_notes_what_only_quire_has_and_fails(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extended = "pipeline: p\ndialect: quire\nsteps:\n  - transform: {value: 'upper(ctx.name)'}\n"
    given({"a.yaml": extended, "b.playbook.md": "# T\n\n## STEP 1: A\n\n@context(none)\n\nx\n", "c.md": GOOD}, here)
    assert main(["check", "a.yaml", "b.playbook.md"]) == 0
    assert "PL301" not in capsys.readouterr().out
    assert main(["check", "--portable", "--format", "concise", "a.yaml"]) == 1
    assert capsys.readouterr().out == (
        "a.yaml:2:1: PL301 note: the key dialect of a document is not in the format: only Quire has it\n"
        "a.yaml:4:25: PL301 note: the function upper is not in the format: only Quire has it\n"
    )
    assert main(["check", "--portable", "b.playbook.md"]) == 1
    assert "PB307" in capsys.readouterr().out
    assert main(["check", "--portable", "c.md"]) == 0
