"""Which files count as documents in an editor, which opens every Markdown and YAML file of a folder."""

from __future__ import annotations

import pytest
from tests.lsp.editor import Editor

STEP = "# Note\n\n## STEP 1: Say\n\nSay {{name}}.\n"
PIPELINE = "pipeline: a\nsteps:\n  - transform: {value: ctx.x}\n"
DIRECTIVE = '# D\n\n```xml\n<directive name="d" version="1.0.0">\n</directive>\n```\n'
COMPOSE = "services:\n  web:\n    image: x\n"
WHOLE = ("documentSymbol", "foldingRange", "documentLink", "codeLens", "formatting", "semanticTokens/full")


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("README.md", "# A project\n\nSay {{name}} and @output(x).\n", ""),
        ("README.md", "# A project\n\n```markdown\n## STEP 1: Say\n```\n", ""),
        ("prompts/tone.md", "Be {{tone}}.\n", ""),
        ("docker-compose.yaml", COMPOSE, ""),
        (".github/workflows/ci.yml", "on: push\njobs: {}\n", ""),
        ("values.yaml", "pipelines:\n  a: 1\nschema: x\n", ""),
        ("LICENSE", "# Licence\n", ""),
        ("a.test.snap.yaml", "a: 1\n", ""),
        ("note.md", STEP, "playbook"),
        ("Untitled-1", STEP, "playbook"),
        ("note.playbook.md", "", "playbook"),
        ("d.md", DIRECTIVE, "directive"),
        (".ai/directives/d.md", "half", "directive"),
        (".ai/knowledge/k.md", "half", "knowledge"),
        ("a.yaml", PIPELINE, "pipeline"),
        ("a.yml", '"pipeline": a\n', "pipeline"),
        ("types.yaml", "schema: Draft\nfields:\n  done: {type: bool}\n", "pipeline"),
        ("pipelines/a.yaml", "", "pipeline"),
        ("a.test.yaml", "half", "test"),
        ("quire.toml", "", "settings"),
    ],
)
def test_the_text_decides_where_the_name_does_not(editor: Editor, name: str, text: str, format: str) -> None:
    place = editor.open(name, text)
    view = editor.session.desk.view(editor.uri(name))
    assert view is not None and view.format == format
    if not format:
        assert editor.findings(name) == []
        assert editor.ask("textDocument/hover", place) is None
        assert editor.ask("textDocument/completion", place) in (None, {"isIncomplete": False, "items": []})
        for method in WHOLE:
            assert not editor.ask(f"textDocument/{method}", {"textDocument": place["textDocument"], "options": {}})


@pytest.mark.parametrize(
    ("name", "document", "other"),
    [("notes.md", STEP, "# Notes\n\nPlain notes.\n"), ("values.yaml", PIPELINE, COMPOSE)],
)
def test_a_document_that_is_saved_as_something_else_has_no_findings(
    editor: Editor, name: str, document: str, other: str
) -> None:
    path = editor.write(name, document)
    editor.open(name, document)
    editor.pause()
    editor.replace(name, other)
    assert editor.codes(name) != [], "it stays a document while it is typed"
    path.write_text(other)
    editor.tell("textDocument/didSave", {"textDocument": {"uri": editor.uri(name)}})
    assert editor.codes(name) == []
    editor.replace(name, document)
    view = editor.session.desk.view(editor.uri(name))
    assert view is not None and view.format in ("playbook", "pipeline")


def test_a_file_that_becomes_a_document_is_checked(editor: Editor) -> None:
    editor.open("note.md", "# Note\n\nText.\n")
    assert editor.codes("note.md") == []
    editor.replace("note.md", STEP)
    assert editor.codes("note.md") == ["PB201"]


@pytest.mark.parametrize(
    ("name", "before", "half"), [("note.md", STEP, "# Note\n\n## ST"), ("a.yaml", PIPELINE, "pip")]
)
def test_a_document_stays_one_while_it_is_typed_anew(editor: Editor, name: str, before: str, half: str) -> None:
    editor.open(name, before)
    editor.replace(name, half)
    assert editor.codes(name)
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri(name)}})
    editor.open(name, half)
    assert editor.codes(name) == []


def test_a_document_can_change_its_format(editor: Editor) -> None:
    editor.open("note.md", STEP)
    editor.replace("note.md", DIRECTIVE)
    assert {code[:2] for code in editor.codes("note.md")} == {"DR"}
    editor.replace("note.md", STEP)
    assert editor.codes("note.md") == ["PB201"]
