"""A document that has been read: its text, the findings about it, and its plan if it can run.

Where a document is: in which workspace, user's document list or space, and its path without links.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from operator import attrgetter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

from quire import formats
from quire.diagnostics import Diagnostic, Severity
from quire.errors import BadDocument, CannotStart
from quire.formats import invisible
from quire.plan.nodes import EXTENDED_PLAYBOOKS, SEMANTICS_VERSION
from quire.source import MAX_DOCUMENT_BYTES, Source, is_open_text, read_source, real_path
from quire.workspace.locate import is_on_shelf, user_space, workspace_of

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import ParseResult as PipelineParseResult
    from quire.formats.playbook.scan import Scan
    from quire.formats.playbook.syntax import ParseResult as PlaybookParseResult
    from quire.plan.nodes import Plan
    from quire.workspace.locate import Workspace


class Document(Struct, frozen=True):
    """A document, or one pipeline of a file of several."""

    source: Source
    format: str
    plan: Plan | None
    """None if the diagnostics contain an error."""
    diagnostics: tuple[Diagnostic, ...]
    declared: str = ""
    """The name of the pipeline, in a file of several."""
    key: str = ""
    """The name under which the file is registered."""
    id: str = ""
    """The whole name by which the library has found it; empty for a document that was read from a file or a text."""

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def sha256(self) -> str:
        return self.source.sha256

    @property
    def folder(self) -> str | None:
        """The real folder of its file; None if it was not read from a file."""
        name = self.name or "."
        return os.path.dirname(os.path.realpath(name)) if os.path.exists(name) else None  # noqa: PTH110, PTH120

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.severity is Severity.ERROR)

    def runnable(self) -> Plan:
        """Return the plan. Raises `BadDocument`, with the errors and their lines, if there is none."""
        if self.plan is None:
            lines = [f"{self.name} cannot run:"]
            for error in self.errors:
                at = self.source.position(error.span.start)
                lines.append(f"  {self.name}:{at.line}:{at.column}: {error.code.id} {error.message}")
            raise BadDocument("\n".join(lines))
        return self.plan


@lru_cache(maxsize=256)
def near_misses(source: Source, format: str, declared: str = "") -> tuple[Diagnostic, ...]:
    """Return the findings about a document that stop its run, but for those that its comments allow. `declared` is the
    name of a pipeline in a file of several."""
    stopping = [finding for finding in _near_misses(source, format, declared) if finding.stops]
    stopping.sort(key=attrgetter("span.start"))
    if not stopping or "quire:" not in source.text:
        return tuple(stopping)
    from quire.formats.suppressions import allows_of

    allows = allows_of(source)
    return tuple(finding for finding in stopping if not any(allow.hides(finding) for allow in allows))


def _near_misses(source: Source, format: str, declared: str) -> Iterable[Diagnostic]:
    match format:
        case "pipeline":
            from quire.formats.pipeline.check_references import check_texts
            from quire.formats.pipeline.fields import Fields

            fields, file = Fields(source), parse_pipelines(unnamed(source), True).file
            for pipeline in file.pipelines if file else ():
                if declared in ("", pipeline.name.text):
                    check_texts(pipeline, fields)
            return fields.diagnostics
        case "directive":
            from quire.formats.directive.check import FOREIGN_OPENINGS, foreign
            from quire.formats.directive.parse import parse as parse_directive

            if not any(opening in source.text for opening in FOREIGN_OPENINGS):
                return ()
            return foreign(parse_directive(source).partial, source)
        case _:
            from quire.formats.playbook.lint_text import lint_text

            reading, lines = parse_playbook(unnamed(source), True)
            return (*reading.diagnostics, *lint_text(reading, lines))


def load(path: str | Path) -> Document:
    """Read a document from disk. Raises `Unreadable` if there is none; errors in the document are part of the
    result."""
    return read(read_source(Path(path)))


def read(source: Source, rules: int = SEMANTICS_VERSION) -> Document:
    """Read a text as it is read under a version of the rules."""
    name = formats.format_of(source)
    if name == "knowledge":
        raise CannotStart(f"{source.name} is knowledge: directives read it, nothing runs it")
    if name == "test":
        import shlex

        raise CannotStart(f"{source.name} is a test: quire test {shlex.quote(source.name)}")
    contents = _open_contents if is_open_text(source.text) else _contents
    plan, diagnostics = contents(name, unnamed(source), rules >= EXTENDED_PLAYBOOKS)
    return Document(source, name, plan, diagnostics)


def unnamed(source: Source) -> Source:
    """Return the part of a source that decides how it is read: one text may be read under several names."""
    # The number of stored bytes matters only if there are too many.
    return Source("", source.text, source.stored if source.exceeds(MAX_DOCUMENT_BYTES) else None)


def _read_contents(name: str, source: Source, extended: bool) -> tuple[Plan | None, tuple[Diagnostic, ...]]:
    match name:
        case "pipeline":
            from quire.formats.pipeline.lower import lower as lower_pipeline

            pipelines = parse_pipelines(source, False)
            file, diagnostics = pipelines.file, pipelines.diagnostics
            plan = lower_pipeline(file, file.pipelines[0]) if file else None
        case "directive":
            from quire.formats.directive.check import errors_of
            from quire.formats.directive.lower import lower as lower_directive
            from quire.formats.directive.parse import parse

            directive = parse(source)
            diagnostics = errors_of(directive)
            fatal = any(finding.severity is Severity.ERROR for finding in diagnostics)
            plan = None if fatal else lower_directive(directive.partial)
        case "playbook":
            from quire.formats.playbook.lower import lower

            reading, _ = parse_playbook(source, extended)
            plan, diagnostics = lower(reading.playbook) if reading.playbook else None, reading.diagnostics
        case _:
            raise CannotStart(f"nothing here runs a {name}")
    return plan, invisible.added(source, diagnostics)


_contents = lru_cache(maxsize=64)(_read_contents)
"""Reads a text. Cached, because a run reads its document when it is checked, started and driven, under two names."""
_open_contents = lru_cache(maxsize=2)(_read_contents)


def parse_pipelines(source: Source, registered: bool) -> PipelineParseResult:
    """Parse a file of pipelines. `source` is `unnamed`, so that its text is parsed once for all its names."""
    parse = _parse_open if is_open_text(source.text) else _parse_pipelines
    result = parse(source, True)
    if registered or (result.file and len(result.file.pipelines) == 1):
        return result
    return parse(source, False)


def _parse_text(source: Source, registered: bool) -> PipelineParseResult:
    from quire.formats.pipeline.parse import parse

    return parse(source, registered=registered)


_parse_pipelines = lru_cache(maxsize=2_000)(_parse_text)
"""Parses a text. Cached like `_contents`, for a whole folder of registered files."""
_parse_open = lru_cache(maxsize=2)(_parse_text)
"""Parses a text that an editor has open: it soon has another one."""


@lru_cache(maxsize=2)
def parse_playbook(source: Source, extended: bool) -> tuple[PlaybookParseResult, Scan | None]:
    """Parse a playbook. `source` is `unnamed`: its text is parsed once for plan, near misses and findings."""
    from quire.formats.playbook.parse import parse_scanned

    return parse_scanned(source, extended=extended)


class Places:
    """Where documents are. Several checks may share it, as long as no file or link comes or goes between them."""

    def __init__(self) -> None:
        self._workspaces: dict[str, Workspace | None] = {}
        self._real: dict[str, Path] = {}

    def workspace(self, source: Source) -> Workspace | None:
        """Return the workspace that a run of a document would have; None for one of the user's document list."""
        folder = os.path.dirname(source.name)  # noqa: PTH120
        if folder not in self._workspaces:
            on_shelf = is_on_shelf(source.name, user_space())
            self._workspaces[folder] = None if on_shelf else workspace_of(Path(source.name).parent)
        return self._workspaces[folder]

    def real(self, path: str) -> Path:
        """Return a path without its links."""
        if path not in self._real:
            self._real[path] = real_path(Path(path))
        return self._real[path]


def place_of(path: Path, folder: str) -> tuple[Path, PurePath] | None:
    """Return the folder that contains the file's space, and the file's path in it; None for a file that is not in a
    space.

    Links are not followed: the path at which an item is found is its name.
    """
    parts = Path(os.path.abspath(path)).parts  # noqa: PTH100
    at = max((at for at, part in enumerate(parts) if part == ".ai"), default=-1)
    if at < 0 or len(parts) <= at + 2 or parts[at + 1] != folder:
        return None
    return Path(*parts[:at]), PurePath(*parts[at + 2 :])
