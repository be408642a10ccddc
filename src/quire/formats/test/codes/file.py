"""TS0xx: errors in the text of a test file, and in the way it fits its document."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_error = partial(make, Severity.ERROR)

SYNTAX = _error(
    "TS001",
    "test-syntax",
    "A part of a test file has the wrong kind, or is missing.",
    "A test file is one YAML mapping with a list of `cases`; each case is a mapping with a `name`. The finding says\n"
    "which kind of value belongs there. `quire test --schema` prints the whole form.",
    "cases:\n  - model: [5]\n    expect: completed",
    'cases:\n  - name: a number as a reply\n    model: ["5"]\n    expect: {status: completed}',
)
UNKNOWN_KEY = _error(
    "TS002",
    "test-unknown-key",
    "A key that test files do not have.",
    "It would have no effect, and a case would pass that tests less than it seems to. The nearest known key is named.",
    "cases:\n  - name: greets\n    expects: {output: Hello.}",
    "cases:\n  - name: greets\n    expect: {output: Hello.}",
)
NO_DOCUMENT = _error(
    "TS003",
    "no-document",
    "The document of a test is not found, or cannot be read.",
    "`document` is a path beside the test file, or a name as for `quire run`. Without it the document has the name of\n"
    "the test file: `x.test.yaml` tests `x.playbook.md`, `x.yaml`, or the directive `x`.",
    "document: tag-line.playbook.md\ncases: [{name: greets, expect: {output: Hello.}}]",
    "document: tagline.playbook.md\ncases: [{name: greets, expect: {output: Hello.}}]",
)
DUPLICATE_CASE = _error(
    "TS004",
    "duplicate-case",
    "Two cases have the same name.",
    "Results, snapshots and cassettes are kept under the name of their case.",
    "cases:\n  - {name: greets, expect: {output: Hello.}}\n  - {name: greets, expect: {exit: 0}}",
    "cases:\n  - {name: greets, expect: {output: Hello.}}\n  - {name: ends well, expect: {exit: 0}}",
)
UNKNOWN_STEP = _error(
    "TS005",
    "test-unknown-step",
    "A label that is not a step of the document.",
    "Steps are named as `quire show` prints them: `2`, `3a`, `1.do`. A step inside a called document is named by the\n"
    "way to it: `2/1`.",
    'cases:\n  - name: greets\n    model: {"9": Hello.}\n    expect: {output: Hello.}',
    'cases:\n  - name: greets\n    model: {"1": Hello.}\n    expect: {output: Hello.}',
)
UNKNOWN_TOOL = _error(
    "TS006",
    "test-unknown-tool",
    "A tool that the document never calls.",
    "A script for it cannot be used, and `calls` of it are always 0 unless a model asks for it by name.",
    "cases:\n  - name: looks it up\n    tools: {serch: {returns: []}}\n    expect: {output: nothing found}",
    "cases:\n  - name: looks it up\n    tools: {search: {returns: []}}\n    expect: {output: nothing found}",
)
NEVER_ASKS = _error(
    "TS007",
    "never-asks",
    "An answer for a step that never asks a person.",
    "The answer would not be used, and the question that it is meant for would stay open.",
    'cases:\n  - name: a yes\n    answers: {"1": "yes"}\n    expect: {output: Hello.}',
    'cases:\n  - name: a yes\n    answers: {"2": "yes"}\n    expect: {output: Hello.}',
)
ORDER_IN_FAN = _error(
    "TS008",
    "order-in-fan",
    "Replies in order, for a document that asks the model several things at a time.",
    "Which call comes first is not decided there, so the test would pass on one day and fail on another. Give each\n"
    "reply its step and its item, or a text that its prompt contains.",
    "cases:\n  - name: two readers\n    inputs: {readers: [ann, bob]}\n    model: [fine, too long]\n"
    "    expect: {stores: {reviews: [fine, too long]}}",
    "cases:\n  - name: two readers\n    inputs: {readers: [ann, bob]}\n"
    "    model: [{step: 1.do, item: 0, reply: fine}, {step: 1.do, item: 1, reply: too long}]\n"
    "    expect: {stores: {reviews: [fine, too long]}}",
)
IMPOSSIBLE_CONTAINS = _error(
    "TS009",
    "impossible-contains",
    "A text that no prompt of the document can contain.",
    "The prompts are fixed texts without placeholders, and the text is in none of them.",
    "cases:\n  - name: greets\n    model: [{contains: Helo, reply: Hi.}]\n    expect: {output: Hi.}",
    "cases:\n  - name: greets\n    model: [{contains: Hello, reply: Hi.}]\n    expect: {output: Hi.}",
)
MATCHER = _error(
    "TS010",
    "matcher",
    "An expectation that cannot be understood.",
    "A value stands for itself. A mapping is a matcher if all its keys are `contains`, `not_contains`, `matches`,\n"
    "`json`, `schema`, `most`, `least`, `any`, `all` or `absent`; a mapping that mixes them with other keys is\n"
    "refused, because either half could be meant. `matches` is an RE2 pattern, `most` and `least` are numbers.",
    "cases:\n  - name: greets\n    expect: {output: {contains: Hello, topic: bread}}",
    "cases:\n  - name: greets\n    expect: {output: {contains: Hello, json: {topic: bread}}}",
)
ROWS = _error(
    "TS011",
    "rows",
    "The rows of a case cannot be read, or have no such column.",
    "`each` is a list of mappings, or the name of a `.csv` or `.jsonl` file beside the test; `matrix` is a mapping of\n"
    "lists. `{row.x}` in a text, and `row.x` in an expression, need a column `x` in every row.",
    'cases:\n  - name: rows\n    each: [{text: a}]\n    inputs: {doc: "{row.txt}"}\n    expect: {output: a}',
    'cases:\n  - name: rows\n    each: [{text: a}]\n    inputs: {doc: "{row.text}"}\n    expect: {output: a}',
)
OUTSIDE = _error(
    "TS012",
    "outside-folder",
    "A path that leaves the folder of the test.",
    "A test reads only files below its own folder, and the files of a case are in a folder made for it. An absolute\n"
    "path, `..` and a drive letter are refused, because a test file may come from somewhere else. Only the document\n"
    "may be above it, inside of the workspace.",
    "cases:\n  - name: reads\n    files: {../notes.txt: a}\n    expect: {output: a}",
    "cases:\n  - name: reads\n    files: {notes.txt: a}\n    expect: {output: a}",
)
NEVER_MADE = _error(
    "TS014",
    "never-made",
    "An expectation about a value that the document never makes.",
    "Values of playbooks are `named`, those of pipelines are in `stores`, those of directives are `outputs`. If it is\n"
    "meant that the value is not there, write `{absent: true}`.",
    "cases:\n  - name: greets\n    expect: {named: {bst: Bread.}}",
    "cases:\n  - name: greets\n    expect: {named: {best: Bread.}}",
)
DRAFT = _error(
    "TS013",
    "draft",
    "A case that says `expect: todo`.",
    "`quire new test` writes cases without expectations, because only an author knows them. Such a case is not run,\n"
    "and fails until its expectations are written.",
    "cases:\n  - name: greets\n    expect: todo",
    "cases:\n  - name: greets\n    expect: {output: Hello.}",
)
