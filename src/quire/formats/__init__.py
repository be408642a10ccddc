"""The formats that Quire reads, and which of them a document is in.

A format joins by an entry in `FORMATS`; its module is imported when a document of that format is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol, cast

from quire.diagnostics import Code, Diagnostic
from quire.errors import CannotStart
from quire.source import Source

if TYPE_CHECKING:
    from quire.formats.playbook.reading import Reading

__all__ = ["FORMATS", "Format", "FormatModule", "all_codes", "check", "format_of", "read", "sniff"]

MARKDOWN = (".md", ".markdown")
YAML = (".yaml", ".yml")


class FormatModule(Protocol):
    """What the module of a format has."""

    def check(self, source: Source) -> tuple[Diagnostic, ...]: ...

    def codes(self) -> tuple[Code, ...]: ...


@dataclass(frozen=True, slots=True)
class Format:
    """`module` is the name of a `FormatModule`; None where the format has not landed."""

    name: str
    module: str | None


FORMATS = {
    "playbook": Format("playbook", "quire.formats.playbook.document"),
    "directive": Format("directive", None),
    "pipeline": Format("pipeline", "quire.formats.pipeline.document"),
}


def sniff(name: str, text: str) -> str | None:
    """The format of a document by its name, and by its text where names say nothing; None for no document."""
    path = PurePath(name)
    suffix = path.suffix.lower()
    if suffix in YAML:
        return "pipeline"
    if suffix in MARKDOWN:
        parts = path.parts
        under_ai = any(parts[at : at + 2] == (".ai", "directives") for at in range(len(parts)))
        return "directive" if under_ai and not name.endswith(".playbook.md") else "playbook"
    return "playbook" if not suffix and text.lstrip("\ufeff \t\r\n").startswith("# ") else None


def read(source: Source) -> Reading:
    """Reads a document of a format that has landed; raises `CannotStart` for any other."""
    name = format_of(source)
    if name != "playbook":
        raise CannotStart(f"{source.name} is a {name}: Quire does not read that format yet")
    from quire.formats.playbook.parse import parse

    return parse(source)


def check(source: Source) -> tuple[Diagnostic, ...]:
    """Everything there is to say about a document: what its reader says, and the lints."""
    return _landed(format_of(source), source.name).check(source)


def all_codes() -> tuple[Code, ...]:
    """The codes of every format, in the order of their ids."""
    modules = [_landed(one.name, "") for one in FORMATS.values() if one.module]
    return tuple(sorted((code for module in modules for code in module.codes()), key=lambda code: code.id))


def format_of(source: Source) -> str:
    name = sniff(source.name, source.text)
    if name is None and PurePath(source.name).suffix == "":
        name = "playbook"
    if name is None:
        raise CannotStart(f"{source.name} is no document that Quire knows: playbooks end in .md")
    return name


def _landed(name: str, document: str) -> FormatModule:
    module = FORMATS[name].module
    if module is None:
        raise CannotStart(f"{document} is a {name}: Quire does not read that format yet")
    return cast("FormatModule", import_module(module))
