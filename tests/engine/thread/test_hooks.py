from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import within

from quire.engine.interpreter.thread.hooks import (
    OPERATORS,
    condition_holds,
    fill_params,
    in_order,
    is_composed,
    look_up,
    read_hooks_yaml,
    resolve_action,
)
from quire.plan.thread import Hook, HookAction
from quire.values import Value

CONTEXT: dict[str, Value] = {
    "cost": {"spend": 0.95, "turns": 3, "zero": 0},
    "error": {"type": "permission_denied", "message": "no", "resource": None},
    "directive": "project/deploy/staging",
    "items": [{"n": 1}, {"n": 2}],
    "tags": ["a", "b"],
    "limit_code": "spend_exceeded",
    "off": False,
    "empty": "",
}


@pytest.mark.parametrize(
    ("path", "op", "value", "expected"),
    [
        ("cost.turns", "eq", 3, True),
        ("cost.turns", "eq", 3.0, True),
        ("cost.turns", "eq", "3", False),
        ("nowhere", "eq", None, True),
        ("cost.turns", "ne", 4, True),
        ("nowhere", "ne", 4, True),
        ("cost.spend", "gte", 0.9, True),
        ("cost.spend", "gt", 0.95, False),
        ("cost.turns", "lt", 4, True),
        ("cost.turns", "lte", 3, True),
        ("nowhere", "lt", 4, False),
        ("directive", "gt", 4, False),
        ("cost.turns", "gt", "2", False),
        ("directive", "gt", "a", True),
        ("tags", "gt", ["a"], False),
        ("limit_code", "in", ["spend_exceeded", "x"], True),
        ("limit_code", "in", "spend_exceeded", False),
        ("nowhere", "in", [None], False),
        ("directive", "contains", "deploy", True),
        ("directive", "contains", "production", False),
        ("cost.spend", "contains", "95", True),
        ("tags", "contains", "a", True),
        ("tags", "contains", "ab", False),
        ("cost", "contains", "spend", True),
        ("nowhere", "contains", "x", False),
        ("directive", "regex", "^project/.*staging$", True),
        ("directive", "regex", "deploy", True),
        ("cost.turns", "regex", "^3$", True),
        ("directive", "regex", "(", False),
        ("directive", "regex", r"(a)\1", False),
        ("directive", "regex", 5, False),
        ("nowhere", "regex", ".*", False),
        ("off", "exists", None, True),
        ("empty", "exists", None, True),
        ("error.resource", "exists", None, False),
        ("items.1.n", "eq", 2, True),
        ("items.2.n", "exists", None, False),
        ("items.x", "exists", None, False),
        ("directive.x", "exists", None, False),
        ("cost.turns", "roughly", 3, False),
    ],
)
def test_each_operator(path: str, op: str, value: Value, expected: bool) -> None:
    assert condition_holds({"path": path, "op": op, "value": value}, CONTEXT) is expected
    assert condition_holds({"not": {"path": path, "op": op, "value": value}}, CONTEXT) is not expected


TRUE: dict[str, Value] = {"path": "off", "op": "exists"}
FALSE: dict[str, Value] = {"path": "nowhere", "op": "exists"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, True),
        ({"any": [FALSE, TRUE]}, True),
        ({"any": [FALSE, FALSE]}, False),
        ({"any": []}, False),
        ({"all": [TRUE, FALSE]}, False),
        ({"all": []}, True),
        ({"not": {}}, False),
        ({"all": [{"any": [FALSE, TRUE]}, {"not": FALSE}]}, True),
        ({"any": [TRUE], "all": [FALSE]}, False),
        ({**TRUE, "not": TRUE}, False),
        ({"path": "limit_code", "value": "spend_exceeded"}, True),
        ({"any": "x"}, False),
        ({"not": "x"}, False),
        ({"not": {"any": [5]}}, False),
        ({"pth": "off"}, False),
        ({"not": {"pth": "off"}}, False),
        ({"path": 5, "op": "exists"}, False),
    ],
)
def test_conditions_combine_and_what_is_malformed_never_holds(condition: dict[str, Value], expected: bool) -> None:
    assert condition_holds(condition, CONTEXT) is expected


