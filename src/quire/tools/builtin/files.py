"""Read, write and edit single files of the workspace, also by ids of their lines, and show what an edit changed.

A file is written beside its place and then renamed into it: a reader sees the old text or the new one, a crash leaves
one of the two, and a link or a second name of another file is replaced, never written through.

Lines have ids, so that an edit can name lines without repeating them. An id depends on the text of the line, its
position among equal lines, and their number: it stays the same while other lines change, and disappears once its own
line, or the number of its equals, changes. So an edit with an old id is refused instead of changing the wrong line.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, cast

from msgspec import Struct

from quire.errors import ToolFailed
from quire.os_flags import CLOSES, NO_LINK
from quire.tools.builtin.paths import Place, Places, open_file, require_regular

if TYPE_CHECKING:
    from quire.tools.builtin.paths import Protection
    from quire.values import Value


DIGITS = 6
MANY = 10_000
"""The number of lines from which on an id holds the position of its line among its equals instead of a hash of it:
short hashes would collide, and hashing each line takes too long."""
MAX_DIFF = 4000


def split(text: str) -> list[str]:
    """Return the lines with their ends. Only a line feed ends a line."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def line_ids(lines: Sequence[str]) -> list[str]:
    """Return a unique id for each line."""
    bare = [line.rstrip("\r\n") for line in lines]
    totals, counts = Counter(bare), Counter[str]()
    if len(bare) >= MANY:
        return _many_ids(bare, totals)
    taken: set[str] = set()
    ids = []
    for text in bare:
        counts[text] += 1
        attempt = 0
        while (id := _id(text, counts[text], totals[text], attempt)) in taken:
            attempt += 1
        taken.add(id)
        ids.append(id)
    return ids


def marked(lines: Sequence[str], ids: Sequence[str]) -> str:
    return "".join(f"[LID:{id}] {line}" for id, line in zip(ids, lines, strict=True))


def _many_ids(bare: Sequence[str], totals: Counter[str]) -> list[str]:
    marks, places = _marks(totals), dict.fromkeys(totals, 0)
    ids = []
    for text in bare:
        places[text] = place = places[text] + 1
        ids.append(f"{marks[text]}-{place}")
    return ids


def _marks(totals: Counter[str]) -> dict[str, str]:
    """Return, for each distinct text, the part of the id that all its lines share."""
    marks: dict[str, str] = {}
    taken: set[str] = set()
    for text, total in totals.items():
        attempt = 0
        while (mark := _id(text, 0, 0, attempt, 2 * DIGITS)) in taken:
            attempt += 1
        taken.add(mark)
        marks[text] = f"{mark}-{total}"
    return marks


def _numbers(lines: Sequence[str], named: Sequence[str]) -> dict[str, int]:
    """Return the numbers of the lines with these ids; for a small file, those of all lines."""
    if len(lines) < MANY:
        return {id: number for number, id in enumerate(line_ids(lines))}
    bare = [line.rstrip("\r\n") for line in lines]
    texts = {mark: text for text, mark in _marks(Counter(bare)).items()}
    ids: dict[str, dict[str, str]] = {}
    for id in named:
        mark, _, place = id.rpartition("-")
        if mark in texts:
            ids.setdefault(texts[mark], {})[place] = id
    counts, numbers = dict.fromkeys(ids, 0), {}
    for number, text in enumerate(bare):
        if text in ids:
            counts[text] += 1
            if (wanted_id := ids[text].get(str(counts[text]))) is not None:
                numbers[wanted_id] = number
    return numbers


class Edit(Struct, frozen=True):
    """The result of an edit."""

    text: str
    replaced: int
    """The number of replaced lines."""
    difference: str
    """The changes in readable form, cut if they are long."""


