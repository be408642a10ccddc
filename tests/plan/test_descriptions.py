"""Words for steps are written once (U3), and a step is found by label or path in one place (U11)."""

from __future__ import annotations

import pytest

from quire.errors import CannotStart
from quire.library.document import read
from quire.plan.descriptions import condition_in_words, instead_of_model, step_name, tool_name
from quire.plan.nodes import Comparison, Step, UseTool
from quire.plan.pipeline_work import Invoke
from quire.plan.vocabulary import path_named
from quire.source import Source

PLAYBOOK = """# P

## STEP 1: Read

@tool(quire, file__read, {"path": "a"})

## STEP 2: Ask

@elicit(input, "Who?")

## STEP 3: Choose

```if x == "a"```
### STEP 3a: A
Go.
```endif```

## STEP 4: Nothing
"""
PIPELINE = """pipeline: p
steps:
  - tool: {name: file__read, args: {path: a}, output: text}
  - tool: {name: ask, args: {prompt: Who?}}
  - call: {pipeline: other, pass: {n: "1"}}
  - match: {on: "1", cases: {"1": {pipeline: one}, "2": {pipeline: one}}, default: {pipeline: two}}
  - transform: {value: "1"}
"""


def steps(text: str, name: str) -> list[Step]:
    return [step for _, step in read(Source.of(text, name)).runnable().steps()]


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (Comparison("__elicit_step_4b", "!=", "no"), 'the answer of step 4b != "no"'),
        (Comparison("depth", "==", "deep"), 'depth == "deep"'),
        (None, "else"),
    ],
)
def test_conditions_name_no_hidden_variables(test: Comparison | None, words: str) -> None:
    assert condition_in_words(test) == words


def test_what_a_step_does_instead_of_asking_a_model() -> None:
    assert [instead_of_model(step) for step in steps(PLAYBOOK, "p.playbook.md") if step.label != "3a"] == [
        "it calls the tool quire/file__read",
        "it asks a person",
        "its branches do (3a)",
        "it has no text",
    ]
    assert [instead_of_model(step) for step in steps(PIPELINE, "p.yaml")] == [
        "it calls the tool file__read",
        "it asks a person",
        "it runs the pipeline other",
        "it runs one of the pipelines one, two",
        "it is a transform",
    ]


def test_tools() -> None:
    works = [step.work for step in (*steps(PLAYBOOK, "p.playbook.md"), *steps(PIPELINE, "p.yaml"))]
    named = [tool_name(work) for work in works if isinstance(work, UseTool | Invoke)]
    assert named == ["quire/file__read", "file__read", "ask"]


@pytest.mark.parametrize(
    ("step", "name"),
    [
        ("transform: {title: Sum up, value: '1', output: total}", "Sum up"),
        ("transform: {value: '1', output: total}", "total"),
        ("agent: {prompt: Hello, output: greeting}", "greeting"),
        ("agent: {prompt: Hello}", "Ask the model"),
        ("tool: {name: file__read, args: {path: a}}", "file__read"),
        ("call: {pipeline: other}", "other"),
        ("transform: {value: '1'}", "Compute"),
        ("for_each: {items: [1], on_error: abort, do: {call: {pipeline: other}}, collect: {transform: {value: pipe}}}",
         "other"),
    ],
)  # fmt: skip
def test_the_name_of_a_step_in_all_views(step: str, name: str) -> None:
    first = steps(f"pipeline: p\ndialect: quire\nsteps:\n  - {step}\n", "p.yaml")[0]
    assert step_name(first) == name


def test_the_name_of_a_step_of_a_playbook() -> None:
    assert [step_name(step) for step in steps(PLAYBOOK, "p.playbook.md")][:2] == ["Read", "Ask"]


def test_a_step_by_its_label_or_its_path() -> None:
    labels = {"1": "1", "2/case[1]/1": "2a", "2/case[2]/1": "2b", "3/case[1]/1": "2b"}
    assert [path_named(one, labels) for one in ("1", " 2A ", "3/case[1]/1", "4")] == [
        "1",
        "2/case[1]/1",
        "3/case[1]/1",
        None,
    ]
    with pytest.raises(CannotStart, match=r"several steps are called 2B: say which by its place \(2/case\[2\]/1, 3/"):
        path_named("2B", labels)
