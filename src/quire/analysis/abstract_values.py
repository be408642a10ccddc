"""Values as far as they are known before a run: their types, how large they can be, and where they can come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.amounts import NOTHING, ONE, Amount, number, size
from quire.analysis.labels import AUTHORED, MODEL, Label, chosen_by
from quire.analysis.written_sizes import is_plain, type_length, written_length
from quire.engine.premises import MAX_REPLY_CHARACTERS
from quire.schema_types import Enum, Kind, ListOf, Object, Ref, Simple

if TYPE_CHECKING:
    from quire.analysis.facts import QuestionFact
    from quire.expr.syntax import Node
    from quire.schema_types import FieldType
    from quire.source import Span
    from quire.values import Value

_KEPT_PARTS = 3
"""Levels of parts whose ways are followed by name."""
_DEEPEST = 12
"""Levels of parts that are known in another document."""
NO_PARTS: Mapping[str, AbstractValue] = MappingProxyType({})
"""Shared by all values without parts: each value would get an empty map of its own."""
LONGEST_VALUE, MOST_ITEMS_OF_A_VALUE = 16_000_000, 1_000_000
"""Characters and items of the largest value that an expression makes, as `quire.expr.values` has them: playbooks have
no expressions, and do not load them."""
_ITEMS_OF_A_REPLY = number(MAX_REPLY_CHARACTERS)
"""A token may hold many items, so only the longest text bounds how many a reply lists."""
BYTES_A_TOKEN = 3
"""By which the length of texts is estimated from tokens, and tokens from the length of texts."""


class Computed(Struct, frozen=True, gc=False):
    """An expression, and the values that it reads by the paths under which it reads them (`ctx.ok`)."""

    node: Node
    reads: Mapping[str, AbstractValue]
    depth: int = 1
    """How many expressions are in each other."""


BOOL, NUMBER, TEXT = Simple(Kind.BOOL), Simple(Kind.NUMBER), Simple(Kind.STRING)
_NUMBERS = (int, float)
_MOST_CHOICES = 16
_FEW = 50
"""Items of a list in a document that are looked at one by one."""


class AbstractValue(Struct, frozen=True, gc=False):
    """A value as far as it is known."""

    type: FieldType | None = None
    items: Amount = NOTHING
    """How many items it can have if it is a list, or entries if it is a map."""
    length: Amount = NOTHING
    """How many bytes its text can have, also as a part of another value (`written_length`). Of a reply only the tokens
    are limited: each is counted as a few bytes, so the length of everything that is made from a reply is an
    estimate."""
    label: Label = AUTHORED
    fields: Mapping[str, AbstractValue] = NO_PARTS
    """Entries of a map that are known by name; then `rest` is False if it has no others."""
    element: AbstractValue | None = None
    """Every item of a list."""
    answer: QuestionFact | None = None
    """The question whose answer the value is, unchanged."""
    name: str = ""
    """The input or the path into one that the value is, as its author writes it."""
    constant: Value = None
    is_constant: bool = False
    computed: Computed | None = None
    """The expression that the value is the result of, if an answer of a person is among what it reads."""
    choices: tuple[AbstractValue, ...] = ()
    """The values of which it is one, if one of them is an answer or is computed from one; else empty."""
    largest: Amount | None = None
    """Of a number that was computed: no value of it is larger. None if that is not known."""
    is_word: bool = False
    """True of a text that consists of words which an enforced pattern lets through (`is_word_pattern`), and of texts of
    the document."""

    @property
    def is_answered(self) -> bool:
        """Tell whether it is known how the value depends on answers of people."""
        return self.answer is not None or self.computed is not None or bool(self.choices)

    @property
    def depth(self) -> int:
        """How many expressions are between it and the answers that it depends on."""
        return max((value.computed.depth for value in (self, *self.choices) if value.computed), default=0)

    def unanswered(self) -> AbstractValue:
        """Return the value after a change that answers are not followed through."""
        return replace(self, answer=None, computed=None, choices=()) if self.is_answered else self

    def labelled(self, label: Label) -> AbstractValue:
        return self if label is self.label else replace(self, label=label)

    def through(self, name: str, span: Span, document: str, depth: int = 0) -> AbstractValue:
        """Return the value after it was kept under a name, with the parts that are known."""
        label = self.label
        if not label.levels:
            return self
        passed = label.through(name, "", span, document)
        if self.element is None and not self.fields:
            return replace(self, label=passed)
        return self._parts_through(passed, name, span, document, depth)

    def _parts_through(self, passed: Label, name: str, span: Span, document: str, depth: int) -> AbstractValue:
        """Return the value with the label that it has after it was kept, and with its parts after that."""
        fields, element = self.fields, self.element
        if depth < _KEPT_PARTS:
            if fields:
                fields = {key: part.through(name, span, document, depth + 1) for key, part in fields.items()}
            if element is not None:
                # The items of most lists have the label of the list, and have passed the same places.
                is_alike = element.label is self.label and element.element is None and not element.fields
                element = (
                    replace(element, label=passed) if is_alike else element.through(name, span, document, depth + 1)
                )
        return replace(self, label=passed, fields=fields, element=element)

    def field(self, name: str) -> AbstractValue:
        """Return an entry of a map. The entry of an input is a size of its own."""
        if name in self.fields:
            return self.fields[name]
        type = next((field.type for field in getattr(self.type, "fields", ()) if field.name == name), None)
        if self.name:
            return outside_value(f"{self.name}.{name}", type, self.label)
        return sized(type, self.length, self.label, self.parts)

    @property
    def parts(self) -> Amount:
        """How many items any part of it can have: no more than bytes. The length of everything that is made from a
        reply is an estimate, so its parts may have as many items as a reply."""
        most = self.items.either(self.length)
        return most if self.label.chosen < MODEL else most.either(_ITEMS_OF_A_REPLY)


def outside_value(name: str, type: FieldType | None, label: Label) -> AbstractValue:
    """Return a value that a run is given: its sizes have names, unless its type bounds them."""
    if type is None:
        items, length = _sizes(name)
        return AbstractValue(None, items, length, label, name=name)
    longest = type_length(type)
    most = type.max_items if isinstance(type, ListOf) else None
    return AbstractValue(
        type,
        number(most) if most is not None else size(f"|{name}|"),
        longest if longest is not None else size(f"‖{name}‖"),
        label,
        name=name,
    )


@lru_cache(maxsize=1024)
def _sizes(name: str) -> tuple[Amount, Amount]:
    """Return the names of the items and of the bytes of an input."""
    return size(f"|{name}|"), size(f"‖{name}‖")


def sized(type: FieldType | None, length: Amount, label: Label, items: Amount | None = None) -> AbstractValue:
    """Return a value of at most this number of bytes. A list has no more items than bytes: each takes one to write."""
    if type is None:
        return AbstractValue(None, length if items is None else items, length, label)
    longest = type_length(type)
    if longest is not None and (limit := longest.as_number) is not None:
        length = length.at_most(limit)
    most = type.max_items if isinstance(type, ListOf) else None
    counted = number(most) if most is not None else items if items is not None else length
    return AbstractValue(type, counted, length, label)


def reply_value(type: FieldType | None, tokens: int | None, label: Label) -> AbstractValue:
    """Return the reply of a model."""
    return replace(_reply(type, tokens), label=label)


@lru_cache(maxsize=64)
def _reply(type: FieldType | None, tokens: int | None) -> AbstractValue:
    length = number(BYTES_A_TOKEN * tokens) if tokens is not None else number(MAX_REPLY_CHARACTERS)
    return sized(type, length, AUTHORED, _ITEMS_OF_A_REPLY)


def is_narrow(type: FieldType | None) -> bool:
    """Tell whether a value of an enforced type can contain nothing that its author did not write: one of a few words,
    a truth value or a number."""
    return isinstance(type, Enum) or (isinstance(type, Simple) and type.kind in (Kind.BOOL, Kind.NUMBER))


def may_be_null(value: AbstractValue) -> bool:
    """Tell whether a value can be null: unless its constant, its type, its parts, or the answer that it is say
    otherwise."""
    if value.is_constant:
        return value.constant is None
    if value.fields or value.element is not None:
        return False
    if value.choices:
        return any(may_be_null(choice) for choice in value.choices)
    if isinstance(value.type, Enum):
        return None in value.type
    return value.type is None and value.answer is None


def literal(value: Value) -> AbstractValue:
    """Return the value that stands in the document."""
    if isinstance(value, str):
        length = number(len(value) if is_plain(value) else written_length(value))
        return AbstractValue(TEXT, ONE, length, constant=value, is_constant=True)
    if value is True or value is False:
        return AbstractValue(BOOL, NOTHING, number(5), constant=value, is_constant=True)
    if isinstance(value, _NUMBERS):
        return AbstractValue(NUMBER, NOTHING, number(len(str(value))), constant=value, is_constant=True)
    if value is None:
        return AbstractValue(None, NOTHING, number(4), constant=None, is_constant=True)
    if isinstance(value, Mapping):
        fields = {str(key): literal(part) for key, part in value.items()}
        return replace(_constant(value), fields=fields)
    few = len(value) <= _FEW
    element = (either([literal(part) for part in value]) if few else _any_of(value)) if value else None
    return replace(_constant(value), element=element)


def _any_of(values: Sequence[Value]) -> AbstractValue:
    """Return what is known about each of many values: as large as the largest, with the entries that all of them
    have."""
    length = number(max(written_length(value) for value in values))
    maps = [value for value in values if isinstance(value, Mapping)]
    lists = [value for value in values if isinstance(value, list | tuple)]
    items = number(max((len(parts) for parts in (*maps, *lists)), default=1))
    if len(maps) == len(values):
        names = set(maps[0]).intersection(*maps[1:])
        fields = {str(name): _any_of([entries[name] for entries in maps]) for name in maps[0] if name in names}
        return AbstractValue(None, items, length, fields=fields)
    within = [part for items in lists for part in items] if len(lists) == len(values) else []
    return AbstractValue(None, items, length, element=_any_of(within) if within else None)


def _constant(value: Mapping[str, Value] | Sequence[Value]) -> AbstractValue:
    return AbstractValue(None, number(len(value)), number(written_length(value)), constant=value, is_constant=True)


def labelled_deeply(value: AbstractValue, label: Label) -> AbstractValue:
    """Return a value with this label, and all of its parts too."""
    return replace(
        value,
        label=label,
        fields={name: labelled_deeply(part, label) for name, part in value.fields.items()},
        element=labelled_deeply(value.element, label) if value.element is not None else None,
    )


def without_references(value: AbstractValue, depth: int = 0) -> AbstractValue:
    """Return a value as another document knows it: there, the name of a schema means another one, or none."""
    type = None if value.type is not None and _refers(value.type) else value.type
    if depth > _DEEPEST and (value.fields or value.element):
        return replace(value, type=type, fields={}, element=None)
    fields = {name: without_references(part, depth + 1) for name, part in value.fields.items()}
    element = without_references(value.element, depth + 1) if value.element is not None else None
    same_parts = element is value.element and all(part is value.fields[name] for name, part in fields.items())
    return value if type is value.type and same_parts else replace(value, type=type, fields=fields, element=element)


def _refers(type: FieldType) -> bool:
    """Tell whether a type names a schema."""
    match type:
        case Ref():
            return True
        case ListOf(of=of):
            return _refers(of)
        case Object(fields=fields):
            return any(_refers(field.type) for field in fields)
    return False


def either(values: Iterable[AbstractValue]) -> AbstractValue:
    """Return what is known about a value that is one of several."""
    return reduce(either_of, values)


def either_of(one: AbstractValue, other: AbstractValue, decided: Label = AUTHORED) -> AbstractValue:
    """Return what is known about a value that is one of two. `decided` is the label of what decides which."""
    if one is other:
        return one.labelled(chosen_by(one.label, decided))
    fields, label, largest = NO_PARTS, one.label.join(other.label), one.largest
    items, length = one.items, one.length
    if one.fields and other.fields:
        # An entry that only one of them has may be anything of the other.
        fields = {name: either_of(one.fields[name], other.fields[name]) for name in one.fields if name in other.fields}
    type = one.type if one.type is other.type or one.type == other.type else None
    if largest is not None:
        largest = largest.either(other.largest) if other.largest is not None else None
    value = AbstractValue(
        type,
        items if items is other.items else items.either(other.items),
        length if length is other.length else length.either(other.length),
        label if decided is AUTHORED else chosen_by(label, decided),
        fields,
        _either_item(one, other) if one.element or other.element else None,
        None,
        one.name if one.name == other.name else "",
        one.constant,
        one.is_constant and other.is_constant and one.type == other.type and one.constant == other.constant,
        largest=largest,
        is_word=one.is_word and other.is_word,
    )
    if one.answer is None is other.answer and one.computed is None is other.computed:
        return value if not one.choices and not other.choices else _answered(value, one, other)
    return _answered(value, one, other)


def _either_item(value: AbstractValue, other: AbstractValue) -> AbstractValue | None:
    """Return what is known about every item of a list that is one of two."""
    mine, theirs = value.element, other.element
    if mine is not None and theirs is not None:
        return either_of(mine, theirs)
    return (mine or theirs) if _is_empty_list(value) or _is_empty_list(other) else None


def _answered(value: AbstractValue, one: AbstractValue, other: AbstractValue) -> AbstractValue:
    """Return a value that is one of two with how it depends on answers."""
    is_same = depends_alike(one, other)
    return replace(
        value,
        answer=one.answer if one.answer is other.answer else None,
        computed=one.computed if is_same else None,
        choices=one.choices if is_same else _choices(one, other),
    )


def _is_empty_list(value: AbstractValue) -> bool:
    return value.is_constant and isinstance(value.constant, list | tuple) and not value.constant


def depends_alike(one: AbstractValue, other: AbstractValue) -> bool:
    """Tell whether both values depend on answers in the same way."""
    return (
        one.answer is other.answer
        and one.computed is other.computed
        and len(one.choices) == len(other.choices)
        and all(mine is theirs for mine, theirs in zip(one.choices, other.choices, strict=True))
    )


def _choices(value: AbstractValue, other: AbstractValue) -> tuple[AbstractValue, ...]:
    values = {id(part): part for part in (*(value.choices or (value,)), *(other.choices or (other,)))}
    return tuple(values.values()) if len(values) <= _MOST_CHOICES else ()


NULL = literal(None)
EMPTY = literal("")
