"""Facts that a plan shows about its values: the types of stores, and lists that have items."""

from __future__ import annotations

import pytest
from tests.testing.scripted import plan_of

from quire.plan.nodes import Plan
from quire.plan.pipeline_work import ForEach, Formula, Select
from quire.schema_types import Enum, ListOf
from quire.testing.plan_facts import declared_type, is_never_empty

SCHEMAS = """schema: Verdict
fields:
  kind: {type: enum, values: [good, bad]}
  other: {type: enum, values: [x], required: false}
  notes: {type: list, of: {type: string}, max_items: 3}
---
schema: Page
fields:
  verdict: {type: ref, schema: Verdict}
---
pipeline: p
dialect: quire
steps:
"""
AGENT = "- agent: {prompt: hello, schema: Verdict, output: v%s}\n"
MATCH = "- match: {on: %s, cases: {good: {steps: [{transform: {value: '1'}}]}}, output: done}\n"
LOOP = """- for_each:
    over: %s
    on_error: abort
    do: {transform: {value: item}}
    collect: {transform: {value: pipe}}
"""


def chosen(text: str) -> tuple[Plan, Formula]:
    plan = plan_of(SCHEMAS + text)
    return plan, next(step.work.on for _, step in plan.steps() if isinstance(step.work, Select))


@pytest.mark.parametrize(
    ("text", "is_enum"),
    [
        (AGENT % "" + MATCH % "v.kind", True),
        (AGENT % "" + MATCH % "ctx.v.kind", True),
        ("- agent: {prompt: hello, schema: Page, output: v}\n" + MATCH % "v.verdict.kind", True),
        (AGENT % "" + MATCH % "lower(v.kind)", False),
        (AGENT % "" + MATCH % "v.other", False),
        (AGENT % ", on_error: continue" + MATCH % "v.kind", False),
        (AGENT % ", on_error: 'retry(1)'" + MATCH % "v.kind", True),
        (AGENT % "" + "- transform: {value: \"{kind: 'x'}\", output: v}\n" + MATCH % "v.kind", False),
        ("- agent: {prompt: hello, output: v}\n" + MATCH % "v.kind", False),
    ],
)
def test_the_type_of_a_store(text: str, is_enum: bool) -> None:
    assert isinstance(declared_type(*chosen(text)), Enum) == is_enum


def looped(text: str) -> tuple[Plan, str, Formula]:
    plan = plan_of(SCHEMAS + text)
    path, work = next((path, step.work) for path, step in plan.steps() if isinstance(step.work, ForEach))
    assert isinstance(work.source, Formula)
    return plan, path, work.source


STOP = "- stop: {when: not v.notes, value: \"'none'\"}\n"


@pytest.mark.parametrize(
    ("text", "is_filled"),
    [
        (AGENT % "" + STOP + LOOP % "v.notes", True),
        (AGENT % "" + "- fail: {when: not ctx.v.notes, message: none}\n" + LOOP % "v.notes", True),
        (AGENT % "" + LOOP % "v.notes", False),
        (AGENT % "" + STOP + LOOP % "v.kind", False),
        (AGENT % "" + STOP + AGENT % "" + LOOP % "v.notes", False),
        (AGENT % "" + "- transform: {when: not v.notes, value: '1'}\n" + LOOP % "v.notes", False),
        (AGENT % "" + "- stop: {when: v.notes, value: '1'}\n" + LOOP % "v.notes", False),
        (AGENT % "" + "- steps: {when: v.kind == 'bad', do: [" + STOP.strip("- \n") + "]}\n" + LOOP % "v.notes", False),
    ],
)
def test_a_list_that_was_looked_at_has_items(text: str, is_filled: bool) -> None:
    assert is_never_empty(*looped(text)) == is_filled


def test_the_length_of_a_list() -> None:
    plan, _, formula = looped(AGENT % "" + LOOP % "v.notes")
    type = declared_type(plan, formula)
    assert isinstance(type, ListOf) and type.max_items == 3
