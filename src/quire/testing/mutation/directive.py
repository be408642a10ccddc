"""Edits of the thread of a directive, and of the schemas of a pipeline's file.

Of a thread: permissions, limits, hooks, outputs, knowledge and references to inputs. The text of the permissions that
the model reads stays as it is: only what the thread may do changes, so that only a call or a refusal can show it. Of a
schema: fields made optional, values of enums and limits dropped, if a step holds its result to it, directly or through
others.

Known equivalences, for which no edit is made: dropping a permission that another one covers, widening one where
everything is granted already, dropping a limit whose value is the default, and negating a condition that always holds,
which is the same as dropping the hook.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as replace_schema
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from quire.engine.interpreter.thread.budgets import DEFAULTS
from quire.plan.built_in_tools import BUILT_IN_TOOLS, SHELL
from quire.plan.pipeline_work import Agent, Invoke
from quire.plan.templates import references
from quire.schema import Schema, object_schema, refs
from quire.schema_types import Enum, Field, FieldType, ListOf, Object, Ref, Simple
from quire.testing.mutation.edits import Edit, place_of, shown, with_item, without
from quire.testing.mutation.kills import Kill
from quire.testing.mutation.mutants import Mutant
from quire.trust.capabilities import Grants, capability
from quire.values import encode

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.plan.thread import Thread
    from quire.source import Source
    from quire.testing.mutation.edits import Site
    from quire.values import Value

_LIMITS = ("minimum", "maximum", "max_length", "pattern")


def schema_mutants(plan: Plan, source: Source) -> Iterator[Mutant]:
    """Yield every change of the schemas that steps use, directly or through others, in the order of the file."""
    named = [step.work.schema for _, step in plan.steps() if isinstance(step.work, Agent | Invoke)]
    used = _reached(plan, [name for name in named if name])
    for name, schema in plan.schemas.items():
        if name not in used:
            continue
        start = place_of(source, name).start
        asking = _asking(plan, name)
        for operator, field, detail, change, fields in _fields(schema.fields, ""):
            schemas = {**plan.schemas, name: replace_schema(schema, fields=fields)}
            sentence = f"{change} of the schema {name}"
            fails = operator != "drop_enum_value"
            kill = Kill("status", value="failed" if fails else "completed")
            if asking:
                # An agent reads its schema, so a prompt shows the change.
                kill = Kill("prompts", asking, value=_written(schema, fields))
            id = ":".join(part for part in (operator, name, field, detail) if part)
            span = place_of(source, field.rpartition(".")[2].removesuffix("[]"), start)
            yield Mutant(id, operator, "", span, sentence, replace(plan, schemas=schemas), kill)


def _asking(plan: Plan, name: str) -> str:
    """Return the label of the first agent whose reply has to fit a schema, or one that refers to it; else nothing."""
    for _, step in plan.steps():
        if isinstance(step.work, Agent) and step.work.schema and name in _reached(plan, [step.work.schema]):
            return step.label
    return ""


def _written(schema: Schema, fields: tuple[Field, ...]) -> str:
    """Return a part of the schema as the model reads it that the changed one does not have."""
    old, new = object_schema(schema.fields), object_schema(fields)
    if old["required"] != new["required"]:
        return f'"required":{encode(old["required"])}'
    properties = cast("dict[str, Value]", old["properties"])
    changed = cast("dict[str, Value]", new["properties"])
    name = next((name for name in properties if properties[name] != changed[name]), "")
    return f"{encode(name)}:{encode(properties[name])}" if name else encode(schema.name)


def _reached(plan: Plan, waiting: list[str]) -> set[str]:
    """Return the names of schemas, and of those that they refer to."""
    names: set[str] = set()
    while waiting:
        name = waiting.pop()
        schema: Schema | None = plan.schemas.get(name)
        if name not in names and schema is not None:
            names.add(name)
            waiting += [ref.schema for ref in refs(schema)]
    return names


_Edited = Iterator[tuple[str, str, str, str, tuple[Field, ...]]]
"""The operator, the dotted name of the field, the detail, the sentence, and all fields."""


def _fields(fields: tuple[Field, ...], above: str) -> _Edited:
    for number, field in enumerate(fields):
        name = f"{above}.{field.name}" if above else field.name
        if field.required:
            optional = with_item(fields, number, replace(field, required=False))
            yield "make_optional", name, "", f"does not require the field {name}", optional
        for operator, inner, detail, change, type in _types(field.type, name):
            yield operator, inner, detail, change, with_item(fields, number, replace(field, type=type))


def _types(type: FieldType, name: str) -> Iterator[tuple[str, str, str, str, FieldType]]:
    match type:
        case Enum(values=values):
            for number, value in enumerate(values if len(values) > 1 else ()):
                fewer = Enum(without(values, number))
                yield "drop_enum_value", name, str(number), f"drops the value {shown(value)} of the field {name}", fewer
        case Simple():
            for limit in _LIMITS:
                if getattr(type, limit) is not None:
                    sentence = f"drops the {limit} of the field {name}"
                    yield "drop_schema_limit", name, limit, sentence, replace(type, **{limit: None})
        case ListOf(of=of, max_items=most):
            if most is not None:
                sentence = f"drops the max_items of the field {name}"
                yield "drop_schema_limit", name, "max_items", sentence, replace(type, max_items=None)
            for operator, inner, detail, change, item in _types(of, f"{name}[]"):
                if not isinstance(item, ListOf):
                    yield operator, inner, detail, change, replace(type, of=item)
        case Object(fields=fields):
            for operator, inner, detail, change, edited in _fields(fields, name):
                yield operator, inner, detail, change, Object(edited)
        case Ref():
            return


EVERYTHING = "*"
_FIRST_TURN = "turn 1"


def directive_edits(site: Site) -> Iterator[Edit]:
    """Yield every edit of a thread."""
    thread = site.plan.thread
    if thread is None:
        return
    yield from _permissions(site, thread)
    yield from _limits(site, thread)
    yield from _hooks(site, thread)
    for number, output in enumerate(thread.outputs):
        if output.required:
            outputs = with_item(thread.outputs, number, replace(output, required=False))
            yield Edit(
                "make_optional",
                output.name,
                f"does not require the output {output.name}",
                site.with_work(outputs=outputs),
                Kill("error", value=output.name),
                site.find(f'"{output.name}"'),
            )
    yield from _knowledge(site, thread)
    yield from _references(site, thread)


def _permissions(site: Site, thread: Thread) -> Iterator[Edit]:
    granted = Grants.of(permission.capability for permission in thread.permissions)
    for number, permission in enumerate(thread.permissions):
        others = without(thread.permissions, number)
        detail, span = permission.capability, permission.span
        if not Grants.of(other.capability for other in others).covers(permission.capability):
            yield Edit(
                "drop_permission",
                detail,
                f"drops the permission {permission.capability}",
                site.with_work(permissions=others),
                Kill("refused"),
                span,
            )
        if not granted.covers(EVERYTHING):
            wider = with_item(thread.permissions, number, replace(permission, capability=EVERYTHING))
            yield Edit(
                "widen_permission",
                detail,
                f"widens the permission {permission.capability} to {EVERYTHING}",
                site.with_work(permissions=wider),
                Kill("refused", value=_not_granted(granted)),
                span,
            )


def _not_granted(granted: Grants) -> str:
    """Return the capability of a tool that the thread must not use: the shell, or the first built-in one."""
    tools = (SHELL, *(tool.id for tool in BUILT_IN_TOOLS))
    named = (capability("execute", "tool", tool) for tool in tools)
    return next((needed for needed in named if not granted.covers(needed)), "<a capability that it must not have>")


def _limits(site: Site, thread: Thread) -> Iterator[Edit]:
    for name, value in thread.limits.items():
        if name == "spend_currency" or value == DEFAULTS.get(name):
            continue
        limits = {other: amount for other, amount in thread.limits.items() if other != name}
        yield Edit(
            "drop_limit",
            name,
            f"drops the limit {name}, which is {value}",
            site.with_work(limits=limits),
            Kill("error", value=f"limit reached: {name}"),
            site.find(name),
        )


def _hooks(site: Site, thread: Thread) -> Iterator[Edit]:
    for number, hook in enumerate(thread.hooks):
        name = hook.id or f"{hook.event}.{number}"
        others = without(thread.hooks, number)
        kill = Kill("hooks", hook.id)
        sentence = f"drops the hook {name} at {hook.event}"
        yield Edit("drop_hook", name, sentence, site.with_work(hooks=others), kill, hook.span)
        if hook.condition:
            inner = hook.condition.get("not") if len(hook.condition) == 1 else None
            negated = inner if isinstance(inner, dict) else {"not": dict(hook.condition)}
            hooks = with_item(thread.hooks, number, replace(hook, condition=negated))
            sentence = f"negates the condition of the hook {name}"
            yield Edit("negate_condition", name, sentence, site.with_work(hooks=hooks), kill, hook.span)


def _knowledge(site: Site, thread: Thread) -> Iterator[Edit]:
    for place in ("system", "before", "after"):
        ids: tuple[str, ...] = getattr(thread.context, place)
        for number, item in enumerate(ids):
            context = replace(thread.context, **{place: without(ids, number)})
            yield Edit(
                "drop_knowledge",
                f"{place}.{item}",
                f"drops the knowledge {item} from {place}",
                site.with_work(context=context),
                Kill("prompts", _FIRST_TURN),
                site.find(item),
            )


def _references(site: Site, thread: Thread) -> Iterator[Edit]:
    """Yield edits that drop a reference to an input from the text of the directive."""
    for name in ("body", "inside"):
        text: str = getattr(thread, name)
        for number, reference in enumerate(references(text)):
            span = reference.span
            written = text[span.start : span.end]
            fewer = text[: span.start] + text[span.end :]
            yield Edit(
                "drop_reference",
                f"{name}.{reference.name}.{number}",
                f"drops {written} from the text",
                site.with_work(**{name: fewer}),
                Kill("prompts", _FIRST_TURN, reference.name),
                site.find(written),
            )
