"""Changes that can be made at a place of a pipeline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.diagnostics import Edit, Severity
from quire.expr import reads
from quire.formats.pipeline.codes.errors import UNDECLARED
from quire.formats.pipeline.codes.warnings import OPTIONAL_FIELD
from quire.formats.pipeline.syntax import AgentBody, FoldBody, ForEachBody, MatchBody, ShellBody, ToolBody
from quire.formats.pipeline.walks import expressions
from quire.lsp.answers import Action, ActionKind, change, insertion
from quire.lsp.document_tests import test_action
from quire.lsp.pipeline.tree import cursor_place, item_at, labelled, part_at, pipeline_at, way_to
from quire.lsp.yaml_scan import closing
from quire.patterns import late_pattern
from quire.plan.built_in_tools import ASK, built_in_tool
from quire.source import Source, Span, line_start
from quire.testing.coverage.decisions import decision_id
from quire.testing.coverage.pipeline_decisions import YamlPositions
from quire.wording import free_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quire.diagnostics import Diagnostic
    from quire.formats.pipeline.syntax import Step
    from quire.lsp.document_view import View
    from quire.lsp.pipeline.tree import Way

_KEYS = re.compile(r":[ ]*(?:(\{)[ ]*|(?:#[^\n]*)?\n(?:[ ]*(?:#[^\n]*)?\n)*([ ]+)(?=[^\s#-]))")
"""Matches from the end of the name of a step to its first key."""


def key_edit(view: View, step: Step, key: str, value: str) -> Edit | None:
    """Return the edit that adds a key to the body of a step: at the end of braces, else as its first line. None if its
    place is not certain."""
    text = view.source.text
    match = _KEYS.match(text, step.span.end)
    if match is None:
        return None
    if match[1] is None:
        at = match.end()
        return insertion(at, f"{key}: {value}\n{match[2]}")
    end = closing(text, match.end())
    if end >= len(text):
        return None
    last = end
    while text[last - 1] in " \n":
        last -= 1
    if text[last - 1] == "{":
        return insertion(last, f"{key}: {value}")
    return insertion(last, f"{' ' if text[last - 1] == ',' else ', '}{key}: {value}")


def step_before(view: View, step: Step, line: str) -> Edit | None:
    """Return the edit that puts a step, written in one line, before an item of a list."""
    text = view.source.text
    begin = line_start(text, step.span.start)
    lead = text[begin : step.span.start]
    if lead.strip() != "-":
        return None
    indent = lead[: lead.index("-")]
    return insertion(begin, f"{indent}{line}\n")


_MOST_ITEMS = 20
_NO_INPUTS = late_pattern(r"^input:[ ]*\{", 8)
"""Matches the beginning of an empty list of inputs (8: `re.MULTILINE`)."""


def actions(view: View, span: Span, findings: Sequence[Diagnostic]) -> list[Action]:
    actions = [*_declared(view, findings), *_allowed(view, findings), *_gets(view, findings)]
    way = way_to(view, span.start)
    if way is not None:
        actions += _limits(view, way, findings)
        actions += _gate(view, way, findings)
        actions += _schema(view, way)
        actions += _tests(view, way, span)
    return actions


def _allowed(view: View, findings: Sequence[Diagnostic]) -> Iterator[Action]:
    """Yield a comment above the step of each finding that a comment may hide."""
    for code in dict.fromkeys(finding.code.id for finding in findings if finding.severity is not Severity.ERROR):
        finding = next(finding for finding in findings if finding.code.id == code)
        item = item_at(part_at(view, finding.span.start), finding.span.start)
        at = item.start if item is not None else line_start(view.source.text, finding.span.start)
        line = view.source.text[at:].split("\n", 1)[0]
        indent = line[: len(line) - len(line.lstrip(" "))]
        comment = f'{indent}# quire: allow {code} because "TODO"\n'
        yield change(view.path, f"Allow {code} here, because …", insertion(at, comment), codes=(code,))


def _declared(view: View, findings: Sequence[Diagnostic]) -> Iterator[Action]:
    """Yield the declaration of each name that a step reads, no step writes, and `input` does not have."""
    for name, finding in {name: finding for finding in findings if (name := _undeclared(view, finding))}.items():
        edit = _input_edit(view, finding.span.start, f"{name}: {_input_type(view, name)}")
        if edit is not None:
            yield change(view.path, f"Declare the input {name}", edit, codes=(finding.code.id,))


def _undeclared(view: View, finding: Diagnostic) -> str:
    """Return the name that a finding says is not declared; empty for another finding."""
    if finding.code.id != UNDECLARED.id:
        return ""
    path = finding.span.of(view.source.text).strip("{} \"'").split(".")
    name = path[1] if path[0] == "ctx" and len(path) > 1 else path[0]
    return name if name.isidentifier() and finding.message.startswith(f"{name} ") else ""


def _input_type(view: View, name: str) -> str:
    """Return the type of an input by the use that expressions make of it: `{type: string}` if that tells nothing."""
    from quire.testing.placeholders import input_shapes

    shape = input_shapes(view.plan).get(name) if view.plan is not None else None
    return shape.declaration() if shape is not None else "{type: string}"


def _input_edit(view: View, offset: int, line: str) -> Edit | None:
    """Return the edit that adds a line to the inputs of the pipeline at an offset, before the others."""
    pipeline, text = pipeline_at(view, offset), view.source.text
    if pipeline is None or pipeline.input is None:
        return None
    if not pipeline.input_names:
        part = part_at(view, offset)
        match = _NO_INPUTS.search(text, part.start, part.end)
        return insertion(match.end(), line) if match else None
    at = min(name.span.start for name in pipeline.input_names)
    at -= text[at - 1] in "\"'"
    begin = line_start(text, at)
    in_block = not text[begin:at].strip()
    return insertion(at, f"{line}\n{text[begin:at]}" if in_block else f"{line}, ")


def _gets(view: View, findings: Sequence[Diagnostic]) -> Iterator[Action]:
    """Yield `get(…)` for paths that may be absent."""
    text = view.source.text
    for finding in findings:
        if finding.code.id != OPTIONAL_FIELD.id:
            continue
        start = finding.span.start
        while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_."):
            start -= 1
        path = text[start : finding.span.end]
        holder, _, name = path.rpartition(".")
        if not holder or text[start - 1 : start] == "{" or text[finding.span.end : finding.span.end + 1] == ".":
            continue  # a prompt has no functions, and what comes after a get cannot be read as a path
        quote = '"' if cursor_place(view, start).quote == "'" else "'"
        new = f"get({holder}, {quote}{name}{quote})"
        edit = Edit(Span(start, finding.span.end), path, new)
        action = change(view.path, f"Read it with {new}", edit, codes=(finding.code.id,))
        yield replace(action, preferred=True)


def _limits(view: View, way: Way, findings: Sequence[Diagnostic]) -> Iterator[Action]:
    """Yield `max_items` for a fan without it: then its cost is known."""
    for label, step in reversed(way.steps):
        body = step.body
        if isinstance(body, ForEachBody | FoldBody) and body.max_items is None:
            edit = key_edit(view, step, "max_items", str(_MOST_ITEMS))
            if edit is not None:
                codes = tuple(
                    dict.fromkeys(finding.code.id for finding in findings if finding.code.id.startswith("BD"))
                )
                title = f"Let step {label} have at most {_MOST_ITEMS} items (max_items)"
                yield change(view.path, title, edit, kind="quickfix" if codes else "refactor.rewrite", codes=codes)
            return


_GATED = ("GA101", "TA101", "TA102", "TA103")
"""Codes of findings about an effect that end with the yes of a person who is shown the values of the effect."""


def _gate(view: View, way: Way, findings: Sequence[Diagnostic]) -> Iterator[Action]:
    """Yield a question before a tool or a command of the list `steps`, which then runs after a yes only. The question
    shows the values that the effect uses."""
    label, step = way.steps[0]
    if not way.pipeline.dialect or not isinstance(step.body, ToolBody | ShellBody):
        return
    if step.guard is not None and step.guard.when is not None:
        return
    tool = built_in_tool(step.body.name.text) if isinstance(step.body, ToolBody) else None
    if tool is not None and (tool.name == ASK or tool.effect == "read"):
        return
    shown = _shown_values(step)
    if shown is None:
        return
    taken = {other.output.text for _, other in labelled(way.pipeline) if other.output is not None}
    name = free_name("approved", taken, "{}_{}")
    condition = key_edit(view, step, "when", f"\"{name} == 'yes'\"")
    what = step.body.name.text if isinstance(step.body, ToolBody) else "the command"
    question = (
        f'- tool: {{name: ask, args: {{prompt: "May step {label} use {what}?", {shown}type: confirm, default: "no"}}, '
        f"output: {name}}}"
    )
    before = step_before(view, step, question)
    if condition is not None and before is not None:
        title = f"Ask a person before step {label}"
        codes = tuple(dict.fromkeys(finding.code.id for finding in findings if finding.code.id in _GATED))
        kind: ActionKind = "quickfix" if codes else "refactor.rewrite"
        yield change(view.path, title, before, condition, kind=kind, codes=codes)


def _shown_values(step: Step) -> str | None:
    """Return the argument `show` of a question about a step, with a comma behind it: the values that its expressions
    read. Empty if they read none; None if they read the result of the step before, which a question would replace."""
    values: dict[str, str] = {}
    for text in expressions(step):
        for read in reads(text.expression):
            path = read.path[:-1] if read.optional and len(read.path) > 1 else read.path
            if path[0] == "pipe":
                return None
            key = path[-1]
            while key in values and values[key] != ".".join(path):
                key += "_2"
            if path != ("ctx",):
                values[key] = ".".join(path)
    if not values:
        return ""
    if len(values) == 1:
        return f"show: !expr {next(iter(values.values()))}, "
    inside = ", ".join(f"{key}: {value}" for key, value in values.items())
    return f'show: !expr "{{{inside}}}", '


def _schema(view: View, way: Way) -> Iterator[Action]:
    """Yield a schema for an agent whose reply is read by its fields, or has none yet."""
    from quire.formats.pipeline.inputs import uses

    step = way.step
    if not isinstance(step.body, AgentBody) or step.body.schema is not None or step.output is None:
        return
    store = step.output.text
    fields: dict[str, None] = {}
    for use in uses(way.pipeline):
        inside = use.path[2:] if use.path[0] == "ctx" else use.path[1:]
        if use.store == store and inside:
            fields.setdefault(inside[0])
    taken = {schema_of_file.name for schema_of_file in view.reading.file.schemas} if view.reading.file else set()
    base = "".join(part.capitalize() for part in store.split("_") if part) or "Reply"
    name = free_name(base, taken, "{}{}")
    edit = key_edit(view, step, "schema", name)
    if edit is None:
        return
    lines = "".join(f"  {field}: {{type: string}}\n" for field in fields or {"text": None})
    start = part_at(view, way.pipeline.span.start).start
    separator = view.source.text.startswith("---", start)
    schema = f"schema: {name}\nfields:\n{lines}---\n"
    at = view.source.text.find("\n", start) + 1 if separator else start
    title = f"Give step {way.label} a schema, {name}"
    yield change(view.path, title, insertion(at, schema), edit, kind="refactor.extract")


def _tests(view: View, way: Way, span: Span) -> Iterator[Action]:
    """Yield a case for the arm of a `match` that the cursor is in."""
    label, step = next(
        ((label, step) for label, step in reversed(way.steps) if isinstance(step.body, MatchBody)), ("", None)
    )
    if step is None or view.plan is None:
        return
    arms = [arm for arm in _arms(view, step) if arm[2] <= span.start]
    place = next((path for path, planned in view.plan.steps() if planned.label == label), "")
    if not arms or not place:
        return
    name, number, _ = max(arms, key=lambda arm: arm[2])
    title = f"Write a test for the branch {name} of step {label}"
    action = test_action(view, decision_id("arms", place, "match", number), title)
    if action is not None:
        yield action


def _arms(view: View, step: Step) -> Iterator[tuple[str, str, int]]:
    """Yield the arms of a `match` with their numbers and the places of their keys. The default is the last one."""
    body = step.body
    item = item_at(part_at(view, step.span.start), step.span.start)
    if not isinstance(body, MatchBody) or item is None:
        return
    for number, (name, _) in enumerate(body.cases, 1):
        yield name.text, str(number), name.span.start
    if body.default is not None:
        positions = YamlPositions.of(Source("", item.of(view.source.text)))
        at = Span(step.span.start - item.start, step.span.end - item.start)
        key = positions.find(at, "default")
        if key != at:
            yield "default", "default", key.start + item.start
