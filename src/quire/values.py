"""The one codec for all values that cross a boundary: journal, tools, models, events.

A value is JSON and is never changed in place (the types are read-only; code outside the engine gets a decoded copy).
The codec keeps big integers exact, refuses NaN and infinities, replaces lone surrogates, and refuses nesting deeper
than `MAX_DEPTH`. So everything that was written can be read again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from quire.patterns import late_pattern

if TYPE_CHECKING:
    import json

Value: TypeAlias = "None | bool | int | float | str | Sequence[Value] | Mapping[str, Value]"

MAX_DEPTH = 200
# Tuples and not unions, which Python would build anew each time that they are asked for.
_PLAIN = (str, int, float)
_NESTED = (dict, list, tuple)
_SURROGATES = late_pattern("[\ud800-\udfff]")
_ESCAPED_SURROGATE = late_pattern(r"\\u[dD][89a-fA-F]")


class InvalidValue(ValueError):
    """Not a JSON value, or one that Quire refuses. The text says which part."""


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidValue(f"{name} is not a JSON value")


def _finite(spelling: str) -> float:
    number = float(spelling)
    if number in (math.inf, -math.inf):
        raise InvalidValue(f"{spelling} is too large a number")
    return number


class _Late:
    """Stands for a codec, which is made when it is first used, and keeps each of its methods that was asked for: the
    library takes longer to load than many commands have values."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._make(), name)
        setattr(self, name, member)
        return member


def _new_decoder(*, strict: bool = True) -> json.JSONDecoder:
    import json

    return json.JSONDecoder(strict=strict, parse_constant=_refuse_constant, parse_float=_finite)


def _new_encoder(*, sort_keys: bool = False) -> json.JSONEncoder:
    import json

    # Values are checked before they are written, and a circular one exceeds the depth limit there. Looking for circles
    # again would double the time.
    return json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys, check_circular=False
    )


_decoder = _Late(_new_decoder)
_lenient = _Late(lambda: _new_decoder(strict=False))
_encoder = _Late(_new_encoder)
_canonical = _Late(lambda: _new_encoder(sort_keys=True))


def encode(value: Value) -> str:
    """Return compact JSON text; keys keep their order. Raises `InvalidValue`."""
    _check(value)
    try:
        text: str = _encoder.encode(value)
        return clean(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(str(error)) from None


def decode(text: str) -> Value:
    """Parse JSON text. Raises `InvalidValue`."""
    text = clean(text)
    try:
        value: Value = _decoder.decode(text)
    except RecursionError:
        raise InvalidValue(f"nested deeper than {MAX_DEPTH}") from None
    except InvalidValue:
        raise
    except ValueError as error:
        raise InvalidValue(str(error)) from None
    if text.count("{") + text.count("[") > MAX_DEPTH:  # otherwise it cannot be nested too deep
        _check(value)
    return _mended(value) if _ESCAPED_SURROGATE.search(text) else value


def decode_object(text: str, start: int) -> Mapping[str, Value]:
    """Parse the object whose opening brace is at `start`, and ignore the text after it.

    Texts in it may contain raw line ends.
    """
    try:
        value, end = _lenient.raw_decode(text, start)
    except RecursionError:
        raise InvalidValue(f"nested deeper than {MAX_DEPTH}") from None
    _check(value)
    halves = _ESCAPED_SURROGATE.search(text, start, end) or _SURROGATES.search(text, start, end)
    mended: Mapping[str, Value] = _mended(value) if halves else value
    return mended


def copy(value: Value) -> Value:
    """Return an equal value that shares nothing with the original, so that a tool may change it."""
    return clean(value) if isinstance(value, str) else decode(encode(value))


def value_of(text: str) -> Value:
    """Return the value of a text from a command or a command line: JSON if the text is JSON, else the text itself.

    A number that would be written differently stays text, because it may not be meant as a number: 1.10 is a version,
    and 12e4 the beginning of a hash.
    """
    try:
        value = decode(text)
    except InvalidValue:
        return text
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return text if is_number and encode(value) != text.strip() else value


def as_texts(values: Mapping[str, Value]) -> dict[str, str]:
    """Keep texts and write all other values as JSON: for people, and for documents whose values are text."""
    return {name: text_or_json(value) for name, value in values.items()}


def without_nulls(values: Mapping[str, Value]) -> dict[str, Value]:
    """Return an object without the keys whose value is null, which stands for a missing part."""
    return {name: value for name, value in values.items() if value is not None}


def text_or_json(value: Value) -> str:
    """Return a text unchanged, and any other value as JSON on one line."""
    return value if isinstance(value, str) else encode(value)


def pretty(value: Value) -> str:
    """Return a value for people and files: text unchanged, anything else as indented JSON."""
    if isinstance(value, str):
        return value
    import json

    return clean(json.dumps(value, indent=2, ensure_ascii=False))


def percent_encoded(text: str) -> str:
    """Return all bytes of a text as `%XX`."""
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hex."""
    import hashlib  # takes a third of the time of a bare Python to load

    return hashlib.sha256(data).hexdigest()


def fingerprint(value: Value) -> str:
    """Return a hash that depends only on the value, not on the order of its keys."""
    _check(value)
    return sha256(canonical_of_checked(value))


def canonical_of_checked(value: Value) -> bytes:
    """Return the bytes to hash, without checking the value.

    Only for values made by Quire itself: the check for parts that are not JSON costs as much as the hash.
    """
    text: str = _canonical.encode(value)
    return text.encode("utf-8", "replace")


def clean(text: str) -> str:
    """Replace lone surrogates in a text, so that it can be stored and sent."""
    if text.isascii():
        return text
    try:
        text.encode()  # takes a third of the time of searching for them
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    return text


def _mended(value: Any) -> Any:
    """Replace lone surrogates that were written as escapes. Complete pairs were already decoded to one character."""
    return _decoder.decode(clean(_encoder.encode(value)))


def _check(value: Value) -> None:
    """Raise `InvalidValue` for a value that is not JSON.

    Does not recurse, so too much depth gives an error and not a crash.
    """
    if isinstance(value, _PLAIN) or value is None:
        return
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        deeper: list[object] = []
        for item in level:
            if isinstance(item, dict):
                for key in item:
                    if not isinstance(key, str):
                        raise InvalidValue(f"the key {key!r} is not text")
                deeper += [part for part in item.values() if isinstance(part, _NESTED)]
            elif isinstance(item, _NESTED):
                deeper += [part for part in item if isinstance(part, _NESTED)]
            else:
                raise InvalidValue(f"{type(item).__name__} is not a JSON value")
        if not deeper:
            return
        level = deeper
    raise InvalidValue(f"nested deeper than {MAX_DEPTH}")
