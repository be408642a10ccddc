"""The rows of a case: expand it into one case for each row, with the values of the row in its texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from inspect import get_annotations
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.formats.test.expected import Holds
from quire.formats.test.syntax import Entry
from quire.plan.pipeline_work import Formula
from quire.source import Span
from quire.testing.rows import Row, fill, inline_rows, joined_rows, matrix_rows, read_rows
from quire.values import decode, encode

if TYPE_CHECKING:
    from quire.formats.test.syntax import Case, Rows
    from quire.values import Value

T = TypeVar("T")
_KEPT = (Span, Formula, Holds)


class CaseRow(Struct, frozen=True):
    """A case, or one row of it, ready to run."""

    case: Case
    name: str
    """With the row: `rows[row 3]`."""
    row: Mapping[str, object]


def expand(case: Case, folder: Path, inputs: Sequence[str]) -> list[CaseRow]:
    """Return the case once for each of its rows. Raises `BadRows`.

    `inputs` are the names of the document's inputs: a column of a matrix with such a name is that input.
    """
    if case.rows is None:
        return [CaseRow(case, case.name, {})]
    filler = _filler(case)
    return [
        _row(f"{case.name}[{row.label}]", filler(row) if filler else case, row, case.rows, inputs)
        for row in rows_of(case.rows, folder)
    ]


def _row(name: str, case: Case, row: Row, rows: Rows, inputs: Sequence[str]) -> CaseRow:
    """Return the row of a case that is filled already."""
    taken = {name: row.values[name] for name in rows.matrix if name in inputs or name in case.setting.inputs}
    setting = replace(case.setting, inputs={**case.setting.inputs, **taken}) if taken else case.setting
    return CaseRow(replace(case, name=name, setting=setting), name, row.values)


def rows_of(rows: Rows, folder: Path) -> list[Row]:
    """Return the rows of a case. Raises `BadRows`."""
    listed: list[Row] = []
    if rows.file:
        listed = read_rows(folder, rows.file)
    elif rows.rows:
        listed = inline_rows(rows.rows)
    if not rows.matrix:
        return listed
    combinations = matrix_rows(rows.matrix)
    return joined_rows(listed, combinations) if listed else combinations


def _filler(part: T) -> Callable[[Row], T] | None:
    """Return a function that puts the values of a row into all texts of a part of the tree; None if it has no place for
    them. Expressions read the row by themselves."""
    filler: Callable[[Row], object] | None = None
    if isinstance(part, str):
        filler = partial(fill, part) if "{row." in part else None
    elif isinstance(part, _KEPT):
        return None
    elif isinstance(part, Struct):
        fields = {name: found for name in part.__struct_fields__ if (found := _filler(getattr(part, name)))}
        # A column may hold any value; a reply, an answer and the text of a file are texts.
        fields |= {name: partial(_as_text, fields[name]) for name in fields.keys() & _texts(type(part))}
        if isinstance(part, Entry) and part.is_json and "reply" in fields:
            fields["reply"] = partial(_as_json, decode(part.reply))
        filler = partial(_filled_struct, part, fields) if fields else None
    elif isinstance(part, tuple | list):
        items = [(one, _filler(one)) for one in part]
        filler = partial(_filled_items, type(part), items) if any(found for _, found in items) else None
    elif isinstance(part, Mapping):
        entries = [((key, _filler(key)), (value, _filler(value))) for key, value in part.items()]
        filler = partial(_filled_map, entries) if any(key[1] or value[1] for key, value in entries) else None
    # Where a text is needed and the row has another value, the reader of the part says so.
    return cast("Callable[[Row], T] | None", filler)


_Place: TypeAlias = "tuple[object, Callable[[Row], object] | None]"


def _filled(place: _Place, row: Row) -> object:
    part, filler = place
    return filler(row) if filler else part


def _filled_struct(part: Struct, fields: Mapping[str, Callable[[Row], object]], row: Row) -> Struct:
    return replace(part, **{name: filler(row) for name, filler in fields.items()})


def _as_text(filler: Callable[[Row], object], row: Row) -> str:
    filled = filler(row)
    return filled if isinstance(filled, str) else encode(cast("Value", filled))


def _as_json(value: Value, row: Row) -> str:
    return encode(fill(value, row))


@cache
def _texts(kind: type[Struct]) -> frozenset[str]:
    """Return the fields of a part of the tree that hold texts only."""
    return frozenset(name for name, hint in get_annotations(kind).items() if hint == "str")


def _filled_items(kind: type, items: Sequence[_Place], row: Row) -> object:
    return kind(_filled(item, row) for item in items)


def _filled_map(entries: Sequence[tuple[_Place, _Place]], row: Row) -> dict[object, object]:
    return {_filled(key, row): _filled(value, row) for key, value in entries}
