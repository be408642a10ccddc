"""Printers of diagnostics. Each takes the findings of all files and returns the whole text for standard output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.source import Source

FORMATS = ("full", "concise", "json", "github", "sarif")
FormatName = Literal["full", "concise", "json", "github", "sarif"]


class Findings(Struct, frozen=True):
    """The findings of one document."""

    source: Source
    diagnostics: tuple[Diagnostic, ...]


Printer = Callable[[Sequence[Findings], bool], str]


def printer(name: FormatName) -> Printer:
    """Return the printer of that name. Its second argument turns colours on, which most printers ignore."""
    module = import_module(f"quire.display.diagnostics.{name}_format")
    return cast(Printer, module.render)
