"""Frame messages as the Language Server Protocol does: a header with the length of the body, then the body as JSON."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import NoReturn, TypeAlias

from quire.errors import QuireError

Message: TypeAlias = dict[str, object]

MOST_BYTES = 64_000_000
"""The largest body that is read. A longer one is passed over and reported."""
MOST_HEADER = 8_192
_END = b"\r\n\r\n"


class BadFraming(QuireError):
    """The bytes are not framed messages, so it is not known where the next one begins."""


class Malformed:
    """A body that is not a message."""

    __slots__ = (
        "reason",
    )  # not a Struct: importing msgspec takes longer than all that an editor waits for at the start

    def __init__(self, reason: str) -> None:
        self.reason = reason


class FrameReader:
    """Collects the bytes of a connection and yields the messages in them."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._missing = 0
        """Bytes of an oversized body that are still to be passed over."""

    def feed(self, data: bytes) -> Iterator[Message | Malformed]:
        """Take the next bytes and yield each message that they complete. Raises `BadFraming`."""
        self._data += data
        while True:
            if self._missing:
                passed = min(self._missing, len(self._data))
                del self._data[:passed]
                self._missing -= passed
                if self._missing:
                    return
            end = self._data.find(_END)
            if end < 0:
                if len(self._data) > MOST_HEADER:
                    raise BadFraming(f"no header of a message within {MOST_HEADER:,} bytes")
                return
            length = _length(bytes(self._data[:end]))
            body = end + len(_END)
            if length > MOST_BYTES:
                del self._data[:body]
                self._missing = length
                yield Malformed(f"the message has {length:,} bytes, of at most {MOST_BYTES:,}")
                continue
            if len(self._data) < body + length:
                return
            content = bytes(self._data[body : body + length])
            del self._data[: body + length]
            yield _decoded(content)


def framed(message: Message) -> bytes:
    """Return the bytes of a message."""
    body = _encoded(message)
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _encoded(message: Message) -> bytes:
    """Return a message as JSON. Half a character, which UTF-8 does not have, is escaped."""
    if "msgspec" in sys.modules:  # several times as fast, but not worth loading for the first answer
        from msgspec.json import encode

        with contextlib.suppress(UnicodeEncodeError):
            return encode(message)
    return json.dumps(message, separators=(",", ":")).encode()


def _length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            text = value.strip()
            if text.isdigit() and len(text) < 16:
                return int(text)
    raise BadFraming(f"the header of a message has no length: {header[:80]!r}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _decoded(body: bytes) -> Message | Malformed:
    try:
        message = _DECODER.decode(body.decode())
    except (ValueError, RecursionError) as error:
        return Malformed(f"the message is not JSON: {error}")
    return message if isinstance(message, dict) else Malformed("the message is not an object")
