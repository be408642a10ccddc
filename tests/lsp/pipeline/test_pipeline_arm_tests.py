"""The test that is written for an arm passes, and takes that arm."""

from __future__ import annotations

import re

import pytest
from tests.lsp.editor import Editor, position

from quire.formats.test.parse import parse
from quire.source import Source
from quire.testing.file_run import FileOptions, run_file

DOCUMENTS = {
    "reply": """\
schema: Rank
fields:
  rank: {type: enum, values: [low, high]}
---
pipeline: main
dialect: quire
steps:
  - agent: {prompt: Rank it., schema: Rank, output: r}
  - match:
      on: r.rank
      cases:
        «low»: {steps: [{transform: {value: "'l'"}}]}
        «high»: {steps: [{agent: {prompt: Say it.}}]}
""",
    "word": """\
pipeline: main
dialect: quire
steps:
  - agent: {prompt: "Sort {ctx.mail}", output: kind}
  - match:
      on: kind
      cases:
        «bill»: {steps: [{transform: {value: "'paid'"}}]}
        «letter»: {steps: [{agent: {prompt: Answer it.}}]}
      «default»: {steps: [{tool: {name: ask, args: {prompt: Keep it?, type: confirm}}}]}
""",
    "callee": """\
pipeline: main
steps:
  - agent: {prompt: "Sort {ctx.mail}", output: kind}
  - match:
      on: kind
      cases:
        «bill»: {pipeline: pay}
        «letter»: {pipeline: answer}
""",
    "answer": """\
pipeline: main
dialect: quire
steps:
  - tool: {name: ask, args: {prompt: Which?, type: select, options: [tea, coffee]}, output: drink}
  - tool: {name: ask, args: {prompt: Where?}, output: where}
  - match:
      on: drink
      cases:
        «tea»: {steps: [{transform: {value: "'t'"}}]}
        «coffee»: {steps: [{tool: {name: file__write, args: {path: a.txt, content: b}}}]}
  - match:
      on: where
      cases: {«here»: {steps: [{transform: {value: "'h'"}}]}}
      «default»: {steps: [{tool: {name: http__get, args: {url: "https://example.com"}}}]}
""",
    "input": """\
pipeline: main
dialect: quire
input:
  size: {type: number}
  mode: {type: string}
steps:
  - match:
      on: ctx.size > 10
      cases:
        «"True"»: {steps: [{fail: {message: Too large.}}]}
      «default»:
        steps:
          - match:
              on: ctx.mode
              cases:
                «fast»: {steps: [{transform: {value: "1"}}]}
              «default»: {steps: [{transform: {value: "2"}}]}
""",
    "items": """\
pipeline: main
dialect: quire
input:
  rows: {type: list, of: {type: object, fields: {kind: {type: string}}}}
steps:
  - for_each:
      over: ctx.rows
      on_error: abort
      do:
        match:
          on: item.kind
          cases:
            «meal»: {pipeline: answer}
          «default»: {pipeline: pay}
      collect: {transform: {value: "{all: pipe, of: 1}"}}
""",
    "computed": """\
pipeline: main
dialect: quire
steps:
  - agent: {prompt: "Read {ctx.topic}", output: text}
  - transform: {value: "count(ctx.rows) > 3 and ctx.level == 'high'", output: many}
  - match:
      on: many
      cases:
        «"True"»: {steps: [{transform: {value: "'many'"}}]}
        «"False"»: {steps: [{agent: {prompt: Few.}}]}
""",
}
CALLED = {
    "pipelines/pay.yaml": "pipeline: pay\nsteps:\n  - agent: {prompt: Pay it., output: paid}\n",
    "pipelines/answer.yaml": "pipeline: answer\nsteps:\n  - transform: {value: \"'done'\", output: done}\n",
}
ARMS = [(name, at) for name, text in DOCUMENTS.items() for at in range(text.count("«"))]


@pytest.mark.parametrize(("name", "at"), ARMS, ids=lambda one: str(one))
def test_the_written_test_takes_its_arm(editor: Editor, name: str, at: int) -> None:
    marked = DOCUMENTS[name]
    starts = [found.start() - 2 * number for number, found in enumerate(re.finditer("«", marked))]
    text = marked.replace("«", "").replace("»", "")
    for path, called in CALLED.items():
        editor.write(path, called)
    editor.write("main.yaml", text)
    editor.open("main.yaml", text)
    editor.pause()
    place = position(text, starts[at] + 1)
    asked = {
        "textDocument": {"uri": editor.uri("main.yaml")},
        "range": {"start": place, "end": place},
        "context": {"diagnostics": []},
    }
    [action] = [
        one
        for one in editor.ask("textDocument/codeAction", asked)
        if one["title"].startswith("Write a test for the branch")
    ]
    written = editor.edited(editor.chosen(action))["main.test.yaml"]
    reading = parse(Source.of(written, str(editor.folder / "main.test.yaml")))
    result = run_file(reading, FileOptions(coverage=True))
    assert not [one.finding.message for one in result.problems], written
    assert [[one.finding.message for one in case.problems] for case in result.cases] == [[]], written
    assert result.coverage is not None
    taken = [one for one in result.coverage.decisions if one.kind == "arms" and result.coverage.count(one)]
    spans = [text[one.span.start : one.span.end] for one in taken]
    assert any(one.span.start == starts[at] for one in taken), (spans, written)


def test_an_arm_that_nothing_leads_to_is_refused(editor: Editor) -> None:
    text = """\
pipeline: main
dialect: quire
steps:
  - match:
      on: "'a'"
      cases: {a: {steps: [{transform: {value: "1"}}]}, b: {steps: [{transform: {value: "2"}}]}}
"""
    editor.open("main.yaml", text)
    arguments = [editor.uri("main.yaml"), "arms:1:match=2"]
    error = editor.refused("workspace/executeCommand", {"command": "quire.writeTest", "arguments": arguments})
    assert "write the case by hand" in error["message"]


def test_an_editor_that_takes_no_edits_is_not_offered_it(editor: Editor) -> None:
    text = DOCUMENTS["reply"].replace("«", "").replace("»", "")
    other = Editor(editor.folder, {"workspace": {"workspaceEdit": {"resourceOperations": ["create"]}}})
    other.open("main.yaml", text)
    other.pause()
    place = position(text, text.index("high:") + 1)
    where = {"textDocument": {"uri": other.uri("main.yaml")}, "range": {"start": place, "end": place}}
    found = other.ask("textDocument/codeAction", {**where, "context": {"diagnostics": []}})
    assert not [one for one in found if one["title"].startswith("Write a test")]


def test_a_test_without_a_list_of_cases_is_left_alone(editor: Editor) -> None:
    text = DOCUMENTS["reply"].replace("«", "").replace("»", "")
    editor.write("main.test.yaml", "document: main.yaml\ncases: []\n")
    editor.open("main.yaml", text)
    arguments = [editor.uri("main.yaml"), "arms:2:match=2"]
    error = editor.refused("workspace/executeCommand", {"command": "quire.writeTest", "arguments": arguments})
    assert "main.test.yaml: it has no list of cases" in error["message"]
