"""A reading as JSON in the form of the format's published test vectors; `quire parse` prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic, Severity
from quire.values import Value

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import InputDeclaration, ParseResult, Playbook, Step
    from quire.source import Source

Object = dict[str, Value]


def as_vector(reading: ParseResult) -> Object:
    """Return a reading as a test vector."""
    source = reading.source
    return {
        "valid": reading.playbook is not None,
        "definition": _definition(reading.playbook, source) if reading.playbook else None,
        "warnings": [_finding(found, source) for found in reading.of(Severity.WARNING)],
        "errors": [_finding(found, source) for found in reading.of(Severity.ERROR)],
    }


def _finding(found: Diagnostic, source: Source) -> Object:
    return {"line": source.position(found.span.start).line, "message": found.message}


def _definition(playbook: Playbook, source: Source) -> Object:
    return {
        "title": playbook.title,
        "description": playbook.description,
        "system_prompt": playbook.system,
        "inputs": [_input(declared, source) for declared in playbook.inputs],
        "steps": [_step(step, source) for step in playbook.steps],
        "artifact_type": playbook.artifact.type if playbook.artifact else "",
        **({"artifact_from": playbook.artifact.source} if playbook.artifact and playbook.artifact.source else {}),
    }


def _input(declared: InputDeclaration, source: Source) -> Object:
    shape: Object = {"name": declared.name, "type": declared.type}
    if declared.default is not None:
        shape["default"] = declared.default
    if declared.options:
        shape["options"] = list(declared.options)
    shape["description"] = declared.description
    shape["required"] = declared.required
    shape["line"] = source.position(declared.span.start).line
    return shape


def _step(step: Step, source: Source) -> Object:
    shape: Object = {"number": step.number, "label": step.label, "title": step.title, "content": step.content}
    if step.prompt:
        shape["prompt_ref"] = {"prompt_id": step.prompt.ref}
    shape["output_var"] = step.output.name if step.output else ""
    if step.output and step.output.type:
        shape["output_type"] = step.output.type
    if step.output and step.output.options:
        shape["output_options"] = list(step.output.options)
    shape["extract_field"] = (step.output.field or "") if step.output else ""
    if step.elicitation:
        asked: Object = {"type": step.elicitation.kind, "prompt": step.elicitation.prompt}
        if step.elicitation.options:
            asked["options"] = list(step.elicitation.options)
        if step.elicitation.default is not None:
            asked["default"] = step.elicitation.default
        shape["elicitation"] = asked
    if step.tool:
        call: Object = {"connection_name": step.tool.connection, "tool_name": step.tool.tool}
        if step.tool.arguments:
            call["arguments"] = step.tool.arguments
        shape["tool_call"] = call
    if step.context:
        shape["context"] = list(step.context.names)
    if step.model:
        shape["model"] = step.model.name
    shape["is_branching"] = bool(step.arms)
    if step.arms:
        shape["branches"] = [
            {
                "condition": {
                    "variable": arm.condition.variable,
                    "operator": arm.condition.operator,
                    "value": arm.condition.value,
                    "source": arm.condition.source,
                }
                if arm.condition
                else None,
                "steps": [_step(step, source) for step in arm.steps],
            }
            for arm in step.arms
        ]
    shape["line"] = source.position(step.span.start).line
    return shape
