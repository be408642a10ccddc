"""Changes that are offered in test files, and their formatting."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lsp.editor import Editor, apply

VISIT = "visit.test.yaml"
HEAD = "cases:\n  - name: x\n"


def offered(editor: Editor, text: str) -> dict[str, str]:
    """Return the texts after each change that is offered at the cursor, by its title."""
    place = editor.open(VISIT, text)
    editor.pause()
    where = {"start": place["position"], "end": place["position"]}
    asked = {"textDocument": place["textDocument"], "range": where, "context": {"diagnostics": []}}
    found: list[dict[str, Any]] = editor.ask("textDocument/codeAction", asked)
    return {one["title"]: editor.edited(one["edit"])[VISIT] for one in found}


def test_missing_inputs_are_added(house: Editor) -> None:
    found = offered(house, HEAD + "    ‸expect: todo\n")
    title = "Add the missing inputs place, mood"
    assert found[title] == HEAD + '    inputs: {place: "TODO: place", mood: "TODO: mood"}\n    expect: todo\n'
    found = offered(house, HEAD + "    ‸inputs: {place: a}\n")
    assert found["Add the missing input mood"] == HEAD + '    inputs: {place: a, mood: "TODO: mood"}\n'
    found = offered(house, HEAD + "    ‸inputs:\n      place: a\n")
    assert found["Add the missing input mood"] == HEAD + '    inputs:\n      mood: "TODO: mood"\n      place: a\n'
    found = offered(house, "defaults: {inputs: {place: a, mood: b}}\n" + HEAD + "    ‸expect: todo\n")
    assert not any("input" in title for title in found)


def test_missing_replies_are_added(house: Editor) -> None:
    found = offered(house, 'defaults:\n  model: {"1": a, "2": b}\n' + HEAD + '    model: {"3a": ‸x}\n')
    new = found["Add replies for step 3b and answers for step 4"]
    assert '    model: {"3a": x, "3b": "TODO: a reply to step 3b"}\n' in new
    assert '    answers: {"4": "yes"}\n' in new
    found = offered(house, "defaults: {model: {default: x}}\n" + HEAD + '    answers: {‸"1": b}\n')
    assert '    answers: {"1": b, "4": "yes"}\n' in found["Add answers for step 4"]
    for more in ("    unattended: true\n", '    then: [{answer: {"4": "yes"}}]\n'):
        assert not any("answers" in title for title in offered(house, HEAD + f"    ‸inputs: {{place: a}}\n{more}"))
    assert not any("replies" in title for title in offered(house, HEAD + "    model: {default: ‸x}\n"))
    assert not any("replies" in title for title in offered(house, HEAD + "    model: [‸x]\n"))


def test_answers_of_a_pipeline_are_added(house: Editor) -> None:
    house.write(
        "tea.yaml",
        """\
        pipeline: tea
        dialect: quire
        steps:
          - tool: {name: ask, args: {prompt: Which?, type: select, options: [green, black]}, output: kind}
          - tool: {name: ask, args: {prompt: Who?}, output: who}
          - tool: {name: file__write, args: {path: a, content: !expr kind}}
        """,
    )
    found = offered(house, "document: tea.yaml\ncases:\n  - name: x\n    ‸expect: todo\n")
    assert '    answers: {"1": "green", "2": "TODO: an answer to step 2"}\n' in found["Add answers for steps 1, 2"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("    expect: {named: {‸tme: x}}\n", "Replace tme with time"),
        ("    expect: {steps: {‸3aa: completed}}\n", "Replace 3aa with 3a"),
    ],
)
def test_a_name_that_the_document_does_not_have_is_replaced(house: Editor, text: str, title: str) -> None:
    found = offered(house, HEAD + text)
    old, _, new = title.removeprefix("Replace ").partition(" with ")
    assert found[title] == (HEAD + text.replace("‸", "")).replace(old, new)


def formatted(editor: Editor, text: str) -> str:
    editor.open(VISIT, text)
    edits = editor.ask("textDocument/formatting", {"textDocument": {"uri": editor.uri(VISIT)}, "options": {}})
    return apply(text, edits)


def test_keys_are_put_in_order_and_nothing_else_moves(house: Editor) -> None:
    text = (
        "# head\ncases:\n  # first\n  - expect:\n      output: a  # yes\n      status: completed\n"
        '    # of the model\n    model:\n      "1": |\n        text\n\n        more\n    name: x\n'
        "  - {expect: todo, name: y}\ndocument: visit.playbook.md\n"
    )
    after = formatted(house, text)
    assert after == (
        "# head\ndocument: visit.playbook.md\ncases:\n  # first\n  - name: x\n"
        '    # of the model\n    model:\n      "1": |\n        text\n\n        more\n'
        "    expect:\n      status: completed\n      output: a  # yes\n  - {expect: todo, name: y}\n"
    )
    assert formatted(house, after) == after


@pytest.mark.parametrize(
    "text",
    [
        "cases:\n  - expect: &e {status: failed}\n    name: x\n  - name: y\n    expect: *e\n",
        "cases:\n  - expect: todo\n    # about the name\n    name: x\n",
        "cases:\n  - expect: todo\n    unknown: 1\n    name: x\n",
        "cases:\n  - expect: {\n",
        "cases:\n  - {expect: todo,\n     name: x}\n",
    ],
)
def test_what_cannot_be_moved_safely_stays(house: Editor, text: str) -> None:
    assert formatted(house, text) == text


def test_formatting_keeps_the_empty_lines_of_a_text(house: Editor) -> None:
    """A case whose last text ends with empty lines stays as it is, and the others are put in order."""
    text = (
        "cases:\n  - expect: {status: completed}\n    name: early\n"
        "  - expect:\n      status: completed\n    name: late\n    model:\n"
        '      "1": |+\n        Good morning.\n\n\n'
    )
    swapped = "cases:\n  - name: early\n    expect: {status: completed}\n"
    assert formatted(house, text) == swapped + text.split("early\n")[1]