def edited(
    text: str,
    changes: Sequence[Mapping[str, Value]],
    path: str,
    redact: Callable[[str], str] = lambda text: text,
) -> Edit:
    """Make all changes. `redact` removes secrets from the difference before it is cut. Raises `ToolFailed`."""
    lines = split(text)
    pairs = [[_given(change, name, path) for name in ("start_line_id", "end_line_id")] for change in changes]
    numbers = _numbers(lines, [one for pair in pairs for one in pair])
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    ranges: list[tuple[int, int, str]] = []
    for change, pair in zip(changes, pairs, strict=True):
        first, last = (_number(numbers, one, path) for one in pair)
        if last < first:
            raise ToolFailed(f"{path}: the lines of a change are given from the last to the first", kind="edit")
        ranges.append((first, last, str(change["new_content"])))
    ranges.sort(key=lambda one: one[0])
    for (_, before, _), (after, _, _) in pairwise(ranges):
        if after <= before:
            raise ToolFailed(f"{path}: two changes speak of the same line", kind="edit")
    replacements = [
        Replacement(first, last + 1, split(_content(content, end, last + 1 < len(lines) or lines[last].endswith("\n"))))
        for first, last, content in ranges
    ]
    pieces: list[str] = []
    done = 0
    for replacement in replacements:
        pieces += lines[done : replacement.start]
        pieces += replacement.lines
        done = replacement.stop
    replaced = sum(one.stop - one.start for one in replacements)
    return Edit(
        "".join([*pieces, *lines[done:]]), replaced, shown_difference(lines, replacements, path, MAX_DIFF, redact)
    )


def _id(text: str, place: int, total: int, attempt: int, digits: int = DIGITS) -> str:
    data = f"{place}/{total}/{attempt}/{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2s(data).hexdigest()[:digits]


def _given(change: Mapping[str, Value], name: str, path: str) -> str:
    id = change.get("line_id", change.get(name))
    if id is None:
        raise ToolFailed(
            f"{path}: a change needs line_id, or start_line_id and end_line_id, and new_content", kind="arguments"
        )
    return str(id).strip().removeprefix("[").removesuffix("]").removeprefix("LID:")


def _number(numbers: Mapping[str, int], id: str, path: str) -> int:
    if id not in numbers:
        raise ToolFailed(
            f"{path} has no line {id[:40]} (any more); read the file again with line_ids: true", kind="edit"
        )
    return numbers[id]


def _content(content: str, end: str, ended: bool) -> str:
    """Return new text with the file's own line ends; empty content removes the lines."""
    if not content:
        return ""
    text = content.replace("\r\n", "\n").removesuffix("\n").replace("\n", end)
    return text + end if ended else text


MAX_FILE = 1_000_000
MAX_SEARCHED = 200_000_000


