"""Values of the last run in hovers: shown where they are this user's own, and never a secret."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.directive_project import LEAF_FILE, write_directives
from tests.growth import within
from tests.lsp.editor import Editor

from quire.cli import main

NOTE = """\
# Note

## INPUTS

- `topic` (string): The topic.
- `api_key` (string): A key.

## STEP 1: Say

Say something about {{topic}} with {{api_key}}.

@output(said)

## STEP 2: More

More about {{said}}.
"""
PIPELINE = """\
pipeline: shout
dialect: quire
input:
  topic: {type: string}
steps:
  - transform: {value: "{text: ctx.topic, parts: [1, 2]}", output: loud}
  - transform: {value: "ctx.loud.text", output: said}
"""
FOLLOWING = PIPELINE.replace("pipeline: shout", "pipeline: whisper").replace("loud", "low")
SECRET = "s3cr3t-value-of-the-shell"


def run(editor: Editor, *arguments: str, reply: str = "Bread is good.") -> None:
    script = editor.folder / "replies.json"
    script.write_text(json.dumps([{"step": "1", "reply": reply}, {"step": "2", "reply": "more"}]))
    assert main(["run", "-q", *arguments, "--script", str(script)]) == 0


@pytest.fixture
def noted(editor: Editor) -> Editor:
    """An editor whose workspace has a playbook that was run once."""
    editor.write("a.playbook.md", NOTE)
    run(editor, "a.playbook.md", "-i", "topic=bread", "-i", "api_key=never shown")
    return editor


def hovered(editor: Editor, name: str, text: str, word: str) -> str:
    """Return the hover over the last place of a word."""
    at = text.rindex(word)
    editor.open(name, text)
    place = editor.place(name, at + 1)
    found = editor.ask("textDocument/hover", place)
    return str(found["contents"]["value"]) if found else ""


def last(editor: Editor, word: str, text: str = NOTE) -> str:
    return hovered(editor, "a.playbook.md", text, word).partition("Last value: ")[2]


def test_a_hover_shows_the_value_of_the_last_run_with_its_age(noted: Editor) -> None:
    assert last(noted, "said}}").startswith("`Bread is good.`, in run `")
    assert last(noted, "topic}}").startswith("`bread`, in run `")
    assert last(noted, "topic}}").endswith("s ago.")
    assert last(noted, "said}}", NOTE + "\nMore.\n").endswith(" ago, before the last change of the text.")


def test_a_new_run_is_seen(noted: Editor) -> None:
    assert last(noted, "said}}").startswith("`Bread is good.`")
    run(noted, "a.playbook.md", "-i", "topic=x", "-i", "api_key=y", reply="Cake!")
    last(noted, "said}}")
    assert last(noted, "said}}").startswith("`Cake!`")


def test_the_value_of_a_store_and_of_a_field_of_a_pipeline(editor: Editor) -> None:
    editor.write("p.yaml", PIPELINE)
    run(editor, "p.yaml", "-i", "topic=bread")
    for word, value in (("ctx.loud.text", '"text":"bread"'), ('text"', "`bread`"), ("said", "`bread`")):
        at = PIPELINE.rindex(word) + (word.startswith("ctx") and len("ctx.l"))
        editor.open("p.yaml", PIPELINE)
        found = editor.ask("textDocument/hover", editor.place("p.yaml", at + 1))
        assert value in found["contents"]["value"].partition("Last value: ")[2].replace(": ", ":"), word


def test_each_pipeline_of_a_file_has_its_own_run(editor: Editor) -> None:
    both = f"{PIPELINE}---\n{FOLLOWING}"
    editor.write("pipelines/p.yaml", both)
    run(editor, "p.whisper", "-i", "topic=wind")
    assert "`wind`" in hovered(editor, "pipelines/p.yaml", both, "said")
    assert "Last value" not in hovered(editor, "pipelines/p.yaml", both, "loud.text")


def test_the_inputs_and_outputs_of_a_directive(editor: Editor) -> None:
    write_directives(editor.folder)
    assert main(["run", "deploy_staging", "-i", "target=eu", "-q", "--script", "replies.json"]) == 0
    text = (editor.folder / LEAF_FILE).read_text()
    assert "Last value: `eu`" in hovered(editor, LEAF_FILE, text, "target}, ")
    assert "Last value: `report.txt`" in hovered(editor, LEAF_FILE, text, 'path" required')


def test_a_document_that_never_ran_shows_none(noted: Editor) -> None:
    other = hovered(noted, "b.playbook.md", NOTE, "said}}")
    assert "kept result" in other and "Last value" not in other
    noted.write("sub/a.playbook.md", NOTE)
    assert "Last value" not in hovered(noted, "sub/a.playbook.md", NOTE, "said}}")


def test_secrets_are_never_shown(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of a value, by the value of a variable, and by the look of a key."""
    editor.write("a.playbook.md", NOTE)
    told = f"Use {SECRET} or sk-abcdefgh12345678 or https://me:pass@example.org/."
    run(editor, "a.playbook.md", "-i", "topic=bread", "-i", "api_key=never shown", reply=told)
    monkeypatch.setenv("DEPLOY_TOKEN", SECRET)
    said = last(editor, "said}}")
    assert "Use " in said and "[redacted:DEPLOY_TOKEN]" in said
    assert all(part not in said for part in (SECRET, "abcdefgh", "me:pass"))
    assert last(editor, "api_key}}").startswith("`[hidden: its name sounds like a secret]`")


