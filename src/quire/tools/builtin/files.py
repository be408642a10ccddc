"""Reading, writing and editing single files of the workspace.

A file is written beside its place and then renamed into it: a reader sees the old text or the new one, a crash
leaves one of the two, and a link or a second name of another file is replaced, never written through.
"""

from __future__ import annotations

import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, cast

from quire.errors import ToolFailed
from quire.tools.builtin.lines import edited, line_ids, marked, split
from quire.tools.builtin.places import Place, Places, open_file, require_regular
from quire.tools.builtin.protected import Protection
from quire.values import Value

MAX_FILE = 1_000_000
MAX_SEARCHED = 200_000_000


class Files:
    """One writer at a time: two steps that edit the same file side by side must not lose one another's change."""

    def __init__(
        self, places: Places, protection: Protection, redact: Callable[[str], str] = lambda text: text
    ) -> None:
        self._redact = redact
        self._places = places
        self._protection = protection
        self._writing = threading.Lock()

    def read(self, arguments: Mapping[str, Value]) -> Value:
        path = str(arguments["path"])
        first, limit = _count(arguments, "offset", 1), _count(arguments, "limit", None)
        with self._places.locate(path) as place, os.fdopen(open_file(place), "rb") as file:
            if arguments.get("line_ids") is True:
                return _marked(decoded(_capped(file, place.path), place.path), first or 1, limit)
            if first == 1 and limit is None:
                return decoded(_capped(file, place.path), place.path)
            return decoded(b"".join(_lines(file, first or 1, limit, place.path)), place.path)

    def write(self, arguments: Mapping[str, Value]) -> Value:
        files = arguments.get("files")
        if files is None:
            return self._write(str(arguments["path"]), str(arguments["content"]))
        if "path" in arguments or "content" in arguments:
            raise ToolFailed("give path and content, or files, not both", kind="arguments")
        # The schema says that these are objects with a path and a content.
        results = [self._write(str(one["path"]), str(one["content"])) for one in files]  # type: ignore[union-attr,index,call-overload]
        return {"files_written": len(results), "files_total": len(results), "results": results}

    def _write(self, path: str, content: str) -> Value:
        data = content.encode()
        _check_size(len(data), path)
        with self._writing, self._places.locate(path, to_write=self._protection) as place:
            before = place.status()
            _replace(place, data, before)
            return {"path": place.path, "bytes": len(data), "created": before is None}

    def edit(self, arguments: Mapping[str, Value]) -> Value:
        path, old, new = (str(arguments[name]) for name in ("path", "old", "new"))
        with self._writing, self._places.locate(path, to_write=self._protection) as place:
            with os.fdopen(open_file(place), "rb") as file:
                before = os.fstat(file.fileno())
                text = decoded(_capped(file, place.path), place.path)
            count = text.count(old)
            if count == 0:
                raise ToolFailed(f"{place.path} does not contain the old text", kind="edit")
            if count > 1 and arguments.get("all") is not True:
                raise ToolFailed(
                    f"{place.path} contains the old text {count} times; give more of what is around it, or all: true",
                    kind="edit",
                )
            # Counted before it is built: a small text can grow to anything.
            _check_size(before.st_size + count * (len(new.encode()) - len(old.encode())), place.path)
            _replace(place, text.replace(old, new).encode(), before)
            return {"path": place.path, "replaced": count}

    def swap(self, path: str, old: str, new: str) -> None:
        """Writes `new` over a file that still says `old`; for what was read a while ago by other means."""
        with self._writing, self._places.locate(path, to_write=self._protection) as place:
            with os.fdopen(open_file(place), "rb") as file:
                before = os.fstat(file.fileno())
                found = decoded(_capped(file, place.path), place.path)
            if found != old:
                raise ToolFailed(f"{place.path} was changed by another program in the meantime", kind="file")
            _replace(place, new.encode(), before)

    def edit_lines(self, arguments: Mapping[str, Value]) -> Value:
        path, changes = str(arguments["path"]), cast("list[Mapping[str, Value]]", arguments["changes"])
        with self._writing, self._places.locate(path, to_write=self._protection) as place:
            with os.fdopen(open_file(place), "rb") as file:
                before = os.fstat(file.fileno())
                text = decoded(_capped(file, place.path), place.path)
            edit = edited(text, changes, place.path, self._redact)
            data = edit.text.encode()
            _check_size(len(data), place.path)
            _replace(place, data, before)
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


def _marked(text: str, first: int, limit: int | None) -> str:
    lines = split(text)
    part = slice(first - 1, None if limit is None else first - 1 + limit)
    return marked(lines[part], line_ids(lines)[part])


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


def _lines(file: BinaryIO, first: int, limit: int | None, path: str) -> Iterator[bytes]:
    """The lines from `first` on. Holds one piece of a line at a time until the part begins."""
    number, taken, seen = 1, 0, 0
    while limit is None or number < first + limit:
        piece = file.readline(65_536)
        seen += len(piece)
        if not piece:
            return
        if seen > MAX_SEARCHED:
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
    """Puts a new file in the place of what was there `before`, unless that has changed since."""
    if before is not None:
        require_regular(before, place.path)
        if not before.st_mode & stat.S_IWUSR:
            raise ToolFailed(f"{place.path} is read-only", kind="file")
    if place.name == ".":
        raise ToolFailed(f"{place.path} is a folder", kind="file")
    # Short, so that a name of any length has room beside it.
    beside = f".quire-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
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


def _identity(found: os.stat_result | None) -> tuple[int, ...] | None:
    return None if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
