"""A text with a name, and places in it.

Every format reads a `Source` and puts a `Span` on each node it makes, so that any later finding
(a diagnostic, a failed step, an editor's squiggle) can point at the characters it is about.
"""

from __future__ import annotations

import hashlib
import stat
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from quire.errors import Unreadable

MAX_DOCUMENT_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of character offsets into the normalised text of a source."""

    start: int
    end: int


NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Position:
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


@dataclass(frozen=True, slots=True)
class Source:
    """The normalised text of one document. `size` counts the bytes as they were stored."""

    name: str
    text: str
    size: int
    _starts: list[int] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, text: str, name: str = "<text>") -> Source:
        return cls(name, normalise(text), len(text.encode("utf-8", "surrogatepass")))

    @property
    def sha256(self) -> str:
        """Of the normalised text: what a run pins."""
        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()

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
    except OSError as error:
        raise Unreadable(path, f"cannot be read: {error.strerror or error}") from None
    if len(data) > limit:
        raise Unreadable(path, f"is larger than {limit:,} bytes")
    if b"\0" in data:
        raise Unreadable(path, "is a binary file, not text")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(path, f"is not UTF-8: byte {error.start + 1} is 0x{data[error.start]:02x}") from None
    if not text.strip("\ufeff \t\r\n"):
        raise Unreadable(path, "is empty")
    return Source(str(path), normalise(text), len(data))