def test_endless_nesting_does_not_hold() -> None:
    condition: dict[str, Value] = {}
    for _ in range(5000):
        condition = {"not": condition}
    assert condition_holds(condition, CONTEXT) is False


def test_a_pattern_takes_linear_time() -> None:
    with within(2):
        assert condition_holds({"path": "t", "op": "regex", "value": "(a*)*b"}, {"t": "a" * 50_000}) is False


any_value: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(any_value, st.sampled_from([*OPERATORS, "?"]), any_value)
def test_no_pair_of_values_makes_an_operator_raise(actual: Any, op: str, expected: Any) -> None:
    assert condition_holds({"path": "x", "op": op, "value": expected}, {"x": actual}) in (True, False)


@given(st.dictionaries(st.sampled_from(["any", "all", "not", "path", "op", "value", "z"]), any_value, max_size=4))
def test_no_condition_raises(condition: dict[str, Any]) -> None:
    assert condition_holds(condition, CONTEXT) in (True, False)


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ("${cost.spend}", 0.95),
        ("${items}", [{"n": 1}, {"n": 2}]),
        ("${items.0.n}", 1),
        ("${off}", False),
        ("spent ${cost.spend} in ${cost.turns}", "spent 0.95 in 3"),
        ("${nowhere}", None),
        ("[${nowhere}]", "[]"),
        ("${nowhere || cost.turns}", 3),
        ("${error.resource || nowhere}", None),
        ("${off || cost.turns}", False),
        ("x${nowhere||directive}", "xproject/deploy/staging"),
        ("tags: ${tags}", 'tags: ["a", "b"]'),
        ("plain", "plain"),
        ("${}", "${}"),
        ("${cost.turns", "${cost.turns"),
        (5, 5),
        ({"a": ["${cost.turns}", {"b": "x${limit_code}"}]}, {"a": [3, {"b": "xspend_exceeded"}]}),
    ],
)
def test_expressions_in_parameters(value: Value, filled: Value) -> None:
    assert fill_params(value, CONTEXT) == filled


@given(st.text(max_size=30))
def test_a_value_is_never_read_for_expressions(text: str) -> None:
    assert fill_params("<${x}>", {"x": f"{text}${{y}}", "y": "secret"}) == f"<{text}${{y}}>"


def test_the_item_of_an_action_is_filled_and_is_always_text() -> None:
    action = HookAction("execute", "directive", "${limit_code}", (("n", "${cost.turns}"),))
    assert resolve_action(action, CONTEXT) == HookAction("execute", "directive", "spend_exceeded", (("n", 3),))
    assert resolve_action(HookAction("execute", "tool", "${nowhere}"), CONTEXT).item_id == ""


def test_only_what_starts_a_thread_brings_text() -> None:
    knowledge, tool = HookAction("execute", "knowledge", "k/a"), HookAction("execute", "tool", "rye/bash")
    assert is_composed(Hook("h", "thread_started", {}, ()), knowledge)
    assert is_composed(Hook("h", "build_system_prompt", {}, ()), knowledge)
    assert not is_composed(Hook("h", "thread_started", {}, ()), tool)
    assert not is_composed(Hook("h", "thread_started", {}, ()), HookAction("sign", "knowledge", "k/a"))
    assert not is_composed(Hook("h", "error", {}, ()), knowledge)


def test_the_order_of_hooks() -> None:
    root, leaf, project = (Hook(name, "error", {}, ()) for name in ("root", "leaf", "project"))
    assert [hook.id for hook in in_order([root], [leaf], [project])] == ["root", "leaf", "project"]


