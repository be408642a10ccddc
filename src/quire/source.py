"""Named texts and positions in them; reading files, and replacing them atomically.

Every format reads a `Source` and puts a `Span` on each node it makes, so that any later finding (a diagnostic, a failed
step, an error mark in an editor) can point at the characters it is about.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from _thread import _local  # `threading.local`, without loading that module for every command
from bisect import bisect_right
from collections import UserDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field

from quire.errors import Unreadable
from quire.patterns import late_pattern

MAX_DOCUMENT_BYTES = 200_000
MAX_TEST_BYTES = 2_000_000
MAX_FILE_BYTES = 100_000_000
_FIRST_BYTES = 65_536

# Every repetition is over a class that excludes the character after it, so matching is linear.
PLACEHOLDER = late_pattern(r"\{\{([A-Za-z0-9_]+)(?::([A-Za-z0-9_]+)(?::([^{}\n]*))?)?\}\}")
"""`{{name}}`, `{{name:type}}` or `{{name:type:default}}`: the place in a text that a value is put in."""


class Span(Struct, frozen=True, gc=False):
    """Half-open range of character offsets into the normalised text of a source."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the characters of a text at this place."""
        return text[self.start : self.end]

    def holds(self, offset: int) -> bool:
        """Tell whether an offset is here; the end counts too, because a cursor stands behind a word that was typed."""
        return self.start <= offset <= self.end

    def meets(self, other: Span) -> bool:
        """Tell whether this place and another one have an offset in common, ends included."""
        return self.start <= other.end and other.start <= self.end


NOWHERE = Span(0, 0)


def line_start(text: str, offset: int) -> int:
    """Return where the line of an offset begins."""
    return text.rfind("\n", 0, offset) + 1


def line_end(text: str, offset: int) -> int:
    """Return where the line of an offset ends, before its line end."""
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


class Position(Struct, frozen=True):
    """Line and column as people count them, both from 1."""

    line: int
    column: int


def normalise(text: str) -> str:
    """Drop one byte order mark and turn CRLF and lone CR into LF. No other character ends a line."""
    if text.startswith("\ufeff"):
        text = text[1:]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


class OpenTexts(_local, UserDict[str, "Source"]):
    """Texts that an editor has open, by absolute path. They are read instead of the files, which may be older. Each
    thread has its own: a server with an editor must run what is saved."""


OPEN_TEXTS = OpenTexts()


def open_text(path: Path) -> Source | None:
    """Return the text of a file that an editor has open; None for every other file."""
    return OPEN_TEXTS.get(os.path.abspath(path)) if OPEN_TEXTS else None  # noqa: PTH100


def unsaved_below(folder: Path, endings: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files below a folder that an editor has open and that are not on the disk yet, by the endings of their
    names. Names that begin with a dot are left out. Without an editor there are none."""
    for name in OPEN_TEXTS:
        path = Path(name)
        if not name.endswith(endings) or not path.is_relative_to(folder) or os.path.lexists(name):
            continue
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def is_open_text(text: str) -> bool:
    """Tell whether an editor has a text open. Such a text is soon another one: a cache keeps only its last versions."""
    return any(source.text == text for source in OPEN_TEXTS.values())


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Source(Struct, eq=False, repr_omit_defaults=True):
    """The normalised text of one document. It is never changed."""

    name: str
    text: str
    stored: int | None = None
    """Number of bytes as stored, if that differs from the length of the text in UTF-8."""
    _starts: list[int] = field(default_factory=list)
    """Found when they are first asked for."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self._compared == other._compared

    __ne__ = object.__ne__  # follows `==`; that of a Struct compares identities

    def __hash__(self) -> int:
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[str, str, int | None]:
        return self.name, self.text, self.stored

    @classmethod
    def of(cls, text: str, name: str = "<text>") -> Source:
        normal = normalise(text)
        return cls(name, normal, None if normal is text else _bytes(text))

    @property
    def size(self) -> int:
        """Number of bytes as stored."""
        return _bytes(self.text) if self.stored is None else self.stored

    @property
    def sha256(self) -> str:
        """Hash of the normalised text, which a run pins."""
        import hashlib  # as in `values.sha256`

        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()

    def exceeds(self, limit: int) -> bool:
        """Tell whether there are more bytes than `limit`.

        They are counted only if a text of this length could have that many.
        """
        return (self.stored is not None or len(self.text) * 4 > limit) and self.size > limit

    def starts(self) -> list[int]:
        """Return the offset at which each line begins."""
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
        """Return the text of a line (counted from 1) without its end."""
        starts = self.starts()
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end]

    def line_span(self, number: int) -> Span:
        start = self.starts()[number - 1]
        return Span(start, start + len(self.line(number)))