def test_a_long_value_is_cut_and_cannot_leave_its_line(editor: Editor) -> None:
    editor.write("a.playbook.md", NOTE)
    run(
        editor,
        "a.playbook.md",
        "-i",
        "topic=x",
        "-i",
        "api_key=y",
        reply="`a`\n\n# [b](command:x)\x1b[31m " + "c" * 9_000,
    )
    said = last(editor, "said}}")
    assert said.startswith("`` `a` # [b](command:x)␛[31m ccc") and "\n" not in said
    assert len(said) < 400


def test_an_untrusted_workspace_shows_none(noted: Editor) -> None:
    assert last(noted, "said}}")
    server = {"mcpServers": {"x": {"command": "python", "args": ["x.py"]}}}
    (noted.folder / ".mcp.json").write_text(json.dumps(server))
    last(noted, "said}}")
    assert last(noted, "said}}") == ""
    assert main(["trust", "workspace", "--yes"]) == 0
    last(noted, "said}}")
    assert last(noted, "said}}").startswith("`Bread is good.`")


def _of_others(folder: Path) -> None:
    """Make the run one of another user: the key of this user is another one."""
    (folder.parent / "home" / "keys" / "seal.key").write_text("another key of another user, 32 letters\n")


def _without_key(folder: Path) -> None:
    (folder.parent / "home" / "keys" / "seal.key").unlink()


def _changed(folder: Path) -> None:
    with sqlite3.connect(folder / ".quire" / "quire.db") as database:
        database.execute("UPDATE journal SET value = replace(value, 'Bread', 'Trust me')")


def _newer(folder: Path) -> None:
    with sqlite3.connect(folder / ".quire" / "quire.db") as database:
        database.execute("PRAGMA user_version = 99")


def _older(folder: Path) -> None:
    with sqlite3.connect(folder / ".quire" / "quire.db") as database:
        database.execute("PRAGMA user_version = 5")
        database.execute("DROP TABLE http_replies")
        for column in ("subject", "name", "note", "seen_at", "until"):
            database.execute(f"ALTER TABLE runs DROP COLUMN {column}")


def _program(folder: Path) -> None:
    with sqlite3.connect(folder / ".quire" / "quire.db") as database:
        database.execute("CREATE TRIGGER x AFTER INSERT ON runs BEGIN DELETE FROM runs; END")


def _garbage(folder: Path) -> None:
    (folder / ".quire" / "quire.db").write_bytes(b"SQLite format 3\x00" + b"x" * 5_000)


def _gone(folder: Path) -> None:
    (folder / ".quire" / "quire.db").unlink()


def _linked_folder(folder: Path) -> None:
    (folder / ".quire").rename(folder.parent / "elsewhere")
    (folder / ".quire").symlink_to(folder.parent / "elsewhere")


def _linked_file(folder: Path) -> None:
    (folder / ".quire" / "quire.db").rename(folder.parent / "elsewhere.db")
    (folder / ".quire" / "quire.db").symlink_to(folder.parent / "elsewhere.db")


def _pipe(folder: Path) -> None:
    (folder / ".quire" / "quire.db").unlink()
    os.mkfifo(folder / ".quire" / "quire.db")


def _of_another_account(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(folder / ".quire", 12345, 12345)


@pytest.mark.parametrize(
    "harm",
    [
        *(_of_others, _without_key, _changed, _newer, _older, _program, _garbage, _gone),
        *(_linked_folder, _linked_file, _pipe, _of_another_account),
    ],
)
def test_a_store_that_is_not_this_users_own_gives_no_value_and_no_error(
    noted: Editor, harm: Callable[[Path], None]
) -> None:
    harm(noted.folder)
    last(noted, "said}}")
    assert "kept result" in hovered(noted, "a.playbook.md", NOTE, "said}}")
    assert last(noted, "said}}") == ""
    assert [one for one in noted.messages if one["method"] == "window/logMessage"] == []


def test_a_store_behind_a_network_is_not_asked(noted: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("a store was opened")

    (noted.folder.parent / "home" / "quire.toml").write_text('[store]\nurl = "postgresql://me@localhost:1/x"\n')
    monkeypatch.setattr("quire.runs.last_values.open_store", refuse)
    assert last(noted, "said}}") == ""


def test_a_store_that_is_being_written_is_read_without_waiting(noted: Editor) -> None:
    writer = sqlite3.connect(noted.folder / ".quire" / "quire.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE runs SET title = 'x'")
    try:
        last(noted, "said}}")
        assert last(noted, "said}}").startswith("`Bread is good.`")
    finally:
        writer.execute("ROLLBACK")
        writer.close()


@pytest.mark.parametrize("log", [False, True])
def test_reading_leaves_no_trace(noted: Editor, log: bool) -> None:
    store = noted.folder / ".quire"
    if log:  # as a process leaves them that was killed
        writer = sqlite3.connect(store / "quire.db", isolation_level=None)
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("UPDATE runs SET cancel_requested = 0")
        shutil.copytree(store, noted.folder.parent / "copy")
        writer.close()
        shutil.rmtree(store)
        (noted.folder.parent / "copy").rename(store)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in noted.folder.parent.rglob("*")}
    last(noted, "said}}")
    assert last(noted, "said}}").startswith("`Bread is good.`")
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in noted.folder.parent.rglob("*")} == before


def test_a_hover_never_waits_for_runs(noted: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request itself reads nothing: only the job does."""
    noted.open("a.playbook.md", NOTE)

    def refuse(*arguments: object) -> None:
        raise AssertionError("a hover has read runs")

    monkeypatch.setattr("quire.lsp.last_runs._read_runs", refuse)
    place = noted.place("a.playbook.md", NOTE.rindex("said}}") + 1)
    request = noted.begin("textDocument/hover", place)
    with within(0.1):
        noted.session.work()
    assert noted.answer(request)["result"]["contents"]["value"].count("Last value") == 1
