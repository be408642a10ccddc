"""Hovers, signatures, hints, colours and lenses of pipelines."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lsp.editor import Editor
from tests.lsp.pipeline.pipeline_texts import HEAD, LOOK

from quire.cli import main

FAN = """\
  - for_each:
      over: ctx.readers
      on_error: abort
      do: {transform: {value: it‸em}}
      collect: {transform: {value: pipe}}
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('  - transform: {value: "review.pas‸sed"}\n', "**review.passed** `bool`|Written by step 1"),
        ('  - transform: {value: "review.no‸tes"}\n', "may be missing|get(review, 'notes')|Why."),
        ('  - transform: {value: "ctx.d‸oc"}\n', "`string`|An input|The text."),
        ('  - agent: {prompt: "a {review.ki‸nd} b"}\n', 'one of "short"'),
        ('  - transform: {value: "ro‸und(3)"}\n', "round(number)|round(2.5)  →  3"),
        ('  - transform: {value: "co‸unt(ctx.readers)"}\n', "count(value)"),
        ("  - call: {pipeline: look‸_at, pass: [doc]}\n", "Looks at a text.|doc: string|depth: number (opt|Gives"),
        ("  - tool: {name: file__wr‸ite}\n", "path: string|Class `idempotent`, tier `write`|Granted"),
        ("  - tool: {name: sh‸ell}\n", "Not granted|--allow shell"),
        ("  - tool: {name: gh__clo‸se}\n", "`close` of the server `gh`|Class `unknown`|tier|Not granted|`quire trust`"),
        ("  - ag‸ent: {prompt: 'a {review.kind} b', output: y}\n", "step 2: agent|a [review.kind] b|1 model call"),
        ("  - agent: {prompt: x, sche‸ma: Review}\n", "has to fit"),
        ("  - agent: {prompt: x, schema: Rev‸iew}\n", "passed: bool"),
        ("  - transform: {value: 'review', output: ou‸t}\n", "**ctx.out** `Review`"),
        ("  - agent: {prompt: x, identity: revi‸ewer}\n", "**agent**|openai:gpt-x"),
        (FAN, "**item** `Review`"),
        ('  - transform: {value: "pi‸pe"}\n', "**pipe** `Review`"),
        ('  - transform: {value: "filter(ctx.readers, r -> r.pas‸sed)"}\n', "**r.passed** `bool`|A parameter"),
        ("  - transform: {value: 'filter(ctx.readers, r -> ‸r)'}\n", "**r** `Review`|A parameter"),
        ("  - transform: {value: \"any(ctx.readers, r -> r.ki‸nd == 'short')\"}\n", '**r.kind** `one of "short"'),
        ("  - transform:\n      value: >-\n        filter(filter(ctx.readers, r ->\n        r.passed), s -> s.ki‸nd)\n",
         '**s.kind** `one of "short"'),
        ('  - transform: {value: "map(ctx.readers, r -> filter(ctx.readers, s -> s.kind == r.ki‸nd))"}\n',
         '**r.kind** `one of "short"'),
        ('  - transform: {value: "sort(ctx.readers, r -> r.ki‸nd)"}\n', '**r.kind** `one of "short"'),
        ('  - transform: {value: "map(ctx.readers, review -> 1) + [review.pas‸sed]"}\n',
         "**review.passed** `bool`|Written"),
        ("  - fold: {over: ctx.readers, init: '0', do: {transform: {value: 'ac‸c + count(item.kind)'}}, output: t}\n",
         "**acc** `number`"),
        ("  - fold: {over: ctx.readers, init: '0', do: {transform: {value: 'text(ac‸c)'}}, output: t}\n",
         "**acc** `any value`"),
    ],
)  # fmt: skip
def test_hover(editor: Editor, text: str, wanted: str) -> None:
    editor.write("quire.toml", '[agents.reviewer]\nmodel = "openai:gpt-x"\n')
    editor.write(".mcp.json", '{"mcpServers": {"gh": {"command": "true"}}}')
    editor.write("pipelines/look.yaml", LOOK)
    found = editor.hover("main.yaml", HEAD + text)
    for part in wanted.split("|"):
        assert part in found, found


@pytest.mark.parametrize(
    "text", ["  # com‸ment\n", "  - transform: {value: \"'te‸xt'\"}\n", '  - agent: {prompt: "pl‸ain"}\n']
)
def test_no_hover(editor: Editor, text: str) -> None:
    assert editor.hover("main.yaml", HEAD + text) == ""


def test_hover_in_text_that_does_not_parse(editor: Editor) -> None:
    assert "`bool`" in editor.hover("main.yaml", HEAD + '  - transform: {value: "review.pas‸sed')


def test_a_fence_in_a_prompt_stays_inside(editor: Editor) -> None:
    found = editor.hover("main.yaml", HEAD + "  - ag‸ent:\n      prompt: |\n        ```\n        code\n        ```\n")
    assert "````\n" in found