def read_source(path: Path, *, limit: int = MAX_DOCUMENT_BYTES) -> Source:
    """Read a document from disk. Raises `Unreadable` with the reason in one line.

    The type of the file is checked before it is opened (opening a FIFO would block forever), and at most `limit` bytes
    are kept. A text that an editor has open is read instead of its file.
    """
    if (source := open_text(path)) is not None:
        if source.exceeds(limit):
            raise Unreadable(path, f"is larger than {limit:,} bytes", "too_large")
        if not source.text.strip("\ufeff \t\r\n"):
            raise Unreadable(path, "is empty", "empty")
        return Source(str(path), source.text, source.stored)
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
        # A name with a zero byte, or with a lone surrogate, raises ValueError.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Unreadable(path, f"cannot be read: {reason}") from None
    if len(data) > limit:
        raise Unreadable(path, f"is larger than {limit:,} bytes", "too_large")
    text = decoded(path, data)
    if not text.strip("\ufeff \t\r\n"):
        raise Unreadable(path, "is empty", "empty")
    return Source(str(path), normalise(text), len(data))


def decoded(path: Path, data: bytes) -> str:
    """Return the bytes of a document as text. Raises `Unreadable`."""
    if b"\0" in data:
        raise Unreadable(path, "is a binary file, not text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8: byte {error.start + 1} is 0x{data[error.start]:02x}"
        raise Unreadable(path, reason, "not_utf8") from None


def file_identity(path: Path) -> tuple[int, ...]:
    """Return values that change when a file is replaced or written; the last one is its mode. Raises `Unreadable`."""
    try:
        status = path.stat()
    except OSError as error:
        raise Unreadable(path, f"cannot be read: {error.strerror or error}") from None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode & 0o7777


def replace_file(path: Path, data: bytes, before: tuple[int, ...], doing: str) -> None:
    """Atomically replace the content of a file whose identity was `before`. Raises `Unreadable`.

    A reader sees either the old file or the new one. If the file was edited in the meantime, it is not replaced, so the
    edit is not lost.
    """
    try:
        with written_beside(path, data) as new:
            new.chmod(before[-1])
            if file_identity(path) != before:
                raise Unreadable(path, f"was changed while it was {doing}")
            new.replace(path)
    except OSError as error:
        raise Unreadable(path, f"cannot be written: {error.strerror or error}") from None


@contextmanager
def written_beside(path: Path, data: bytes, mode: int = 0o600) -> Iterator[Path]:
    """Write a new file beside `path`, for the caller to move there: so a reader sees the old file or the whole new one.

    A file that is not moved is removed. Only the user can read it, unless `mode` says more. Raises `OSError`.
    """
    import secrets

    new = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield new
    finally:
        with suppress(OSError):
            new.unlink()


def try_lock(file: int) -> bool:
    """Take the operating system's lock of an open file; return False if it is taken. It ends when the file is closed,
    also by the death of the process."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
    else:
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def relative_to_here(path: Path | str) -> str | None:
    """Return a path as people type it in the current folder; None if it is not below. Links are not followed."""
    here, whole = Path.cwd(), Path(os.path.abspath(path))  # noqa: PTH100
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else None


def real_path(path: Path) -> Path:
    """Follow symbolic links as far as possible.

    Unlike `resolve` it does not raise for a circle of links; opening the path then reports it.
    """
    return Path(os.path.realpath(path))


def read_bytes(path: Path, *, pipes: bool = False) -> bytes:
    """Read a file that is not a document. Raises `OSError`, also for files that could block forever.

    With `pipes` a pipe that is already open in this process is read as well, as a shell provides for `<(command)`.
    """
    status = path.stat()
    open_here = pipes and str(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/"))
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == os.stat(os.devnull).st_rdev:  # noqa: PTH116
        return b""
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or open_here):
        raise OSError(errno.EINVAL, "it is not a regular file")
    with path.open("rb") as file:
        return read_to_end(file)


def read_to_end(file: BinaryIO) -> bytes:
    """Read everything up to `MAX_FILE_BYTES`. Raises `OSError` if there is more."""
    # Room for all of what is asked for is made at once, so a small file is not asked for the most that is allowed.
    data = file.read(_FIRST_BYTES)
    if len(data) == _FIRST_BYTES:
        data += file.read(MAX_FILE_BYTES + 1 - _FIRST_BYTES)
    if len(data) > MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {MAX_FILE_BYTES:,} bytes")
    return data
