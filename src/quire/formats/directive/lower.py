"""Lower the syntax tree of a directive to the Plan: one step, whose work is a thread.

Inheritance is not considered here: a `Thread` is the content of one file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quire.formats.directive import syntax
from quire.formats.directive.syntax import conflicting_limits, cost_values
from quire.plan.built_in_tools import canonical_grant
from quire.plan.nodes import Input, InputType, Plan, Sequence, Step
from quire.plan.thread import Acknowledgement, Context, Hook, HookAction, Parameter, Permission, Thread
from quire.plan.vocabulary import LIMIT_ALIASES, number_or_text
from quire.values import Value, clean

_INPUT_TYPES: Mapping[str, InputType] = {"integer": "number", "number": "number", "boolean": "boolean"}
_SENT = ("process", "success_criteria")


def lower(directive: syntax.Directive) -> Plan:
    work = thread(directive)
    return Plan(
        title=work.name,
        format="directive",
        inputs=tuple(_input(parameter) for parameter in work.inputs),
        body=Sequence((Step(position=1, label="thread", title=work.name, work=work, span=directive.root),)),
        description=work.description,
    )


def thread(directive: syntax.Directive) -> Thread:
    """Build the thread of a directive."""
    permissions = directive.permissions
    context = directive.context.items if directive.context else ()
    return Thread(
        name=syntax.text_of(directive.name),
        version=syntax.text_of(directive.version),
        description=syntax.text_of(directive.description),
        category=syntax.text_of(directive.category),
        author=syntax.text_of(directive.author),
        extends=syntax.text_of(directive.extends),
        permissions=tuple(Permission(canonical_grant(grant.capability), grant.span) for grant in permissions.grants)
        if permissions
        else (),
        permissions_text=permissions.raw if permissions else "",
        acknowledged=tuple(
            Acknowledgement(acknowledge.risk, acknowledge.reason) for acknowledge in permissions.acknowledged
        )
        if permissions
        else (),
        model={name: value.text for name, value in directive.model or ()},
        limits=limits(directive),
        inputs=tuple(_parameters(directive.inputs)),
        outputs=tuple(_parameters(directive.outputs)),
        success=directive.success,
        failure=directive.failure,
        hooks=tuple(_hook(hook) for hook in directive.hooks),
        context=Context(
            *(
                tuple(item.text for at, item in context if at == place)
                for place in ("system", "before", "after", "suppress")
            )
        ),
        body=clean(directive.body),
        inside="\n\n".join(section.text for section in directive.sections if section.tag in _SENT),
        has_permissions=permissions is not None,
        problems=tuple(message for message, _ in conflicting_limits(directive)),
    )


def limits(directive: syntax.Directive) -> dict[str, Value]:
    """Return the limits of `<limits>` and, where it has none, those of `<cost>`, under their canonical names."""
    merged = _cost_limits(directive.cost) if directive.cost else {}
    own = directive.limits or ()
    merged |= {LIMIT_ALIASES[name]: _limit(name, value) for name, value in own if name in LIMIT_ALIASES}
    merged |= {name: _limit(name, value) for name, value in own if name not in LIMIT_ALIASES}
    return merged


def _cost_limits(cost: syntax.Cost) -> dict[str, Value]:
    values = dict(cost_values(cost))
    names = ("turns", "tokens", "spend", "spawns", "duration_seconds", "spend_currency")
    return {name: _limit(name, values[name]) for name in names if name in values}


def condition(tests: Iterable[syntax.Test]) -> dict[str, Value]:
    """Return the JSON form of a condition. Several tests must all hold; a condition without tests always holds."""
    parts: list[Value] = [_test(test) for test in tests]
    if len(parts) > 1:
        return {"all": parts}
    return dict(parts[0]) if parts and isinstance(parts[0], Mapping) else {}


def _test(test: syntax.Test) -> dict[str, Value]:
    if isinstance(test, syntax.Combined):
        if test.kind == "not":
            return {"not": condition(test.parts)}
        return {test.kind: [_test(part) for part in test.parts]}
    value: dict[str, Value] = {} if test.value is None else {"value": test.value}
    return {"path": test.path, "op": test.op, **value}


def _hook(hook: syntax.Hook) -> Hook:
    actions = tuple(_action(action) for action in hook.actions)
    return Hook(hook.id, hook.event, condition(hook.tests), actions, hook.position or "before", span=hook.span)


def _action(action: syntax.Action) -> HookAction:
    """Lower an action. Attributes other than type and id are parameters, such as the query of a fetch."""
    extra = [(name, value) for name, value in action.attributes if name not in ("item_type", "item_id")]
    values: dict[str, Value] = dict([*extra, *action.parameters])
    return HookAction(action.primary, action.attribute("item_type"), action.attribute("item_id"), tuple(values.items()))


def _parameters(declared: Iterable[syntax.Parameter]) -> Iterable[Parameter]:
    return (
        Parameter(parameter.name, parameter.type, parameter.required, parameter.default, parameter.description)
        for parameter in declared
        if parameter.name
    )


def _input(declared: Parameter) -> Input:
    return Input(
        declared.name,
        _INPUT_TYPES.get(declared.type, "string"),
        declared.default,
        (),
        declared.description,
        declared.required and declared.default is None,
    )


def _limit(name: str, value: syntax.Text) -> Value:
    return value.text if name == "spend_currency" else number_or_text(value.text)
