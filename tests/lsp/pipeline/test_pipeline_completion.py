"""Completion in pipelines, in whole and in broken text."""

from __future__ import annotations

import pytest
from tests.lsp.editor import Editor
from tests.lsp.pipeline.pipeline_texts import HEAD, LOOK

SETTINGS = '[agents.reviewer]\nmodel = "openai:gpt-x"\n'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("  - ‸\n", "transform agent for_each repeat"),
        ("  - tr‸", "transform agent"),
        ("  - for_each:\n      ‸\n", "over items on_error do collect"),
        ("  - for_each: {‸", "over on_error"),
        ('  - transform: {value: "review.‸", output: x}\n', "passed notes kind"),
        ('  - transform: {value: "review.', "passed notes kind"),
        ('  - transform: {value: "ctx.‸"}\n', "doc readers review"),
        ("  - transform:\n      value: ctx.‸", "doc readers review"),
        ('  - transform: {value: "‸"}\n', "ctx pipe review map get text round"),
        ('  - transform: {value: "review.kind == ‸"}\n', "short long"),
        ("  - transform: {value: \"review.kind != '‸", "short long"),
        ('  - agent: {prompt: "a {‸', "ctx pipe review"),
        ("  - agent:\n      prompt: |\n        Say {review.‸\n", "passed kind"),
        (
            '  - for_each:\n      over: ctx.readers\n      on_error: abort\n      do: {transform: {value: "item.‸"}}\n'
            "      collect: {transform: {value: pipe}}\n",
            "passed notes kind",
        ),
        ('  - for_each:\n      over: ctx.readers\n      do: {transform: {value: "item.‸', "passed notes kind"),
        ('  - transform: {value: "map(ctx.readers, r -> r.‸"}', "passed notes kind"),
        ("  - repeat: {init: '0', do: {transform: {value: \"‸\"}}, until: 'acc > 1', max: 2}\n", "acc round review"),
        # real-work M2: a fan sees the names of the loop around it.
        (
            '  - repeat: {do: {for_each: {items: [1], on_error: abort, do: {transform: {value: "‸"}},'
            " collect: {transform: {value: pipe}}}}, until: 'acc > 1', max: 2}\n",
            "acc round item",
        ),
        ('  - repeat: {do: {for_each: {items: [1], do: {transform: {value: "‸', "acc round item"),
        ("  - call: {pipeline: ‸", "look_at"),
        ("  - call: {pipeline: look_at, pass: [‸", "doc depth review"),
        ("  - call: {pipeline: look_at, pass: {‸}}\n", "doc depth"),
        ("  - tool: {name: file__‸", "file__read file__write ask"),
        ("  - tool: {name: file__write, args: {‸", "path content"),
        ("  - tool: {name: ask, args: {prompt: x, type: ‸}}\n", "input confirm select !expr"),
        ("  - match:\n      on: review.kind\n      cases:\n        short: {pipeline: main}\n        ‸\n", "long"),
        ("  - agent: {identity: ‸", "default reviewer"),
        ("  - agent: {prompt: x, schema: ‸", "Review"),
        ("  - agent: {prompt: x, on_error: ‸", "abort continue retry(2)"),
        ("  - agent: {prompt: !file ‸}\n", "ask.md"),
        ("  - shell: {command: ‸", "!expr"),
        ("  - repeat: {on_max: ‸", "fail keep"),
        ("  - for_each:\n      over: ctx.readers\n      do: {transform: {\n      ‸", "on_error collect"),
        ('  - agent:\n      prompt: "Say\n      ‸', "identity schema"),
        ("  - agent:\n      prompt: |\n        Say\n      ‸", "identity schema"),
        ('  - match:\n      on: review.kind\n      cases:\n        short: {pipeline: main}\n        "lo‸', "long"),
        ("  - match: {on: review.kind, cases: {short: {steps: [transform: {‸", "value output"),
    ],
)
def test_offered(editor: Editor, text: str, wanted: str) -> None:
    editor.write("quire.toml", SETTINGS)
    editor.write("pipelines/look.yaml", LOOK)
    editor.write("ask.md", "Ask.\n")
    text = text if "‸" in text else text + "‸"
    found = editor.completions("main.yaml", HEAD + text)
    assert set(wanted.split()) <= found.keys(), list(found)


@pytest.mark.parametrize(
    ("text", "unwanted"),
    [
        ('  - transform: {value: "1", ‸}\n', "value"),
        ("  - match:\n      on: review.kind\n      cases:\n        short: {pipeline: main}\n        ‸\n", "short"),
        ("  - transform: {value: \"'text‸'\"}\n", "ctx"),
        ("  # comm‸ent\n", "transform"),
        ('  - agent: {prompt: "plain t‸ext"}\n', "ctx"),
        ("  - for_each: {over: ctx.readers, ‸}\n", "items"),
    ],
)
def test_not_offered(editor: Editor, text: str, unwanted: str) -> None:
    assert unwanted not in editor.completions("main.yaml", HEAD + text)


CALLS_BACK = """\
# Back

## STEP 1: Call

@tool(quire, {})
"""


