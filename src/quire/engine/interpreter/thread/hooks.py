"""Hooks without their effects: evaluate conditions, fill in `${…}`, and order the hooks.

Conditions and patterns come from documents and are evaluated in the middle of a run, so they never raise: a comparison
that makes no sense, an invalid pattern and an unknown operator simply do not hold.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from quire.plan.templates import as_text, input_text
from quire.plan.thread import THREAD_RULES, Hook, HookAction
from quire.plan.vocabulary import adds_context
from quire.safe_regex import compiled
from quire.source import Source
from quire.values import Value, clean

_MAX_DEPTH = 100
_EXPRESSION = re.compile(r"\$\{([^{}]++)\}")
_FILLED = re.compile(r"\{input:(\w++)(?:(\?)|[:|]([^}]*+))?\}|\$\{([^{}]++)\}")
"""All references, filled in one pass, so that an inserted value is never searched for references."""

_SPELLING = 1
"""Conditions compare truth values as texts, in the spelling of 0.1.0."""

_INDEX = re.compile(r"[0-9]{1,9}")


def condition_holds(condition: Mapping[str, Value], context: Mapping[str, Value]) -> bool:
    """Evaluate a condition. An empty condition always holds; a malformed one never does, not even under `not`."""
    try:
        return _holds(condition, context, 0)
    except _Malformed:
        return False


class _Malformed(Exception):
    pass


def _holds(condition: Value, context: Mapping[str, Value], depth: int) -> bool:
    if not isinstance(condition, Mapping) or depth > _MAX_DEPTH:
        raise _Malformed
    results: list[bool] = []
    for name in ("any", "all"):
        if name in condition:
            parts = condition[name]
            if not isinstance(parts, list | tuple):
                raise _Malformed
            found = [_holds(part, context, depth + 1) for part in parts]
            results.append(any(found) if name == "any" else all(found))
    if "not" in condition:
        results.append(not _holds(condition["not"], context, depth + 1))
    if "path" in condition or "op" in condition:
        path, op = condition.get("path", ""), condition.get("op", "eq")
        if not isinstance(path, str) or not isinstance(op, str):
            raise _Malformed
        test = OPERATORS.get(op)
        results.append(test is not None and test(look_up(context, path), condition.get("value")))
    if not results and condition:
        raise _Malformed
    return all(results)


def look_up(context: Value, path: str) -> Value:
    """Return the value at a dotted path, or None; numbers index the items of a list from 0."""
    found = context
    for part in path.split(".") if path else ():
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, list | tuple) and _INDEX.fullmatch(part) and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found


def _ordering(compare: Callable[[Any, Any], Any]) -> Callable[[Value, Value], bool]:
    def test(actual: Value, expected: Value) -> bool:
        numbers = isinstance(actual, int | float) and isinstance(expected, int | float)
        texts = isinstance(actual, str) and isinstance(expected, str)
        return (numbers or texts) and bool(compare(actual, expected))

    return test


def _in(actual: Value, expected: Value) -> bool:
    return actual is not None and isinstance(expected, list | tuple) and actual in expected


def _contains(actual: Value, expected: Value) -> bool:
    """Look for a part of a text, an item of a list, or a key of an object."""
    if actual is None or expected is None:
        return False
    if isinstance(actual, list | tuple):
        return expected in actual
    if isinstance(actual, Mapping):
        return expected in actual if isinstance(expected, str) else False
    return as_text(expected, _SPELLING) in as_text(actual, _SPELLING)


def _matches(actual: Value, expected: Value) -> bool:
    if actual is None or not isinstance(expected, str):
        return False
    pattern = compiled(expected)
    return pattern is not None and pattern.search(clean(as_text(actual, _SPELLING))) is not None


OPERATORS: Mapping[str, Callable[[Value, Value], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": _ordering(operator.gt),
    "gte": _ordering(operator.ge),
    "lt": _ordering(operator.lt),
    "lte": _ordering(operator.le),
    "in": _in,
    "contains": _contains,
    "regex": _matches,
    "exists": lambda actual, _: actual is not None,
}


def fill_params(value: Value, context: Mapping[str, Value], rules: int = THREAD_RULES) -> Value:
    """Return the value with every `${a.b}` and `{input:x}` in its texts filled in, once.

    A text that is a single `${…}` becomes the value that it stands for, of any type, or None. Inside a text the value
    is written out, and a missing one becomes empty.
    """
    if isinstance(value, str):
        whole = _EXPRESSION.fullmatch(value)
        return _evaluated(whole[1], context) if whole else _filled(value, context, rules)
    if isinstance(value, Mapping):
        return {name: fill_params(part, context, rules) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [fill_params(part, context, rules) for part in value]
    return value


def _filled(text: str, context: Mapping[str, Value], rules: int) -> str:
    end = text.rfind("}") + 1
    if rules < 2:
        return _EXPRESSION.sub(lambda found: _written(_evaluated(found[1], context), rules), text[:end]) + text[end:]
    given = context.get("inputs")
    inputs = given if isinstance(given, Mapping) else {}

    def value_of(found: re.Match[str]) -> str:
        if found[4]:
            return _written(_evaluated(found[4], context), rules)
        return input_text(found, None, inputs, rules)

    return _FILLED.sub(value_of, text[:end]) + text[end:]


def resolve_action(action: HookAction, context: Mapping[str, Value], rules: int = THREAD_RULES) -> HookAction:
    """Return the action with its item's id and its parameters filled in."""
    parameters = tuple((name, fill_params(value, context, rules)) for name, value in action.parameters)
    item_id = _written(fill_params(action.item_id, context, rules), rules)
    return HookAction(action.primary, action.item_type, item_id, parameters)


def is_composed(hook: Hook, action: HookAction) -> bool:
    """Tell whether the action brings a text into the first message or the system text.

    Composition has done that already, so a thread does not perform it again.
    """
    return adds_context(hook.event) and action.item_type == "knowledge" and action.primary in ("execute", "fetch")


def in_order(*layers: Iterable[Hook]) -> tuple[Hook, ...]:
    """Return the hooks of all layers in one sequence.

    Layers are given from the root ancestor down to the leaf, then the project.
    """
    return tuple(hook for layer in layers for hook in layer)


def _evaluated(expression: str, context: Mapping[str, Value]) -> Value:
    """Return the first value that one of the paths between `||` leads to, or None."""
    for path in expression.split("||"):
        found = look_up(context, path.strip())
        if found is not None:
            return found
    return None


def _written(value: Value, rules: int) -> str:
    return "" if value is None else as_text(value, rules)


def loses_a_gate(text: str, origin: str) -> bool:
    """Tell whether a hook that may judge outputs is left out of a project's file."""
    from quire.formats.directive.hooks_file import HooksFile

    file = HooksFile(Source.of(text, origin))
    file.read()
    return file.loses_a_gate


def read_hooks_yaml(text: str, origin: str) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Read a project's hooks, a list under `hooks:`. Return the hooks, and all problems as `origin:line:column: …`.

    A hook with any problem is left out: half a condition would let it act where it must not.
    """
    from quire.formats.directive.hooks_file import HooksFile  # YAML costs tens of milliseconds that few threads need

    return HooksFile(Source.of(text, origin)).read()
