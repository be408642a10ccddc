"""Texts with `{{name}}`, `{{name:type}}` and `{{name:type:default}}` in them, read into templates."""

from __future__ import annotations

import re

from quire.plan.nodes import Reference, Template

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
