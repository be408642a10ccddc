"""`quire list`: the documents here, the user's own, and those built in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Said, json_of
from tests.given import given

from quire.cli import main

PLAYBOOK = (
    "# %s\n\n## INPUTS\n\n- `topic` (string): x\n- `tone` (string: dry): y\n\n## STEP 1: A\n\nSay {{topic}} {{tone}}.\n"
)
PIPELINE = "pipeline: %s\ndescription: Adds up.\nsteps:\n- transform: {value: ctx.n}\n"


def listed(said: Said, *words: str) -> dict[str, dict[str, Any]]:
    said()
    return {one["name"]: one for one in json_of(said, "list", *words)}


def test_the_columns(workspace: Path, tmp_path: Path, said: Said) -> None:
    given({"playbooks/team/notes.playbook.md": PLAYBOOK % "Notes"}, workspace)
    given({"pipelines/sum.yaml": PIPELINE % "sum"}, workspace)
    given({"docs/loose.md": PLAYBOOK % "Loose"}, workspace)
    given({"README.md": "# Not a document\n"}, workspace)
    given({"playbooks/mine.playbook.md": PLAYBOOK % "Mine"}, tmp_path / "home")
    assert main(["list"]) == 0
    out, err = said()
    lines = [line.split("  ") for line in out.splitlines()]
    assert [[cell.strip() for cell in line if cell.strip()] for line in lines[:5]] == [
        ["FORMAT", "NAME", "TITLE", "INPUTS", "FINDINGS", "WHERE"],
        ["playbook", "docs/loose.md", "Loose", "topic, [tone]", "here"],
        ["pipeline", "sum", "sum", "n", "here"],
        ["playbook", "team/notes", "Notes", "topic, [tone]", "here"],
        ["playbook", "mine", "Mine", "topic, [tone]", "yours"],
    ]
    assert all(line.endswith("built in") for line in out.splitlines()[5:])
    assert err == "7 documents\n"


def test_every_name_can_be_run(workspace: Path, tmp_path: Path, said: Said) -> None:
    given({"pipelines/sum.yaml": PIPELINE % "sum"}, workspace)
    given({"pipelines/two.yaml": f"{PIPELINE % 'a'}---\n{PIPELINE % 'b'}"}, workspace)
    given({"loose.yaml": PIPELINE % "loose"}, workspace)
    given({"pipelines/sum.yaml": PIPELINE % "sum"}, tmp_path / "home")
    names = [name for name, one in listed(said).items() if one["space"] != "system"]
    assert names == ["loose.yaml", "project:sum", "two.a", "two.b", "user:sum"]
    for name in names:
        assert main(["run", name, "-i", "n=1", "-q"]) == 0


def test_broken_documents_are_listed_with_their_errors(workspace: Path, tmp_path: Path, said: Said) -> None:
    given({"bad.playbook.md": "# Bad\n\n## INPUTS\n\n- nonsense\n", "pipelines/bad.yaml": "pipeline: ["}, workspace)
    (workspace / "binary.playbook.md").write_bytes(b"\xff\xfe\x00")
    secret = given({"secret.txt": PLAYBOOK % "Secret"}, tmp_path) / "secret.txt"
    (workspace / "link.playbook.md").symlink_to(secret)
    (workspace / "circle.playbook.md").symlink_to(workspace / "circle.playbook.md")
    found = {name: one for name, one in listed(said).items() if one["space"] == "project"}
    assert sorted(found) == ["bad", "binary", "circle.playbook.md", "link.playbook.md", "pipelines/bad.yaml"]
    assert all(one["errors"] for one in found.values())
    assert found["bad"]["format"] == "playbook"
    assert found["link.playbook.md"]["error"] == "is a link that leads out of the workspace: it is not read"
    assert "Secret" not in json.dumps(found)
    assert main(["list"]) == 0
    out, err = said()
    assert "unreadable" in out
    assert err.endswith(", 5 with errors: quire check\n")


def test_words_filter(workspace: Path, said: Said) -> None:
    given({"notes.playbook.md": PLAYBOOK % "Minutes of a meeting", "pipelines/sum.yaml": PIPELINE % "sum"}, workspace)
    assert list(listed(said, "MEETING", "minutes")) == ["notes"]
    assert list(listed(said, "meeting minutes")) == ["notes"]
    assert list(listed(said, "adds up")) == ["sum"]
    said()
    assert main(["list", "nowhere"]) == 0
    assert said() == ("", "no document with these words\n")


def test_programs_get_inputs_with_their_types(workspace: Path, said: Said) -> None:
    given({"notes.playbook.md": PLAYBOOK % "Notes"}, workspace)
    found = listed(said, "notes")["notes"]
    assert found["inputs"] == [
        {"name": "topic", "required": True, "schema": {"type": "string", "description": "x"}},
        {"name": "tone", "required": False, "schema": {"type": "string", "description": "y", "default": "dry"}},
    ]
    assert found["path"] == str(workspace / "notes.playbook.md")
    assert (found["errors"], found["warnings"], found["error"]) == (0, 0, None)


def test_nothing_is_imported_even_if_the_user_agreed(workspace: Path, said: Said) -> None:
    given({"quire.toml": '[tools]\nmodules = ["evil"]\n'}, workspace)
    given({"evil.py": "from pathlib import Path\nPath('imported').touch()\n"}, workspace)
    given({"p.playbook.md": '# P\n\n## STEP 1: A\n\n@tool(python, evil, {"a": 1})\n'}, workspace)
    given({"q.yaml": "pipeline: q\nsteps:\n- tool: {name: evil, args: {}}\n"}, workspace)
    assert main(["trust", "workspace", "--yes"]) == 0
    (workspace / "imported").unlink(missing_ok=True)
    assert set(listed(said)) >= {"p", "q.yaml"}
    assert not (workspace / "imported").exists()
    # `check` does import what the user agreed to.
    assert main(["check", "p.playbook.md"]) == 0
    assert (workspace / "imported").exists()


def test_hostile_names_and_titles_are_harmless(workspace: Path, said: Said) -> None:
    given({"\x1b[31mred.playbook.md": PLAYBOOK % "Evil \x1b]0;title\x07"}, workspace)
    assert main(["list"]) == 0
    out, _ = said()
    assert "\x1b" not in out and "\x07" not in out
    assert "Evil" in out


@pytest.mark.parametrize("settings", ["[", "[nonsense]\n"])
def test_broken_settings_are_one_line(workspace: Path, said: Said, settings: str) -> None:
    given({"quire.toml": settings}, workspace)
    assert main(["list"]) == 2
    out, err = said()
    assert out == ""
    assert "Traceback" not in err


def test_a_folder_of_directives_that_leads_out_is_not_read(workspace: Path, tmp_path: Path, said: Said) -> None:
    given({"x.md": "# x\n"}, tmp_path / "outside")
    (workspace / ".ai").mkdir()
    (workspace / ".ai" / "directives").symlink_to(tmp_path / "outside")
    assert not any("outside" in one["path"] for one in listed(said).values())
