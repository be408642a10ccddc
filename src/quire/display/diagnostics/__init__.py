"""The printers of diagnostics. Each takes the findings of all files and gives the whole text for standard output."""

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
    """What was found in one document."""

    source: Source
    diagnostics: tuple[Diagnostic, ...]


Printer = Callable[[Sequence[Findings], bool], str]


def printer(name: FormatName) -> Printer:
    """The printer of that name; its second argument says whether to use colours, which most ignore."""
    module = import_module(f"quire.display.diagnostics.{name}_format")
    return cast(Printer, module.render)
