"""Read the inputs that a pipeline of the Quire dialect declares under `input:`.

They are fields as in schemas, which may also have a default. A pipeline without `input:` declares none: its inputs are
inferred from what its steps read (`quire.formats.pipeline.inputs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from quire.formats.pipeline.codes import errors
from quire.formats.pipeline.codes import schemas as codes
from quire.formats.pipeline.field_types import FieldReader
from quire.formats.pipeline.schemas import SchemaReading, report_undefined
from quire.formats.pipeline.syntax import RULE, Name, is_name
from quire.formats.yaml import Entry, Mapping, describe, named
from quire.schema import Field, Schema, violations

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.values import Value

_SHOWN = 5
_SHAPE = "write input: {NAME: {type: string}}"


class InputReading(Struct, frozen=True):
    """The declared inputs, without those that have errors."""

    fields: tuple[Field, ...]
    names: tuple[Name, ...]
    """Where the names stand."""
    diagnostics: tuple[Diagnostic, ...]


def read_inputs(entry: Entry, schemas: SchemaReading) -> InputReading:
    """Read `input:`. Report types that are wrong, and defaults that do not fit their type."""
    reader = FieldReader(dialect=True)
    node = entry.value
    if not isinstance(node, Mapping):
        message = f"input must be a mapping of names to types, not {describe(node)}"
        reader.report(errors.VALUE, message, reader.visible(entry), _SHAPE)
        return InputReading((), (), tuple(reader.diagnostics))
    fields, names = [], []
    for name, one in named(node, reader.diagnostics):
        if not is_name(name):
            reader.report(codes.NAME, f"{reader.shown(name)} cannot be the name of an input", one.key.span, RULE)
            continue
        names.append(Name(name, one.key.span))
        field = reader.field(name, one, f"the input {reader.shown(name)}", "default")
        if field is None:
            continue
        fields.append(field)
        report_undefined(Schema(name, (field,)), schemas.declared, reader)
        default = one.value.find("default") if isinstance(one.value, Mapping) else None
        if default is not None and field.default is not UNSET:
            problems = list(default_problems(field, schemas.schemas))
            if problems:
                more = f" and {len(problems) - _SHOWN} more problems" if len(problems) > _SHOWN else ""
                message = f"the default does not fit: {'; '.join(problems[:_SHOWN])}{more}"
                reader.report(codes.DEFAULT, message, reader.visible(default))
    return InputReading(tuple(fields), tuple(names), tuple(reader.diagnostics))


def default_problems(field: Field, schemas: dict[str, Schema]) -> Iterator[str]:
    """Yield what is wrong with a default. A schema that could not be read is not held against it."""
    value: Value = {field.name: field.default} if field.default is not UNSET else {}

    def fields_of(name: str) -> tuple[Field, ...]:
        return schemas[name].fields if name in schemas else ()

    return (str(one) for one in violations((field,), value, fields_of))
