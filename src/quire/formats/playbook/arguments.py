"""The arguments of a `@tool`: JSON whose strings are templates and whose bare placeholders are holes."""

from __future__ import annotations

import json
import re

from quire.plan.nodes import Arguments, Hole, Reference
from quire.plan.template import PLACEHOLDER, reference, template
from quire.values import MAX_DEPTH


def arguments(text: str) -> Arguments:
    """The JSON of a `@tool` with its references in place. Raises ValueError with a sentence for the author.

    The JSON is read first and references are looked for inside its strings, so a value can never change
    the shape of the arguments. A reference outside of a string is read as a number that occurs nowhere
    else in the text, and found again by the number's spelling.
    """
    if not text.strip():
        return {}
    holes: list[Reference] = []
    zeros = max((len(run) for run in re.findall("0+", text)), default=0)
    marker = "0." + "0" * (zeros + 1) + "1e"
    out: list[str] = []
    at = 0
    for start, end in _outside_strings(text):
        for found in PLACEHOLDER.finditer(text, start, end):
            out += [text[at : found.start()], f"{marker}{len(holes)}"]
            holes.append(reference(found))
            at = found.end()
    out.append(text[at:])

    def number(spelling: str) -> object:
        return Hole(holes[int(spelling[len(marker) :])]) if spelling.startswith(marker) else float(spelling)

    try:
        tree = json.loads("".join(out), parse_float=number, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError(f"the arguments are nested deeper than {MAX_DEPTH}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the arguments are not JSON: {error.msg}") from None
    if not isinstance(tree, dict | Hole):
        raise ValueError("the arguments must be a JSON object")
    return _with_templates(tree, 0)


def _with_templates(tree: object, depth: int) -> Arguments:
    if depth > MAX_DEPTH:
        raise ValueError(f"the arguments are nested deeper than {MAX_DEPTH}")
    match tree:
        case str():
            return template(tree)
        case list():
            return tuple(_with_templates(part, depth + 1) for part in tree)
        case dict():
            return {key: _with_templates(part, depth + 1) for key, part in tree.items()}
        case None | bool() | int() | float() | Hole():
            return tree
    raise ValueError(f"{type(tree).__name__} is not a JSON value")


def _outside_strings(text: str) -> list[tuple[int, int]]:
    """The stretches of a JSON text that are not inside a string."""
    stretches, at = [], 0
    while (quote := text.find('"', at)) >= 0:
        stretches.append((at, quote))
        at = quote + 1
        while at < len(text) and text[at] != '"':
            at += 2 if text[at] == "\\" else 1
        at += 1
    stretches.append((at, len(text)))
    return stretches


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")
