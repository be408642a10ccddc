"""One document of a workspace as the features see it: its text, its format, its tree and the workspace around it."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quire.errors import QuireError
from quire.formats import format_of
from quire.library.collect import names_steps
from quire.library.document import parse_pipelines, read, unnamed
from quire.library.registered import PIPELINES_FOLDER, in_folder
from quire.source import Source, Span, line_end, line_start, real_path

if TYPE_CHECKING:
    from quire.analysis.proof import Proof
    from quire.diagnostics import Diagnostic
    from quire.library.document import Document
    from quire.lsp.answers import Index
    from quire.lsp.desk import Folder
    from quire.lsp.document_text import EditorText
    from quire.plan.nodes import Plan


_PIPELINE = re.compile(r"""^(["']?)pipeline\1[ \t]*:""", re.MULTILINE)
_SCHEMA = re.compile(r"^schema[ \t]*:[^\n]*\n+fields[ \t]*:", re.MULTILINE)
_WORD = re.compile(r"[\w-]*", re.UNICODE)
SETTINGS_FILE = "quire.toml"


def format_at(path: str, source: Source, folder: Folder, before: str = "") -> str:
    """Return the format of a file for editors; empty for one that is not a document.

    An editor opens every Markdown and YAML file: a readme and the settings of other programs are not documents with
    errors. So the text decides, as in a search of a folder, where the name does not. `before` is the format of the
    text before, which stays while parts of it are typed anew.
    """
    if Path(path).name == SETTINGS_FILE:
        return "settings"
    try:
        format = format_of(source)
        if format == before:
            return format
        if format == "pipeline" and not _PIPELINE.search(source.text) and not _SCHEMA.search(source.text):
            registered = in_folder(real_path(Path(path)), real_path(folder.path / PIPELINES_FOLDER))
            return format if registered else ""
        if format == "playbook" and not path.endswith(".playbook.md"):
            return format if names_steps(source.text) else ""
    except QuireError:
        return ""
    return format


class View:
    """A document at one moment. Its parts are made when they are first asked for, and kept with this version."""

    def __init__(
        self,
        path: str,
        text: EditorText,
        folder: Folder,
        findings: tuple[Diagnostic, ...] = (),
        format: str = "",
    ) -> None:
        """`format` is that of the text before, if there was one."""
        self._before = format
        self.path = path
        self.text = text
        self.folder = folder
        self.findings = findings
        """The findings of the last check that was finished. They may be about an earlier text."""

    @property
    def source(self) -> Source:
        return self.text.source

    @cached_property
    def format(self) -> str:
        return format_at(self.path, self.source, self.folder, self._before)

    @cached_property
    def reading(self) -> Any:
        """The result of the reader of the format: a tree, as far as the text could be read, and findings. None for a
        format without a tree."""
        match self.format:
            case "playbook":
                from quire.formats.playbook.parse import parse as parse_playbook

                return parse_playbook(self.source)
            case "pipeline":
                return parse_pipelines(unnamed(self.source), True)
            case "directive":
                from quire.formats.directive.parse import parse as parse_directive

                return parse_directive(self.source)
            case "knowledge":
                from quire.formats.directive.knowledge import read_knowledge

                return read_knowledge(self.source)
            case "test":
                from quire.formats.test.parse import parse as parse_test

                return parse_test(self.source)
        return None

    @cached_property
    def document(self) -> Document | None:
        """The document as a run would read it, with its plan if it has no error; None for what cannot run."""
        try:
            return read(self.source)
        except QuireError:
            return None

    @property
    def plan(self) -> Plan | None:
        """The plan of the document; None for one that cannot run."""
        return self.document.plan if self.document else None

    @cached_property
    def proof(self) -> Proof | None:
        """The proof of the document; None for one that cannot run."""
        if self.plan is None:
            return None
        try:
            return self.folder.foresight.proof(self.plan, self.path)
        except QuireError:
            return None

    @cached_property
    def index(self) -> Index:
        """The names and parts of the document."""
        from quire.lsp.answers import Index
        from quire.lsp.languages import function

        make = function(self.format, "index", "index")
        return make(self) if make else Index()

    def line_before(self, offset: int) -> str:
        """Return the text of the line before an offset, for what is being typed and cannot be parsed yet."""
        text = self.source.text
        return text[line_start(text, offset) : offset]

    def line_after(self, offset: int) -> str:
        """Return the text of the line behind an offset."""
        return self.source.text[offset : line_end(self.source.text, offset)]

    def line(self, offset: int) -> Span:
        """Return the line of an offset, without its end."""
        return self.source.line_span(self.source.position(offset).line)

    def word(self, offset: int) -> Span:
        """Return the word that ends or stands at an offset."""
        text = self.source.text
        start = offset
        while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_-"):
            start -= 1
        match = _WORD.match(text, offset)
        return Span(start, match.end() if match else offset)
