"""Values as far as they are known: a part of one is never taken for smaller than it can be."""

from __future__ import annotations

import pytest

from quire.analysis.abstract_values import AbstractValue, literal
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.source import Source
from quire.values import Value

_EACH = "on_error: abort, do: {{tool: {{name: t}}}}, collect: {{transform: {{value: pipe}}}}"
_NESTED = f"for_each: {{{{over: {{over}}, {_EACH}}}}}"


def _most(*steps: str) -> int | None:
    text = "pipeline: p\ndialect: quire\nsteps:\n" + "".join(f"- {step}\n" for step in steps)
    return Foresight(None).proof(read(Source.of(text, "p.yaml")).runnable()).bound("tool_calls").most.as_number


def _rows(few: Value, last: Value, count: int = 60) -> AbstractValue:
    element = literal([*[few] * count, last]).element
    assert element is not None
    return element


def test_the_last_of_many_items_counts() -> None:
    assert _rows([], [1, 2, 3]).items.as_number == 3
    assert _rows({"tags": []}, {"tags": [1, 2, 3]}).field("tags").items.as_number == 3
    assert _rows([[1]], [[1, 2, 3], []]).element is not None
    assert _rows("a", "a longer text").length.as_number == len("a longer text")
    assert (_rows({"tags": []}, {"other": [1, 2]}).field("other").items.as_number or 0) >= 2
    assert (_rows("a", {"tags": [1, 2]}).field("tags").items.as_number or 0) >= 2


def test_the_last_of_many_lists_is_gone_through() -> None:
    inner = _NESTED.format(over="item")
    items = f"[{'[], ' * 50}[1, 2, 3, 4]]"
    step = f"for_each: {{items: {items}, on_error: abort, do: {{{inner}}}, collect: {{transform: {{value: pipe}}}}}}"
    assert _most(step) == 51 * 4


@pytest.mark.parametrize(
    ("first", "other", "over"),
    [
        ("{a: [1, 2, 3, 4]}", "{b: 1}", "ctx.x.a"),
        ("{a: {b: [1, 2, 3, 4]}}", "{a: 1}", "ctx.x.a.b"),
        ("[[1, 2, 3, 4]]", "[]", "find(ctx.x, one -> true)"),
    ],
)
def test_a_part_that_only_one_way_has_is_not_smaller_than_it_is(first: str, other: str, over: str) -> None:
    most = _most(
        f"transform: {{value: '{first}', output: x}}",
        f"transform: {{value: '{other}', when: ctx.sure, output: x}}",
        _NESTED.format(over=f"'{over}'"),
    )
    assert most is not None and most >= 4


def test_a_value_of_a_loop_that_changes_only_its_type_is_walked_again() -> None:
    # Both have six bytes and one item, but only the list can be longer than one in the next round.
    each = _NESTED.format(over="\"acc == 'abcdef' and [] or acc + [1, 2, 3]\"")
    do = f"{{steps: [{{{each}}}, {{transform: {{value: \"['']\"}}}}]}}"
    most = _most(f"repeat: {{init: \"'abcdef'\", max: 2, on_max: keep, until: 'false', do: {do}}}")
    assert most is not None and most >= 4
