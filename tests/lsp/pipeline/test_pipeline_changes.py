"""Changes of pipelines: actions at a place, and formatting that moves keys only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import Editor, apply
from tests.lsp.pipeline.pipeline_texts import HEAD

from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.write import pipeline_tree
from quire.lsp.pipeline.decorations import ordered
from quire.source import Source

ROOT = Path(__file__).parents[3]
PIPELINES = [
    path
    for path in sorted([*ROOT.glob("examples/**/*.yaml"), *ROOT.glob("tests/**/*.yaml")])
    if ".test." not in path.name and "\nsteps:" in path.read_text()
]


def actions(editor: Editor, text: str) -> dict[str, dict[str, Any]]:
    """Return the actions at the cursor by their titles."""
    place = editor.open("main.yaml", text)
    editor.pause()
    span = {"start": place["position"], "end": place["position"]}
    params = {"textDocument": place["textDocument"], "range": span, "context": {"diagnostics": []}}
    return {one["title"]: one for one in editor.ask("textDocument/codeAction", params)}


def changed(editor: Editor, found: dict[str, dict[str, Any]], begin: str) -> str:
    """Return the text after the action whose title begins so, which leaves no error."""
    title = next(one for one in found if one.startswith(begin))
    text = editor.edited(found[title]["edit"])["main.yaml"]
    assert parse(Source.of(text)).file is not None, text
    return text


def test_allow_a_finding(editor: Editor) -> None:
    found = actions(editor, HEAD + '  - transform: {value: "review.not‸es"}\n')
    text = changed(editor, found, "Allow")
    assert "  # quire: allow " in text and 'because "TODO"\n  - transform' in text
    editor.replace("main.yaml", text)
    code = next(one for one in found if one.startswith("Allow")).split()[1]
    assert code not in editor.codes("main.yaml")


def test_read_with_get(editor: Editor) -> None:
    text = changed(editor, actions(editor, HEAD + '  - transform: {value: "review.not‸es"}\n'), "Read it with get")
    assert "value: \"get(review, 'notes')\"" in text


FAN = """\
  - for_ea‸ch:
      over: ctx.readers
      on_error: abort
      do: {agent: {prompt: x}}
      collect: {transform: {value: pipe}}
"""
IN_BRACES = """\
  - for_ea‸ch: {over: ctx.readers, on_error: abort, do: {agent: {prompt: x}},
      collect: {transform: {value: pipe}}}
"""


@pytest.mark.parametrize("fan", [FAN, IN_BRACES])
def test_limit_a_fan(editor: Editor, fan: str) -> None:
    text = changed(editor, actions(editor, HEAD + fan), "Let step 2 have at most")
    file = parse(Source.of(text)).file
    assert file is not None and getattr(file.pipelines[0].steps[1].body, "max_items", None) == 20


def test_insert_a_gate(editor: Editor) -> None:
    text = changed(
        editor, actions(editor, HEAD + "  - to‸ol: {name: file__write, args: {path: a, content: b}}\n"), "Ask a person"
    )
    file = parse(Source.of(text)).file
    assert file is not None
    kinds = [(step.kind, step.output.text if step.output else "") for step in file.pipelines[0].steps]
    assert kinds == [("agent", "review"), ("tool", "approved"), ("tool", "")]
    guard = file.pipelines[0].steps[2].guard
    assert guard is not None and guard.when is not None and guard.when.text == "approved == 'yes'"


@pytest.mark.parametrize(
    ("read", "type"),
    [
        ('transform: {value: "ctx.wan‸ted"}', "{type: string}"),
        ('agent: {prompt: "Say {ctx.wan‸ted}."}', "{type: string}"),
        ('transform: {value: "ctx.wan‸ted * 2"}', "{type: number}"),
        ('transform: {value: "ctx.wan‸ted == true"}', "{type: bool}"),
        (
            'transform: {value: "map(ctx.wan‸ted, r -> r.name)"}',
            "{type: list, of: {type: object, fields: {name: {type: string}}}}",
        ),
    ],
)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("input:\n  name: {type: string}\n", "input:\n  wanted: TYPE\n  name: {type: string}\n"),
        ("input: {name: {type: string}}\n", "input: {wanted: TYPE, name: {type: string}}\n"),
        ("input: {}\n", "input: {wanted: TYPE}\n"),
    ],
)
def test_declare_an_input(editor: Editor, before: str, after: str, read: str, type: str) -> None:
    found = actions(editor, f"pipeline: main\ndialect: quire\n{before}steps:\n  - {read}\n")
    assert [one["code"] for one in found["Declare the input wanted"]["diagnostics"]] == ["PL142"]
    text = changed(editor, found, "Declare the input wanted")
    assert after.replace("TYPE", type) in text
    editor.replace("main.yaml", text)
    assert "PL142" not in editor.codes("main.yaml")


FETCHED = """\
pipeline: main
dialect: quire
steps:
  - tool: {name: http__get, args: {url: "https://example.com/x"}, output: page}
  - agent: {prompt: "Answer {page}", output: draft}
