"""A pipeline and the documents of all formats that call it by its name: renames, references and the call hierarchy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import Editor

PIPELINE = 'pipeline: {}\nsteps:\n  - transform: {{value: "ctx.doc"}}\n'
TEST = "document: {}\ncases:\n  - name: gives it\n    inputs: {{doc: x}}\n    expect: {{output: x}}\n"
PLAYBOOK = '# Book\n\n## STEP 1: Call\n\n@tool(quire, {}, {{"doc": "sub"}})\n'
CALLER = "pipeline: caller\nsteps:\n  - call: {{pipeline: {}, pass: {{doc: \"'sub'\"}}}}\n"
DIRECTIVE = """\
# Ask

```xml
<directive name="ask" version="1.0.0">
  <metadata>
    <description>Runs sub</description>
    <category></category>
    <author>me</author>
    <model tier="general" />
    <permissions>
      <execute>
        <pipeline>{0}</pipeline>
      </execute>
    </permissions>
    <hooks>
      <hook id="h" event="after_step">
        <action primary="execute" item_type="pipeline" item_id="{0}"><param name="doc" value="x"/></action>
      </hook>
    </hooks>
  </metadata>
</directive>
```

<process>
<step name="one">
Run the pipeline sub: `rye_execute(item_type="pipeline", item_id="{0}", parameters={{"doc": "x"}})`
</step>
</process>
"""
CALLERS = {
    "sub.test.yaml": TEST,
    "book.playbook.md": PLAYBOOK,
    "caller.yaml": CALLER,
    ".ai/directives/ask.md": DIRECTIVE,
}
ONE = {"pipelines/sub.yaml": PIPELINE}
TWO = {"pipelines/two.yaml": f"{PIPELINE}---\n{PIPELINE.replace('{}', 'other')}"}


def write(editor: Editor, files: dict[str, str], *names: str) -> None:
    for file, text in files.items():
        editor.write(file, text.format(*names))


def place(editor: Editor, name: str, word: str, inside: int = 0) -> dict[str, Any]:
    """Open a file and return the parameters of a request at a word of it."""
    text = (editor.folder / name).read_text()
    editor.open(name, text)
    return editor.place(name, text.index(word) + inside)


@pytest.mark.parametrize(
    ("file", "word"),
    [
        ("pipelines/sub.yaml", "sub"),
        ("sub.test.yaml", "sub"),
        ("book.playbook.md", "sub, "),
        ("caller.yaml", "sub, "),
        (".ai/directives/ask.md", "sub</pipeline>"),
        (".ai/directives/ask.md", 'sub", parameters'),
    ],
)
def test_a_new_name_of_a_pipeline_reaches_all_formats(editor: Editor, file: str, word: str) -> None:
    write(editor, CALLERS | ONE, "sub")
    edit = editor.ask("textDocument/rename", {**place(editor, file, word), "newName": "under"})
    assert editor.edited(edit) == {name: text.format("under") for name, text in (CALLERS | ONE).items()}


def test_a_new_name_of_one_pipeline_of_a_file(editor: Editor) -> None:
    write(editor, CALLERS, "two.p1")
    write(editor, TWO, "p1")
    edit = editor.ask("textDocument/rename", {**place(editor, "pipelines/two.yaml", "p1"), "newName": "under"})
    after = {name: text.format("two.under") for name, text in CALLERS.items()}
    assert editor.edited(edit) == after | {name: text.format("under") for name, text in TWO.items()}


def test_the_file_of_several_pipelines_is_renamed(editor: Editor) -> None:
    write(editor, CALLERS, "two.p1")
    write(editor, TWO, "p1")
    files = [{"oldUri": editor.uri("pipelines/two.yaml"), "newUri": editor.uri("pipelines/three.yaml")}]
    edit = editor.ask("workspace/willRenameFiles", {"files": files})
    assert editor.edited(edit) == {name: text.format("three.p1") for name, text in CALLERS.items()}


def test_the_file_of_one_pipeline_is_renamed_without_its_name(editor: Editor) -> None:
    write(editor, CALLERS | ONE, "sub")
    files = [{"oldUri": editor.uri("pipelines/sub.yaml"), "newUri": editor.uri("pipelines/under.yaml")}]
    assert editor.ask("workspace/willRenameFiles", {"files": files}) is None


@pytest.mark.parametrize("file", ["book.playbook.md", "sub.test.yaml", ".ai/directives/ask.md"])
def test_a_pipeline_has_the_rules_of_pipelines_in_every_format(editor: Editor, file: str) -> None:
    write(editor, CALLERS | ONE, "sub")
    editor.write("pipelines/taken.yaml", PIPELINE.format("taken"))
    word = {".ai/directives/ask.md": "sub</pipeline>", "book.playbook.md": "sub, "}.get(file, "sub")
    params = place(editor, file, word)
    assert "cannot be a name" in editor.refused("textDocument/rename", {**params, "newName": "a b"})["message"]
    assert "already" in editor.refused("textDocument/rename", {**params, "newName": "taken"})["message"]


def test_references_of_a_pipeline_are_in_all_formats(editor: Editor) -> None:
    write(editor, CALLERS | ONE, "sub")
    params = place(editor, "pipelines/sub.yaml", "sub")
    found = editor.ask("textDocument/references", {**params, "context": {"includeDeclaration": False}})
    files = sorted(str(Path(one["uri"].removeprefix("file://")).relative_to(editor.folder)) for one in found)
    directive = ".ai/directives/ask.md"
    assert files == [directive, directive, directive, "book.playbook.md", "caller.yaml", "sub.test.yaml"]


def test_the_definition_is_the_declared_name(editor: Editor) -> None:
    write(editor, CALLERS | ONE, "sub")
    (found,) = editor.ask("textDocument/definition", place(editor, "book.playbook.md", "sub, "))
    assert found["range"] == {"start": {"line": 0, "character": 10}, "end": {"line": 0, "character": 13}}


@pytest.mark.parametrize("word", ["sub", "transform"])
def test_callers_in_the_call_hierarchy(editor: Editor, word: str) -> None:
    write(editor, CALLERS | ONE, "sub")
    editor.write("top.yaml", CALLER.replace("caller", "top").format("caller"))
    editor.write("quire.toml", '[pipelines.entries.caller]\npath = "caller.yaml"\n')
    (item,) = editor.ask("textDocument/prepareCallHierarchy", place(editor, "pipelines/sub.yaml", word))
    callers = editor.ask("callHierarchy/incomingCalls", {"item": item})
    assert sorted(one["from"]["name"] for one in callers) == ["ask.md", "book.playbook.md", "caller", "sub.test.yaml"]
    (caller,) = [one["from"] for one in callers if one["from"]["name"] == "caller"]
    assert [one["from"]["name"] for one in editor.ask("callHierarchy/incomingCalls", {"item": caller})] == ["top"]


def test_a_new_name_of_an_input_reaches_tests_that_name_the_pipeline(editor: Editor) -> None:
    write(editor, CALLERS | ONE, "sub")
    edit = editor.ask("textDocument/rename", {**place(editor, "pipelines/sub.yaml", "doc"), "newName": "paper"})
    after = {name: text.format("sub").replace("doc: ", "paper: ") for name, text in CALLERS.items()}
    edited = editor.edited(edit)
    assert edited["sub.test.yaml"] == after["sub.test.yaml"]
    assert edited["caller.yaml"] == after["caller.yaml"]


@pytest.mark.parametrize("document", ["sub", "pipelines/sub.yaml"])
@pytest.mark.parametrize("declared", [True, False])
def test_references_of_a_step_have_its_declaration(editor: Editor, document: str, declared: bool) -> None:
    editor.write("pipelines/sub.yaml", 'pipeline: sub\nsteps:\n  - agent: {prompt: "Hi"}\n')
    text = f"document: {document}\ncases:\n  - name: a\n    model: {{1: hello}}\n    expect: {{steps: {{1: hello}}}}\n"
    editor.write("sub.test.yaml", text)
    params = place(editor, "sub.test.yaml", "1: hello")
    found = editor.ask("textDocument/references", {**params, "context": {"includeDeclaration": declared}})
    files = sorted(Path(one["uri"]).name for one in found)
    assert files == ["sub.test.yaml", "sub.test.yaml", *(["sub.yaml"] if declared else [])]
    params = place(editor, "pipelines/sub.yaml", "agent")
    found = editor.ask("textDocument/references", {**params, "context": {"includeDeclaration": declared}})
    assert sorted(Path(one["uri"]).name for one in found) == files