class Files:
    """File tools with one writer at a time in the process, so that two steps that edit the same file do not lose each
    other's change, and that two do not make together what neither may make."""

    _writing = threading.Lock()

    def __init__(
        self,
        places: Places,
        protection: Protection,
        redact: Callable[[str], str] = lambda text: text,
        is_document: Callable[[str, str], bool] = lambda path, text: False,
    ) -> None:
        """`is_document` tells whether a text at a path is a document, which needs a grant: it runs later, perhaps with
        more permissions than the run that writes it."""
        self._redact = redact
        self._is_document = is_document
        self._places = places
        self._protection = protection

    def read(self, arguments: Mapping[str, Value]) -> Value:
        path = str(arguments["path"])
        first, limit = _count(arguments, "offset", 1), _count(arguments, "limit", None)
        with self._places.locate(path) as place, os.fdopen(open_file(place), "rb") as file:
            if arguments.get("line_ids") is True:
                lines = split(decoded(_capped(file, place.path), place.path))
                start = (first or 1) - 1
                part = slice(start, None if limit is None else start + limit)
                return marked(lines[part], line_ids(lines)[part])
            if first == 1 and limit is None:
                return decoded(_capped(file, place.path), place.path)
            return decoded(b"".join(_lines_from(file, first or 1, limit, place.path)), place.path)

    def write(self, arguments: Mapping[str, Value]) -> Value:
        files = arguments.get("files")
        if files is None:
            return self._write(str(arguments["path"]), str(arguments["content"]))
        if "path" in arguments or "content" in arguments:
            raise ToolFailed("give path and content, or files, not both", kind="arguments")
        # The schema says that these are objects with a path and a content.
        results = [self._write(str(file["path"]), str(file["content"])) for file in files]  # type: ignore[union-attr,index,call-overload]
        return {"files_written": len(results), "files_total": len(results), "results": results}

    def _write(self, path: str, content: str) -> Value:
        data = content.encode()
        _check_size(len(data), path)
        with self._writing, self._places.locate(path, to_write=self._protection) as place:
            before = place.status()
            self._replace(place, content, before)
            return {"path": place.path, "bytes": len(data), "created": before is None}

    def edit(self, arguments: Mapping[str, Value]) -> Value:
        path, old, new = (str(arguments[name]) for name in ("path", "old", "new"))
        with self._opened(path) as (place, before, text):
            count = text.count(old)
            if count == 0:
                raise ToolFailed(f"{place.path} does not contain the old text", kind="edit")
            if count > 1 and arguments.get("all") is not True:
                raise ToolFailed(
                    f"{place.path} contains the old text {count} times; give more of what is around it, or all: true",
                    kind="edit",
                )
            # Checked before the text is built: a small text can grow to any size.
            _check_size(before.st_size + count * (len(new.encode()) - len(old.encode())), place.path)
            self._replace(place, text.replace(old, new), before)
            return {"path": place.path, "replaced": count}

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[Place, os.stat_result, str]]:
        """Yield the place of a file that is to be edited, its status and its text."""
        with self._writing, self._places.locate(path, to_write=self._protection) as place:
            with os.fdopen(open_file(place), "rb") as file:
                before = os.fstat(file.fileno())
                text = decoded(_capped(file, place.path), place.path)
            yield place, before, text

    def _replace(self, place: Place, text: str, before: os.stat_result | None) -> None:
        if self._is_document(place.path, text):
            self._protection.require_grant(place.parts)
        _replace(place, text.encode(), before)

    def swap(self, path: str, old: str, new: str) -> None:
        """Write `new` over a file that still contains `old`, which was read earlier by other means. Raises
        `ToolFailed`."""
        with self._opened(path) as (place, before, text):
            if text != old:
                raise ToolFailed(f"{place.path} was changed by another program in the meantime", kind="file")
            _replace(place, new.encode(), before)

    def edit_lines(self, arguments: Mapping[str, Value]) -> Value:
        path, changes = str(arguments["path"]), cast("list[Mapping[str, Value]]", arguments["changes"])
        with self._opened(path) as (place, before, text):
            edit = edited(text, changes, place.path, self._redact)
            _check_size(len(edit.text.encode()), place.path)
            self._replace(place, edit.text, before)
            return {
                "path": place.path,
                "changes_applied": len(changes),
                "lines_changed": edit.replaced,
                "output": edit.difference,
            }


def decoded(data: bytes, path: str) -> str:
    if b"\0" in data:
        raise ToolFailed(f"{path} is not text: it holds zero bytes", kind="binary")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ToolFailed(f"{path} is not UTF-8 text", kind="binary") from None


def _count(arguments: Mapping[str, Value], name: str, default: int | None) -> int | None:
    value = arguments.get(name)
    return default if value is None else int(value)  # type: ignore[arg-type]  # the schema says integer


def _capped(file: BinaryIO, path: str) -> bytes:
    data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise ToolFailed(
            f"{path} is larger than {MAX_FILE:,} bytes; read a part of it with offset and limit", kind="too_large"
        )
    return data


def _lines_from(file: BinaryIO, first: int, limit: int | None, path: str) -> Iterator[bytes]:
    """Yield the lines from `first` on. Before that, only one piece of a line is held in memory."""
    number, taken, size = 1, 0, 0
    while limit is None or number < first + limit:
        piece = file.readline(65_536)
        size += len(piece)
        if not piece:
            return
        if size > MAX_SEARCHED:
            raise ToolFailed(f"{path}: line {first} is too far down", kind="too_large")
        if number >= first:
            taken += len(piece)
            if taken > MAX_FILE:
                raise ToolFailed(f"{path}: these lines have more than {MAX_FILE:,} bytes", kind="too_large")
            yield piece
        if piece.endswith(b"\n"):
            number += 1


def _check_size(size: int, path: str) -> None:
    if size > MAX_FILE:
        raise ToolFailed(f"{path}: {size:,} bytes are too many; {MAX_FILE:,} are allowed", kind="too_large")


