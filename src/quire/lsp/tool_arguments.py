"""The arguments of tools and of documents that are called, as their schemas declare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

Schema = Mapping[str, Any]


class Argument(Struct, frozen=True):
    """An argument of a tool, or an input of a document that is called."""

    name: str
    type: str
    required: bool
    description: str = ""
    options: tuple[str, ...] = ()
    """The only values, as JSON or as texts; empty if any of its type will do."""
    is_text: bool = True


def properties_of(schema: Schema) -> dict[str, Schema]:
    """Return the arguments of a schema by name, each with its own schema."""
    properties = schema.get("properties")
    named = properties.items() if isinstance(properties, Mapping) else ()
    return {name: about if isinstance(about, Mapping) else {} for name, about in named}


def required_in(schema: Schema) -> tuple[str, ...]:
    """Return the names of the arguments that a schema requires."""
    required = schema.get("required")
    return tuple(map(str, required)) if isinstance(required, list | tuple) else ()


def meaning_of(about: Schema) -> str:
    """Return the description in the schema of an argument, else its type; empty if it has neither."""
    return str(about.get("description", about.get("type", "")))


def arguments_in(schema: Schema) -> tuple[Argument, ...]:
    """Return the arguments of a schema, with their types in words."""
    needed = required_in(schema)
    return tuple(_argument(name, about, name in needed) for name, about in properties_of(schema).items())


def _argument(name: str, schema: Schema, required: bool) -> Argument:
    options, type = schema.get("enum"), schema.get("type")
    texts = tuple(map(str, options)) if isinstance(options, list | tuple) else ()
    if type == "boolean":
        texts = ("true", "false")
    elif isinstance(type, list | tuple):
        type = " or ".join(map(str, type))
    description = str(schema.get("description", ""))
    words = (
        " | ".join(f'"{text}"' for text in texts) if texts and type != "boolean" else str(type or _alternatives(schema))
    )
    return Argument(name, words, required, description, texts, type != "boolean")


def _alternatives(schema: Schema) -> str:
    several = schema.get("anyOf")
    kinds = [str(schema.get("type", "")) for schema in several or () if isinstance(schema, Mapping)]
    return " or ".join(filter(None, kinds)) or "any value"
