"""The published JSON Schema of test files (draft 2020-12), asked by place: the keys and words that can stand there, and
their meaning. The reader, editors and the documentation have them from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, TypeAlias

from msgspec.json import decode

ITEM = "-"
Schema: TypeAlias = Mapping[str, Any]


def schema_text() -> str:
    """Return the schema, as `quire test --schema` prints it."""
    return files("quire.formats.test").joinpath("schema.json").read_text(encoding="utf-8")


@cache
def _root() -> Schema:
    schema: Schema = decode(schema_text())
    return schema


@lru_cache(maxsize=512)
def schemas_at(path: tuple[str, ...]) -> tuple[Schema, ...]:
    """Return the schemas of the value at a path, without references and alternatives. Their first one has the
    description of the place."""
    found = tuple(_plain(_root()))
    for part in path:
        found = tuple(inner for one in found for below in _below(one, part) for inner in _plain(below))
        if not found:
            return ()
    return found


def _below(schema: Schema, part: str) -> Iterator[Schema]:
    if part == ITEM:
        if isinstance(items := schema.get("items"), Mapping):
            yield items
    elif part in (known := schema.get("properties", {})):
        yield known[part]
    elif isinstance(more := schema.get("additionalProperties"), Mapping):
        yield more


def _plain(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and its alternatives, each without references. The description at the place comes first."""
    if "description" in schema and "$ref" in schema:
        yield {"description": schema["description"]}
    if "$ref" in schema:
        yield from _plain(_referred(schema["$ref"]))
        return
    yield schema
    for key in ("oneOf", "anyOf"):
        for one in schema.get(key, ()):
            if "required" not in one or "properties" in one:
                yield from _plain(one)


def _referred(reference: str) -> Schema:
    found: Any = _root()
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    plain: Schema = found
    return plain


def keys_at(path: tuple[str, ...]) -> dict[str, str]:
    """Return the keys that a mapping at a path can have, with their meaning."""
    return {name: description_of((*path, name)) for one in schemas_at(path) for name in one.get("properties", {})}


@cache
def keys_of(place: str) -> tuple[str, ...]:
    """Return the keys of the mapping at a place: `cases.-.live`, with any name where the author of a test chooses
    one."""
    return tuple(keys_at(tuple(filter(None, place.split(".")))))


def words_at(path: tuple[str, ...]) -> list[str]:
    """Return the words that can stand at a path: status words, `todo`, `real`, `true`."""
    found: list[str] = []
    for one in schemas_at(path):
        found += [_word(word) for word in one.get("enum", ())]
        if "const" in one:
            found.append(_word(one["const"]))
        if one.get("type") == "boolean":
            found += ["true", "false"]
    return list(dict.fromkeys(found))


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def description_of(path: tuple[str, ...]) -> str:
    """Return the meaning of the value at a path; empty if the schema does not say it."""
    return next((str(one["description"]) for one in schemas_at(path) if "description" in one), "")


def takes_mapping(path: tuple[str, ...]) -> bool:
    """Tell whether the value at a path is a mapping and nothing else."""
    kinds = [one.get("type", "object") for one in schemas_at(path) if "type" in one or "properties" in one]
    return bool(kinds) and all(kind == "object" for kind in kinds)


def takes_matcher(path: tuple[str, ...]) -> bool:
    """Tell whether an expectation stands at a path, which may be a matcher, `!expr` or `!snapshot`."""
    return any(
        "contains" in one.get("properties", {}) and "not_contains" in one["properties"] for one in schemas_at(path)
    )


def takes_expression(path: tuple[str, ...]) -> bool:
    """Tell whether only an expression can stand at a path."""
    return description_of(path).startswith("An expression of pipelines")
