"""Check declared inputs: names that steps read without a declaration, inputs that no step reads, and what callers pass.

A pipeline without `input:` takes anything, and is not looked at here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec import UNSET

from quire.expr import RESERVED
from quire.formats.pipeline.check_stores import HIDES_ERRORS
from quire.formats.pipeline.codes import lints
from quire.formats.pipeline.codes import schemas as codes
from quire.formats.pipeline.inputs import Use, unread_inputs, uses
from quire.formats.pipeline.walks import (
    holes,
    walk,
)
from quire.plan.type_words import type_words
from quire.schema import Enum, Field, FieldType, ListOf, Object, Ref, Simple, violations

if TYPE_CHECKING:
    from quire.formats.pipeline.fields import Fields
    from quire.formats.pipeline.syntax import Pipeline
    from quire.source import Span
    from quire.values import Value

Given: TypeAlias = "FieldType | None"
"""A type that was inferred; None if it is not known."""


def check_inputs(pipeline: Pipeline, fields: Fields) -> None:
    if pipeline.input is None:
        return
    # Stores that are written inside of other steps are checked with the other stores.
    inner = {step.output.text for path, step in walk(pipeline) if step.output and "." in path}
    unread = holes(pipeline)
    check = _InputCheck(pipeline, inner, any(hole.output is None for hole in unread), fields)
    for use in uses(pipeline):
        check.use(use)
    if not unread:
        for name in unread_inputs(pipeline, check.names):
            fields.report(codes.UNREAD, f"no step reads the input {name}", check.names[name])
    for name, span in check.names.items():
        if name in RESERVED:
            message = f"{name} alone never means this input"
            fields.report(lints.HIDDEN_STORE, message, span, f"it is read as ctx.{name}")
        elif name == "errors":
            fields.report(lints.HIDDEN_STORE, HIDES_ERRORS, span, "give it another name")


class _InputCheck:
    """Checks the places of one pipeline that read its declared inputs, one after the other."""

    def __init__(self, pipeline: Pipeline, inner: Collection[str], any_store: bool, fields: Fields) -> None:
        """`inner` and `any_store` are as in `check_stores`."""
        self.declared = {one.name: one for one in pipeline.input or ()}
        self.names = {one.text: one.span for one in pipeline.input_names}
        self._inner = inner
        self._any_store = any_store
        self._fields = fields

    def use(self, use: Use) -> None:
        name, fields = use.store, self._fields
        if name is None or use.written(name):
            return
        if name in self.declared:
            _check_optional(self.declared[name], use, fields)
        elif name not in self.names and name not in self._inner and not self._any_store and not _is_other(use, name):
            message = f"{name} is not a declared input, and no step writes it"
            # Collecting the names takes as long as looking through them, so both are limited.
            written = (one for one in use.first if use.written(one))
            known = [*self.names, *written] if fields.suggestions.are_left else []
            help = fields.suggestion(name, known) or f"declare it under input, as in {name}: {{type: string}}"
            fields.report(codes.UNDECLARED, message, _place(use, fields), help)


def _is_other(use: Use, name: str) -> bool:
    """Tell whether a place is plain text of a prompt, or reads a store that only a later step writes."""
    later = use.first.get(name)
    return (use.in_prompt and use.path[0] != "ctx") or (later is not None and later.begins > use.index)


def _check_optional(field: Field, use: Use, fields: Fields) -> None:
    if field.required or field.default is not UNSET or use.optional:
        return
    message = f"the input {field.name} may be missing: it says required: false"
    help = f"get(ctx, '{field.name}') gives null instead of failing; or give it a default"
    fields.report(lints.OPTIONAL_FIELD, message, _place(use, fields), help)


def _place(use: Use, fields: Fields) -> Span:
    return use.span if use.text is None else fields.at(use.text, use.span)


def wrong_value(field: Field, value: Value) -> str:
    """Return what is certainly wrong with a value for an input of a callee, whose schemas are not known here."""

    def fields_of(name: str) -> tuple[Field, ...]:
        return ()

    found = next(violations((field,), {field.name: value}, fields_of), None)
    return str(found) if found else ""


def wrong_type(field: Field, given: Given) -> str:
    """Return why no value of a type fits an input; empty if one may."""
    if given is None or _overlap(given, field.type):
        return ""
    return f"it takes {type_words(field.type)}, and this is {type_words(given)}"


def _overlap(given: FieldType, wanted: FieldType) -> bool:
    if isinstance(given, Enum) and isinstance(wanted, Enum):
        return any(value in wanted for value in given.values)
    if isinstance(given, ListOf) and isinstance(wanted, ListOf):
        return True  # both may be empty
    return not set(_kinds(given)).isdisjoint(_kinds(wanted))


def _kinds(type: FieldType) -> Iterator[str]:
    match type:
        case Simple(kind=kind):
            yield kind.value
        case ListOf():
            yield "list"
        case Object() | Ref():
            yield "object"
        case Enum(values=values):
            yield from map(_kind, values)
        case _:
            assert_never(type)


def _kind(value: Value) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "null" if value is None else "object" if hasattr(value, "keys") else "list"
