"""The syntax tree of a directive with positions, the questions about its limits, and the findings of a reading.

Nodes are not frozen, because the reader fills the directive part by part, but never changed afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.diagnostics import Code, Diagnostic, Edit, Findings, Fix, Severity
from quire.formats.directive import codes
from quire.formats.near_names import word_fix
from quire.plan.vocabulary import CURRENCY, INTEGER_LIMITS, LARGEST_LIMIT, LIMIT_ALIASES, number
from quire.source import NOWHERE, Source, Span
from quire.wording import LONGEST_QUOTED, cut, did_you_mean

if TYPE_CHECKING:
    from quire.formats.directive.xml import Element
    from quire.values import Value


@dataclass(slots=True)
class Text:
    """A text without the white space around it."""

    text: str
    span: Span = NOWHERE


def text_of(text: Text | None) -> str:
    """Return the text; empty for None."""
    return text.text if text else ""


Attributes: TypeAlias = "tuple[tuple[str, Text], ...]"
"""Names as written, in the order of the file."""


class Grant(Struct):
    """A capability in its dotted form."""

    capability: str
    span: Span = NOWHERE
    """Where the text that requests it is."""


class Acknowledge(Struct):
    risk: str
    reason: str
    span: Span = NOWHERE


@dataclass(slots=True)
class Permissions:
    """The `<permissions>` element."""

    grants: tuple[Grant, ...]
    acknowledged: tuple[Acknowledge, ...]
    raw: str = field(default="", compare=False)
    """The whole element as it is in the file."""
    span: Span = NOWHERE


class Cost(Struct):
    """The `<cost>` element."""

    context: Attributes = ()
    """The attributes of its `<context>`."""
    tokens: Text | None = None
    """The text of its `<context>`."""
    duration: Text | None = None
    spend: Text | None = None
    currency: Text | None = None
    span: Span = NOWHERE


class Parameter(Struct):
    """An input or an output. A missing name is empty."""

    name: str
    type: str = "string"
    required: bool = False
    default: str | None = None
    description: str = ""
    keyed: bool = False
    """True for the form in which the tag of the element is the name."""
    span: Span = NOWHERE


class Condition(Struct):
    """One test of a value."""

    path: str
    op: str
    value: Value = None
    """None if there is no value. Texts that are numbers or booleans are converted."""
    span: Span = NOWHERE


class Combined(Struct):
    """Tests combined by any, all or not."""

    kind: str
    """One of any, all and not."""
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
    """A hook."""

    id: str
    event: str
    tests: tuple[Test, ...]
    """All of them must hold."""
    actions: tuple[Action, ...]
    position: str = ""
    nested: bool = False
    """True for the form in which the actions are separate elements."""
    span: Span = NOWHERE


class Context(Struct):
    """The `<context>` element."""

    items: tuple[tuple[str, Text], ...]
    """(position, item id) in the order of the file. A position is system, before, after or suppress."""
    span: Span = NOWHERE


class Extra(Struct):
    """Metadata without a meaning in the format, kept as text."""

    name: str
    text: str
    raw: str
    """The whole element as it is in the file."""
    span: Span = NOWHERE


class Section(Struct):
    """Any other element directly below the root, such as `process` and `success_criteria`."""

    tag: str
    raw: str
    """The element as it is in the file."""
    text: str
    """The element as the model reads it: references resolved, action elements written as calls."""
    span: Span = NOWHERE


class Directive(Struct):
    """One file."""

    signature: str = ""
    """The first line, if it is a signature. It is not interpreted here."""
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


def limit_problem(name: str, text: str) -> str | None:
    """Return what is wrong with the value of a limit, as the end of a sentence; None if it is right."""
    canonical = LIMIT_ALIASES.get(name, name)
    if canonical == "spend_currency":
        if text.strip().upper() == CURRENCY:
            return None
        return f"must be {CURRENCY}, not '{shown(text)}': costs are counted in US dollars"
    value = number(text)
    if canonical in INTEGER_LIMITS and not isinstance(value, int):
        return f"must be an integer, not '{shown(text)}'"
    if value is None:
        return f"must be a number, not '{shown(text)}'"
    if value > LARGEST_LIMIT:
        return f"must not be above {LARGEST_LIMIT:,}, and is {shown(text)}"
    return f"must not be below 0, and is {shown(text)}" if value < 0 else None


def leaves_no_room(name: str, text: str) -> bool:
    """Tell whether a limit is reached before the first turn."""
    return LIMIT_ALIASES.get(name, name) in ("turns", "tokens", "spend", "duration_seconds") and number(text) == 0


def conflicting_limits(directive: Directive) -> Iterator[tuple[str, Text]]:
    """Yield a message for each limit that `<limits>` sets twice, to different numbers, and the second of the values."""
    texts = dict(directive.limits or ())
    for alias, name in LIMIT_ALIASES.items():
        text, other = texts.get(alias), texts.get(name)
        if text is None or other is None or number(text.text) == number(other.text):
            continue
        values = f"{shown(text.text)} and {shown(other.text)}"
        message = f"{alias} and {name} are the same limit, and have the values {values}"
        yield message, max(text, other, key=lambda value: value.span.start)


def cost_values(cost: Cost) -> Iterator[tuple[str, Text]]:
    """Yield the values of `<cost>` under the names of the limits."""
    for name, value in cost.context:
        if name == "turns":
            yield "turns", value
        elif name == "spawn_threshold":
            yield "spawns", value
    named = {
        "tokens": cost.tokens,
        "duration_seconds": cost.duration,
        "spend": cost.spend,
        "spend_currency": cost.currency,
    }
    yield from ((name, text) for name, text in named.items() if text is not None)


_READABLE = (codes.PERMISSION_TAG, codes.RISK)


class ParseResult(Struct):
    """The result of parsing one file. Diagnostics are in the order of the text."""

    source: Source
    partial: Directive
    """The parts that could be read, even if there are errors."""
    diagnostics: tuple[Diagnostic, ...]

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.severity is severity)

    @property
    def whole(self) -> bool:
        """True if the whole file could be read, so that checks can find more: errors are only about its meaning."""
        return all(finding.code in _READABLE for finding in self.of(Severity.ERROR))

    @property
    def directive(self) -> Directive | None:
        """The tree, or None if there is an error."""
        return None if self.of(Severity.ERROR) else self.partial


class DirectiveFindings(Findings):
    """The source and the findings of one reading."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def known_children(self, element: Element, known: Collection[str]) -> Iterator[Element]:
        """Yield the children that have a meaning in an element; the others are reported."""
        for child in element.children:
            if child.tag in known:
                yield child
            else:
                self.stray(child, element.tag, known)

    def stray(self, element: Element, parent: str, known: Collection[str]) -> None:
        """Report an element in a place where it has no meaning."""
        meant = self.suggestions.nearest(element.tag, known)
        help = did_you_mean(meant, f"known there: {', '.join(known)}", form="<{}>")
        message = f"<{shown(element.tag)}> has no meaning in <{parent}>"
        self.report(codes.STRAY, message, element.opening, help, self.tag_fix(element, known) if meant else None)

    def unknown_word(
        self, code: Code, message: str, word: str, known: tuple[str, ...], span: Span, otherwise: str = ""
    ) -> None:
        """Report a word that is not one of the known ones. `otherwise` is the help if none is near."""
        meant = self.suggestions.nearest(word, known)
        help = did_you_mean(meant, otherwise or f"known: {', '.join(known)}")
        self.report(code, message, span, help, word_fix(word, known, span) if meant else None)

    def tag_fix(self, element: Element, known: Collection[str]) -> Fix | None:
        """Return edits that correct both tags of an element."""
        start = element.start + 1
        fix = word_fix(element.tag, known, Span(start, start + len(element.tag)))
        if fix and self.source.text.startswith("</", element.inner_end):
            end = element.inner_end + 2
            closing = Edit(Span(end, end + len(element.tag)), element.tag, fix.edits[0].new)
            fix = Fix(fix.title, (*fix.edits, closing))
        return fix

    def truth(self, element: Element, name: str) -> bool:
        """Read an attribute that is true or false; false if it is missing."""
        text = element.attributes.get(name, "").strip().lower()
        if text not in ("", "true", "false"):
            message = f'{name}="{shown(text)}" counts as false: it is neither true nor false'
            self.report(codes.TRUTH, message, element.attribute_span(self.source, name), f'write {name}="true"')
        return text == "true"


def shown(text: str) -> str:
    return cut(text, LONGEST_QUOTED)
