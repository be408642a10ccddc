"""The syntax tree of a directive: what stands in the file and where, before anything is read into it.

Nobody changes a node once it is made; they are not frozen because that costs several times as much to make.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.source import NOWHERE, Span

if TYPE_CHECKING:
    from quire.values import Value


@dataclass(slots=True)
class Text:
    """A text without the space around it."""

    text: str
    span: Span = NOWHERE


def text_of(text: Text | None) -> str:
    """Empty for one that is not there."""
    return text.text if text else ""


Attributes: TypeAlias = "tuple[tuple[str, Text], ...]"
"""Names as written, in the order of the file."""


class Grant(Struct):
    """A capability in its dotted form; `span` is where the text stands that asks for it."""

    capability: str
    span: Span = NOWHERE


class Acknowledge(Struct):
    risk: str
    reason: str
    span: Span = NOWHERE


@dataclass(slots=True)
class Permissions:
    """`raw` is the whole element as the file has it."""

    grants: tuple[Grant, ...]
    acknowledged: tuple[Acknowledge, ...]
    raw: str = field(default="", compare=False)
    span: Span = NOWHERE


class Cost(Struct):
    """`<cost>`: `context` are the attributes of that element, `tokens` is its text."""

    context: Attributes = ()
    tokens: Text | None = None
    duration: Text | None = None
    spend: Text | None = None
    currency: Text | None = None
    span: Span = NOWHERE


class Parameter(Struct):
    """An input or an output. `keyed` is the form in which the element's tag is the name. A missing name is empty."""

    name: str
    type: str = "string"
    required: bool = False
    default: str | None = None
    description: str = ""
    keyed: bool = False
    span: Span = NOWHERE


class Condition(Struct):
    """`value` is None where there is none; texts that are numbers or truth values have become such."""

    path: str
    op: str
    value: Value = None
    span: Span = NOWHERE


class Combined(Struct):
    """`kind` is any, all or not."""

    kind: str
    parts: tuple[Test, ...]
    span: Span = NOWHERE


Test: TypeAlias = Condition | Combined


class Action(Struct):
    """An `execute`, `fetch` or `sign`: in a hook, or in a process inside the fence."""

    primary: str
    attributes: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    span: Span = NOWHERE

    def attribute(self, name: str) -> str:
        return next((value for key, value in self.attributes if key == name), "")


class Hook(Struct):
    """`tests` must all hold. `nested` is the form in which the actions are elements of their own."""

    id: str
    event: str
    tests: tuple[Test, ...]
    actions: tuple[Action, ...]
    position: str = ""
    nested: bool = False
    span: Span = NOWHERE


class Context(Struct):
    """(position, item id) in the order of the file; position is system, before, after or suppress."""

    items: tuple[tuple[str, Text], ...]
    span: Span = NOWHERE


class Extra(Struct):
    """Metadata that the format gives no meaning to: kept as text. `raw` is the whole element."""

    name: str
    text: str
    raw: str
    span: Span = NOWHERE


class Section(Struct):
    """Any other element right below the root, `process` and `success_criteria` among them, as the file has it.

    `text` is the same for a model to read: references resolved, action elements written as calls.
    """

    tag: str
    raw: str
    text: str
    span: Span = NOWHERE


class Directive(Struct):
    """One file. `signature` is its first line, where that is a signature; its meaning is for others to find out."""

    signature: str = ""
    preamble: str = ""
    body: str = ""
    name: Text | None = None
    version: Text | None = None
    extends: Text | None = None
    description: Text | None = None
    category: Text | None = None
    author: Text | None = None
    model: Attributes | None = None
    limits: Attributes | None = None
    cost: Cost | None = None
    permissions: Permissions | None = None
    inputs: tuple[Parameter, ...] = ()
    outputs: tuple[Parameter, ...] = ()
    success: str = ""
    failure: str = ""
    context: Context | None = None
    hooks: tuple[Hook, ...] = ()
    extras: tuple[Extra, ...] = ()
    sections: tuple[Section, ...] = ()
    actions: tuple[Action, ...] = ()
    root: Span = NOWHERE
    body_span: Span = NOWHERE
    success_span: Span = NOWHERE
    failure_span: Span = NOWHERE
    fence: Span = NOWHERE
