"""A text with a name, and places in it.

Every format reads a `Source` and puts a `Span` on each node it makes, so that any later finding
(a diagnostic, a failed step, an editor's squiggle) can point at the characters it is about.
"""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from quire.errors import Unreadable

MAX_DOCUMENT_BYTES = 200_000
MAX_FILE_BYTES = 100_000_000


class Span(Struct, frozen=True):
    """Half-open range of character offsets into the normalised text of a source.

    Nobody changes one; it is not frozen because readers make thousands of them, and that is slow to make.
    """

    start: int
    end: int


NOWHERE = Span(0, 0)


class Position(Struct, frozen=True):
    """Line and column as people count them, both from 1."""

    line: int
    column: int


def normalise(text: str) -> str:
    """One byte order mark is dropped; CRLF and lone CR become LF. Nothing else ends a line."""
    if text.startswith("\ufeff"):
        text = text[1:]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@dataclass(slots=True, unsafe_hash=True)
class Source:
    """The normalised text of one document. Nobody changes one; it is not frozen because that is slow to make.

    `stored` is the number of bytes as they were stored, where that is not the length of the text in UTF-8.
    """

    name: str
    text: str
    stored: int | None = None
    _starts: list[int] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, text: str, name: str = "<text>") -> Source:
        normal = normalise(text)
        return cls(name, normal, None if normal is text else _bytes(text))

    @property
    def size(self) -> int:
        """The number of bytes, as they were stored."""
        return _bytes(self.text) if self.stored is None else self.stored

    @property
    def sha256(self) -> str:
        """Of the normalised text: what a run pins."""
        import hashlib  # milliseconds of start-up that `check` does not need

        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()

    def exceeds(self, limit: int) -> bool:
        """Whether there are more bytes than that. They are not counted where no text of this length could have more."""
        return (self.stored is not None or len(self.text) * 4 > limit) and self.size > limit

    def starts(self) -> list[int]:
        """The offset at which each line begins."""
        if not self._starts:
            starts, at, find = [0], 0, self.text.find
            while (at := find("\n", at) + 1) > 0:
                starts.append(at)
            self._starts.extend(starts)
        return self._starts

    def position(self, offset: int) -> Position:
        starts = self.starts()
        line = bisect_right(starts, offset)
        return Position(line, offset - starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line (from 1) without its end."""
        starts = self.starts()
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end]

    def line_span(self, number: int) -> Span:
        start = self.starts()[number - 1]
        return Span(start, start + len(self.line(number)))


def read_source(path: Path, *, limit: int = MAX_DOCUMENT_BYTES) -> Source:
    """Reads a document from disk, or says in one line why that cannot be done.

    The kind of file is looked at before it is opened (opening a FIFO would wait for ever), and no
    more than `limit` bytes are read.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise Unreadable(path, "is a folder, not a document")
        if not stat.S_ISREG(mode):
            raise Unreadable(path, "is not a regular file")
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        raise Unreadable(path, "does not exist") from None
    except (OSError, ValueError) as error:
        # A name with a zero byte, or with half a surrogate pair, is a ValueError.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Unreadable(path, f"cannot be read: {reason}") from None
    if len(data) > limit:
        raise Unreadable(path, f"is larger than {limit:,} bytes", "too_large")
    if b"\0" in data:
        raise Unreadable(path, "is a binary file, not text")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(path, f"is not UTF-8: byte {error.start + 1} is 0x{data[error.start]:02x}") from None
    if not text.strip("\ufeff \t\r\n"):
        raise Unreadable(path, "is empty", "empty")
    return Source(str(path), normalise(text), len(data))


def file_identity(path: Path) -> tuple[int, ...]:
    """What changes when a file is replaced or written; its mode comes last."""
    try:
        found = path.stat()
    except OSError as error:
        raise Unreadable(path, f"cannot be read: {error.strerror or error}") from None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode & 0o7777


def replace_file(path: Path, data: bytes, before: tuple[int, ...], doing: str) -> None:
    """Puts other bytes in place of a file, which has the identity `before`.

    A reader sees the old file or the new one, and an edit that came in between is not lost.
    """
    import secrets

    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(before[-1])
        if file_identity(path) != before:
            raise Unreadable(path, f"was changed while it was {doing}")
        temporary.replace(path)
    except OSError as error:
        raise Unreadable(path, f"cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def real_path(path: Path) -> Path:
    """Where links lead, as far as they can be followed: unlike `resolve` not an error for a circle of them, which
    whoever opens the path then reports."""
    return Path(os.path.realpath(path))


def read_bytes(path: Path, *, pipes: bool = False) -> bytes:
    """What is in a file that is no document. Raises `OSError`, also for what could make us wait for ever.

    With `pipes` a pipe that is already open here is read as well: that is what a shell makes of `<(command)`.
    """
    found = path.stat()
    open_here = pipes and str(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/"))
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == os.stat(os.devnull).st_rdev:  # noqa: PTH116
        return b""
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) or open_here):
        raise OSError(errno.EINVAL, "it is not a regular file")
    with path.open("rb") as file:
        return read_to_end(file)


def read_to_end(file: BinaryIO) -> bytes:
    """All that there is, unless there is no end of it: then `OSError`."""
    data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {MAX_FILE_BYTES:,} bytes")
    return data