def test_a_project_file() -> None:
    hooks, problems = read_hooks_yaml(
        """\
hooks:
  - id: ph
    event: thread_started
    position: after
    condition: {path: directive, op: contains, value: leaf}
    action: {primary: execute, item_type: knowledge, item_id: k/f}
  - id: two
    event: limit
    actions:
      - {item_id: rye/a, params: {n: 3, t: "${limit_code}"}}
      - {primary: fetch, item_type: knowledge, item_id: k/g}
""",
        "hooks.yaml",
    )
    assert problems == ()
    first, second = hooks
    assert (first.id, first.event, first.position, first.origin) == ("ph", "thread_started", "after", "hooks.yaml")
    assert first.condition == {"path": "directive", "op": "contains", "value": "leaf"}
    assert first.actions == (HookAction("execute", "knowledge", "k/f"),)
    assert second.condition == {}
    assert second.actions == (
        HookAction("execute", "tool", "rye/a", (("n", 3), ("t", "${limit_code}"))),
        HookAction("fetch", "knowledge", "k/g"),
    )


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ()),
        ("hooks:\n", ()),
        ("hooks: []\n", ()),
        ("hooks: 5\n", ("h:1:8: expected `hooks:` and a list, not the number 5",)),
        ("hoks: []\n", ("h:1:1: the key hoks is not known: did you mean hooks?",)),
        ("- 5\n", ("h:1:3: a hook is a mapping, not the number 5",)),
        ("- {event: error}\n", ("h:1:3: the hook has no action",)),
        ("- {event: eror, action: {item_id: a}}\n", ("h:1:11: event eror is not known: did you mean error?",)),
        ("- {action: {item_id: a}}\n", ("h:1:3: event is missing",)),
        ("- {event: error, action: {}}\n", ("h:1:26: item_id is missing",)),
        (
            "- {event: error, position: top, action: {item_id: a}}\n",
            ("h:1:28: position top is not known: there are system, before, after",),
        ),
        (
            "- {event: error, conditon: {path: a}, action: {item_id: a}}\n",
            ("h:1:18: the key conditon is not known: did you mean condition?",),
        ),
        (
            "- {event: error, condition: {path: a, op: equals}, action: {item_id: a}}\n",
            (
                "h:1:29: the operator equals is not known: there are eq, ne, gt, gte, lt, lte, in, contains, regex, "
                "exists",
            ),
        ),
        (
            "- {event: error, condition: {not: {any: x}}, action: {item_id: a}}\n",
            ("h:1:29: any must be a list of conditions",),
        ),
        (
            "- {event: error, condition: {path: a, op: regex, value: '('}, action: {item_id: a}}\n",
            ("h:1:29: the pattern ( is not valid RE2",),
        ),
        ("- {event: error, action: {item_id: a}, id: 5}\n", ("h:1:44: id must be text, not the number 5",)),
        ("- {event: error, action: {item_id: a, params: x}}\n", ("h:1:47: params is a mapping, not text",)),
    ],
)
def test_a_hook_with_anything_wrong_is_left_out(text: str, problems: tuple[str, ...]) -> None:
    assert read_hooks_yaml(text, "h") == ((), problems)


def test_the_hooks_beside_a_wrong_one_stay() -> None:
    text = "- {event: eror, action: {item_id: a}}\n- {event: error, action: {item_id: b}}\n"
    hooks, problems = read_hooks_yaml(text, "h")
    assert [hook.actions[0].item_id for hook in hooks] == ["b"]
    assert len(problems) == 1


@pytest.mark.parametrize("text", ["hooks: [", "hooks: &a [*a]", "hooks: !!python/object:os.system x", "a: 1\na: 2"])
def test_a_file_that_is_no_yaml_gives_no_hooks(text: str) -> None:
    hooks, problems = read_hooks_yaml(text, "h")
    assert hooks == ()
    assert problems


@given(st.text(alphabet="hooks:-{}[]\n event,action'item_id", max_size=80))
def test_no_file_raises(text: str) -> None:
    read_hooks_yaml(text, "h")


def test_the_whole_context_is_at_the_empty_path() -> None:
    assert look_up(CONTEXT, "") is CONTEXT
