"""The rows of a case: expand it into one case for each row, with the values of the row in its texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from quire.formats.test.expected import Holds
from quire.plan.pipeline_work import Formula
from quire.source import Span
from quire.testing.rows import Row, fill, inline_rows, joined_rows, matrix_rows, read_rows

if TYPE_CHECKING:
    from quire.formats.test.syntax import Case, Rows

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
    return [_row(case, row, case.rows, inputs) for row in rows_of(case.rows, folder)]


def _row(case: Case, row: Row, rows: Rows, inputs: Sequence[str]) -> CaseRow:
    name = f"{case.name}[{row.label}]"
    return CaseRow(replace(_filled_case(case, row, rows, inputs), name=name), name, row.values)


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


def _filled_case(case: Case, row: Row, rows: Rows, inputs: Sequence[str]) -> Case:
    filled = _fill(case, row)
    taken = {name: row.values[name] for name in rows.matrix if name in inputs or name in case.setting.inputs}
    if taken:
        setting = replace(filled.setting, inputs={**filled.setting.inputs, **taken})
        filled = replace(filled, setting=setting)
    return filled


def _fill(part: T, row: Row) -> T:
    """Put the values of a row into all texts of a part of the tree. Expressions read the row by themselves."""
    if isinstance(part, str):
        filled = fill(part, row)
        return filled  # type: ignore[return-value]  # where a text is needed, the reader of the part says so
    if isinstance(part, _KEPT) or part is None:
        return part
    if isinstance(part, Struct):
        changed = {}
        for name in part.__struct_fields__:
            old = getattr(part, name)
            new = _fill(old, row)
            if new is not old:
                changed[name] = new
        return replace(part, **changed) if changed else part
    if isinstance(part, tuple):
        items = [_fill(one, row) for one in part]
        return part if all(map(_same, items, part)) else tuple(items)  # type: ignore[return-value]
    if isinstance(part, Mapping):
        entries = {_fill(key, row): _fill(value, row) for key, value in part.items()}
        same = all(map(_same, entries.values(), part.values())) and all(map(_same, entries, part))
        return part if same else entries  # type: ignore[return-value]
    if isinstance(part, list):
        return [_fill(one, row) for one in part]  # type: ignore[return-value]
    return part


def _same(new: object, old: object) -> bool:
    return new is old
