"""Write a syntax tree as Markdown. Parsing the output gives an equal tree, apart from positions.

This holds for every tree that the reader makes. Text is written as it is; only a first line that would be a heading in
its place is indented, and parsing removes that indentation again. `as_vector` gives a reading as JSON in the form of
the format's published test vectors; `quire show --tree` prints it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic, Severity
from quire.formats.playbook.markers import marker_word
from quire.formats.playbook.scan import CONDITION, MARKER, scan
from quire.values import Value, without_nulls

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import (
        Arm,
        Elicitation,
        InputDeclaration,
        OutputCapture,
        ParseResult,
        Playbook,
        Step,
        ToolCall,
    )
    from quire.source import Source


_BARE = re.compile(r"[A-Za-z0-9_.-]+")


def write(playbook: Playbook) -> str:
    parts = [f"# {playbook.title}"]
    if playbook.description:
        parts.append(_text(playbook.description))
    if playbook.system:
        parts += ["## SYSTEM", _text(playbook.system)]
    if playbook.inputs:
        parts += ["## INPUTS", "\n".join(_input(declared) for declared in playbook.inputs)]
    for step in playbook.steps:
        parts.append(f"## STEP {step.number}: {step.title}")
        parts += _body(step)
    if artifact := playbook.artifact:
        lines = ["type: " + artifact.type] if artifact.type else []
        parts += ["## ARTIFACTS", "\n".join([*lines, *(["from: " + artifact.source] if artifact.source else [])])]
    return "\n\n".join(parts) + "\n"


def _text(text: str) -> str:
    """Indent a first line that would be a heading. This is safe because parsing strips text."""
    return f"    {text}" if text.startswith("#") else text


def _input(declared: InputDeclaration) -> str:
    value = ", ".join(declared.options) if declared.options else declared.default
    kind = f"{declared.type}: {value}" if value is not None else declared.type
    line = f"- `{declared.name}` ({kind})"
    return f"{line}: {declared.description}" if declared.description else line


def _body(step: Step) -> list[str]:
    """Return the parts of a step.

    Directives come first: a branch that is not closed leaves no place for them.
    """
    lines = []
    if step.prompt:
        lines.append(f"@prompt({step.prompt.ref})")
    if step.elicitation:
        lines.append(_elicit(step.elicitation))
    if step.tool:
        lines.append(_tool(step.tool))
    if step.context:
        lines.append(f"@context({', '.join(step.context.names or ('none',))})")
    if step.model:
        lines.append(f"@model({step.model.name})")
    if step.output:
        lines.append(_output(step.output))
    parts = ["\n".join(lines)] if lines else []
    if text := step.content:
        parts.append(_text(text))
    for index, arm in enumerate(step.arms):
        parts += _arm(arm, index)
    if step.arms and not any(_leaves_open(sub.content) for sub in step.arms[-1].steps):
        parts.append("```endif```")
    return parts


def _arm(arm: Arm, index: int) -> list[str]:
    if arm.condition is None:
        parts = ["```else```"]
    else:
        word = "elif" if index else "if"
        parts = [f'```{word} {arm.condition.variable} {arm.condition.operator} "{arm.condition.value}"```']
    for sub in arm.steps:
        if sub.title:
            parts.append(f"### STEP {sub.label}: {sub.title}")
        parts += _body(sub)
    return parts


def _leaves_open(content: str) -> bool:
    """Tell whether the text has a nested `if` without its `endif`: it would take the `endif` of the branch."""
    depth = 0
    # With a title before it, no heading in the text can be taken for the title.
    for line in scan(f"# T\n{content}").lines if "```" in content else ():
        text = line[0].strip()
        if line.lastindex in (CONDITION, MARKER):
            depth += {"if": 1, "endif": -1}.get(line[MARKER], 0)
        elif not depth and text[-1] == "`" and marker_word(text) == "if":
            depth = 1
    return depth > 0


def _elicit(elicitation: Elicitation) -> str:
    texts = [_quoted(text) for text in (elicitation.prompt, *elicitation.options)]
    if elicitation.default is not None:
        texts.append(f"default:{_quoted(elicitation.default)}")
    return f"@elicit({', '.join([elicitation.kind, *texts])})"


def _quoted(text: str) -> str:
    """Return a text in quotes with its escapes. No text of the reader has a line break after a backslash."""
    return '"' + text.replace("\\n", "\\\\n").replace("\n", "\\n").replace('"', '\\"') + '"'


def _tool(call: ToolCall) -> str:
    names = [name if _BARE.fullmatch(name) else f'"{name}"' for name in (call.connection, call.tool)]
    return f"@tool({', '.join([*names, call.arguments] if call.arguments else names)})"


def _output(output: OutputCapture) -> str:
    name = f"{output.name}: {output.type}" if output.type else output.name
    parts = [name, *(f'"{option}"' for option in output.options)]
    if output.field is not None:
        parts.append(f'extract:"{output.field}"')
    return f"@output({', '.join(parts)})"


Object = dict[str, Value]


def as_vector(reading: ParseResult) -> Object:
    """Return a reading as a test vector."""
    source = reading.source
    return {
        "valid": reading.playbook is not None,
        "definition": _definition(reading.playbook, source) if reading.playbook else None,
        "warnings": [_finding(finding, source) for finding in reading.of(Severity.WARNING)],
        "errors": [_finding(finding, source) for finding in reading.of(Severity.ERROR)],
    }


def _finding(finding: Diagnostic, source: Source) -> Object:
    return {"line": source.position(finding.span.start).line, "message": finding.message}


def _definition(playbook: Playbook, source: Source) -> Object:
    return {
        "title": playbook.title,
        "description": playbook.description,
        "system_prompt": playbook.system,
        "inputs": [_input_json(declared, source) for declared in playbook.inputs],
        "steps": [_step(step, source) for step in playbook.steps],
        "artifact_type": playbook.artifact.type if playbook.artifact else "",
        **({"artifact_from": playbook.artifact.source} if playbook.artifact and playbook.artifact.source else {}),
    }


def _input_json(declared: InputDeclaration, source: Source) -> Object:
    return without_nulls(
        {
            "name": declared.name,
            "type": declared.type,
            "default": declared.default,
            "options": list(declared.options) or None,
            "description": declared.description,
            "required": declared.required,
            "line": source.position(declared.span.start).line,
        }
    )


def _step(step: Step, source: Source) -> Object:
    output, question, tool = step.output, step.elicitation, step.tool
    asked: Object = {}
    if question:
        asked = {"type": question.kind, "prompt": question.prompt, "options": list(question.options) or None}
        asked = without_nulls({**asked, "default": question.default})
    call: Object = {"connection_name": tool.connection, "tool_name": tool.tool} if tool else {}
    if tool and tool.arguments:
        call["arguments"] = tool.arguments
    return without_nulls(
        {
            "number": step.number,
            "label": step.label,
            "title": step.title,
            "content": step.content,
            "prompt_ref": {"prompt_id": step.prompt.ref} if step.prompt else None,
            "output_var": output.name if output else "",
            "output_type": (output.type or None) if output else None,
            "output_options": (list(output.options) or None) if output else None,
            "extract_field": (output.field or "") if output else "",
            "elicitation": asked or None,
            "tool_call": call or None,
            "context": list(step.context.names) if step.context else None,
            "model": step.model.name if step.model else None,
            "is_branching": bool(step.arms),
            "branches": [_arm_json(arm, source) for arm in step.arms] or None,
            "line": source.position(step.span.start).line,
        }
    )


def _arm_json(arm: Arm, source: Source) -> Object:
    condition: Object | None = None
    if test := arm.condition:
        condition = {"variable": test.variable, "operator": test.operator, "value": test.value, "source": test.source}
    return {"condition": condition, "steps": [_step(step, source) for step in arm.steps]}
