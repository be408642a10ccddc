"""A step that calls a tool: its arguments are built as values, never as text."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from quire.engine.requests import Request, ToolRequest
from quire.engine.scope import Scope
from quire.errors import StepFailed
from quire.plan.nodes import Arguments, Hole, Step, Template, UseTool
from quire.plan.uses import OWN, problem_of
from quire.values import InvalidValue, Value, decode, encode


def use_tool(step: Step, work: UseTool, path: str, scope: Scope) -> Generator[Request, Any, str]:
    if problem := problem_of(work):
        raise StepFailed(problem, kind="arguments", path=path)
    result: Value
    arguments = _value(work.arguments, scope)
    if not isinstance(arguments, Mapping):
        raise StepFailed(
            f"@tool({work.connection}, {work.tool}): the arguments must be a JSON object, not {encode(arguments)[:60]}",
            kind="arguments",
            path=path,
        )
    if work.connection == OWN and scope.setting is not None and work.tool in scope.setting.documents:
        from quire.engine.call_document import call_document

        result = yield from call_document(work.tool, arguments, f"{path}/call/", path, scope.setting)
    else:
        result = yield ToolRequest(f"{path}/tool", step.label, work.connection, work.tool, arguments)
    return result if isinstance(result, str) else encode(result)


def _value(tree: Arguments, scope: Scope) -> Value:
    match tree:
        case Template():
            return scope.render(tree)
        case Hole():
            return _hole(tree, scope)
        case tuple():
            return [_value(part, scope) for part in tree]
        case dict():
            return {key: _value(part, scope) for key, part in tree.items()}
    return tree


def _hole(hole: Hole, scope: Scope) -> Value:
    text = scope.render(Template((hole.reference,)))
    try:
        return decode(text)
    except InvalidValue:
        return text
