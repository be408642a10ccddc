"""Check names of a playbook in its workspace: calls of other documents, `@tool(quire, NAME, {…})`, and models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic
from quire.formats.near_names import name_fix
from quire.formats.playbook.codes import lints, reader
from quire.formats.playbook.lower import arguments
from quire.formats.playbook.names import family
from quire.formats.resolver import CallTarget, DocumentResolver
from quire.plan.built_in_tools import BUILT_IN_TOOLS, MEANT_TOOLS
from quire.plan.nodes import Arguments, Template, ValueSlot
from quire.plan.templates import key_references
from quire.plan.uses import OWN
from quire.wording import Suggestions, did_you_mean, nearest

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import Playbook, ToolCall
    from quire.source import Source
    from quire.values import Value

PYTHON = "python"
"""The connection of the Python tools of a workspace."""


def check_calls(playbook: Playbook, resolver: DocumentResolver, source: Source) -> Iterator[Diagnostic]:
    """Check the calls of a playbook, whether they lead back to it, and the names of its models."""
    yield from _models(playbook, resolver)
    tools = [step.tool for parent in playbook.steps for step in family(parent) if step.tool]
    for tool in tools:
        yield from _tool(tool, resolver)
    calls = [tool for tool in tools if tool.connection == OWN and not resolver.is_built_in(tool.tool)]
    suggestions = Suggestions()
    for call in calls:
        yield from _call(call, resolver, suggestions)
    if not calls:
        return
    first = {call.tool: call for call in reversed(calls)}
    for circle in resolver.circles(source, [CallTarget(name) for name in dict.fromkeys(call.tool for call in calls)]):
        code = lints.DECIDED_CIRCLE if circle.decided else reader.CIRCLE
        label = "" if circle.decided else "the run is refused"
        help = "the call that closes it would fail; leave one of them out" if circle.decided else _BREAK
        yield Diagnostic(code, str(circle), first[circle.call.name].span, label, help)


def _models(playbook: Playbook, resolver: DocumentResolver) -> Iterator[Diagnostic]:
    chosen = [step.model for parent in playbook.steps for step in family(parent) if step.model]
    names = resolver.models() if chosen else None
    if names is None:
        return
    known, suggestions = sorted(names), Suggestions()
    for choice in chosen:
        if choice.name in names:
            continue
        close = suggestions.nearest(choice.name, known)
        help = did_you_mean(close, "name a tier of [models.tiers] or a profile of [agents] in quire.toml", form='"{}"')
        fix = name_fix(choice.name, known, choice.name_span) if close else None
        message = f'No tier and no profile is named "{choice.name}" here'
        label = "done by the model of the run"
        yield Diagnostic(lints.UNKNOWN_MODEL, message, choice.name_span, label, help, fix)


def _tool(call: ToolCall, resolver: DocumentResolver) -> Iterator[Diagnostic]:
    if call.connection not in (OWN, PYTHON):
        connections = resolver.connections()
        if connections is not None and call.connection not in connections:
            message = f'Unknown connection "{call.connection}": .mcp.json has no server of that name'
            help = did_you_mean(nearest(call.connection, connections), form='"{}"')
            yield Diagnostic(lints.UNKNOWN_CALLEE, message, call.span, "the run could not start", help)
        return
    try:
        values = arguments(call.arguments)
    except ValueError:
        return  # reported by another lint
    code = lints.BUILTIN_ARGUMENTS if call.connection == OWN else lints.PYTHON_TOOL
    for problem in resolver.tool_problems(call.connection, call.tool, values):
        yield Diagnostic(code, f"{call.tool}: {problem}", call.span, "the run could not start")


def _call(call: ToolCall, resolver: DocumentResolver, suggestions: Suggestions) -> Iterator[Diagnostic]:
    callee = resolver.document(call.tool)
    if callee is None:
        message = f"Neither a built-in tool nor a document is named {call.tool}"
        names = [tool.name for tool in BUILT_IN_TOOLS] if suggestions.are_left else []
        help = did_you_mean(MEANT_TOOLS.get(call.tool) or suggestions.nearest(call.tool, names))
        yield Diagnostic(lints.UNKNOWN_CALLEE, message, call.span, "the run could not start", help)
        return
    try:
        values = arguments(call.arguments)
    except ValueError:
        return  # reported by another lint
    if not isinstance(values, dict) or key_references(values):
        return
    if missing := callee.missing(values):
        yield Diagnostic(lints.CALLEE_INPUTS, f"{missing[0].upper()}{missing[1:]}", call.span)
    for name, hint in callee.unknown(values):
        message = f"The {callee.format} {callee.name} has no input {name}"
        yield Diagnostic(lints.CALLEE_INPUTS, message, call.span, "", hint)
    for name, value in values.items():
        literal = _literal(value)
        problem = callee.wrong(name, literal[0]) if literal else ""
        if problem:
            message = f"The {callee.format} {callee.name} cannot take this {name}: {problem}"
            yield Diagnostic(lints.CALLEE_INPUTS, message, call.span)


def _literal(value: Arguments) -> tuple[Value] | None:
    """Return a value that is the same in every run; None if it depends on the run."""
    match value:
        case ValueSlot():
            return None
        case Template():
            return None if any(value.references()) else ("".join(str(part) for part in value.parts),)
        case tuple():
            items = [_literal(part) for part in value]
            return None if None in items else ([item[0] for item in items if item],)
        case dict():
            parts = {name: _literal(part) for name, part in value.items()}
            if None in parts.values() or key_references(value):
                return None
            return ({name: part[0] for name, part in parts.items() if part},)
    return (value,)


_BREAK = "leave one of these calls out"
