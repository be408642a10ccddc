"""Write a case of a test for one arm of a `match`: its inputs are placeholders for the author to fill in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.lsp.answers import FileEdit
from quire.lsp.folders import read_closed
from quire.source import Span, open_text

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline
    from quire.lsp.views import View

_HEAD = """\
# The inputs and replies are placeholders: put in what leads into the arm, and what a model would really say.
document: {document}
cases:
"""


def case_edit(view: View, pipeline: Pipeline, label: str, arm: str) -> FileEdit | None:
    """Return the edit that adds a case to the test of a document, or makes the test. None if its test has no list of
    cases at its end."""
    from quire.testing.discovery import own_test

    path = own_test(view.path)
    case = _case(view, pipeline, label, arm)
    opened = open_text(Path(path))
    before = opened.text if opened is not None else read_closed(path)
    if before is None:
        head = _HEAD.format(document=Path(view.path).name)
        return FileEdit(path, (Edit(Span(0, 0), "", head + case),), creates=True)
    if "\ncases:\n" not in f"\n{before}":
        return None
    end = len(before)
    lead = "" if before.endswith("\n") else "\n"
    return FileEdit(path, (Edit(Span(end, end), "", f"{lead}\n{case}"),))


def _case(view: View, pipeline: Pipeline, label: str, arm: str) -> str:
    from quire.formats.pipeline.inputs import needed_inputs
    from quire.formats.pipeline.syntax import AgentBody
    from quire.lsp.pipeline.tree import labelled
    from quire.values import encode

    types = {one.name: one.type for one in pipeline.input or ()}
    inputs = ", ".join(f"{name}: {_placeholder(types.get(name))}" for name in needed_inputs(pipeline))
    replies = [
        f"      {encode(at)}: {_reply(view, step.body.schema.text if step.body.schema else '')}\n"
        for at, step in labelled(pipeline)
        if isinstance(step.body, AgentBody)
    ]
    lines = [f"  - name: {encode(f'step {label} takes {arm}')}\n"]
    if inputs:
        lines.append(f"    inputs: {{{inputs}}}\n")
    if replies:
        lines += ["    model:\n", *replies]
    lines.append("    expect: {status: completed}\n")
    return "".join(lines)


def _placeholder(type: object) -> str:
    from quire.schema import Enum, Kind, ListOf, Object, Simple
    from quire.values import encode

    match type:
        case Enum(values=values) if values:
            return encode(values[0])
        case Simple(kind=Kind.BOOL):
            return "true"
        case Simple(kind=Kind.NUMBER):
            return "1"
        case ListOf():
            return "[]"
        case Object(fields=fields):
            return "{" + ", ".join(f"{one.name}: {_placeholder(one.type)}" for one in fields if one.required) + "}"
    return "todo"


def _reply(view: View, schema: str) -> str:
    from quire.lsp.pipeline.tree import outer_of

    found = next((one for one in outer_of(view).schemas if one.name == schema), None)
    if found is None:
        return "todo"
    inside = ", ".join(f"{one.name}: {_placeholder(one.type)}" for one in found.fields if one.required)
    return f"{{reply: {{{inside}}}}}"
