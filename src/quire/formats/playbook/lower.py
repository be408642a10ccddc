"""Lower the syntax tree of a playbook to the Plan.

The order of a step's parts is decided here: a tool suppresses the question beside it, and conditions that do not read
the step's own result are decided before its work. The arguments of a `@tool` are JSON whose strings are templates and
whose unquoted placeholders are holes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, cast

from quire.plan import nodes
from quire.plan.nodes import Arguments, Capture, Plan, Sequence, Step
from quire.plan.templates import reference, template
from quire.source import PLACEHOLDER
from quire.values import MAX_DEPTH

if TYPE_CHECKING:
    from quire.formats.playbook import syntax


def arguments(text: str) -> Arguments:
    """Parse the JSON of a `@tool` with its references. Raises ValueError with a sentence for the author.

    The JSON is parsed first and references are searched inside its strings, so a value can never change the structure
    of the arguments. A reference outside of a string is replaced by a number that does not occur elsewhere in the text,
    and recognized by the spelling of that number.
    """
    if not text.strip():
        return {}
    import json  # most playbooks call no tool

    holes: list[nodes.Reference] = []
    zeros = max((len(run) for run in re.findall("0+", text)), default=0)
    marker = "0." + "0" * (zeros + 1) + "1e"
    out: list[str] = []
    at = 0
    for start, end in _outside_strings(text):
        for match in PLACEHOLDER.finditer(text, start, end):
            out += [text[at : match.start()], f"{marker}{len(holes)}"]
            holes.append(reference(match))
            at = match.end()
    out.append(text[at:])

    def no_constant(name: str) -> object:
        raise ValueError(f"{name} is not a JSON value")

    def number(spelling: str) -> object:
        return nodes.ValueSlot(holes[int(spelling[len(marker) :])]) if spelling.startswith(marker) else float(spelling)

    try:
        tree = json.loads("".join(out), parse_float=number, parse_constant=no_constant)
    except RecursionError:
        raise ValueError(f"the arguments are nested deeper than {MAX_DEPTH}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the arguments are not JSON: {error.msg}") from None
    if not isinstance(tree, dict | nodes.ValueSlot):
        raise ValueError("the arguments must be a JSON object")
    return _with_templates(tree, 0)


def _with_templates(tree: object, depth: int) -> Arguments:
    if depth > MAX_DEPTH:
        raise ValueError(f"the arguments are nested deeper than {MAX_DEPTH}")
    match tree:
        case str():
            return template(tree)
        case list():
            return tuple(_with_templates(part, depth + 1) for part in tree)
        case dict():
            return {key: _with_templates(part, depth + 1) for key, part in tree.items()}
        case None | bool() | int() | float() | nodes.ValueSlot():
            return tree
    raise ValueError(f"{type(tree).__name__} is not a JSON value")


def _outside_strings(text: str) -> list[tuple[int, int]]:
    """Return the ranges of a JSON text that are not inside a string."""
    stretches, at = [], 0
    while (quote := text.find('"', at)) >= 0:
        stretches.append((at, quote))
        at = quote + 1
        while at < len(text) and text[at] != '"':
            at += 2 if text[at] == "\\" else 1
        at += 1
    stretches.append((at, len(text)))
    return stretches


SCHEMES = ("library", "file", "mcp")


def lower(playbook: syntax.Playbook) -> Plan:
    return Plan(
        title=playbook.title,
        format="playbook",
        inputs=tuple(_input(declared) for declared in playbook.inputs),
        body=_sequence(playbook.steps, None),
        system=playbook.system,
        description=playbook.description,
        artifact=nodes.Artifact(template(playbook.artifact.type), playbook.artifact.source)
        if playbook.artifact
        else None,
    )


def _input(declared: syntax.InputDeclaration) -> nodes.Input:
    return nodes.Input(
        declared.name,
        cast(nodes.InputType, declared.type),
        declared.default,
        declared.options,
        declared.description,
        declared.required,
    )


def _sequence(steps: tuple[syntax.Step, ...], heir: Capture | None) -> Sequence:
    """Lower steps. `heir` is a capture of the parent that the last of these steps must provide."""
    last = len(steps)
    return Sequence(tuple(_step(step, at, heir if at == last else None) for at, step in enumerate(steps, 1)))


def _step(step: syntax.Step, position: int, heir: Capture | None) -> Step:
    capture = None
    if output := step.output:
        type = cast("nodes.CaptureType | None", output.type)
        capture = Capture(output.name, type, output.options, output.field)
    work: nodes.Think | nodes.UseTool | None = None
    ask = None
    if step.tool:
        work = _tool(step.tool)
    else:
        ask = _ask(step.elicitation) if step.elicitation else None
        content = step.content
        if content or step.prompt:
            closing = tuple(capturing for capturing in (capture, heir) if capturing and capturing.field)
            work = nodes.Think(
                template(content),
                _prompt(step.prompt) if step.prompt else None,
                closing,
                step.context.names if step.context else None,
                step.model.name if step.model else "",
            )
    serves = capture if work is None and ask is None else None
    return Step(
        position=position,
        label=step.label,
        title=step.title,
        ask=ask,
        work=work,
        match=_match(step, serves) if step.arms else None,
        capture=capture,
        number=str(step.number),
        span=step.span,
    )


def _match(step: syntax.Step, serves: Capture | None) -> nodes.Match:
    own = step.output.name if step.output else None
    conditions = [arm.condition for arm in step.arms if arm.condition]
    return nodes.Match(
        cases=tuple(
            nodes.Case(
                nodes.Comparison(arm.condition.variable, arm.condition.operator, arm.condition.value)
                if arm.condition
                else None,
                _sequence(arm.steps, serves),
            )
            for arm in step.arms
        ),
        # An input takes precedence over a result of the same name, so such a condition need not wait for the result.
        decide_first=all(condition.variable != own or condition.source == "input" for condition in conditions),
    )


def _ask(elicitation: syntax.Elicitation) -> nodes.Ask:
    return nodes.Ask(
        elicitation.kind,
        template(elicitation.prompt),
        tuple(template(option) for option in elicitation.options) if elicitation.kind == "select" else (),
        template(elicitation.default) if elicitation.default is not None else None,
    )


def _tool(call: syntax.ToolCall) -> nodes.UseTool:
    try:
        return nodes.UseTool(call.connection, call.tool, arguments(call.arguments))
    except ValueError as error:
        return nodes.UseTool(call.connection, call.tool, {}, problem=str(error))


def _prompt(reference: syntax.PromptReference) -> nodes.PromptSource:
    variable = PLACEHOLDER.fullmatch(reference.ref)
    if variable:
        return nodes.PromptSource("variable", variable[1])
    scheme, _, where = reference.ref.partition(":")
    if scheme not in SCHEMES:
        # The reader leaves references of unknown schemes out of the tree; a bare id belongs to the library.
        return nodes.PromptSource("library", reference.ref)
    return nodes.PromptSource(cast(Literal["library", "file", "mcp"], scheme), where)