@pytest.mark.parametrize("dialect", ["", "dialect: quire\n"])
def test_only_callees_that_the_check_accepts(editor: Editor, dialect: str) -> None:
    editor.write("pipelines/look.yaml", LOOK)
    editor.write("pipelines/back.yaml", "pipeline: back\nsteps:\n  - call: {pipeline: through}\n")
    editor.write("pipelines/through.yaml", "pipeline: through\nsteps:\n  - call: {pipeline: main}\n")
    editor.write("pipelines/team/many.yaml", f"{LOOK}---\n{LOOK.replace('look_at', 'other')}")
    editor.write("back_again.playbook.md", CALLS_BACK.format("through"))
    editor.write("playbooks/deep/book.playbook.md", CALLS_BACK.format("look_at"))
    editor.write("playbooks/deep/same.playbook.md", CALLS_BACK.format("look_at"))
    editor.write("playbooks/deeper/same.playbook.md", CALLS_BACK.format("look_at"))
    editor.write("playbooks/2nd.playbook.md", CALLS_BACK.format("look_at"))
    head = f"pipeline: main\n{dialect}steps:\n"
    known = editor.completions("pipelines/main.yaml", f"{head}  - call: {{pipeline: ‸}}\n")
    assert {name for name, one in known.items() if one["detail"] != "directive"} == {"look_at", "book"}
    for name in known:
        editor.replace("pipelines/main.yaml", f"{head}  - call: {{pipeline: {name}}}\n")
        assert not {"PL007", "PL020", "PL101"} & set(editor.codes("pipelines/main.yaml")), name


def test_a_pipeline_of_the_same_file_that_calls_back_is_not_offered(editor: Editor) -> None:
    one, two = "pipeline: one\nsteps:\n  - call: {pipeline: two}\n", "pipeline: two\nsteps:\n  - call: {pipeline: ‸"
    three = 'pipeline: three\nsteps:\n  - transform: {value: "1"}\n'
    editor.write("pipelines/out.yaml", "pipeline: out\nsteps:\n  - call: {pipeline: all.one}\n")
    found = editor.completions("pipelines/all.yaml", f"{one}---\n{three}---\n{two}")
    assert "three" in found and not {"one", "two", "out"} & found.keys()


def test_the_language_of_the_seed_has_no_keys_of_the_dialect(editor: Editor) -> None:
    seed = "pipeline: a\nsteps:\n  - agent: {prompt: x, ‸}\n"
    found = editor.completions("main.yaml", seed)
    assert "schema" in found and "when" not in found
    assert "repeat" not in editor.completions("main.yaml", "pipeline: a\nsteps:\n  - ‸")
    assert "input" not in editor.completions("main.yaml", "pipeline: a\n‸\nsteps: []\n")
    functions = editor.completions("main.yaml", 'pipeline: a\nsteps:\n  - transform: {value: "‸"}\n')
    assert "map" in functions and "round" not in functions


def test_names_of_stores_in_a_file_that_does_not_parse(editor: Editor) -> None:
    text = HEAD + '  - transform: {value: "1", output: first}\n  - for_each: {do: {agent: {prompt: "{f‸\n  - tool: {\n'
    found = editor.completions("main.yaml", text)
    assert {"first", "review"} <= found.keys()


def test_a_step_can_be_inserted_as_it_is(editor: Editor) -> None:
    found = editor.completions("main.yaml", HEAD + "  - ‸\n")
    assert found["transform"]["textEdit"]["newText"] == 'transform: {value: "${1:expression}", output: ${2:name}}'
    assert found["for_each"]["textEdit"]["newText"].startswith("for_each:\n    over:")


def test_documentation_comes_with_resolve(editor: Editor) -> None:
    found = editor.completions("main.yaml", HEAD + '  - transform: {value: "ro‸"}\n')
    item = editor.ask("completionItem/resolve", found["round"])
    assert "round(2.5)" in item["documentation"]["value"]


def test_declared_types_of_fields(editor: Editor) -> None:
    found = editor.completions("main.yaml", HEAD.replace("passed: {type: bool}", "passed: {type: ‸"))
    assert {"bool", "string", "ref"} <= found.keys()


@pytest.mark.parametrize(("stores", "incomplete"), [(100, False), (198, True), (700, True)])
@pytest.mark.parametrize("typed", ["", "ctx."])
def test_of_very_many_stores_the_last_ones_are_sent(editor: Editor, stores: int, incomplete: bool, typed: str) -> None:
    answer = editor.ask("textDocument/completion", editor.open("main.yaml", _many_stores(stores, typed)))
    labels = [one["label"] for one in answer["items"] if one["label"].startswith("s") and one["label"][1:].isdigit()]
    most = stores if typed else min(stores, 200 - len(answer["items"]) + len(labels))
    assert labels == [f"s{n}" for n in reversed(range(stores))][: min(most, 200)]
    assert answer["isIncomplete"] is (incomplete if not typed else stores > 200)
    assert len(answer["items"]) <= 200


@pytest.mark.parametrize(
    ("typed", "wanted"), [("s12", "s12"), ("ctx.s7", "s7"), ("S12", "s12"), ("cnt", "count"), ("", "count")]
)
def test_of_very_many_stores_those_that_are_being_typed_are_sent(editor: Editor, typed: str, wanted: str) -> None:
    answer = editor.ask("textDocument/completion", editor.open("main.yaml", _many_stores(700, typed)))
    assert wanted in [one["label"] for one in answer["items"]]
    assert answer["isIncomplete"] is True


def _many_stores(count: int, typed: str) -> str:
    steps = "".join(f"  - transform: {{value: '1', output: s{n}}}\n" for n in range(count))
    return f"pipeline: p\nsteps:\n{steps}  - transform: {{value: '{typed}‸', output: end}}\n"
