"""The names that a step can read, and what is known about the value behind each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, final

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.abstract_values import NULL, TEXT, AbstractValue, either_of, outside_value, sized
from quire.analysis.amounts import number, total
from quire.analysis.labels import AUTHORED, CALLER, PUBLIC, Integrity, Label, Trace, joined, source_label
from quire.schema_types import Enum, FieldType, ListOf, Object, Ref

if TYPE_CHECKING:
    from quire.analysis.facts import QuestionFact
    from quire.schema import Schema

PER_ITEM = 32
"""Bytes that an item can get around it, such as the keys of `entries` and `group`."""
_BINDINGS = frozenset({"ctx", "pipe", "item", "acc"})
"""First segments that are never stores."""


class Failures:
    """The label of the messages of all failures so far: texts of tools, of models, and values that functions quote."""

    def __init__(self) -> None:
        self.label = AUTHORED

    def add(self, label: Label) -> None:
        if label is not self.label:
            self.label = self.label.join(label)

    def begin(self) -> Label:
        """Begin a part whose failures may be survived; `end` takes the result."""
        before, self.label = self.label, AUTHORED
        return before

    def end(self, before: Label) -> Label:
        """Return the label of the failures since `begin`."""
        found = self.label
        self.label = before if found is AUTHORED else before.join(found)
        return found


class Answers:
    """Remembers whether a person may have answered a question so far. Until then no value is searched for answers."""

    def __init__(self, *, exist: bool = True) -> None:
        self.exist = exist


@final
class Perhaps(Struct, eq=False):
    """The value of a step that perhaps was left out: its own, or that of the step before it. Few steps read the value
    of the step before them, so both are put together when one does."""

    value: AbstractValue
    before: AbstractValue | Perhaps | None
    """None once both were put together in `value`."""
    decided: Label


def known(last: AbstractValue | Perhaps) -> AbstractValue:
    """Return what is known about the value of a step. Thousands that perhaps were left out may stand in a row."""
    if type(last) is not Perhaps:
        return last
    steps, at = [last], last.before
    while type(at) is Perhaps:
        steps.append(at)
        at = at.before
    for step in reversed(steps):
        if step.before is not None:
            step.value, step.before = either_of(step.value, known(step.before), step.decided), None
    return last.value


class Names:
    """The values that an expression can read. `stores` is changed as steps write.

    Every step changes it several times. A `Struct` would look for each field that is set, a class of its own does not.
    """

    def __init__(
        self,
        stores: dict[str, AbstractValue],
        pipe: AbstractValue = NULL,
        schemas: Mapping[str, Schema] | None = None,
        *,
        is_open: bool = False,
        otherwise: AbstractValue | None = None,
        answers: Answers | None = None,
    ) -> None:
        self.stores = stores
        self.last: AbstractValue | Perhaps = pipe
        """The value of the step before; read it as `pipe`."""
        self.bound: Mapping[str, AbstractValue] = {}
        """`item`, `acc`, `round`, branches and `errors`: they hide stores of the same name."""
        self.schemas: Mapping[str, Schema] = schemas or {}
        self.is_open = is_open
        """True if every name that no step has written is an input: of a pipeline that does not declare its inputs."""
        self.failures = Failures()
        """Shared by the whole document."""
        self.missed: set[str] = set()
        """The names that were read before a step has written them; `*` for all of them. Shared by the whole
        document."""
        self.otherwise = otherwise
        """Of a pipeline that a model calls with inputs of its choice: every name that no step has written."""
        self.answers = answers or Answers()
        """Shared by the whole proof."""

    @property
    def pipe(self) -> AbstractValue:
        """The value of the step before."""
        return known(self.last)

    def store(self, name: str) -> AbstractValue | None:
        value = self.stores.get(name)
        if value is not None:
            return value
        self.missed.add(name)
        if self.otherwise is not None:
            return self.otherwise
        if self.is_open:
            label = source_label(CALLER, PUBLIC, Trace(name))
            value = self.stores[name] = outside_value(name, None, label)
        return value

    def everything(self) -> AbstractValue:
        """Return `ctx`, the map of all stores. If inputs are not declared, a caller may have given any others."""
        self.missed.add("*")
        parts = list(self.stores.values())
        if self.is_open:
            parts.append(outside_value("ctx", None, source_label(CALLER, PUBLIC, Trace("ctx"))))
        elif self.otherwise is not None:
            parts.append(self.otherwise)
        return AbstractValue(
            None,
            total([number(len(self.stores)), *(part.items for part in parts[len(self.stores) :])]),
            total(part.length for part in parts).plus(number(PER_ITEM * len(parts))),
            joined(part.label for part in parts),
            dict(self.stores),
        )

    def resolved(self, type: FieldType | None) -> FieldType | None:
        if isinstance(type, Ref):
            schema = self.schemas.get(type.schema)
            return Object(schema.fields) if schema else None
        return type

    def path(self, segments: tuple[str, ...]) -> AbstractValue:
        """Return the value of a path. Nothing is known of a name that does not exist: the step fails."""
        first, used = segments[0], 1
        if not self.bound and first == "ctx" and len(segments) == 2:
            kept = self.stores.get(segments[1])
            if kept is not None:
                return kept
        value = self.bound.get(first)
        if value is None:
            if first == "pipe":
                value = self.pipe
            elif first == "ctx":
                if len(segments) == 1:
                    return self.everything()
                name, used = segments[1], 2
                value = self.stores.get(name) or self.store(name)
            elif first not in _BINDINGS:
                value = self.stores.get(first) or self.store(first)
            if value is None:
                return NULL
        if len(segments) > used:
            for segment in segments[used:]:
                value = self.entry(value, segment)
        return value

    def entry(self, value: AbstractValue, name: str) -> AbstractValue:
        if value.type is not None and isinstance(value.type, Ref):
            value = replace(value, type=self.resolved(value.type))
        return value.field(name)

    def item(self, value: AbstractValue) -> AbstractValue:
        """Return any item of a list."""
        if value.element is not None:
            return value.element
        type = value.type.of if value.type is not None and isinstance(value.type, ListOf) else None
        if value.name:
            return outside_value(f"{value.name}[]", type, value.label)
        return sized(type, value.length, value.label, value.parts)


def answer_value(question: QuestionFact, answers: Answers) -> AbstractValue:
    """Return the answer of a person: one of the words that were offered, or any text."""
    answers.exist = True
    place = question.place
    trace = Trace("answer", place.way, place.span, place.document)
    label = source_label(Integrity.PERSON, PUBLIC, trace)
    words = ("yes", "no") if question.kind == "confirm" else question.options if question.kind == "select" else ()
    if words:
        value = sized(Enum(words), number(max(map(len, words)) * 4), label.narrowed())
    else:
        value = sized(TEXT, number(1_000_000), label)
    return replace(value, answer=question)
