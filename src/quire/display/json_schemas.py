"""JSON Schemas (draft-07) of the formats that are YAML or TOML, for editors and for programs that write documents.

They are made from the tables of the readers: the kinds of step, the keys of `quire.toml`, the parts of a lock. A
schema knows keys and forms of values; expressions, undefined names and repeated names are left to `quire check`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from quire.analysis.lock.file import ASKED, COUNTS, FACTS, PARTS, VERSION
from quire.formats.pipeline.language import ALL_KINDS, GUARD_KEYS, KEYS, KINDS, Key
from quire.formats.pipeline.language_words import KIND_MEANINGS, meaning
from quire.formats.pipeline.schemas import OF_DIALECT, TYPES
from quire.formats.test.fields import schema_text
from quire.workspace.setting_keys import CHOSEN, SETTING_KEYS, SettingKey

Schema: TypeAlias = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_FILLED: Schema = {"type": "string", "minLength": 1}
_NAME: Schema = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]*$"}
_COUNT: Schema = {"type": "integer", "minimum": 1}
_TEMPERATURE: Schema = {"type": "number", "minimum": 0, "maximum": 2}


def _object(forms: Mapping[str, Schema], needed: Collection[str] = (), at: tuple[str, str] | None = None) -> Schema:
    """Return the schema of a mapping that has no other keys. At a place of pipelines, the keys are described."""
    if at:
        forms = {key: _told(form, meaning(*at, key)) for key, form in forms.items()}
    return {"type": "object", "additionalProperties": False, "properties": forms, "required": [*needed]}


def _map_of(value: Schema, **more: object) -> Schema:
    return {"type": "object", "additionalProperties": value, **more}


def _list_of(item: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": item, "minItems": least}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _told(schema: Schema, description: str) -> Schema:
    """Return a schema with a description. Beside a reference, draft-07 reads no other key."""
    return {"description": description, **({"allOf": [schema]} if "$ref" in schema else schema)}


_FIELDS = _map_of(_ref("field"), minProperties=1, propertyNames=_NAME)
_PASSES: Schema = {"anyOf": [_list_of(_NAME), _map_of(_TEXT, propertyNames=_NAME), {"type": "null"}]}


def _value(key: Key, step: str) -> Schema:
    """Return the schema of a key by its role. `step` is the definition of a step in the language of the document."""
    dialect = step == "dialect_step"
    target = _object({"pipeline": _TEXT, "pass": _PASSES}, ["pipeline"])
    if dialect:
        target = {"anyOf": [target, _object({"steps": _list_of(_ref(step), 1)}, ["steps"])]}
    survives = r"(\s*,\s*continue)?" if dialect else ""
    number = _TEMPERATURE if key.name == "temperature" else _COUNT | ({"maximum": key.most} if key.most else {})
    roles: dict[str, Schema] = {
        **{role: {} for role in ("argument", "command")},
        **dict.fromkeys(("expression", "prompt", "target"), _TEXT),
        **dict.fromkeys(("tool", "model"), _FILLED),
        **dict.fromkeys(("identity", "schema", "store"), _NAME),
        "arguments": {"type": ["object", "null"]},
        "items": {"type": "array"},
        "tools": _object({"tools": _list_of(_FILLED)}, ["tools"]),
        "variables": _list_of(_TEXT),
        "passes": _PASSES,
        "step": _ref(step),
        "steps": _list_of(_ref(step), 1),
        "branches": _map_of(_ref(step), minProperties=1, propertyNames=_NAME),
        "cases": _map_of(target, minProperties=1),
        "choice": {"anyOf": [target, _TEXT]} if dialect else target,
        "number": number,
        "flag": {"type": "boolean"},
        "word": {"enum": ["fail", "keep"]},
        "policy": {"type": "string", "pattern": rf"^(continue|abort|retry\([0-9]{{1,6}}\){survives})$"},
        "duration": {"type": "string", "pattern": r"^[0-9]{1,9}(\.[0-9]{1,6})?(ms|s|m|h)$"},
    }
    return roles[key.role]


def _step(step: str, kinds: Mapping[str, Collection[str]]) -> Schema:
    """Return the schema of a step: one key, its kind, with the keys of that kind."""
    bodies: dict[str, Schema] = {}
    for kind in KINDS:
        if kind.name in kinds:
            keys = [key for key in (*kind.keys, GUARD_KEYS[0]) if key.name in kinds[kind.name]]
            needed = [key.name for key in keys if key.needed]
            body = _object({key.name: _value(key, step) for key in keys}, needed, ("body", kind.name))
            short = {"anyOf": [body, _list_of(_ref(step), 1)]} if kind.name == "steps" else body
            bodies[kind.name] = _told(short, KIND_MEANINGS[kind.name])
    return {**_object(bodies), "minProperties": 1, "maxProperties": 1}


def _type(*more: str) -> Schema:
    """Return the schema of a type of `schema:` or `input:` documents, with these further keys."""
    parts = {"values": _list_of({}, 1), "of": _ref("type"), "fields": _FIELDS, "schema": _NAME}
    others: dict[str, Schema] = {key: _COUNT if key.startswith("max_") else {} for key in (*OF_DIALECT, *more)}
    return _object({"type": {"enum": [*TYPES]}, **parts, **others}, ["type"], ("field", ""))


def pipeline_schema() -> Schema:
    """Return the schema of one document of a pipeline file: a pipeline in either language, or a schema."""
    inputs = _map_of(_ref("input"), propertyNames=_NAME)
    seed = {"pipeline": _NAME, "description": _TEXT, "steps": _list_of(_ref("step"), 1)}
    dialect = {**seed, "dialect": {"const": "quire"}, "input": inputs, "steps": _list_of(_ref("dialect_step"), 1)}
    pipeline = {
        "if": {"required": ["dialect"]},
        "then": _object(dialect, ["pipeline", "steps"], ("document", "")),
        "else": _object(seed, ["pipeline", "steps"], ("document", "")),
    }
    schema = _object({"schema": _NAME, "fields": _FIELDS}, ["schema", "fields"], ("document", ""))
    definitions = {
        "step": _step("step", KEYS),
        "dialect_step": _step("dialect_step", ALL_KINDS),
        "type": _type(),
        "field": _type("required"),
        "input": _type("required", "default"),
    }
    return {"if": {"required": ["schema"]}, "then": schema, "else": pipeline, "definitions": definitions}


_SETTINGS: Mapping[str, Schema] = {
    "text": _FILLED,
    "texts": _list_of(_FILLED),
    "model": {"anyOf": [_FILLED, _list_of(_FILLED)]},
    "count": {"type": "integer", "minimum": 0},
    "positive": _COUNT,
    "flag": {"type": "boolean"},
    "amount": {"type": "number", "minimum": 0},
    "temperature": _TEMPERATURE,
    "duration": {"type": "string", "pattern": r"^\s*[0-9]{1,9}\s*(ms|s|m|h|d)\s*$|^never$"},
    "size": {"type": ["integer", "string"], "minimum": 0},
    "date": _TEXT,
    "headers": _map_of(_TEXT),
    "values": {"type": "object"},
    "tables": {"type": ["object", "array"]},
}


def settings_schema(path: tuple[str, ...] = ()) -> Schema:
    """Return the schema of `quire.toml`, or of the table at a path of it."""
    rows = {key.parts[len(path) :]: key for key in SETTING_KEYS if key.parts[: len(path)] == path != key.parts}
    names: dict[str, Schema] = {}
    for name in dict.fromkeys(parts[0] for parts in rows):
        forms = [_setting(rows[(name,)])] if (name,) in rows else []
        forms += [settings_schema((*path, name))] if any(parts[0] == name != parts[-1] for parts in rows) else []
        names[name] = forms[0] if len(forms) == 1 else {"anyOf": forms}
        if name in CHOSEN:
            return _map_of(names[name])
    return _object(names, [parts[0] for parts, key in rows.items() if len(parts) == 1 and key.default == "needed"])


def _setting(key: SettingKey) -> Schema:
    word: Schema = {"enum": list(key.words)} if key.words and key.form != "flag" else _SETTINGS[key.form]
    return _told(_list_of(word) if key.words and key.form == "texts" else word, key.text)


def lock_schema() -> Schema:
    """Return the schema of `quire.lock`. A bound or a name that looks like a number is one in YAML."""
    text: Schema = {"type": ["string", "integer"]}
    asks = _object({name: _list_of(text) for name in ASKED})
    most = _object(dict.fromkeys(COUNTS, text))
    plan: Schema = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
    facts: dict[str, Schema] = {**dict.fromkeys(FACTS, _list_of(text)), "plan": plan, "asks": asks, "most": most}
    document = _object({**facts, "gates": _map_of(text)}, ["plan"])
    prices = _object({"source": text, "models": _map_of(text)})
    parts: dict[str, Schema] = {**dict.fromkeys(PARTS, _map_of(text)), "quire": {"const": VERSION}, "prices": prices}
    return _object({**parts, "documents": _map_of(document)}, ["quire"])


SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "pipeline": pipeline_schema,
    "test": lambda: json.loads(schema_text()),
    "settings": settings_schema,
    "lock": lock_schema,
}
"""The formats that have a schema."""


def json_schema(name: str) -> Schema:
    """Return the JSON Schema of a format of `SCHEMAS`."""
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": f"Quire {name}", **SCHEMAS[name]()}
