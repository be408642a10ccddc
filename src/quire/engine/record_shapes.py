"""The shape that the value of a recorded effect must have, by its kind. A journal may come from a file or a store that
others wrote, and the interpreter takes its records for what an effect gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quire.engine.records import EffectRecord
from quire.values import Value


def has_shape(record: EffectRecord) -> bool:
    """Whether the walk can go on with this record. A failed effect has no value that anybody reads."""
    shape = _SHAPES.get(record.kind)
    if record.state == "failed" and record.failure is None:
        return False
    return record.state != "ok" or shape is None or shape(record.value)


def _is_reply(value: Value) -> bool:
    if not isinstance(value, Mapping) or not isinstance(value.get("text"), str):
        return False
    uses = value.get("uses")
    return uses is None or (isinstance(uses, list | tuple) and all(_is_use(one) for one in uses))


def _is_use(value: Value) -> bool:
    if not isinstance(value, list | tuple) or len(value) not in (3, 4):
        return False
    return _texts_and_map(value) and all(isinstance(part, str) for part in value[3:])


def _are_offers(value: Value) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(one, list | tuple)
        and len(one) in (3, 4)
        and _texts_and_map(one)
        and all(isinstance(part, str) for part in one[3:])
        for one in value
    )


def _texts_and_map(value: list[Value] | tuple[Value, ...]) -> bool:
    first, second, third = value[:3]
    return isinstance(first, str) and isinstance(second, str) and isinstance(third, Mapping)


def _are_states(value: Value) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(one, Mapping) and isinstance(one.get("state"), str) for one in value
    )


_SHAPES: Mapping[str, Callable[[Value], bool]] = {
    "model": _is_reply,
    "ask": lambda value: isinstance(value, str),
    "load": lambda value: value is None or isinstance(value, str),
    "offer": _are_offers,
    "break": lambda value: isinstance(value, Mapping),
    "join": _are_states,
    "abort": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "terms": lambda value: isinstance(value, Mapping) and isinstance(value.get("limits"), Mapping),
}
