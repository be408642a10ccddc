"""The hooks of a thread as facts: how often they act, what they can decide, and the exact flows of their arguments.

The calls of the model of a thread are not known, but the actions of its hooks are written down: their arguments are
made from values of the event by `${…}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from quire.analysis.abstract_values import NULL, TEXT, AbstractValue, either, literal, sized
from quire.analysis.amounts import Amount, number, total
from quire.analysis.facts import Condition, EffectFact, Place
from quire.analysis.labels import AUTHORED, Label, joined
from quire.engine.interpreter.thread.budgets import RAISABLE
from quire.engine.interpreter.thread.hooks import OPERATORS, is_composed
from quire.engine.premises import MOST_CALLS
from quire.plan.templates import is_static
from quire.plan.vocabulary import CONTROL, DECISIONS
from quire.trust.capabilities import canonical

if TYPE_CHECKING:
    from quire.analysis.scope import Scope
    from quire.analysis.walk import Walk
    from quire.plan.thread import Hook, HookAction, Thread
    from quire.values import Value

_ASKING = frozenset(("escalate", "suspend"))
_ENDING = frozenset(("fail", "abort"))
_REFERENCE = re.compile(r"\$\{([^{}]++)\}|\{input:(\w++)[^}]*+\}")
"""Texts are searched only up to their last brace, so that no search runs to the end in vain."""
_EVENT_VALUES = 100_000
"""The longest text that an event has: the error of a tool, or the outputs of the thread."""
_ANY_LIMIT = frozenset(RAISABLE)


def acting(hooks: Iterable[Hook]) -> Iterator[tuple[Hook, HookAction]]:
    """Yield the actions that hooks perform while the thread runs. Texts that they add to the prompt are composed."""
    return ((hook, action) for hook in hooks for action in hook.actions if not is_composed(hook, action))


def firings(event: str, turns: Amount, attempts: int) -> Amount:
    """Return how often an event happens. `attempts` are the model calls of a turn. Each call that fails is an event,
    also the one over the limit of a turn that is kept."""
    uses = MOST_CALLS + 1
    match event:
        case "thread_started" | "after_complete" | "limit":
            return number(1)
        case "after_step":
            return turns
        case "error":
            return turns.times(number(uses + attempts))
        case "directive_return":
            return turns.times(number(uses))
    return number(0)


def decisions(hooks: Iterable[Hook], event: str) -> frozenset[str]:
    """Return everything that the hooks of an event can decide."""
    decided: set[str] = set()
    for _, action in acting(hook for hook in hooks if hook.event == event):
        if not is_static(action.item_id) or (action.item_type == "directive" and action.primary == "execute"):
            return frozenset(DECISIONS)
        if canonical(action.item_id) == CONTROL:
            decision = dict(action.parameters).get("action")
            if not isinstance(decision, str) or not is_static(decision):
                return frozenset(DECISIONS)
            decided.add(decision)
    return frozenset(decided)


def asks(hooks: Iterable[Hook], event: str) -> bool:
    """Tell whether a hook of the event may put a question to a person."""
    return bool(decisions(hooks, event) & _ASKING)


def tries_again(hooks: Iterable[Hook]) -> bool:
    """Tell whether a hook may let a thread continue after its model has failed."""
    fitting = [hook for hook in hooks if hook.event == "error" and _at_model_failure(hook.condition) is not False]
    return bool(decisions(fitting, "error") - _ENDING)


def _at_model_failure(condition: Mapping[str, Value]) -> bool | None:
    """Tell whether a condition holds when a model has failed; None if that is not known.

    No tool is concerned then, and nothing was denied: only calls of tools are."""
    for word, decides in (("all", any), ("any", all)):
        several = condition.get(word)
        if set(condition) == {word} and isinstance(several, list | tuple):
            fails = decides(isinstance(part, Mapping) and _at_model_failure(part) is False for part in several)
            return False if fails else None
    path, op, value = condition.get("path"), condition.get("op", "eq"), condition.get("value")
    if path == "error.resource" and isinstance(op, str) and op in OPERATORS:
        return OPERATORS[op]("", value)
    if path == "error.type" and (op, value) == ("eq", "permission_denied"):
        return False
    return None


def raised_limits(hooks: Iterable[Hook]) -> frozenset[str]:
    """Return the limits that a person may be asked to raise."""
    asking = [hook for hook in hooks if hook.event == "limit" and asks((hook,), "limit")]
    return frozenset().union(*(_limits_of(hook.condition) for hook in asking))


def _limits_of(condition: Mapping[str, Value]) -> frozenset[str]:
    """Return the limits for which a condition can hold: one that it compares with, else all."""
    parts = condition.get("all")
    if isinstance(parts, list | tuple):
        return _ANY_LIMIT.intersection(*(_limits_of(part) for part in parts if isinstance(part, Mapping)))
    code = condition.get("value")
    if condition.get("path") in ("limit_code", "limit.limit_code") and condition.get("op", "eq") == "eq":
        return _ANY_LIMIT & {str(code).removesuffix("_exceeded")}
    return _ANY_LIMIT


def note_hooks(
    walk: Walk, thread: Thread, place: Place, scope: Scope, output: Label, often: Mapping[str, Amount]
) -> None:
    """Note the effects of all hooks, with the values that their arguments are made of. `output` is the label of all
    that the model says and reads."""
    for hook, action in acting(thread.hooks):
        tool = walk.world.hook_tool(action)
        if tool is None:
            continue
        arguments = {name: _filled(value, scope, output) for name, value in action.parameters}
        if not is_static(action.item_id):
            arguments["item_id"] = _filled(action.item_id, scope, output)
        walk.note_effect(
            EffectFact(
                place,
                tool,
                arguments,
                conditions=(*scope.conditions, _condition(hook, place, scope, output)),
                asked=scope.asked,
                fans=scope.fans,
                often=often[hook.event].times(scope.often),
                span=hook.span,
            )
        )


def _condition(hook: Hook, place: Place, scope: Scope, output: Label) -> Condition:
    """Return the condition of a hook. The model decides if its event happens, unless it is the first or the last."""
    reads = {path: _value(path, scope, output) for path in _paths(hook.condition)}
    certain = hook.event in ("thread_started", "after_complete", "limit")
    label = joined(value.label.narrowed() for value in reads.values())
    if not certain:
        label = label.join(output.narrowed())
    return Condition(place, hook.event, True, reads, label, span=hook.span)


def _paths(condition: Value) -> Iterator[str]:
    if isinstance(condition, Mapping):
        path = condition.get("path")
        if isinstance(path, str):
            yield path
        for name in ("any", "all", "not"):
            yield from _paths(condition.get(name))
    elif isinstance(condition, list | tuple):
        for part in condition:
            yield from _paths(part)


def _filled(value: Value, scope: Scope, output: Label) -> AbstractValue:
    """Return a parameter of an action with its references filled in."""
    match value:
        case str():
            matches = list(_REFERENCE.finditer(value, 0, value.rfind("}") + 1))
            if not matches:
                return literal(value)
            references = (match[1] or f"inputs.{match[2]}" for match in matches)
            values = [_value(path, scope, output) for reference in references for path in reference.split("||")]
            length = total(part.length for part in values).plus(number(len(value) * 4))
            return sized(TEXT, length, joined(part.label for part in values))
        case Mapping():
            fields = {name: _filled(part, scope, output) for name, part in value.items()}
            parts = list(fields.values())
        case list() | tuple():
            parts = [_filled(part, scope, output) for part in value]
            fields = {str(at): part for at, part in enumerate(parts)}
        case _:
            return literal(value)
    label = joined(part.label for part in parts)
    return AbstractValue(None, number(len(parts)), total(part.length for part in parts), label, fields)


def _value(path: str, scope: Scope, output: Label) -> AbstractValue:
    """Return a value of an event."""
    first, _, rest = path.strip().partition(".")
    match first:
        case "inputs" if rest:
            return scope.names.stores.get(rest.partition(".")[0], NULL)
        case "inputs":
            return either([NULL, *scope.names.stores.values()])
        case "event" | "directive" | "thread_id" | "turn" | "cost" | "limits" | "limit":
            return sized(None, number(200), AUTHORED)
    return sized(None, number(_EVENT_VALUES), output)
