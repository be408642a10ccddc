"""Files and folders that are renamed: the documents that name them follow, and no name is written that is not found."""

from __future__ import annotations

import pytest
from tests.lsp.editor import Editor

PLAYBOOK = "# Sub\n\n## STEP 1: Go\n\nGo.\n"
CALLERS = {
    "caller.yaml": "pipeline: caller\nsteps:\n  - call: {{pipeline: {}}}\n",
    "book.playbook.md": "# Book\n\n## STEP 1: Call\n\n@tool(quire, {})\n",
    "tests/sub.test.yaml": "document: {}\ncases:\n  - name: a\n    expect: {{status: completed}}\n",
}
EVERYWHERE = {name: text for name, text in CALLERS.items() if not name.startswith("tests/")}


def moved(editor: Editor, old: str, new: str) -> dict[str, str]:
    """Return the texts that change when a file or folder is renamed."""
    edit = editor.ask("workspace/willRenameFiles", {"files": [{"oldUri": editor.uri(old), "newUri": editor.uri(new)}]})
    return editor.edited(edit) if edit is not None else {}


def write_callers(editor: Editor, name: str) -> None:
    for file, text in CALLERS.items():
        editor.write(file, text.format(name))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sub2.playbook.md", "playbooks/sub2.playbook.md"),
        ("sub2.playbook.md", "playbooks/deep/sub2.playbook.md"),
        ("playbooks/sub2.playbook.md", "playbooks/deep/sub2.playbook.md"),
        ("playbooks/deep/sub2.playbook.md", "sub2.playbook.md"),
    ],
)
def test_a_call_whose_name_is_still_found_stays(editor: Editor, old: str, new: str) -> None:
    editor.write(old, PLAYBOOK)
    write_callers(editor, "sub2")
    assert moved(editor, old, new) == {}


@pytest.mark.parametrize(
    "new", ["under.playbook.md", "playbooks/under.playbook.md", "playbooks/deep/under.playbook.md"]
)
def test_a_call_gets_the_name_that_is_found(editor: Editor, new: str) -> None:
    editor.write("sub2.playbook.md", PLAYBOOK)
    write_callers(editor, "sub2")
    assert moved(editor, "sub2.playbook.md", new) == {file: text.format("under") for file, text in CALLERS.items()}


def test_a_playbook_without_a_name_changes_no_call(editor: Editor) -> None:
    editor.write("sub2.playbook.md", PLAYBOOK)
    write_callers(editor, "sub2")
    test = CALLERS["tests/sub.test.yaml"].format("../deep/sub2.playbook.md")
    assert moved(editor, "sub2.playbook.md", "deep/sub2.playbook.md") == {"tests/sub.test.yaml": test}


def test_a_name_of_two_playbooks_is_not_written(editor: Editor) -> None:
    editor.write("sub2.playbook.md", PLAYBOOK)
    editor.write("playbooks/other/under.playbook.md", PLAYBOOK)
    write_callers(editor, "sub2")
    editor.write("quoted.playbook.md", CALLERS["book.playbook.md"].format('"sub2"'))
    edited = moved(editor, "sub2.playbook.md", "playbooks/deep/under.playbook.md")
    assert edited == {
        "quoted.playbook.md": CALLERS["book.playbook.md"].format('"deep/under"'),
        "tests/sub.test.yaml": CALLERS["tests/sub.test.yaml"].format("deep/under"),
    }


def test_a_directive_that_is_called_keeps_its_last_part(editor: Editor) -> None:
    directive = '# D\n\n```xml\n<directive name="d" version="1.0.0">\n</directive>\n```\n'
    editor.write(".ai/directives/d.md", directive)
    for file, text in EVERYWHERE.items():
        editor.write(file, text.format("d"))
    assert not set(EVERYWHERE) & moved(editor, ".ai/directives/d.md", ".ai/directives/team/d.md").keys()
    edited = moved(editor, ".ai/directives/d.md", ".ai/directives/team/e.md")
    assert {file: edited[file] for file in EVERYWHERE} == {file: text.format("e") for file, text in EVERYWHERE.items()}


PROMPTS = {
    "main.playbook.md": "# Main\n\n## STEP 1: Go\n\n@prompt(file:{}/p.md)\n",
    "main.yaml": "pipeline: main\ndialect: quire\nsteps:\n  - agent: {{prompt: !file {}/deep/q.md}}\n",
}


@pytest.mark.parametrize(("old", "new"), [("texts", "words"), ("texts", "more/words"), ("more/texts", "texts")])
def test_a_folder_of_prompts_is_followed(editor: Editor, old: str, new: str) -> None:
    editor.write(f"{old}/p.md", "Hi.\n")
    editor.write(f"{old}/deep/q.md", "Hello.\n")
    editor.write(f"{old}/unnamed.md", "Nobody names this.\n")
    for file, text in PROMPTS.items():
        editor.write(file, text.format(old))
    assert moved(editor, old, new) == {file: text.format(new) for file, text in PROMPTS.items()}


def test_a_folder_moves_with_its_documents_and_their_prompts(editor: Editor) -> None:
    editor.write("all/prompts/p.md", "Hi.\n")
    editor.write("all/main.playbook.md", PROMPTS["main.playbook.md"].format("prompts"))
    assert moved(editor, "all", "more/all") == {}


def test_a_prompt_that_leaves_the_folder_of_its_document_is_not_followed(editor: Editor) -> None:
    editor.write("all/prompts/p.md", "Hi.\n")
    editor.write("all/main.playbook.md", PROMPTS["main.playbook.md"].format("prompts"))
    assert moved(editor, "all/prompts", "prompts") == {}


@pytest.mark.parametrize("new", ["texts/voice.md", "prompts/deep/voice.md", "prompts/my_voice.md"])
def test_a_prompt_that_leaves_the_library_has_no_id(editor: Editor, new: str) -> None:
    text = "# Main\n\n## STEP 1: Go\n\n@prompt(library:{})\n"
    editor.write("prompts/voice.md", "Hi.\n")
    editor.write("main.playbook.md", text.format("voice"))
    assert moved(editor, "prompts/voice.md", "prompts/tone.md") == {"main.playbook.md": text.format("tone")}
    assert moved(editor, "prompts/voice.md", new) == {}
    assert moved(editor, "prompts", "texts") == {}
