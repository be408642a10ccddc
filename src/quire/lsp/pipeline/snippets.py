"""Texts with places to fill in, for kinds of step and for keys."""

from __future__ import annotations

from quire.formats.pipeline.language import KINDS
from quire.formats.pipeline.language_words import IN_SNIPPETS, SNIPPETS


def body_snippet(place: str, step: str, key: str, *, flow: bool) -> str:
    """Return a key with a value to fill in."""
    if place == "document" and key in ("steps", "input", "fields"):
        return f"{key}:\n  " if not flow else f"{key}: "
    if step == "steps" and key == "do":
        return f"{key}: " if flow else f"{key}:\n  - "
    value = _filled(key, 1)[0]
    return f"{key}: {value or '$1'}"


def step_snippet(kind: str, column: int, *, flow: bool, dialect: bool) -> str:
    """Return a step of a kind with the keys that it needs. Steps with other steps in them are written over several
    lines, indented below the column of the kind."""
    row = next(row for row in KINDS if row.name == kind)
    parts: list[str] = []
    number = 1
    for key in (key.name for key in row.keys if key.needed or key.name in IN_SNIPPETS.get(kind, ())):
        if kind == "steps":
            value, used = '[{transform: {value: "${1:expression}"}}]', 1
        elif key == "cases" and dialect:
            value, used = (
                f'{{${{{number}:label}}: {{steps: [{{transform: {{value: "${{{number + 1}:expression}}"}}}}]}}}}',
                2,
            )
        else:
            value, used = _filled(key, number)
        parts.append(f"{key}: {value}")
        number += used
    if flow or (len(parts) <= 3 and kind not in ("for_each", "fold", "parallel", "match", "repeat")):
        return f"{kind}: {{{', '.join(parts)}}}"
    # The editor indents the lines of a snippet like the line of the cursor, which begins with a dash in a list.
    lines = "\n".join(f"    {part}" for part in parts)
    return f"{kind}:\n{lines}"


def _filled(key: str, number: int) -> tuple[str, int]:
    """Return the value of a key with places from a number on, and how many there are."""
    form = SNIPPETS.get(key, "")
    if not form:
        return f"${{{number}}}", 1
    used = 2 if "{{{1}" in form or "{1}" in form else 1 if "{0}" in form else 0
    return form.format(number, number + 1), used
