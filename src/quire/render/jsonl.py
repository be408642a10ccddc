"""A run for machines: each event is a line of JSON on stdout, the last line is the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TextIO

from quire.engine.records import Event
from quire.render.view import Talk
from quire.values import Value, encode


class JsonLines(Talk):
    """`gone` is called once, when nobody reads any more: an event must never break the run that it tells of."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        super().__init__(err)
        self._out = out
        self.gone: Callable[[], None] = lambda: None
        self.broken = False

    def show(self, event: Event) -> None:
        if not event.replayed:
            self.line(event.as_json())

    def line(self, entry: Mapping[str, Value]) -> None:
        if self.broken:
            return
        try:
            self._out.write(encode(entry) + "\n")
            self._out.flush()
        except OSError:
            self.broken = True
            self.gone()
