"""The meaning of a place in a pipeline file: which keys may stand there, and what a value there is."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from quire.formats.pipeline.kinds import ALL_KINDS, DIALECT_KINDS, KEYS, kinds
from quire.lsp.yaml_scan import ITEM

PlaceKind: TypeAlias = Literal[
    "document", "steps", "step", "body", "args", "pass", "cases", "target", "branches", "capabilities", "fields",
    "field", "tools", "values", "other",
]  # fmt: skip

DOCUMENT_KEYS = ("pipeline", "description", "dialect", "input", "steps", "schema", "fields")
TARGET_KEYS = ("pipeline", "pass", "steps")
FIELD_KEYS = (
    "type", "values", "of", "fields", "schema", "required", "default", "description", "minimum", "maximum",
    "max_length", "pattern", "max_items",
)  # fmt: skip
EXPRESSIONS = frozenset({"value", "on", "over", "init", "until", "when"})
"""Keys whose value is always an expression."""
_STEP_KEYS = frozenset({"do", "collect"})


class YamlPlace(Struct, frozen=True):
    """A mapping, a list or a value of a file."""

    kind: PlaceKind
    step: str = ""
    """The kind of the step around it."""
    name: str = ""
    """The key, the label or the branch that leads to it."""
    depth: tuple[str, ...] = ()
    """The kinds of the steps around, each with the key below which the place is: `for_each.do`."""


def place_of(path: tuple[str, ...]) -> YamlPlace:
    """Return the meaning of the mapping or the list at a path of keys."""
    place = YamlPlace("document")
    for key in path:
        place = place_below(place, key)
    return place


def place_below(place: YamlPlace, key: str) -> YamlPlace:
    """Return the meaning of the value of a key, or of an item."""
    depth, step = place.depth, place.step
    match place.kind:
        case "document":
            if key == "steps":
                return YamlPlace("steps")
            return YamlPlace("fields", name=key) if key in ("input", "fields") else YamlPlace("other", name=key)
        case "steps":
            return YamlPlace("step", depth=depth) if key == ITEM else _in_step(key, depth)
        case "step":
            return _in_step(key, depth)
        case "body":
            return _in_body(place, key)
        case "branches":
            return YamlPlace("step", step, key, depth)
        case "cases":
            return YamlPlace("target", step, key, depth)
        case "target" if key == "steps":
            return YamlPlace("steps", depth=depth)
        case "target" if key == "pass":
            return YamlPlace("pass", step, key, depth)
        case "capabilities" if key == "tools":
            return YamlPlace("tools", step, key, depth)
        case "fields":
            return YamlPlace("field", name=key)
        case "field" if key == "of":
            return YamlPlace("field", name=key)
        case "field" if key == "fields":
            return YamlPlace("fields", name=key)
        case "field" if key == "values":
            return YamlPlace("values", name=key)
    if key == ITEM:
        return YamlPlace(place.kind, step, place.name, depth)
    return YamlPlace("other", step, key, depth)


def _in_step(key: str, depth: tuple[str, ...]) -> YamlPlace:
    if key in ALL_KINDS:
        return YamlPlace("body", key, depth=depth)
    return YamlPlace("other", "", key, depth)


def _in_body(place: YamlPlace, key: str) -> YamlPlace:
    step, depth = place.step, (*place.depth, f"{place.step}.{key}")
    if step == "steps" and key in ("do", ITEM):
        return YamlPlace("step" if key == ITEM else "steps", depth=place.depth)
    if key in _STEP_KEYS:
        return YamlPlace("step", depth=depth)
    named: dict[str, PlaceKind] = {
        "branches": "branches", "cases": "cases", "args": "args", "pass": "pass", "capabilities": "capabilities",
    }  # fmt: skip
    if key == "default" and step == "match":
        return YamlPlace("target", step, key, place.depth)
    if key in named:
        return YamlPlace(named[key], step, key, depth if key == "branches" else place.depth)
    return YamlPlace("other", step, key, place.depth)


def keys_at(place: YamlPlace, dialect: bool) -> tuple[str, ...]:
    """Return the keys that may stand in a mapping; none for one whose keys are names."""
    match place.kind:
        case "document":
            return DOCUMENT_KEYS
        case "step":
            return tuple(kinds(dialect))
        case "body":
            known = kinds(dialect)
            return known.get(place.step, KEYS.get(place.step, DIALECT_KINDS.get(place.step, ())))
        case "target":
            return TARGET_KEYS if dialect else TARGET_KEYS[:2]
        case "capabilities":
            return ("tools",)
        case "field":
            return FIELD_KEYS
    return ()


def is_expression(place: YamlPlace, key: str, tag: str) -> bool:
    """Tell whether the value of a key is an expression; `place` is the mapping around it."""
    if tag:
        return tag == "!expr"
    if place.kind == "body":
        return key in EXPRESSIONS or key == "default"
    return place.kind == "pass"
