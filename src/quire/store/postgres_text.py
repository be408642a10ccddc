"""Text on its way to PostgreSQL and back.

PostgreSQL keeps every character but one: NUL, which a person's answer or a tool's message may well hold. It is
written as two characters that Unicode keeps free for such purposes, and comes back as it was.
"""

from __future__ import annotations

import re

from psycopg import AsyncConnection
from psycopg.adapt import Buffer, Dumper, Loader

_MARK, _ZERO = "\ufdd1", "\ufdd0"
_MARKED = re.compile(f"{_MARK}([{_MARK}{_ZERO}])")
_MARK_BYTES = _MARK.encode()


class _TextDumper(Dumper):
    """Sends no type along, as psycopg's own does: the statement knows what each of its places holds."""

    def dump(self, obj: str) -> Buffer:
        if "\x00" in obj or _MARK in obj:
            obj = obj.replace(_MARK, _MARK + _MARK).replace("\x00", _MARK + _ZERO)
        return obj.encode()


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        found = bytes(data)
        text = found.decode()
        if _MARK_BYTES in found:
            return _MARKED.sub(lambda match: "\x00" if match[1] == _ZERO else _MARK, text)
        return text


def adapt_text(connection: AsyncConnection) -> None:
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_loader("text", _TextLoader)
