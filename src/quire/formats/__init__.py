"""The formats that Quire reads, and how to tell which format a document has.

A format is added by an entry in `FORMATS`. Its module is imported when a document of that format is read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol, cast

from msgspec import Struct

from quire.errors import CannotStart, Unreadable
from quire.formats import invisible
from quire.patterns import late_pattern
from quire.source import MAX_DOCUMENT_BYTES, MAX_TEST_BYTES, Source

if TYPE_CHECKING:
    from quire.diagnostics import Code, Diagnostic
    from quire.formats.playbook.syntax import ParseResult

__all__ = [
    "FORMATS",
    "RUNNABLE",
    "TEST_SUFFIX",
    "Format",
    "FormatModule",
    "all_codes",
    "belongs_to_test",
    "check",
    "format_of",
    "most_bytes",
    "read",
    "sniff",
    "unread",
]

MARKDOWN = (".md", ".markdown")
YAML = (".yaml", ".yml")
TEST_SUFFIX = ".test.yaml"
"""The end of the name of every test file."""
_KEPT_BESIDE = (".test.snap.yaml", ".cassette.yaml", ".judge.yaml")
"""The ends of the names of files that tests keep or read: snapshots, recordings and rubrics."""
_STEP = late_pattern(r"^## STEP", re.MULTILINE)
_BEFORE_ROOT = late_pattern(r"\s++|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_ROOT = late_pattern(r"<directive[\s/>]")


class FormatModule(Protocol):
    """The functions that the module of a format provides."""

    def check(self, source: Source) -> tuple[Diagnostic, ...]: ...

    def codes(self) -> tuple[Code, ...]: ...


class Format(Struct, frozen=True):
    """A format and the module that reads it."""

    name: str
    module: str
    """The name of a `FormatModule`."""
    json_inputs: bool = False
    """True if what a user types for an input without a declared type is read as JSON, where it is JSON."""


FORMATS = {
    "playbook": Format("playbook", "quire.formats.playbook.check"),
    "directive": Format("directive", "quire.formats.directive.check"),
    "knowledge": Format("knowledge", "quire.formats.directive.knowledge"),
    "pipeline": Format("pipeline", "quire.formats.pipeline.check", json_inputs=True),
    "test": Format("test", "quire.formats.test.check"),
}
RUNNABLE = ("playbook", "directive", "pipeline")
"""The formats whose documents run; the others are read by these, or test them."""


def sniff(name: str, text: str) -> str | None:
    """Return the format of a document from its name and, if needed, its text; None if it is not a document."""
    suffix, space = _place(name)
    if suffix not in (*YAML, *MARKDOWN):
        return "playbook" if not suffix and text.lstrip("\ufeff \t\r\n").startswith("# ") else None
    if belongs_to_test(name):
        return "test" if name.lower().endswith(TEST_SUFFIX) else None
    if suffix in YAML:
        return "knowledge" if space == "knowledge" else "pipeline"
    if name.endswith(".playbook.md"):
        return "playbook"
    if space in ("directives", "knowledge"):
        return "directive" if space == "directives" else "knowledge"
    return "directive" if "<directive" in text and _holds_directive(text) else "playbook"


def belongs_to_test(name: str) -> bool:
    """Tell whether a file is a test or is kept beside one. Such files are never pipelines or knowledge."""
    return name.lower().endswith((TEST_SUFFIX, *_KEPT_BESIDE))


def most_bytes(name: str) -> int:
    """Return how large a document with this name may be."""
    return MAX_TEST_BYTES if name.lower().endswith(TEST_SUFFIX) else MAX_DOCUMENT_BYTES


@lru_cache(maxsize=64)
def _place(name: str) -> tuple[str, str]:
    """Return the suffix of a file, and the folder directly below the last `.ai` folder on its path."""
    path = PurePath(name)
    below = [folder for here, folder in pairwise(path.parts[:-1]) if here == ".ai"]
    return path.suffix.lower(), below[-1] if below else ""


def _holds_directive(text: str) -> bool:
    """Tell whether the first `xml` fence contains a directive. A file with steps is a playbook that only shows one."""
    from quire.formats.markdown import Fence, find_fence

    if _STEP.search(text):
        return False
    fence = find_fence(text, "xml")
    if not isinstance(fence, Fence):
        return False
    at, end = fence.content.start, fence.content.end
    while before := _BEFORE_ROOT.match(text, at, end):
        at = before.end()
    return _ROOT.match(text, at, end) is not None


def read(source: Source) -> ParseResult:
    """Parse a playbook. Raises `CannotStart` for a document of another format."""
    name = format_of(source)
    if name != "playbook":
        raise CannotStart(f"{source.name} is a {name}, not a playbook")
    from quire.formats.playbook.parse import parse

    return parse(source)


def unread(error: Unreadable) -> ParseResult | None:
    """Return the findings about a playbook that is empty or too large to be read; None for other files."""
    try:
        known = error.kind in ("empty", "too_large") and format_of(Source.of("", str(error.path))) == "playbook"
    except CannotStart:
        return None
    if not known:
        return None
    from quire.formats.playbook import parse

    return parse.unread(str(error.path), error.kind)


def check(source: Source) -> tuple[Diagnostic, ...]:
    """Return all findings about a document: those of its reader, the lints, and invisible characters."""
    return invisible.added(source, _module(format_of(source)).check(source))


def all_codes() -> tuple[Code, ...]:
    """Return the codes of every format, in the order of their ids."""
    from quire.diagnostics import codes_in
    from quire.formats import suppressions

    modules = [_module(name) for name in FORMATS]
    codes = (*invisible.codes(), *codes_in(suppressions), *(code for module in modules for code in module.codes()))
    return tuple(sorted(codes, key=lambda code: code.id))


def format_of(source: Source) -> str:
    """Return the format of a document. Raises `CannotStart` for a file that Quire does not know."""
    name = sniff(source.name, source.text)
    if name is None and PurePath(source.name).suffix == "":
        name = "playbook"
    if name is None and belongs_to_test(source.name):
        raise CannotStart(f"{source.name} belongs to a test, and is not a document itself")
    if name is None:
        raise CannotStart(f"{source.name} is not a document that Quire knows: playbooks end in .md")
    return name


def _module(name: str) -> FormatModule:
    return cast("FormatModule", import_module(FORMATS[name].module))
