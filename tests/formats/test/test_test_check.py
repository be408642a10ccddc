"""A test is checked against the plan of its document: steps, tools and values that the document does not have."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.formats.test.readings import file_of, reading_of
from tests.formats.test.test_test_any_text import mutated

from quire.formats.test.check import check_against
from quire.library.document import read
from quire.plan.nodes import Plan
from quire.source import Source

PLAYBOOK = """# Tagline

## INPUTS

- `product` (string): what

## STEP 1: Draft

Write a line for {{product}}.

@output(best, extract:"best")

## STEP 2: Ask

@elicit(confirm, "Take {{best}}?")
@output(taken)

## STEP 3: Polish

```if taken == "yes"```
### STEP 3a: Polish
Polish {{best}}.
```else```
### STEP 3b: Again
Another one.
```endif```

## STEP 4: Look

@tool(search, find, {"q": "x"})
"""

BOARD = """pipeline: board
description: x
steps:
  - for_each:
      over: ctx.readers
      on_error: abort
      do: {agent: {prompt: "Read as {item}: {ctx.doc}"}}
      collect: {transform: {value: pipe, output: reviews}}
  - call: {pipeline: weigh, pass: [reviews], output: weight}
  - tool: {name: store__put, args: {x: 1}}
  - tool: {name: ask, args: {prompt: Go?}}
  - parallel:
      on_error: abort
      branches:
        left: {agent: {prompt: left}}
        right: {transform: {value: "'1'"}}
      collect: {transform: {value: pipe}}
"""

WEIGH = "pipeline: weigh\ndescription: x\nsteps:\n  - agent: {prompt: 'Weigh {ctx.reviews}', output: heavy}\n"

FIXED = """pipeline: fixed
description: x
steps:
  - agent: {prompt: Say hello., capabilities: {tools: []}}
  - agent: {prompt: Say goodbye., capabilities: {tools: []}}
"""

DIRECTIVE = """# D

```xml
<directive name="tidy" version="1.0.0">
  <metadata>
    <description>x</description>
    <category>c</category>
    <author>a</author>
    <permissions><execute><tool>rye.file-system.read</tool></execute></permissions>
  </metadata>
  <outputs><output name="topics" type="integer" /></outputs>
</directive>
```

