"""Parse texts with references into templates, and fill inputs into texts.

`template` reads `{{name}}`, `{{name:type}}` and `{{name:type:default}}`. `fill` and `references` read inputs:
`{input:x}`, `{input:x:default}`, `{input:x|default}`, `{input:x?}` and `${inputs.x}`.

A text is scanned once: inserted values are never scanned for references. Environment variables are not available.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from quire.patterns import late_pattern
from quire.plan.nodes import Reference, Template
from quire.plan.vocabulary import THREAD_RULES
from quire.source import PLACEHOLDER, Span
from quire.values import Value, clean

__all__ = ["InputReference", "as_text", "fill", "input_text", "references"]


def template(text: str) -> Template:
    parts: list[str | Reference] = []
    at = 0
    for match in PLACEHOLDER.finditer(text) if "{{" in text else ():
        if match.start() > at:
            parts.append(text[at : match.start()])
        parts.append(reference(match))
        at = match.end()
    if at < len(text):
        parts.append(text[at:])
    return Template(tuple(parts))


def key_references(tree: Mapping[str, object]) -> list[Reference]:
    """Return the references in the keys of tool arguments. Which arguments there are is then known only in the run."""
    return [reference for key in tree if "{{" in key for reference in template(key).references()]


def reference(match: re.Match[str]) -> Reference:
    return Reference(match[1], match[3], match[0])


# A default extends to the next brace. Texts are searched only up to their last brace, so no search runs to the end
# in vain.
_REFERENCE = late_pattern(r"\{input:(\w++)(?:(\?)|[:|]([^}]*+))?\}|\$\{inputs\.(\w++)\}")


class InputReference(Struct, frozen=True):
    """One place where an input is inserted."""

    name: str
    optional: bool
    """True if the place is filled even without a value, with a default or with nothing."""
    span: Span


def fill(text: str, inputs: Mapping[str, Value], rules: int = THREAD_RULES) -> str:
    """Insert all available inputs into a text. A reference with neither value nor default stays as written."""
    end = text.rfind("}") + 1
    if not end:
        return text

    return _REFERENCE.sub(lambda match: input_text(match, match[4], inputs, rules), text[:end]) + text[end:]


def input_text(match: re.Match[str], other: str | None, inputs: Mapping[str, Value], rules: int) -> str:
    """Return the text that replaces a reference.

    The first three groups of `match` are the name, `?` and the default; `other` is the name if it was written in the
    other form.
    """
    value = inputs.get(match[1] or other or "")
    if value is not None:
        return as_text(value, rules)
    if match[2]:
        return ""
    return match[0] if match[3] is None else match[3]


def references(text: str) -> Iterator[InputReference]:
    """Yield every reference in the order of the text. Spans count from the start of the text."""
    for match in _REFERENCE.finditer(text, 0, text.rfind("}") + 1):
        optional = match[2] is not None or match[3] is not None
        yield InputReference(match[1] or match[4], optional, Span(match.start(), match.end()))


def can_be_inserted(name: str) -> bool:
    """Tell whether `{input:…}` can hold the name of an input."""
    return _REFERENCE.fullmatch(f"{{input:{name}}}") is not None


def is_static(item_id: str) -> bool:
    """Tell whether an id is known before the thread starts: it contains no reference."""
    return bool(item_id) and "${" not in item_id and "{input:" not in item_id


def as_text(value: Value, rules: int = THREAD_RULES) -> str:
    """Return a value as it appears in a prompt: text unchanged, lists, maps and booleans as JSON.

    Version 0.1.0 wrote booleans as Python does.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping | list | tuple) or (isinstance(value, bool) and rules > 1):
        import json

        return clean(json.dumps(value, ensure_ascii=False))
    return str(value)
