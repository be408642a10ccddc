"""JSON Schemas of what the API takes and returns. The keys of runs and questions are those of `--json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.engine.records import Status
from quire.server.endpoints import Parameter

if TYPE_CHECKING:
    from quire.values import Value

TEXT: Mapping[str, Value] = {"type": "string", "maxLength": 1_000_000}
NAME: Mapping[str, Value] = {"type": "string", "minLength": 1, "maxLength": 1000}
FLAG: Mapping[str, Value] = {"type": "boolean"}
NUMBER: Mapping[str, Value] = {"type": "number"}
SEQ: Mapping[str, Value] = {"type": "integer", "minimum": 0, "maximum": 10**15}
LIMIT: Mapping[str, Value] = {"type": "integer", "minimum": 1, "maximum": 500}
NAMES: Mapping[str, Value] = {"type": "array", "items": NAME, "maxItems": 1000}
VALUES: Mapping[str, Value] = {"type": "object"}
TEXTS: Mapping[str, Value] = {"type": "object", "additionalProperties": {"type": "string"}}
BUDGET: Mapping[str, Value] = {"type": ["number", "null"], "minimum": 0}
STATUS: Mapping[str, Value] = {"type": "string", "enum": [str(one) for one in Status]}
FORMAT: Mapping[str, Value] = {"type": "string", "enum": ["playbook", "directive", "pipeline"]}
MOST_ITEMS = Parameter("limit", LIMIT, "The most items to return.")
UNATTENDED: Mapping[str, Value] = {"enum": [True, False, "yes"]}
RUN_OPTIONS: Mapping[str, Mapping[str, Value]] = {
    "inputs": VALUES,
    "model": {**NAME, "type": ["string", "null"]},
    "budget": BUDGET,
    "limits": VALUES,
    "breakpoints": NAMES,
    "answers": TEXTS,
    "allow": NAMES,
    "unattended": UNATTENDED,
    "force": FLAG,
    "reuse": NAME,
}
"""The options of a new run, in the request that starts it and in the one that forecasts it."""


def record(required: tuple[str, ...] = (), **properties: Mapping[str, Value]) -> dict[str, Value]:
    """Return the schema of a body: an object with these members and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def answer_of(**properties: Mapping[str, Value]) -> dict[str, Value]:
    """Return the schema of an answer: an object that has all of these members, and perhaps others."""
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def page_of(item: Mapping[str, Value]) -> dict[str, Value]:
    """Return the schema of one page of a list."""
    return {
        "type": "object",
        "properties": {"items": {"type": "array", "items": item}, "next": {"type": ["string", "null"]}},
        "required": ["items"],
    }


RUN: Mapping[str, Value] = {
    "type": "object",
    "properties": {
        "id": NAME,
        "status": STATUS,
        "title": TEXT,
        "format": FORMAT,
        "document": TEXT,
        "step": TEXT,
        "created_at": NUMBER,
        "updated_at": NUMBER,
        "expires_at": {"type": ["number", "null"]},
        "cost": {"type": ["number", "null"]},
    },
    "required": ["id", "status", "title", "format", "document"],
}
QUESTION: Mapping[str, Value] = {
    "type": "object",
    "properties": {"run": NAME, "path": NAME, "prompt": TEXT, "hash": NAME},
    "required": ["run", "path", "prompt", "hash"],
}
DOCUMENT: Mapping[str, Value] = {
    "type": "object",
    "properties": {"id": NAME, "title": TEXT, "errors": SEQ, "warnings": SEQ},
    "required": ["id", "title", "errors", "warnings"],
}
FINDINGS: Mapping[str, Value] = {
    "type": "object",
    "properties": {"diagnostics": {"type": "array", "items": {"type": "object"}}},
    "required": ["diagnostics"],
}
CHART: Mapping[str, Value] = {
    "type": "object",
    "properties": {
        "title": TEXT,
        "format": FORMAT,
        "command": TEXT,
        "width": NUMBER,
        "height": NUMBER,
        "folded": FLAG,
        "nodes": {"type": "array", "items": {"type": "object"}},
        "edges": {"type": "array", "items": {"type": "object"}},
        "groups": {"type": "array", "items": {"type": "object"}},
        "ways": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["width", "height", "folded", "nodes", "edges", "groups"],
}
_COLUMN: Mapping[str, Value] = {"type": "array"}
TIMELINE: Mapping[str, Value] = {
    "type": "object",
    "properties": {
        "seq": SEQ,
        "start": NUMBER,
        "end": NUMBER,
        "lanes": {"type": "array", "items": {"type": "object"}},
        "kinds": {"type": "array", "items": NAME},
        "states": {"type": "array", "items": NAME},
        "effects": record(path=_COLUMN, lane=_COLUMN, kind=_COLUMN, state=_COLUMN, at=_COLUMN, elapsed=_COLUMN),
        "waits": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["seq", "start", "end", "lanes", "kinds", "states", "effects", "waits"],
}
ITEM_STATE: Mapping[str, Value] = {"type": "string", "enum": ["pending", "running", "waiting", "done", "failed"]}
FAN: Mapping[str, Value] = {
    "type": "object",
    "properties": {
        "path": NAME,
        "total": SEQ,
        "counts": {"type": "object"},
        "letters": {"type": "string", "pattern": "^[prwdf]*$"},
        "fitting": SEQ,
        "items": {"type": "array", "items": {"type": "object"}},
        "next": {"type": ["string", "null"]},
    },
    "required": ["path", "total", "counts", "letters", "fitting", "items", "next"],
}
