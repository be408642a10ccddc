"""Stores: read before they are written, written where nobody reads, and names that are nearly another."""

from __future__ import annotations

from collections.abc import Iterator

from quire.expr import RESERVED
from quire.formats.pipeline.codes import lints, warnings
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.inputs import Use, uses
from quire.formats.pipeline.syntax import FoldBody, Pipeline, Step
from quire.formats.pipeline.walk import holes, parts
from quire.source import Span

_WHERE = {
    "item": "item exists in the do of a for_each or a fold; pass: {NAME: item} hands it on",
    "acc": "acc exists in the do of a fold",
}


def _place(use: Use, fields: Fields) -> Span:
    return use.span if use.text is None else fields.at(use.text, use.span)


def check_stores(pipeline: Pipeline, fields: Fields) -> None:
    inner = {step.output.text for top in pipeline.steps for step, _ in _inside(top) if step.output}
    # A step that cannot be read may write any store, if it does not even tell which.
    any_store = any(hole.output is None for hole in holes(pipeline))
    for use in uses(pipeline):
        root = use.path[0]
        if root in _WHERE and root not in use.bindings:
            message = f"there is no {root} in this place"
            fields.report(warnings.UNBOUND, message, _place(use, fields), _WHERE[root])
        name = use.store
        if name is None or use.written(name) or use.optional or any_store:
            continue
        _check_read(name, use, inner, fields)
    for top in pipeline.steps:
        for step, lost in ((top, False), *_inside(top)):
            _check_output(step, lost, fields)


def _check_read(name: str, use: Use, inner: set[str], fields: Fields) -> None:
    at = use.first.get(name)
    # A step that reads and writes one name is working on an input.
    if at is not None and at > use.index:
        message = f"{name} is read here, but step {at + 1} writes it, later"
        fields.report(warnings.UNWRITTEN, message, _place(use, fields), "else it has to be an input")
    elif at is None and name in inner:
        message = f"{name} is written only inside of another step, which is not seen here"
        help = "give the whole step an output, or read it with get(ctx, …)"
        fields.report(warnings.UNWRITTEN, message, _place(use, fields), help)
    elif at is None and fields.suggests:
        help = fields.suggestion(name, [one for one in use.first if use.written(one)])
        if help and use.in_prompt and use.path[0] != "ctx":
            message = (
                f"no step writes {name}: unless it is an input, the model is sent {{{'.'.join(use.path)}}} as it stands"
            )
            fields.report(lints.LIKELY_SLIP, message, _place(use, fields), help)
        elif help:
            message = f"no step writes {name}, so it is an input"
            fields.report(lints.LIKELY_SLIP, message, _place(use, fields), help)


def _inside(step: Step) -> Iterator[tuple[Step, bool]]:
    """The steps inside of a step, and whether what they write is lost: a `fold` keeps it for its next item."""
    for name, part in parts(step):
        yield part, not (isinstance(step.body, FoldBody) and name == "do")
        yield from _inside(part)


def _check_output(step: Step, lost: bool, fields: Fields) -> None:
    if step.output is None:
        return
    # A fold cannot do without its output.
    if lost and not isinstance(step.body, FoldBody):
        message = f"{step.output.text} cannot be read: the copy of the stores that it is written to ends here"
        fields.report(lints.LOST_OUTPUT, message, step.output.span, "the output of the whole step keeps the result")
    if step.output.text in RESERVED:
        message = f"{step.output.text} alone never means this store"
        fields.report(lints.HIDDEN_STORE, message, step.output.span, f"it is read as ctx.{step.output.text}")
