"""A step that asks a model: its text, what stands before it, and how the reply has to end."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from quire.engine.requests import CUT_OFF, Emit, Load, Message, ModelRequest, Request, early_end
from quire.engine.scope import Scope
from quire.errors import StepFailed
from quire.plan.nodes import SEMANTICS_VERSION, Capture, PromptSource, Step, Think
from quire.plan.template import template
from quire.values import Value


def think(step: Step, work: Think, path: str, scope: Scope) -> Generator[Request, Any, str]:
    scope.cut = False
    text = scope.render(work.prompt)
    if work.preamble:
        preamble = yield from _preamble(step, work.preamble, path, scope)
        text = "\n\n".join(part for part in (preamble, text) if part)
    if not text.strip():
        return ""
    closing = closing_instruction(work.closing, scope.rules)
    if closing and scope.rules > 1:
        text, closing = f"{text}\n\n{closing}", ""
    reply: Mapping[str, Value] = yield ModelRequest(
        path=f"{path}/model",
        label=step.label,
        instructions=scope.system_message(closing),
        messages=(Message("user", text),),
        closing=closing_schema(work.closing),
    )
    # Replies that 0.1.0 recorded are not marked as cut.
    warning = CUT_OFF if reply.get("finish_reason") == "length" else early_end(reply)
    if warning:
        yield Emit("warning", f"{path}/model", step.label, {"message": warning})
    scope.cut = reply.get("cut") is True
    return str(reply["text"])


def _preamble(step: Step, source: PromptSource, path: str, scope: Scope) -> Generator[Request, Any, str]:
    if source.scheme == "variable":
        value = scope.lookup(source.where)
        if value is None:
            raise StepFailed(
                f"@prompt({{{{{source.where}}}}}): nothing has set {source.where}", kind="undefined", path=path
            )
        return value
    where = _where(source, path, scope)
    found: Value = yield Load(f"{path}/prompt", step.label, source.scheme, where)
    if found is None:
        message = f"no prompt {source.scheme}:{where}: the step runs on its own text"
        yield Emit("warning", f"{path}/prompt", step.label, {"message": message})
        return ""
    return scope.render(template(str(found)))


def _where(source: PromptSource, path: str, scope: Scope) -> str:
    """The path of a file with its values filled in. The loader holds what comes out to its rules."""
    if source.scheme != "file" or scope.rules == 1:
        return source.where
    wanted = template(source.where)
    for reference in wanted.references():
        if reference.default is None and scope.lookup(reference.name) is None:
            message = f"@prompt(file:{source.where}): nothing has set {reference.name}"
            raise StepFailed(message, kind="undefined", path=path)
    return scope.render(wanted)


def closing_instruction(captures: tuple[Capture, ...], rules: int = SEMANTICS_VERSION) -> str:
    if not captures:
        return ""
    fields = ", ".join(f'"{capture.field}"{_hint(capture)}' for capture in captures)
    example = ", ".join(f'"{capture.field}": …' for capture in captures)
    noun = "field" if len(captures) == 1 else "fields"
    before = "First do all that is asked above, in full." if rules > 1 else "Write the answer freely."
    return (
        f"{before} Then end the reply with one JSON object on a line of its own that holds the {noun} "
        f"{fields}, in the form {{{example}}}. Write nothing after it."
    )


def _hint(capture: Capture) -> str:
    match capture.type:
        case "enum" if capture.options:
            return f" (one of {', '.join(capture.options)})"
        case "number" | "boolean":
            return f" (a {capture.type})"
    return ""


def closing_schema(captures: tuple[Capture, ...]) -> dict[str, Value] | None:
    if not captures:
        return None
    properties: dict[str, Value] = {str(capture.field): _schema(capture) for capture in captures}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _schema(capture: Capture) -> Value:
    match capture.type:
        case "enum" if capture.options:
            return {"type": "string", "enum": list(capture.options)}
        case "number" | "boolean":
            return {"type": capture.type}
        case "json":
            return {}
    return {"type": "string"}
