"""Rows of data for cases: read them, and expand a case into one for each row, with its values in the texts.

Rows come from CSV and JSONL files or from lists. Files are data from outside. They lie in the folder of the test, they
have limits, and every mistake is listed with its line. A cell of CSV is always text; values of JSONL keep their types.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from inspect import get_annotations
from itertools import product
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.errors import CannotStart, Unreadable
from quire.formats.test.expected import Holds
from quire.formats.test.syntax import Entry
from quire.patterns import late_pattern
from quire.plan.pipeline_work import Formula
from quire.source import Span, read_source, real_path
from quire.values import InvalidValue, Value, decode, encode, text_or_json
from quire.wording import cut, did_you_mean, first_of, nearest, pluralize

if TYPE_CHECKING:
    from quire.formats.test.syntax import Case, Rows

MAX_FILE_BYTES = 10_000_000
MAX_ROWS = 10_000
MAX_COLUMNS = 200
MAX_FILLED = 1_000_000
"""Characters of one text after its places were filled."""
MOST_PROBLEMS = 20
_LABEL = 40

# The class excludes the brace that would begin another place, so matching is linear.
_PLACE = late_pattern(r"\{row\.([^{}\n]{1,200})\}")
_INDEX = late_pattern(r"[0-9]{1,8}")


class RowProblem(Struct, frozen=True):
    """A mistake in rows. The reader of the test file makes a finding of it."""

    message: str
    line: int | None = None
    """The line in the file of rows; None if the rows stand in the test or the file cannot be read."""
    help: str = ""
    row: int | None = None
    """Counted from 1."""


class BadRows(CannotStart):
    """Rows that cannot be used, with everything that is wrong with them."""

    def __init__(self, problems: Sequence[RowProblem]) -> None:
        super().__init__("\n".join(_sentence(problem) for problem in problems))
        self.problems = tuple(problems)


class Row(Struct, frozen=True):
    """The values that one repetition of a case has."""

    label: str
    """Stands in brackets behind the name of the case: `row 3`, or `tone=warm` for a product."""
    values: Mapping[str, Value]
    line: int | None = None
    """The line of the file in which the row begins."""


def read_rows(folder: Path, name: str) -> list[Row]:
    """Read the rows of a CSV or JSONL file in the folder of a test. Raises `BadRows`."""
    kind = PurePosixPath(name).suffix.lower()
    if kind not in (".csv", ".jsonl"):
        _refuse(f"{_quoted(name)} is not a file of rows", help="name a .csv file with a header, or a .jsonl file")
    path = file_within(folder, name)
    try:
        text = read_source(path, limit=MAX_FILE_BYTES).text
    except Unreadable as error:
        _refuse(f"{_quoted(name)} {error.reason}")
    problems: list[RowProblem] = []
    numbered = _csv(text, problems) if kind == ".csv" else _jsonl(text, problems)
    rows: list[Row] = []
    for line, values in numbered:
        if len(rows) == MAX_ROWS:
            problems.append(RowProblem(f"it has more than {MAX_ROWS:,} rows", line))
            break
        rows.append(Row(f"row {len(rows) + 1}", values, line))
        if len(problems) >= MOST_PROBLEMS:
            break
    if not rows and not problems:
        problems.append(RowProblem(f"{_quoted(name)} has no rows"))
    if problems:
        raise BadRows(problems[:MOST_PROBLEMS])
    return rows


def file_within(folder: Path, name: str) -> Path:
    """Return the path of a file below a folder. Raises `BadRows` for a name that leads out of it, also by a link."""
    if "\0" in name or not name.strip():
        _refuse("a file needs a name")
    root, path = real_path(folder), real_path(folder / name)
    if not path.is_relative_to(root):
        _refuse(f"{_quoted(name)} is outside the folder of the test", help="put the file beside the test, or below it")
    return path


def inline_rows(items: Sequence[Value]) -> list[Row]:
    """Return the rows of a list that stands in the test itself. Raises `BadRows`."""
    if not items:
        _refuse("it has no rows")
    if len(items) > MAX_ROWS:
        _refuse(f"it has more than {MAX_ROWS:,} rows")
    wrong = [place for place, item in enumerate(items, 1) if not isinstance(item, Mapping)]
    if wrong:
        help = "write a mapping of names and values, as in {text: hello}"
        raise BadRows(
            [RowProblem(f"row {place} is not a mapping", None, help, place) for place in wrong[:MOST_PROBLEMS]]
        )
    return [Row(f"row {place}", item) for place, item in enumerate(items, 1) if isinstance(item, Mapping)]


def matrix_rows(choices: Mapping[str, Sequence[Value]]) -> list[Row]:
    """Return one row for each combination of the choices. Raises `BadRows`."""
    count = 1
    for name, values in choices.items():
        if not values:
            _refuse(f"{_quoted(name)} has no values")
        count *= len(values)
        if count > MAX_ROWS:
            _refuse(f"the combinations are more than {MAX_ROWS:,}")
    rows = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    return [
        Row(", ".join(f"{name}={cut(text_or_json(value), _LABEL)}" for name, value in row.items()), row) for row in rows
    ]


def joined_rows(rows: Sequence[Row], combinations: Sequence[Row]) -> list[Row]:
    """Return every row with every combination, for a case that has both `each` and `matrix`. Raises `BadRows`."""
    if len(rows) * len(combinations) > MAX_ROWS:
        _refuse(f"rows times combinations are more than {MAX_ROWS:,}")
    both = next((name for name in combinations[0].values if any(name in row.values for row in rows)), None)
    if both is not None:
        _refuse(f"{_quoted(both)} is both in the rows and in the matrix", help="rename one of them")
    return [
        Row(f"{row.label}, {more.label}", {**row.values, **more.values}, row.line)
        for row in rows
        for more in combinations
    ]


def fill(value: Value, row: Row) -> Value:
    """Replace `{row.x}` in the texts of a value. Raises `BadRows` for a column that the row does not have.

    A text that is one place and nothing else becomes the value of the column with its type. Filled texts are not
    searched again, so a cell cannot name another column.
    """
    if isinstance(value, str):
        return _filled(value, row) if "{row." in value else value
    if isinstance(value, Mapping):
        filled = {text_or_json(fill(key, row)): fill(item, row) for key, item in value.items()}
        if len(filled) < len(value):
            _refuse(f"{row.label} gives two keys of a mapping the same name", row.line)
        return filled
    if isinstance(value, list | tuple):
        return [fill(item, row) for item in value]
    return value


def column(row: Row, path: str) -> Value:
    """Return the value of a column, or of a part of it for a path with dots. Raises `BadRows`."""
    if path in row.values:
        return row.values[path]
    value: Value = row.values
    for name in path.split("."):
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list | tuple) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            there = ", ".join(cut(name, _LABEL) for name in first_of(list(row.values), 8))
            near, otherwise = nearest(path, row.values), f"the columns are {there}" if there else ""
            help = did_you_mean(near, otherwise, form="{{row.{}}}")
            _refuse(f"{row.label} does not have a column {_quoted(path)}", row.line, help)
    return value


def _csv(text: str, problems: list[RowProblem]) -> Iterator[tuple[int, dict[str, Value]]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    header: list[str] | None = None
    line = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            help = 'put a cell with a comma, a quote or a line end in quotes, and write a quote in it as ""'
            problems.append(RowProblem(f"this is not CSV: {error}", line, help))
            return
        if cells is None:
            return
        begins, line = line, reader.line_num + 1
        if not cells:
            continue
        if header is None:
            header = [cell.strip() for cell in cells]
            if not _good_header(header, begins, problems):
                return
        elif len(cells) != len(header):
            counts = f"{len(cells)} {pluralize('cell', len(cells))}, and the header has {len(header)}"
            help = "put a cell with a comma in quotes" if len(cells) > len(header) else ""
            problems.append(RowProblem(f"this row has {counts}", begins, help))
            if len(problems) >= MOST_PROBLEMS:
                return
        else:
            yield begins, dict(zip(header, cells, strict=True))


def _good_header(header: list[str], line: int, problems: list[RowProblem]) -> bool:
    if len(header) > MAX_COLUMNS:
        problems.append(RowProblem(f"it has more than {MAX_COLUMNS} columns", line))
    elif "" in header:
        place = header.index("") + 1
        help = "the first line names the columns"
        problems.append(RowProblem(f"column {place} has no name", line, help))
    elif len(set(header)) < len(header):
        twice = next(name for place, name in enumerate(header) if name in header[:place])
        problems.append(RowProblem(f"two columns have the name {_quoted(twice)}", line))
    return not problems


def _jsonl(text: str, problems: list[RowProblem]) -> Iterator[tuple[int, Mapping[str, Value]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = decode(line)
        except InvalidValue as error:
            problems.append(RowProblem(f"this line is not JSON: {error}", number))
        else:
            if isinstance(value, Mapping) and len(value) <= MAX_COLUMNS:
                yield number, value
                continue
            what = f"has more than {MAX_COLUMNS} keys" if isinstance(value, Mapping) else "is not a JSON object"
            problems.append(RowProblem(f"this line {what}", number, 'write one object in each line: {"text": "hello"}'))
        if len(problems) >= MOST_PROBLEMS:
            return


def _filled(text: str, row: Row) -> Value:
    whole = _PLACE.fullmatch(text)
    if whole:
        return column(row, whole[1])
    size = 0

    def replaced(path: str) -> str:
        nonlocal size
        value = text_or_json(column(row, path))
        size += len(value)
        if size > MAX_FILLED:
            _refuse(f"{row.label} makes a text of more than {MAX_FILLED:,} characters", row.line)
        return value

    return _PLACE.sub(lambda match: replaced(match[1]), text)


def _quoted(name: str) -> str:
    return f'"{cut(name, _LABEL * 2)}"'


def _sentence(problem: RowProblem) -> str:
    where = f"line {problem.line}: " if problem.line is not None else ""
    return f"{where}{problem.message}{f' ({problem.help})' if problem.help else ''}"


def _refuse(message: str, line: int | None = None, help: str = "") -> NoReturn:
    raise BadRows([RowProblem(message, line, help)])


T = TypeVar("T")
_KEPT = (Span, Formula, Holds)


class CaseRow(Struct, frozen=True):
    """A case, or one row of it, ready to run."""

    case: Case
    name: str
    """With the row: `rows[row 3]`."""
    row: Mapping[str, Value]


def expand(case: Case, folder: Path, inputs: Sequence[str]) -> list[CaseRow]:
    """Return the case once for each of its rows. Raises `BadRows`.

    `inputs` are the names of the document's inputs: a column of a matrix with such a name is that input.
    """
    if case.rows is None:
        return [CaseRow(case, case.name, {})]
    filler, rows = _filler(case), []
    for row in rows_of(case.rows, folder):
        filled, name = filler(row) if filler else case, f"{case.name}[{row.label}]"
        own = filled.setting.inputs
        taken = {column: row.values[column] for column in case.rows.matrix if column in inputs or column in own}
        setting = replace(filled.setting, inputs={**own, **taken}) if taken else filled.setting
        rows.append(CaseRow(replace(filled, name=name, setting=setting), name, row.values))
    return rows


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
        fields = {name: inner for name in part.__struct_fields__ if (inner := _filler(getattr(part, name)))}
        # A column may hold any value; a reply, an answer and the text of a file are texts.
        fields |= {name: partial(_as_text, fields[name]) for name in fields.keys() & _texts(type(part))}
        if isinstance(part, Entry) and part.is_json and "reply" in fields:
            reply = decode(part.reply)
            fields["reply"] = lambda row: encode(fill(reply, row))
        filler = (lambda row: replace(part, **{name: inner(row) for name, inner in fields.items()})) if fields else None
    elif isinstance(part, tuple | list):
        kind, items = type(part), [(item, _filler(item)) for item in part]
        has_place = any(inner for _, inner in items)
        filler = (lambda row: kind(inner(row) if inner else item for item, inner in items)) if has_place else None
    elif isinstance(part, Mapping):
        pairs = _filler(tuple(part.items()))
        filler = (lambda row: dict(pairs(row))) if pairs else None
    # Where a text is needed and the row has another value, the reader of the part says so.
    return cast("Callable[[Row], T] | None", filler)


def _as_text(filler: Callable[[Row], object], row: Row) -> str:
    filled = filler(row)
    return filled if isinstance(filled, str) else encode(cast("Value", filled))


@cache
def _texts(kind: type[Struct]) -> frozenset[str]:
    """Return the fields of a part of the tree that hold texts only."""
    return frozenset(name for name, hint in get_annotations(kind).items() if hint == "str")
