"""Bounds of documents in words."""

from __future__ import annotations

import pytest
from tests.plan.test_bounds import pipeline

from quire.display.document_json import bound_words, bounds_data
from quire.library.foresight import Foresight
from quire.plan.bounds import Range


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (Range(), "no model calls"),
        (Range(1, 1), "1 model call"),
        (Range(0, 1_200), "≤ 1,200 model calls"),
        (Range(1, None, "6·|readers| + 30"), "≤ 6·|readers| + 30 model calls"),
        (Range(1, None, "|a| + " * 20), "≤ (a long formula) model calls"),
        (Range(1, None), "any number of model calls"),
    ],
)
def test_bounds_in_words(count: Range, words: str) -> None:
    assert bound_words(count, "model_calls") == words


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [("", "makes at most |rows| model calls"), ("max_items: 5, ", "makes at most 5 model calls")],
)
def test_a_bound_by_inputs_is_a_formula(limit: str, sentence: str) -> None:
    step = "agent: {prompt: 'Do {item}', capabilities: {tools: []}}"
    kept = "collect: {transform: {value: pipe}}"
    fan = f"for_each: {{over: ctx.rows, {limit}on_error: abort, do: {{{step}}}, {kept}}}"
    assert bounds_data(Foresight(None).bounds(pipeline(fan)))["sentence"] == sentence