def _replace(place: Place, data: bytes, before: os.stat_result | None) -> None:
    """Replace the file, whose status was `before`, by a new one, unless it has changed since."""
    if before is not None:
        require_regular(before, place.path)
        if not before.st_mode & stat.S_IWUSR:
            raise ToolFailed(f"{place.path} is read-only", kind="file")
    if place.name == ".":
        raise ToolFailed(f"{place.path} is a folder", kind="file")
    # Short, so that there is room for it beside a name of any length.
    beside = f".quire-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | CLOSES
    written = os.open(beside, flags, 0o666, dir_fd=place.folder)
    try:
        with os.fdopen(written, "wb") as file:
            file.write(data)
            file.flush()
            if before is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode) & 0o777)
            os.fsync(file.fileno())
        if _identity(place.status()) != _identity(before):
            raise ToolFailed(f"{place.path} was changed by another program in the meantime", kind="file")
        os.rename(beside, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        os.unlink(beside, dir_fd=place.folder)
        raise


def _identity(status: os.stat_result | None) -> tuple[int, ...] | None:
    return None if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


LINES_AROUND = 2
_MAX_WINDOW = 2500
_MAX_COMPARED = 50_000
"""The numbers of pairs of lines that are compared in one replacement and in all of them."""


class Replacement(Struct, frozen=True):
    """`lines` replace those from `start` up to `stop`."""

    start: int
    stop: int
    lines: Sequence[str]


class _Change(Struct, frozen=True):
    """Old lines from `start` up to `stop`, and the new lines, the first of which has the number `at` in the new
    text."""

    start: int
    stop: int
    at: int
    lines: Sequence[str]


def shown_difference(
    before: Sequence[str],
    replacements: Sequence[Replacement],
    path: str,
    most: int,
    redact: Callable[[str], str] = lambda text: text,
) -> str:
    """Return a unified difference, cut after `most` characters once secrets are removed. Replacements are in order and
    do not overlap.

    `difflib` takes quadratic time, so it only compares inside small replacements; a large one is shown as all its old
    and all its new lines.
    """
    parts: list[str] = []
    size = 0
    for line in _diff_lines(before, list(_changes(before, replacements)), path):
        parts.append(line if line.endswith("\n") else f"{line}\n")
        size += len(parts[-1])
        if size > most:
            return f"{redact(''.join(parts))[:most]}…\n"
    return redact("".join(parts))


def _changes(before: Sequence[str], replacements: Sequence[Replacement]) -> Iterator[_Change]:
    from difflib import SequenceMatcher

    shift, compared = 0, 0
    for replacement in replacements:
        old = before[replacement.start : replacement.stop]
        pairs = len(old) * len(replacement.lines)
        compared += pairs
        if pairs <= _MAX_WINDOW and compared <= _MAX_COMPARED:
            for tag, start, stop, first, last in SequenceMatcher(None, old, replacement.lines).get_opcodes():
                if tag != "equal":
                    at, lines = replacement.start, replacement.lines[first:last]
                    yield _Change(at + start, at + stop, at + shift + first, lines)
        else:
            yield _Change(replacement.start, replacement.stop, replacement.start + shift, replacement.lines)
        shift += len(replacement.lines) - len(old)


def _diff_lines(before: Sequence[str], changes: Sequence[_Change], path: str) -> Iterator[str]:
    if changes:
        yield f"--- {path}\n"
        yield f"+++ {path}\n"
    group: list[_Change] = []
    for change in changes:
        if group and change.start - group[-1].stop > 2 * LINES_AROUND:
            yield from _hunk(before, group)
            group = []
        group.append(change)
    if group:
        yield from _hunk(before, group)


def _hunk(before: Sequence[str], group: Sequence[_Change]) -> Iterator[str]:
    start, stop = max(0, group[0].start - LINES_AROUND), min(len(before), group[-1].stop + LINES_AROUND)
    first = group[0].at - (group[0].start - start)
    length = stop - start + sum(len(replaced.lines) - (replaced.stop - replaced.start) for replaced in group)
    yield f"@@ -{_range(start, stop - start)} +{_range(first, length)} @@\n"
    done = start
    for change in group:
        yield from (f" {line}" for line in before[done : change.start])
        yield from (f"-{line}" for line in before[change.start : change.stop])
        yield from (f"+{line}" for line in change.lines)
        done = change.stop
    yield from (f" {line}" for line in before[done:stop])


def _range(start: int, length: int) -> str:
    """Return a range as `diff` writes it: numbered from 1, an empty range by the line before it."""
    return f"{start + 1}" if length == 1 else f"{start + (1 if length else 0)},{length}"
