"""Schemas of the results of built-in tools. Scripted results in document tests are held to them.

A command can print anything, and the state of a workspace is any value: `shell`, `state__get` and `state__set` have no
schema.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping

from quire.plan.built_in_tools import FETCH, SEND, WRITE

if typing.TYPE_CHECKING:
    from quire.values import Value

_TEXT: Value = {"type": "string"}
_COUNT: Value = {"type": "integer", "minimum": 0}


def _object(**properties: Value) -> dict[str, Value]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_WRITTEN = _object(path=_TEXT, bytes=_COUNT, created={"type": "boolean"})
_ANSWER: dict[str, Value] = {
    "type": "object",
    "properties": {
        "status": {"type": "integer", "minimum": 100, "maximum": 599},
        "url": _TEXT,
        "headers": {"type": "object", "additionalProperties": _TEXT},
        "text": _TEXT,
        "json": {},
    },
    "required": ["status", "url", "headers"],
    "additionalProperties": False,
}

RESULTS: Mapping[str, Mapping[str, Value]] = {
    "rye/file-system/read": {"type": "string"},
    WRITE: {
        "anyOf": [
            _WRITTEN,
            _object(files_written=_COUNT, files_total=_COUNT, results={"type": "array", "items": _WRITTEN}),
        ]
    },
    "rye/file-system/edit": _object(path=_TEXT, replaced=_COUNT),
    "rye/file-system/edit_lines": _object(path=_TEXT, changes_applied=_COUNT, lines_changed=_COUNT, output=_TEXT),
    "rye/file-system/ls": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"name": _TEXT, "type": {"enum": ["file", "folder", "link", "other"]}, "bytes": _COUNT},
            "required": ["name", "type"],
            "additionalProperties": False,
        },
    },
    "rye/file-system/glob": {"type": "array", "items": _TEXT},
    "rye/file-system/grep": _object(matches={"type": "array"}, truncated={"type": "boolean"}),
    FETCH: _ANSWER,
    SEND: _ANSWER,
    "rye/time/now": _object(iso=_TEXT, date=_TEXT, time=_TEXT, weekday=_TEXT, unix={"type": "integer"}, zone=_TEXT),
}
"""By the canonical id of the tool."""
