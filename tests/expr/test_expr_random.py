"""Random expressions: a second, plain evaluator agrees with the closures; random text and data raise nothing foreign.

The generator draws trees of its own (tuples), writes each as text in its own way and works out its value by a direct
walk in Python. Nothing of it is shared with the parser, the tree or the compiler under test.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.depth import depth

from quire.expr import EvalError, ExpressionError, compile, parse, reads
from quire.values import Value

CONTEXT: dict[str, Any] = {
    "n": 3,
    "f": 0.5,
    "s": "abc",
    "t": True,
    "z": None,
    "l": [1, 2, 3],
    "rows": [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": []}],
    "o": {"a": {"b": 7}},
}
NAMES = ("x", "y", "ctx")


class Failed(Exception):
    pass


def trees(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Twice the weight for what makes lists, so that combinators find some."""
    parameter = st.sampled_from(NAMES)
    lists = st.one_of(
        st.tuples(st.just("list"), st.lists(children, max_size=3)),
        st.tuples(st.just("path"), st.sampled_from([("ctx", "l"), ("ctx", "rows"), ("rows",)])),
        children,
    )
    return st.one_of(
        st.tuples(st.just("list"), st.lists(children, max_size=3)),
        st.tuples(st.just("map"), st.lists(st.tuples(st.sampled_from(["a", "b", "a b", "and"]), children), max_size=3)),
        st.tuples(st.sampled_from(["not", "minus"]), children),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(children, min_size=2, max_size=3)),
        st.tuples(st.sampled_from(["==", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"]), children, children),
        st.tuples(st.sampled_from(["map", "filter", "all", "any", "find"]), lists, parameter, children),
        st.tuples(st.sampled_from(["count", "sum"]), lists),
        st.tuples(st.just("join"), lists, children),
        st.tuples(st.just("get"), children, st.sampled_from(["a", "o.a.b", "id", "a b"]), st.none() | children),
    )


LEAVES = st.one_of(
    st.tuples(
        st.just("constant"),
        st.sampled_from([None, True, False, 0, 1, 2, 7, 10**30, 0.5, 1.0, 2.25, "", "a", "it's", "\n\\"]),
    ),
    st.tuples(
        st.just("path"),
        st.sampled_from(
            [
                ("ctx",),
                ("ctx", "n"),
                ("ctx", "l"),
                ("ctx", "o", "a", "b"),
                ("rows",),
                ("f",),
                ("x",),
                ("x", "id"),
                ("y",),
            ]
        ),
    ),
)
TREES = st.recursive(LEAVES, trees, max_leaves=14)


def written(tree: Any) -> str:
    """Brackets around every part: what binds how is for the tables of the parser's tests."""
    match tree:
        case ("constant", value):
            if isinstance(value, str):
                return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
            return json.dumps(value)
        case ("path", segments):
            return ".".join(segments)
        case ("list", items):
            return f"[{', '.join(map(written, items))}]"
        case ("map", entries):
            return "{" + ", ".join(f"{json.dumps(key)}: {written(part)}" for key, part in entries) + "}"
        case ("not", operand):
            return f"(not {written(operand)})"
        case ("minus", operand):
            return f"(-{written(operand)})"
        case ("and" | "or" as word, operands):
            return "(" + f" {word} ".join(map(written, operands)) + ")"
        case ("join", source, separator):
            return f"join({written(source)}, {written(separator)})"
        case ("count" | "sum" as name, source):
            return f"{name}({written(source)})"
        case ("get", base, keys, default):
            return f"get({written(base)}, '{keys}'{'' if default is None else ', ' + written(default)})"
        case (("map" | "filter" | "all" | "any" | "find") as name, source, parameter, body):
            return f"{name}({written(source)}, {parameter} -> {written(body)})"
        case (sign, left, right):
            return f"({written(left)} {sign} {written(right)})"
    raise AssertionError(tree)


def need(condition: bool) -> None:
    if not condition:
        raise Failed


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def worth(tree: Any, names: dict[str, Any]) -> Any:
    match tree:
        case ("constant", value):
            return value
        case ("path", (root, *rest)):
            need(root in names or root in CONTEXT)
            value = names[root] if root in names else CONTEXT[root]
            for key in rest:
                need(isinstance(value, dict) and key in value)
                value = value[key]
            return value
        case ("list", items):
            return [worth(item, names) for item in items]
        case ("map", entries):
            return {key: worth(part, names) for key, part in entries}
        case ("not", operand):
            return not worth(operand, names)
        case ("minus", operand):
            value = worth(operand, names)
            need(number(value))
            return -value
        case ("and", operands):
            for operand in operands:
                if not (value := worth(operand, names)):
                    break
            return value
        case ("or", operands):
            for operand in operands:
                if value := worth(operand, names):
                    break
            return value
        case ("join", source, separator):
            items, between = worth(source, names), worth(separator, names)
            need(isinstance(items, list) and isinstance(between, str) and all(isinstance(item, str) for item in items))
            return between.join(items)
        case ("count", source):
            items = worth(source, names)
            need(isinstance(items, list))
            return len(items)
        case ("sum", source):
            items = worth(source, names)
            need(isinstance(items, list) and all(number(item) for item in items))
            result: Any = 0
            for item in items:
                result = result + item
            return result
        case ("get", base, keys, default):
            value = worth(base, names)
            instead = None if default is None else worth(default, names)
            for key in keys.split("."):
                if not isinstance(value, dict) or key not in value:
                    return instead
                value = value[key]
            return value
        case (("map" | "filter" | "all" | "any" | "find") as name, source, parameter, body):
            items = worth(source, names)
            need(isinstance(items, list))
            return applied(name, items, lambda item: worth(body, {**names, parameter: item}))
        case (sign, left, right):
            return combined(sign, worth(left, names), worth(right, names))
    raise AssertionError(tree)


def applied(name: str, items: list[Any], function: Any) -> Any:
    if name == "map":
        return [function(item) for item in items]
    if name == "filter":
        return [item for item in items if function(item)]
    if name == "find":
        return next((item for item in items if function(item)), None)
    return all(map(function, items)) if name == "all" else any(map(function, items))


def combined(sign: str, left: Any, right: Any) -> Any:
    if sign in ("==", "!="):
        return (left == right) is (sign == "==")
    if sign in ("<", ">", "<=", ">="):
        texts = isinstance(left, str) and isinstance(right, str)
        need(texts or (isinstance(left, int | float) and isinstance(right, int | float)))
        return {"<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right}[sign]
    alike = any(isinstance(left, kind) and isinstance(right, kind) for kind in (str, list))
    need((number(left) and number(right)) or (sign == "+" and alike))
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    need(right != 0)
    whole = isinstance(left, int) and isinstance(right, int)
    return left // right if whole and left % right == 0 else left / right


@settings(max_examples=depth(80, 400), deadline=None)
@given(TREES)
@example(("map", ("path", ("ctx", "l")), "ctx", ("path", ("ctx",))))
@example(("/", ("constant", 10**30), ("constant", 7)))
def test_the_closures_agree_with_a_plain_walk(tree: Any) -> None:
    expected: Any = None
    try:
        expected, fails = worth(tree, {"ctx": CONTEXT, "pipe": None}), False
    except Failed:
        fails = True
    compiled = compile(parse(written(tree)))
    before = json.dumps(CONTEXT)
    if fails:
        with pytest.raises(EvalError):
            compiled.evaluate({"ctx": CONTEXT, "pipe": None}, CONTEXT)
    else:
        assert json.dumps(compiled.evaluate({"ctx": CONTEXT, "pipe": None}, CONTEXT)) == json.dumps(expected)
    assert json.dumps(CONTEXT) == before


PIECES = st.sampled_from(
    [
        *"()[]{},:.+-*/<>=!'\"\\ \n\t&|%#$é\x00\ud800",
        *("->", "==", "!=", "<=", ">=", "1", "2.5", "007", "'a'", '"b"', "ctx", "pipe", "x", "x.y", "ctx.l", "ctx.n"),
        *(" and ", " or ", "not ", "true", "false", "null", "map(", "filter(", "all(", "any(", "find("),
        *("count(", "sum(", "join(", "get(", ", x -> ", "9" * 40, "-" * 30, "(" * 20, "[1, 2]", "{a: 1}"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=depth(120, 600), deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=40), VALUES, VALUES)
def test_nothing_but_our_errors_gets_out(text: str, context: Value, pipe: Value) -> None:
    try:
        compiled = compile(parse(text))
        reads(compiled.expression)
        compiled.evaluate({"ctx": context, "pipe": pipe}, context if isinstance(context, dict) else {})
    except ExpressionError as error:
        assert 0 <= error.span.start < error.span.end <= len(text) + 1
        assert str(error)


@settings(max_examples=depth(60, 300), deadline=None)
@given(VALUES, VALUES)
def test_equality_is_python_equality(left: Value, right: Value) -> None:
    evaluate = compile(parse("[ctx == pipe, ctx != pipe]")).evaluate
    for one, other in ((left, right), (left, json.loads(json.dumps(left)))):
        assert evaluate({"ctx": one, "pipe": other}) == [one == other, one != other]


@settings(max_examples=depth(40, 200), deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False) | st.integers()
)
def test_no_number_leaves_its_range(left: float, right: float) -> None:
    for sign in "+-*/":
        try:
            value = compile(parse(f"ctx {sign} pipe")).evaluate({"ctx": left, "pipe": right})
        except EvalError:
            continue
        assert isinstance(value, int | float) and math.isfinite(value)
