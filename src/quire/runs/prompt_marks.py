"""Mark the values in a prompt as it was sent: which part of the text came from which value, and who wrote that.

A sent prompt is plain text. The template of its step says where values were inserted, so the text is aligned with the
template. A text that does not fit, because the document or a hook changed it further, stays unmarked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.progress import place_in_plan
from quire.formats.pipeline.prompts import template
from quire.plan.nodes import (
    Reference,
    Template,
    Think,
)
from quire.plan.pipeline_work import Agent

if TYPE_CHECKING:
    from quire.runs.provenance import ValueSource
    from quire.runs.view import RunView
    from quire.values import Value

_ITEM = ("item", "acc")


class Piece(Struct, frozen=True):
    """A part of a prompt. `name` is empty for the text of the document itself."""

    text: str
    name: str = ""
    source: str = ""
    """The writer of the value, in words."""
    path: str = ""
    """The step that wrote it, if a step did."""


def template_of(view: RunView, path: str) -> Template | None:
    """Return the template of the prompt that the request at a path was made from; None if it is not known."""
    steps = dict(view.document.runnable().steps())
    place = place_in_plan(path)
    while place:
        if (step := steps.get(place)) is not None:
            if isinstance(step.work, Agent) and step.work.file:
                text = view.pins.files.get(step.work.file)
                return None if text is None else template(text)
            return step.work.prompt if isinstance(step.work, Think | Agent) else None
        place = place.rpartition("/")[0]
    return None


def marked(text: str, template: Template | None, values: Sequence[ValueSource]) -> list[Piece]:
    """Return the pieces of a sent text. The pieces joined are the text."""
    if template is None or not any(template.references()):
        return [Piece(text)]
    known = {one.name: one for one in values}
    spans = _align(text, [_Part.of(part, known) for part in template.parts])
    if spans is None:
        return [Piece(text)]
    pieces: list[Piece] = []
    end = 0
    for start, stop, part in spans:
        if start > end:
            pieces.append(Piece(text[end:start]))
        pieces.append(Piece(text[start:stop], part.name, part.source, part.path))
        end = stop
    return [*pieces, Piece(text[end:])] if end < len(text) else pieces


class _Part(Struct, frozen=True):
    """A part of a template: its text, or None if the text of a value is not known."""

    text: str | None
    name: str = ""
    source: str = ""
    path: str = ""

    @classmethod
    def of(cls, part: str | Reference, known: Mapping[str, ValueSource]) -> _Part:
        if isinstance(part, str):
            return cls(part)
        names = part.name.split(".")
        if names[0] in _ITEM:
            return cls(None, part.name, "the item" if names[0] == "item" else "the result so far")
        root, rest = (names[1], names[2:]) if names[0] == "ctx" and len(names) > 1 else (names[0], names[1:])
        origin = known.get(part.name) or known.get(root)
        if origin is None:
            return cls(None, part.name)
        text = _text(origin.value, () if origin.name == part.name else rest)
        return cls(text, part.name, origin.source, origin.path)


def _text(value: Value, path: Sequence[str]) -> str | None:
    """Return the text of a part of a value; None if it is not a text, because JSON may be written in several ways."""
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value if isinstance(value, str) else None


def _align(text: str, parts: Sequence[_Part]) -> list[tuple[int, int, _Part]] | None:
    """Return the places of the values in a text. A value that is not known reaches to the next part that is."""
    position = text.find(_known_run(parts, 0))
    if position < 0:
        return None
    spans: list[tuple[int, int, _Part]] = []
    for at, part in enumerate(parts):
        if part.text is not None:
            if not text.startswith(part.text, position):
                return None
            end = position + len(part.text)
        else:
            following = _known_run(parts, at + 1)
            end = text.find(following, position) if following else len(text)
            if end < 0:
                return None
        if part.name and end > position:
            spans.append((position, end, part))
        position = end
    return spans


def _known_run(parts: Sequence[_Part], first: int) -> str:
    run: list[str] = []
    for part in parts[first:]:
        if part.text is None:
            break
        run.append(part.text)
    return "".join(run)