@pytest.mark.parametrize(
    ("text", "label", "active"),
    [
        ('  - transform: {value: "replace(review, ‸"}\n', "replace(text, old, new)", 1),
        ('  - transform: {value: "join(map(ctx.readers, r -> r.kind), ‸"}\n', "join(list, separator)", 1),
        ("  - tool: {name: file__write, args: {path: x, content: ‸}}\n", "file__write([path], [content], [files])", 1),
        ("  - transform: {value: 'a', output: ‸}\n", "transform: {value, [output], [when], [title]}", 1),
    ],
)
def test_signature(editor: Editor, text: str, label: str, active: int) -> None:
    found = editor.ask("textDocument/signatureHelp", editor.open("main.yaml", HEAD + text))
    assert found["signatures"][0]["label"] == label
    assert found["activeParameter"] == active


def hints(editor: Editor, text: str) -> dict[str, str]:
    """Return the hints of a text, each with the word before it."""
    editor.open("main.yaml", text)
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 999, "character": 0}}
    found: list[dict[str, Any]] = editor.ask(
        "textDocument/inlayHint", {"textDocument": {"uri": editor.uri("main.yaml")}, "range": whole}
    )
    lines = editor.texts["main.yaml"].split("\n")
    result = {}
    for one in found:
        before = lines[one["position"]["line"]][: one["position"]["character"]]
        result[before.replace("[", " ").replace("{", " ").split(" ")[-1]] = one["label"]
    return result


def test_types_of_lambdas_and_folds_are_hinted(editor: Editor) -> None:
    found = hints(
        editor,
        HEAD
        + "  - transform: {value: 'map(ctx.readers, r -> r.passed)', output: oks}\n"
        + "  - transform: {value: 'filter(ctx.readers, r -> r.passed)', output: kept}\n"
        + "  - fold: {over: ctx.readers, init: '0', do: {transform: {value: 'acc + 1'}}, output: total}\n",
    )
    assert (found["oks"], found["kept"], found["total"]) == (": list of bool", ": list of Review", ": number")


def test_hints(editor: Editor) -> None:
    editor.write("quire.toml", '[agents.reviewer]\nmodel = "openai:gpt-x"\n[models.tiers]\ncheap = "openai:mini"\n')
    editor.write("pipelines/look.yaml", LOOK)
    found = hints(
        editor,
        HEAD
        + "  - for_each: {over: ctx.readers, on_error: abort, do: {agent: {prompt: x, identity: reviewer}}, "
        + "collect: {transform: {value: count(pipe)}}, output: n}\n"
        + "  - call: {pipeline: look_at, pass: [doc]}\n"
        + "  - agent: {prompt: x, model: cheap}\n",
    )
    assert found["review"] == ": Review"
    assert found["n"] == ": number"
    assert found["for_each"] == "≤ |readers|"
    assert found["reviewer"] == "on openai:gpt-x"
    assert found["doc"] == ": string"
    assert found["cheap"] == "= openai:mini"


def test_lenses(editor: Editor) -> None:
    editor.write("main.test.yaml", "cases:\n  - name: one\n    inputs: {doc: a, readers: []}\n    expect: {}\n")
    editor.open("main.yaml", HEAD)
    found = editor.ask("textDocument/codeLens", {"textDocument": {"uri": editor.uri("main.yaml")}})
    titles = [one["command"]["title"] for one in found]
    assert titles == ["Run", "Test (1 case)", "1 call", "Sign", "Prompt"] or titles[2].startswith("≤")
    assert found[-1]["command"]["arguments"] == [editor.uri("main.yaml"), "1"]


AGENTS = """\
pipeline: fan
dialect: quire
steps:
  - for_each:
      over: ctx.items
      LIMIT
      on_error: abort
      do: {agent: {prompt: Say something., capabilities: {tools: []}}}
      collect: {transform: {value: pipe}}
"""


@pytest.mark.parametrize(
    ("limit", "calls"),
    [
        ("max_items: 200", "≤ 200 calls, stopped at 100"),
        ("max_items: 20", "≤ 20 calls"),
        ("max_parallel: 2", "≤ |items| calls, stopped at 100"),
    ],
)
def test_the_lens_says_where_a_run_is_stopped(
    editor: Editor, capsys: pytest.CaptureFixture[str], limit: str, calls: str
) -> None:
    path = editor.write("fan.yaml", AGENTS.replace("LIMIT", limit))
    editor.open("fan.yaml", AGENTS.replace("LIMIT", limit))
    found = editor.ask("textDocument/codeLens", {"textDocument": {"uri": editor.uri("fan.yaml")}})
    titles = [one["command"]["title"] for one in found if one["command"]["command"] == "quire.showProof"]
    assert titles == [f"{calls}, unpriced"]
    assert main(["show", "--bounds", str(path)]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("  model calls ")]
    assert calls.replace(" calls", "").replace("≤ ", "0 to ") in line


def test_colours(editor: Editor) -> None:
    from quire.lsp.pipeline.decorations import tokens

    editor.open(
        "main.yaml", HEAD + "  - transform: {value: \"count(ctx.readers) + 1 == review.n or 'x'\", output: y}\n"
    )
    view = editor.session.desk.view(editor.uri("main.yaml"))
    assert view is not None
    found = {view.source.text[one.span.start : one.span.end]: one.kind for one in tokens(view)}
    assert found["transform"] == "keyword"
    assert found["count"] == "function"
    assert found["readers"] == "parameter" or found["readers"] == "variable"
    assert found["=="] == "operator"
    assert found["'x'"] == "string"
    assert found["1"] == "number"
    assert found["n"] == "property"
    assert found["Review"] == "type"
