"""Texts with `{{name}}`, `{{name:type}}` and `{{name:type:default}}` in them, read into templates.

Inputs in a text: `{input:x}`, `{input:x:default}`, `{input:x|default}`, `{input:x?}` and `${inputs.x}`.

A text is gone through once: what a value brings with it is never read for references. The environment is no source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from quire.plan.nodes import Reference, Template
from quire.plan.thread import THREAD_RULES
from quire.source import Span
from quire.values import Value, clean

__all__ = ["InputReference", "as_text", "fill", "input_text", "references"]


# Every repetition is over a class that excludes what follows it, so matching is linear.
PLACEHOLDER = re.compile(r"\{\{([A-Za-z0-9_]+)(?::([A-Za-z0-9_]+)(?::([^{}\n]*))?)?\}\}")


def template(text: str) -> Template:
    parts: list[str | Reference] = []
    at = 0
    for found in PLACEHOLDER.finditer(text):
        if found.start() > at:
            parts.append(text[at : found.start()])
        parts.append(reference(found))
        at = found.end()
    if at < len(text):
        parts.append(text[at:])
    return Template(tuple(parts))


def reference(found: re.Match[str]) -> Reference:
    return Reference(found[1], found[3], found[0])


# A default goes on to the next brace, so a text is only searched up to its last one: no search runs to the end in vain.
_REFERENCE = re.compile(r"\{input:(\w++)(?:(\?)|[:|]([^}]*+))?\}|\$\{inputs\.(\w++)\}")


class InputReference(Struct, frozen=True):
    """One place that an input goes to. An `optional` one is filled in any case, with a default or with nothing."""

    name: str
    optional: bool
    span: Span


def fill(text: str, inputs: Mapping[str, Value], rules: int = THREAD_RULES) -> str:
    """The text with every input put in that is there; a reference without value and default stays as it is written."""
    end = text.rfind("}") + 1
    if not end:
        return text

    return _REFERENCE.sub(lambda match: input_text(match, match[4], inputs, rules), text[:end]) + text[end:]


def input_text(match: re.Match[str], other: str | None, inputs: Mapping[str, Value], rules: int) -> str:
    """What stands for a reference. The first three groups of `match` are the name, `?` and the default; `other` is the
    name where it was written in another way."""
    value = inputs.get(match[1] or other or "")
    if value is not None:
        return as_text(value, rules)
    if match[2]:
        return ""
    return match[0] if match[3] is None else match[3]


def references(text: str) -> Iterator[InputReference]:
    """Every reference in the order of the text; spans count from its start."""
    for match in _REFERENCE.finditer(text, 0, text.rfind("}") + 1):
        optional = match[2] is not None or match[3] is not None
        yield InputReference(match[1] or match[4], optional, Span(match.start(), match.end()))


def as_text(value: Value, rules: int = THREAD_RULES) -> str:
    """How a value stands in a prompt: text as it is, all else as JSON. 0.1.0 wrote truth values as Python does."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping | list | tuple) or (isinstance(value, bool) and rules > 1):
        return clean(json.dumps(value, ensure_ascii=False))
    return str(value)
