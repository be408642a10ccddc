"""How many bytes values take in a prompt: of a text, of a value that is written as JSON, and of any value of a type."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from quire.analysis.amounts import Amount, number
from quire.schema_types import Enum, Kind, ListOf, Simple

if TYPE_CHECKING:
    from quire.plan.nodes import Capture
    from quire.schema_types import FieldType
    from quire.values import Value

LONGEST_NUMBER = 4_400
"""Characters of a number as it is written: its digits are limited."""
PARSED = 6
"""How much longer a value can be written than the text that it is parsed from: `1e15` has four characters."""
_STRING = Kind.STRING
_LONGEST_OF = {Kind.BOOL: number(5), Kind.NUMBER: number(LONGEST_NUMBER)}
_ESCAPED_SHORT = tuple('"\\\b\f\n\r\t')
"""Characters with one character before them in JSON: `\\n`."""
_ESCAPED_LONG = tuple(chr(code) for code in range(0x20) if chr(code) not in _ESCAPED_SHORT)
"""Control characters, of which each has five characters more in JSON: `\\u001b`."""
_AROUND_ITEM = number(4)
"""Bytes around a text in a list: its quotes, and a comma with a space."""
_BYTES_A_CHARACTER = 6
"""Of a control character that is escaped; other characters have at most four."""


def text_length(text: str) -> int:
    """Return the bytes of a text. Tokenizers of models never need more tokens than bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def written_length(value: Value) -> int:
    """Return the bytes of a value in a prompt at most: of JSON with spaces, without the quotes of a text. A text among
    others has its line ends and quotes escaped, so it is longer there than by itself."""
    if isinstance(value, str):
        if is_plain(value):
            return len(value)
        # A playbook has many texts and no other values: it is measured without the library.
        longer = sum(value.count(one) for one in _ESCAPED_SHORT) + 5 * sum(value.count(one) for one in _ESCAPED_LONG)
        return text_length(value) + longer
    import json

    return text_length(json.dumps(value, ensure_ascii=False, default=dict))


def is_plain(text: str) -> bool:
    """Tell whether a text is as long as its characters: nothing in it is escaped, or takes several bytes."""
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text


def type_length(type: FieldType | None) -> Amount | None:
    """Return how many bytes a value of the type can have; None if the type does not bound it."""
    if isinstance(type, Simple):
        if type.kind is _STRING:
            return number(_BYTES_A_CHARACTER * type.max_length) if type.max_length is not None else None
        return _LONGEST_OF.get(type.kind)
    if isinstance(type, Enum):
        return number(max((written_length(str(value)) for value in type.values), default=0))
    if isinstance(type, ListOf) and type.max_items is not None:
        each = type_length(type.of)
        return each.plus(_AROUND_ITEM).times(number(type.max_items)).plus(number(2)) if each is not None else None
    return None


@lru_cache(maxsize=256)
def closing_lengths(captures: tuple[Capture, ...]) -> tuple[int, int]:
    """Return the bytes of the sentences that ask for the object at the end of a reply, and of its JSON Schema."""
    from msgspec.json import encode  # the engine's own codec takes longer to load than a proof of a small playbook

    from quire.engine.interpreter.playbook.steps import closing_instruction, closing_schema

    try:
        schema = len(encode(closing_schema(captures)))
    except UnicodeEncodeError:  # half a character, in an editor
        schema = text_length(str(closing_schema(captures)))
    return text_length(closing_instruction(captures)), schema