"""


@pytest.mark.parametrize(
    ("effect", "codes", "shown"),
    [
        ("""sh‸ell: {command: !expr "'sh ' + page"}""", {"TA101"}, "show: !expr page,"),
        (
            """sh‸ell: {command: !expr "['send', draft, ctx.to]"}""",
            {"TA101"},
            'show: !expr "{draft: draft, to: ctx.to}",',
        ),
        (
            'to‸ol: {name: http__send, args: {method: POST, url: "https://example.com/y", body: !expr page}}',
            {"GA101"},
            "show: !expr page,",
        ),
        ("to‸ol: {name: file__write, args: {path: !expr page, content: a}}", {"TA102"}, "show: !expr page,"),
        ("to‸ol: {name: http__send, args: {method: POST, url: !expr page}}", {"TA103"}, "show: !expr page,"),
    ],
)
def test_a_gate_shows_the_values_of_its_effect(editor: Editor, effect: str, codes: set[str], shown: str) -> None:
    found = actions(editor, f'{FETCHED}  - {effect}\n  - agent: {{prompt: "Sum up {{draft}}."}}\n')
    title = "Ask a person before step 3"
    assert set(editor.codes("main.yaml")) == codes
    assert found[title]["kind"] == "quickfix"
    assert {one["code"] for one in found[title]["diagnostics"]} == codes
    text = changed(editor, found, title)
    assert shown in text
    editor.replace("main.yaml", text)
    assert editor.codes("main.yaml") == []


def test_no_gate_where_it_would_replace_the_result_that_a_step_reads(editor: Editor) -> None:
    found = actions(editor, FETCHED + '  - sh‸ell: {command: !expr "[pipe]"}\n')
    assert not any(one.startswith("Ask a person") for one in found)


def test_a_tool_that_reads_needs_no_gate(editor: Editor) -> None:
    found = actions(editor, HEAD + "  - to‸ol: {name: file__read, args: {path: a}}\n")
    assert not any(one.startswith("Ask a person") for one in found)


def test_extract_a_schema(editor: Editor) -> None:
    text = changed(
        editor,
        actions(editor, HEAD + "  - age‸nt: {prompt: x, output: said}\n  - transform: {value: said.words}\n"),
        "Give step 2 a schema",
    )
    assert "schema: Said\nfields:\n  words: {type: string}\n---\npipeline: main" in text
    assert "output: said, schema: Said}" in text


def test_write_a_test_for_an_arm(editor: Editor) -> None:
    from quire.formats.test.parse import parse as parse_test

    arms = (
        "  - match: {on: review.kind, cases: {short: {steps: [{transform: {value: '1'}}]}, lo‸ng: {pipeline: main}}}\n"
    )
    found = actions(editor, HEAD + arms.replace("pipeline: main", "steps: [{transform: {value: '2'}}]"))
    title = next(one for one in found if one.startswith("Write a test"))
    assert "long of step 2" in title
    texts = editor.edited(editor.chosen(found[title]))
    reading = parse_test(Source.of(texts["main.test.yaml"], "main.test.yaml"))
    assert reading.file is not None and len(reading.file.cases) == 1, reading.diagnostics


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("  - transform: {output: x, value: '1'}\n", "  - transform: {value: '1', output: x}\n"),
        ("  - agent: {output: x,  prompt: 'a'}  # c\n", "  - agent: {prompt: 'a',  output: x}  # c\n"),
        (
            "  - agent:\n      output: x\n      # About it.\n      prompt: |\n        Text: x\n      schema: A\n",
            "  - agent:\n      # About it.\n      prompt: |\n        Text: x\n      schema: A\n      output: x\n",
        ),
        (
            "  - tool:\n      args: {b: 1, a: 2}  # as they are\n      name: t\n",
            "  - tool:\n      name: t\n      args: {b: 1, a: 2}  # as they are\n",
        ),
        (
            "  - for_each:\n      do: {tool: {args: {z: 1}, name: t}}\n      on_error: abort\n      over: x\n"
            "      collect: {transform: {value: pipe}}\n",
            "  - for_each:\n      over: x\n      on_error: abort\n      do: {tool: {name: t, args: {z: 1}}}\n"
            "      collect: {transform: {value: pipe}}\n",
        ),
        ("  - transform:\n      value: '1'\n      output: x\n", "  - transform:\n      value: '1'\n      output: x\n"),
    ],
)
def test_keys_in_order(before: str, after: str) -> None:
    assert ordered(before, column=2) == after
    assert ordered(after, column=2) == after


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_formatting_keeps_the_tree(editor: Editor, path: Path) -> None:
    text = Source.of(path.read_text()).text
    editor.open("main.yaml", text)
    params = {"textDocument": {"uri": editor.uri("main.yaml")}, "options": {"tabSize": 2, "insertSpaces": True}}
    new = apply(text, editor.ask("textDocument/formatting", params) or [])
    assert plain(new) == plain(text)
    assert sorted(new) == sorted(text), "only the order of characters may change"
    editor.replace("main.yaml", new)
    assert not editor.ask("textDocument/formatting", params)


def test_a_step_that_cannot_be_formatted_leaves_the_others_alone(editor: Editor) -> None:
    head, kept = "pipeline: main\nsteps:\n", "  - agent:\n      output: x\n      prompt: |+\n        Hello\n\n"
    text = f"{head}{kept}  - transform: {{output: y, value: x}}\n{kept}  - transform: {{output: z, value: y}}\n{kept}"
    editor.open("main.yaml", text)
    params = {"textDocument": {"uri": editor.uri("main.yaml")}, "options": {"tabSize": 2, "insertSpaces": True}}
    new = apply(text, editor.ask("textDocument/formatting", params) or [])
    for name, value in (("y", "x"), ("z", "y")):
        text = text.replace(f"{{output: {name}, value: {value}}}", f"{{value: {value}, output: {name}}}")
    assert new == text


def plain(text: str) -> object:
    def without_lines(value: object) -> object:
        if isinstance(value, dict):
            return {key: without_lines(one) for key, one in value.items() if key != "line"}
        return [without_lines(one) for one in value] if isinstance(value, list) else value

    return without_lines(pipeline_tree(parse(Source("", text), registered=True)))
