"""A step that calls a tool: its arguments are built as values, never as text."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from quire.engine.requests import Request, ToolRequest
from quire.engine.scope import Scope
from quire.engine.ways import below
from quire.errors import StepFailed
from quire.plan.nodes import Arguments, Hole, Step, Template, UseTool
from quire.plan.uses import OWN, problem_of
from quire.trust.capabilities import canonical
from quire.values import InvalidValue, Value, decode, encode

WRITE = "rye/file-system/write"


def use_tool(step: Step, work: UseTool, path: str, scope: Scope) -> Generator[Request, Any, tuple[str, str | None]]:
    """The result as text; and what was written, where the tool writes one file."""
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

        called = call_document(work.tool, arguments, f"{path}/call/", path, scope.setting)
        result = yield from below(step.label, called)
    else:
        result = yield ToolRequest(f"{path}/tool", step.label, work.connection, work.tool, arguments, form="text")
    return result if isinstance(result, str) else encode(result), _written(work, arguments)


def _written(work: UseTool, arguments: Mapping[str, Value]) -> str | None:
    content = arguments.get("content")
    if work.connection == OWN and canonical(work.tool) == WRITE and isinstance(content, str):
        return content
    return None


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