Tidy up.
"""


def plan_of(text: str, name: str) -> Plan:
    return read(Source.of(text, name)).runnable()


PLANS: Mapping[str, Plan] = {
    "playbook": plan_of(PLAYBOOK, "tagline.playbook.md"),
    "board": plan_of(BOARD, "board.yaml"),
    "fixed": plan_of(FIXED, "fixed.yaml"),
    "directive": plan_of(DIRECTIVE, ".ai/directives/tidy.md"),
}
CALLEES = {"board": {"weigh": plan_of(WEIGH, "weigh.yaml")}}


def found(document: str, lines: str, system: str | None = "") -> list[tuple[str, str, str, str]]:
    lines = lines if "expect" in lines else f"{lines}\nexpect: {{output: {{any: true}}}}"
    body = "".join(f"    {line}\n" for line in lines.splitlines())
    text = f"cases:\n  - name: one\n{body}"
    file = file_of(text)
    findings = check_against(file, PLANS[document], CALLEES.get(document, {}), system)
    return [(one.code.id, one.message, text[one.span.start : one.span.end], one.help) for one in findings]


RIGHT = {
    "playbook": [
        'model: {"1": a, "3a": b}\nanswers: {"2": "yes"}\ntools: {search/find: {returns: 1}}',
        "model: [a, b, c]",
        'expect: {steps: {"3b": skipped}, prompts: {"1": {contains: a}}, asked: {"2": x}}',
        "expect: {named: {best: x, product: y}}",
        "expect: {named: {other: {absent: true}}}",
        "tools: {files/read: {returns: a}}",
        'then: [{edit: {tagline.playbook.md: x}}, {resume: , model: {"9": x}}]',
        "then: [{fork: {from: 3a}}]",
    ],
    "board": [
        "model: [{step: 1.do, item: 0, reply: a}, {step: 1.do, item: 1, reply: b}]",
        'model: {1.do: [a, b], "2 > 1": c, 5.left: d}',
        'model: {"1": c, 1.do: a}',
        "model: [same, same]",
        "model: [only]",
        "model: [{step: 1.do, reply: x, times: any}, one, two]",
        'answers: {"4": go}',
        "tools: {store__put: {returns: 1}}",
        "tools: {store/put: {returns: 1}, put: {returns: 2}}",
        'expect: {prompts: {"1": {contains: a}}}',
        "expect: {stores: {reviews: [], weight: x, doc: y}}\ninputs: {doc: y}",
        "expect: {calls: {rye/bash: 0}}",
        'answers: {"3": rerun}\nthen: [{resume: }]',
        'expect: {prompts: {"1/for_each[0]": x}}',
    ],
    "fixed": ["model: [{contains: hello, reply: a}]", 'model: [{contains: "{row.x}", reply: a}]\neach: [{x: 1}]'],
    "directive": [
        "model: [{turn: 1, reply: a}]",
        'model: {"turn 1": a}',
        "expect: {outputs: {topics: 1}, calls: {rye/file-system/read: 1}}",
        "tools: {anything: {returns: 1}}",
    ],
}

WRONG = {
    "playbook": {
        'model: {"9": x}': ("TS005", 'unknown step "9"', '"9"', "the steps are 1, 2, 3"),
        'model: {"3aa": x}': ("TS005", 'unknown step "3aa"', '"3aa"', "did you mean 3a?"),
        'model: [{step: "9", reply: x}]': ("TS005", 'unknown step "9"', '{step: "9", reply: x}', ""),
        'model: {"2": x}': ("TS005", "step 2 asks no model itself", '"2"', ""),
        'model: {"3": x}': ("TS005", "step 3 asks no model itself", '"3"', "inside of it that do: 3a, 3b"),
        'answers: {"1": "yes"}': ("TS007", "step 1 never asks a person", '"1"', ""),
        'answers: {"7": "yes"}': ("TS005", 'unknown step "7"', '"7"', ""),
        'expect: {steps: {"4a": completed}}': ("TS005", 'unknown step "4a"', '"4a"', ""),
        'expect: {prompts: {"2": {contains: a}}}': ("TS005", "step 2 asks no model itself", '"2"', ""),
        'expect: {asked: {"3a": x}}': ("TS007", "step 3a never asks a person", '"3a"', ""),
        "expect: {named: {bst: x}}": ("TS014", 'the document never makes "bst"', "bst", "did you mean best?"),
        "expect: {stores: {best: x}}": ("TS014", "a playbook has no stores", "best", "its values are in named"),
        "tools: {serch/find: {returns: 1}}": (
            "TS006",
            'never calls the tool "serch/find"',
            "serch/find",
            "search/find",
        ),
        "then: [{fork: {from: 8}}]": ("TS005", 'unknown step "8"', "fork", ""),
        'then: [{resume: , model: {"9": x}}]': ("TS005", 'unknown step "9"', "x", ""),
    },
    "board": {
        "model: [a, b]": ("TS008", "step 1.do asks the model several things at a time", "a", "{step: 1.do, item: 0"),
        'model: {"4": x}': ("TS005", "step 4 asks no model itself", '"4"', ""),
        'model: {"2": x}': ("TS005", "step 2 asks no model itself", '"2"', ""),
        'model: {"2 > 4": x}': ("TS005", "unknown step", '"2 > 4"', ""),
        "expect: {stores: {revews: []}}": ("TS014", 'the document never makes "revews"', "revews", "reviews"),
        'answers: {"5": x}': ("TS007", "step 5 never asks a person", '"5"', ""),
    },
    "fixed": {
        "model: [{contains: helo, reply: a}]": ("TS009", "no prompt of the document contains", "{contains: helo", ""),
        "tools: {search: {returns: 1}}": ("TS006", 'never calls the tool "search"', "search", "it calls no tools"),
        "expect: {calls: {search: 1}}": ("TS006", 'never calls the tool "search"', "search", ""),
    },
    "directive": {
        'model: {"1": x}': ("TS005", 'unknown step "1"', '"1"', "turn 1, turn 2"),
        "expect: {outputs: {topic: 1}}": ("TS014", 'the document never makes "topic"', "topic", "topics"),
        "expect: {named: {topics: 1}}": ("TS014", "a directive has no named", "topics", "outputs"),
    },
}


@pytest.mark.parametrize(("document", "lines"), [(one, lines) for one, several in RIGHT.items() for lines in several])
def test_right_names(document: str, lines: str) -> None:
    assert found(document, lines) == []


@pytest.mark.parametrize(("document", "lines"), [(one, lines) for one, several in WRONG.items() for lines in several])
def test_wrong_names(document: str, lines: str) -> None:
    code, message, marked, help = WRONG[document][lines]
    (finding,) = found(document, lines)
    assert finding[0] == code and message in finding[1] and finding[2].startswith(marked) and help in finding[3]


def test_texts_in_prompts_are_not_known_without_the_profiles() -> None:
    assert found("fixed", "model: [{contains: helo, reply: a}]", None) == []
    assert found("fixed", "model: [{contains: helo, reply: a}]", "You are helo.") == []


def test_a_finding_about_the_defaults_is_there_once() -> None:
    file = file_of('defaults: {model: {"9": x}}\ncases: [{name: a, crash: everywhere}, {name: b, skip: later}]')
    assert [one.code.id for one in check_against(file, PLANS["playbook"], {})] == ["TS005"]


def test_an_unknown_callee_hides_nothing_that_is_certain() -> None:
    file = file_of('cases: [{name: a, model: {"7.do": x, "2 > 9": y}, expect: {output: z}}]')
    assert check_against(file, PLANS["board"], {}) == []


@pytest.mark.parametrize(
    ("lines", "lint"),
    [
        ('model: {"1": a}', True),
        ('model: {"1": a}\nexpect: {status: completed}', True),
        ("expect: {exit: 0}", True),
        ("then: [{resume: , expect: {status: completed}}]", True),
        ("expect: {status: failed}", False),
        ("expect: {exit: 1}", False),
        ("expect: {output: a}", False),
        ("then: [{resume: , expect: {output: a}}]", False),
        ("model: [{contains: product, reply: a}]", False),
        ("expect: todo", False),
        ("skip: later", False),
        ("crash: everywhere", False),
    ],
)
def test_a_case_that_expects_nothing_is_told(lines: str, lint: bool) -> None:
    body = "".join(f"    {line}\n" for line in lines.splitlines())
    findings = check_against(file_of(f"cases:\n  - name: one\n{body}"), PLANS["playbook"], {})
    assert ("TS112" in [one.code.id for one in findings]) is lint
    file = file_of(f"always: [!expr \"value != ''\"]\ncases:\n  - name: one\n{body}")
    assert "TS112" not in [one.code.id for one in check_against(file, PLANS["playbook"], {})]


@settings(max_examples=depth(60, 1000), deadline=None)
@given(mutated(), st.sampled_from(sorted(PLANS)))
def test_any_test_can_be_held_against_any_document(text: str, document: str) -> None:
    file = reading_of(text).file
    if file is not None:
        for finding in check_against(file, PLANS[document], CALLEES.get(document, {}), ""):
            assert finding.code.id in ("TS005", "TS006", "TS007", "TS008", "TS009", "TS014", "TS112")
            assert 0 <= finding.span.start <= finding.span.end <= len(text)
