"""Hash the structure of plans and cases, without the places of their parts in a text.

A comment or a line break changes places, and nothing that runs. So a receipt stays valid when only those change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.source import Span
from quire.values import Value, fingerprint

if TYPE_CHECKING:
    from quire.library.callees import Callee
    from quire.library.document import Document

_PLACES = ("span", "spans", "compiled")


def structure_hash(value: object, without: tuple[str, ...] = ()) -> str:
    """Return a hash of everything in a value but places, compiled code, and fields with the names in `without`."""
    return fingerprint(_plain(value, (*_PLACES, *without)))


def document_hash(document: Document, callees: Mapping[str, Callee], texts: Mapping[str, str]) -> str:
    """Return the hash of a document's plan, of all plans that it can call, and of further texts that runs read.

    A directive that is called counts with everything that it is composed from.
    """
    called: dict[str, Value] = {
        name: callee.text if callee.bundle else structure_hash(callee.plan) for name, callee in sorted(callees.items())
    }
    return fingerprint({"plan": structure_hash(document.runnable()), "called": called, "texts": dict(texts)})


def _plain(value: object, without: tuple[str, ...]) -> Value:
    if value is None or isinstance(value, str | int | float | bool):
        return str(value) if isinstance(value, Enum) else value
    if isinstance(value, Span) or callable(value):
        return None
    if isinstance(value, Struct):
        named = {name: _plain(getattr(value, name), without) for name in value.__struct_fields__ if name not in without}
        return [type(value).__name__, named]
    if is_dataclass(value) and not isinstance(value, type):
        kept = {one.name: _plain(getattr(value, one.name), without) for one in fields(value) if one.name not in without}
        return [type(value).__name__, kept]
    if isinstance(value, Mapping):
        return {str(key): _plain(item, without) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, without) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(item) for item in value)
    return str(value) if isinstance(value, Enum) else type(value).__name__
