"""Check calls of other documents, `@tool(quire, NAME, {…})`: that the document exists and accepts the inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import errors, lints
from quire.formats.playbook.lower import arguments
from quire.formats.playbook.names import family
from quire.formats.resolver import Called, Reach, Wanted
from quire.plan.nodes import Arguments, Hole, Template
from quire.plan.uses import OWN

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import Playbook, ToolCall
    from quire.values import Value

PYTHON = "python"
"""The connection of the Python tools of a workspace."""


class Resolver(Protocol):
    """Port through which the check of calls learns about the workspace."""

    def is_built_in(self, name: str) -> bool: ...

    def document(self, name: str) -> Called | None:
        """Return the document of a name, of any format."""
        ...


@runtime_checkable
class ToolResolver(Protocol):
    """A resolver that knows the built-in tools, and the Python tools of the workspace."""

    def tool_problems(self, connection: str, tool: str, given: Arguments) -> Sequence[str]:
        """Return the problems of a call of a built-in or Python tool of the workspace; empty for other tools."""
        ...


def check_calls(playbook: Playbook, resolver: Resolver, reach: Reach | None = None) -> Iterator[Diagnostic]:
    """Check the calls of a playbook; with `reach`, also whether they lead back to it."""
    tools = [step.tool for parent in playbook.steps for step in family(parent) if step.tool]
    if isinstance(resolver, ToolResolver):
        for tool in tools:
            yield from _tool(tool, resolver)
    calls = [one for one in tools if one.connection == OWN and not resolver.is_built_in(one.tool)]
    for call in calls:
        yield from _call(call, resolver)
    if reach is None or not calls:
        return
    first = {call.tool: call for call in reversed(calls)}
    for circle in reach.circles("", [Wanted(name) for name in dict.fromkeys(call.tool for call in calls)]):
        code = lints.DECIDED_CIRCLE if circle.decided else errors.CIRCLE
        label = "" if circle.decided else "the run is refused"
        help = "the call that closes it would fail; leave one of them out" if circle.decided else _BREAK
        yield Diagnostic(code, str(circle), first[circle.call.name].span, label, help)


def _tool(call: ToolCall, resolver: ToolResolver) -> Iterator[Diagnostic]:
    if call.connection not in (OWN, PYTHON):
        return
    try:
        given = arguments(call.arguments)
    except ValueError:
        return  # reported by another lint
    code = lints.BUILTIN_ARGUMENTS if call.connection == OWN else lints.PYTHON_TOOL
    for problem in resolver.tool_problems(call.connection, call.tool, given):
        yield Diagnostic(code, f"{call.tool}: {problem}", call.span, "the run could not start")


def _call(call: ToolCall, resolver: Resolver) -> Iterator[Diagnostic]:
    callee = resolver.document(call.tool)
    if callee is None:
        message = f"There is no built-in tool and no document {call.tool}"
        yield Diagnostic(lints.UNKNOWN_CALLEE, message, call.span, "the run could not start")
        return
    try:
        given = arguments(call.arguments)
    except ValueError:
        return  # reported by another lint
    if not isinstance(given, dict):
        return
    if missing := callee.missing(given):
        yield Diagnostic(lints.CALLEE_INPUTS, f"{missing[0].upper()}{missing[1:]}", call.span)
    for name, hint in callee.unknown(given):
        message = f"The {callee.format} {callee.name} has no input {name}"
        yield Diagnostic(lints.CALLEE_INPUTS, message, call.span, "", hint)
    for name, value in given.items():
        literal = _literal(value)
        problem = callee.wrong(name, literal[0]) if literal else ""
        if problem:
            message = f"The {callee.format} {callee.name} cannot take this {name}: {problem}"
            yield Diagnostic(lints.CALLEE_INPUTS, message, call.span)


def _literal(value: Arguments) -> tuple[Value] | None:
    """Return a value that is the same in every run; None if it depends on the run."""
    match value:
        case Hole():
            return None
        case Template():
            return None if any(value.references()) else ("".join(str(part) for part in value.parts),)
        case tuple():
            items = [_literal(one) for one in value]
            return None if None in items else ([one[0] for one in items if one],)
        case dict():
            parts = {name: _literal(one) for name, one in value.items()}
            return None if None in parts.values() else ({name: one[0] for name, one in parts.items() if one},)
    return (value,)


_BREAK = "leave one of these calls out"
