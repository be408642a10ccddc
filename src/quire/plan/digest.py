"""The digest of a Plan: equal for two documents exactly if they run the same way.

Positions in the text, comments, layout and texts that only people read do not count. The title of a playbook step
counts if a later step shows it to a model, above the result of the step. A field that has its default value is left
out, so that a field that is added to a node later does not change the digests of all documents.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

from msgspec import NODEFAULT, Struct

from quire.plan.nodes import Plan, Step, Think, remembered
from quire.source import Span
from quire.values import sha256

if TYPE_CHECKING:
    from quire.expr import Compiled

_Field: TypeAlias = "tuple[str, object]"
"""The name of a field and its default."""

_VERSION = "quire plan 1"
_UNREAD = {
    "Plan": ("title", "description", "format"),
    "Step": ("title", "kind", "span"),
    "Input": ("description",),
    "Thread": ("version", "author"),
    "Hook": ("span", "origin"),
    "Formula": ("text", "span"),
    "Expression": ("text",),
    "Path": ("places", "span", "store"),
    "Enum": ("_simple", "_nested"),
    "ForEach": ("sees_loops",),
    "Parallel": ("sees_loops",),
}
"""Fields that no model and no rule of a run reads, or that follow from others, by class. `sees_loops` only decides
between a value and a failure, and counting it would change the digests of all fans. Fields named `span` are left
out of every class."""


@remembered
def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 of everything in a plan that counts, in hex."""
    steps = [step for _, step in plan.steps()]
    readers = [at for at, step in enumerate(steps) if isinstance(step.work, Think) and step.work.context != ()]
    # Of a playbook, a later model call may read the titles of the steps before it.
    encoder = _Encoder(frozenset(map(id, steps[: max(readers, default=0)])))
    pieces = [_VERSION, plan.format, plan.title if plan.format == "pipeline" else ""]
    encoder.add(plan)
    return sha256("\n".join([*pieces, *encoder.pieces]).encode("utf-8", "surrogatepass"))


_SCALARS = (int, float, bool, type(None))


class _Encoder:
    """Writes a tree as pieces. Each begins with a mark for its kind, so that no two trees have the same pieces."""

    def __init__(self, titled: frozenset[int]) -> None:
        self.pieces: list[str] = []
        self._titled = titled

    def add(self, value: object) -> None:
        kind = type(value)
        if kind is str:
            self.pieces.append(_quoted(cast("str", value)))
        elif kind is tuple or kind is list:
            items = cast("Sequence[object]", value)
            self.pieces.append(f"l{len(items)}")
            for item in items:
                self.add(item)
        elif kind in _SCALARS:
            self.pieces.append(_number(value))
        elif isinstance(value, Mapping):
            self.pieces.append(f"m{len(value)}")
            for key, item in sorted(value.items()):
                self.add(key)
                self.add(item)
        elif _is_compiled(value):
            self.add(value.expression.root)
        elif isinstance(value, Enum):
            self.add(value.value)
        elif isinstance(value, Struct) or hasattr(kind, "__dataclass_fields__"):
            self._node(value)
        else:
            raise TypeError(f"a plan has a {kind.__name__}, which has no digest")

    def _node(self, node: object) -> None:
        kind: type = type(node)
        put = self.pieces.append
        put(f"s{kind.__name__}")
        for name, default in _fields(kind):
            value = getattr(node, name)
            if value is default or type(value) is Span or (value == default and type(value) is type(default)):
                continue
            put(f"f{name}")
            self.add(value)
        if self._titled and id(node) in self._titled and isinstance(node, Step):
            put("ftitle")
            self.add(node.title)
        put("e")


def _quoted(text: str) -> str:
    """Return a text as JSON. The library is loaded only for letters that are written as numbers."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    if plain.isprintable():
        return f'"{plain}"'
    from json.encoder import encode_basestring

    return encode_basestring(text)


def _number(value: object) -> str:
    """Return a number, a truth value or nothing as JSON."""
    if type(value) is int:
        return str(value)
    if isinstance(value, float):
        import json

        return json.dumps(value)
    return "null" if value is None else "true" if value else "false"


def _is_compiled(value: object) -> TypeGuard[Compiled]:
    """Tell whether a value is a compiled expression. There is none unless their module is loaded, which takes long."""
    loaded = sys.modules.get("quire.expr.compile")
    return loaded is not None and isinstance(value, loaded.Compiled)


@cache
def _fields(kind: type) -> tuple[_Field, ...]:
    """Return the fields of a class that count."""
    unread = {*_UNREAD.get(kind.__name__, ()), "span"}
    fields = _struct_fields(kind) if issubclass(kind, Struct) else _dataclass_fields(kind)
    return tuple((name, default) for name, default in fields if name not in unread)


def _struct_fields(kind: type[Struct]) -> Iterator[_Field]:
    # Not msgspec.structs.fields: it evaluates annotations, and some of them name what only type checkers import.
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    for name, default in zip(names, (NODEFAULT,) * (len(names) - len(defaults)) + defaults, strict=True):
        yield name, default.factory() if hasattr(default, "factory") else default


def _dataclass_fields(kind: type[Any]) -> Iterator[_Field]:
    import dataclasses

    for field in dataclasses.fields(kind):
        if field.init:
            yield field.name, field.default
