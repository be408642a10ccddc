from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.engine.inputs import resolve_inputs
from quire.errors import BadInputs
from quire.plan.thread import Parameter
from quire.values import Value, encode

json_values: st.SearchStrategy[Value] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("type", "value", "resolved"),
    [
        ("string", "x", "x"),
        ("string", "", ""),
        ("integer", 3, 3),
        ("integer", "12", 12),
        ("integer", " -7 ", -7),
        ("integer", 4.0, 4),
        ("int", "1", 1),
        ("number", "2.5", 2.5),
        ("number", "3", 3),
        ("number", "1e3", 1000.0),
        ("number", 0.5, 0.5),
        ("boolean", "Yes", True),
        ("boolean", "false", False),
        ("boolean", False, False),
        ("array", [1], [1]),
        ("list", "[1, 2]", [1, 2]),
        ("object", {"a": 1}, {"a": 1}),
        ("dict", '{"a": 1}', {"a": 1}),
        ("path-to-a-file", [1], [1]),
        ("INTEGER", "5", 5),
    ],
)
def test_a_value_becomes_what_its_type_says(type: str, value: Value, resolved: Value) -> None:
    found = resolve_inputs([Parameter("n", type)], {"n": value})
    assert found == {"n": resolved}
    assert [str(kind) for kind in map(repr, found.values())] == [repr(resolved)]


@pytest.mark.parametrize(
    ("type", "value", "problem"),
    [
        ("string", 5, "input n: 5 is not a string"),
        ("integer", "abc", 'input n: "abc" is not an integer'),
        ("integer", "1.5", 'input n: "1.5" is not an integer'),
        ("integer", "", 'input n: "" is not an integer'),
        ("integer", True, "input n: true is not an integer"),
        ("integer", "٣", 'input n: "٣" is not an integer'),
        ("number", "1e999999999", 'input n: "1e999999999" is not a number'),
        ("number", True, "input n: true is not a number"),
        ("boolean", "maybe", 'input n: "maybe" is not a boolean: true or false'),
        ("boolean", 1, "input n: 1 is not a boolean: true or false"),
        ("array", '{"a": 1}', 'input n: "{"a": 1}" is not an array: as text it is written in JSON, as in [1, 2]'),
        ("object", "x", 'input n: "x" is not an object: as text it is written in JSON, as in {"a": 1}'),
        ("integer", "9" * 100, None),
    ],
)
def test_a_value_of_another_type_is_refused(type: str, value: Value, problem: str | None) -> None:
    if problem is None:
        assert resolve_inputs([Parameter("n", type)], {"n": value}) == {"n": int(str(value))}
        return
    with pytest.raises(BadInputs) as error:
        resolve_inputs([Parameter("n", type)], {"n": value})
    assert error.value.problems == [problem]


def test_a_default_counts_as_a_value_and_has_the_type() -> None:
    declared = [Parameter("a", required=True, default="x"), Parameter("n", "integer", default="3"), Parameter("z")]
    assert resolve_inputs(declared, {}) == {"a": "x", "n": 3}
    assert resolve_inputs(declared, {"a": None, "n": 4}) == {"a": "x", "n": 4}
    with pytest.raises(BadInputs, match='input n: its default "three" is not an integer'):
        resolve_inputs([Parameter("n", "integer", default="three")], {})


def test_all_problems_are_told_at_once() -> None:
    declared = [
        Parameter("target", required=True, description="Where\n  to"),
        Parameter("count", "integer", required=True),
        Parameter("note"),
    ]
    with pytest.raises(BadInputs) as error:
        resolve_inputs(declared, {"tarjet": "x", "zzz": 1, "count": "many"})
    assert error.value.problems == [
        "unknown parameter tarjet (did you mean target?)",
        "unknown parameter zzz: the directive's inputs are target, count, note",
        "missing required input target (string): Where to",
        'input count: "many" is not an integer',
    ]


def test_without_declared_inputs_everything_is_passed_on() -> None:
    assert resolve_inputs([], {"a": 1, "b": [None]}) == {"a": 1, "b": [None]}


@given(
    st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "mystery"]),
    json_values,
    st.booleans(),
)
def test_nothing_but_bad_inputs_comes_of_any_value(type: str, value: Value, as_text: bool) -> None:
    try:
        found = resolve_inputs([Parameter("n", type)], {"n": encode(value) if as_text else value})
    except BadInputs as error:
        assert error.problems
    else:
        encode(found)
