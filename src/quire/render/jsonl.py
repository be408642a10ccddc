"""A run for machines: each event is a line of JSON on stdout, the last line is the result."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import TextIO

from quire.engine.records import Event
from quire.render.view import Talk
from quire.render.visible import escaped
from quire.values import Value, encode


class JsonLines(Talk):
    """JSON is UTF-8, whatever the encoding of the terminal is.

    `gone` is called once, with the reason, when nobody reads any more; from then on that is `broken`. An event must
    never break the run that it tells of."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        super().__init__(err)
        self._out = out
        with contextlib.suppress(AttributeError):
            out.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[attr-defined]
        self.gone: Callable[[OSError], None] = lambda error: None
        self.broken: OSError | None = None

    def show(self, event: Event) -> None:
        if not event.replayed:
            self.line(event.as_json())

    def line(self, entry: Mapping[str, Value]) -> None:
        if self.broken is not None:
            return
        try:
            self._out.write(escaped(encode(entry)) + "\n")
            self._out.flush()
        except OSError as error:
            self.broken = error
            self._drop()
            self.gone(error)

    def _drop(self) -> None:
        """What is left in the buffer must not fail again when the stream is closed."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._out.fileno())
            os.close(nowhere)
