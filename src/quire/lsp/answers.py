"""Answers about documents, before they are written as the protocol wants them, and the Markdown in them.

The modules of a format (`quire.lsp.playbook`, `pipeline`, `directive`, `knowledge`, `test`, `settings`) return these
values. They count in offsets of the source and know nothing about the protocol; `quire.lsp.wire` writes them as JSON.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from quire.diagnostics import Edit
from quire.source import Span

if TYPE_CHECKING:
    from collections.abc import Callable

NameKind: TypeAlias = Literal[
    "input", "output", "store", "schema", "field", "step", "branch", "pipeline", "document", "directive", "knowledge",
    "prompt", "file", "tool", "server", "model", "agent", "capability", "hook", "case", "element",
]  # fmt: skip
Role: TypeAlias = Literal["declares", "writes", "reads"]
"""`declares` introduces a name, `writes` gives it a value at another place, `reads` uses it."""


class Name(Struct, frozen=True):
    """A name at one place of a document."""

    kind: NameKind
    text: str
    """The name itself, as other places of the same thing write it."""
    span: Span
    """The characters of the name, without quotes and braces."""
    role: Role
    scope: str = ""
    """Tells apart equal names of different things in one document, such as stores of two pipelines of a file. For the
    name of a document in a file of several pipelines: the name that is declared there."""
    document: str = ""
    """The absolute path of the document that the thing belongs to, or that a name of a document means; empty for a
    thing of this document, and for a name that nothing introduces."""
    renames: bool = True
    """False if this place must not be written by a rename, because it is prose or a name of the format itself, or the
    path of a file, which follows when the file is renamed."""


class Symbol(Struct, frozen=True):
    """A part of a document in its outline."""

    name: str
    kind: NameKind
    span: Span
    """The whole part."""
    selection: Span
    """The characters to show when the part is chosen."""
    detail: str = ""
    children: tuple[Symbol, ...] = ()


class Link(Struct, frozen=True):
    """A text that names a file."""

    span: Span
    path: str
    """The absolute path of the file."""
    tooltip: str = ""


class Index(Struct, frozen=True):
    """The names and parts of one document, with their places."""

    names: tuple[Name, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    links: tuple[Link, ...] = ()
    pairs: tuple[tuple[Span, Span], ...] = ()
    """Places that are always edited together: the names of an opening and a closing tag."""

    def at(self, offset: int) -> Name | None:
        """Return the name at an offset; its end counts too, because a cursor stands behind the word that was typed."""
        inside = [name for name in self.names if name.span.holds(offset)]
        return min(inside, key=lambda name: (name.span.end == offset, name.span.end - name.span.start), default=None)

    def same(self, name: Name) -> list[Name]:
        """Return all places of the same thing in this document."""
        key = _key(name)
        return [other for other in self.names if _key(other) == key]


DOCUMENTS: frozenset[NameKind] = frozenset({"pipeline", "document", "directive", "knowledge", "prompt", "file"})
"""Kinds of names that mean a whole document, which may be written in several ways."""


def kind_word(kind: NameKind) -> str:
    """Return the word for a kind of document."""
    return "playbook" if kind == "document" else kind


def _key(name: Name) -> tuple[str, ...]:
    if name.kind in DOCUMENTS and name.document:
        return (name.document, name.scope)
    return (name.kind, name.text, name.scope, name.document)


class Hover(Struct, frozen=True):
    span: Span
    markdown: str
    value: tuple[str, ...] = ()
    """Leads to a value in the last run of this document: `inputs`, `outputs` or `stores`, the name, then fields. Empty
    if the hover is not about such a value."""
    part: str = ""
    """The pipeline of the file that the value belongs to."""


CompletionKind: TypeAlias = Literal[
    "text", "function", "variable", "field", "class", "module", "property", "value", "enum", "keyword", "snippet",
    "file", "reference", "folder", "constant", "operator",
]  # fmt: skip


MOST_COMPLETIONS = 200
"""Number of entries that an editor is sent; it asks again when more has been typed. All of them fill many screens, and
writing and reading a thousand takes longer than finding them."""


def fits_typed(typed: str) -> Callable[[str], object]:
    """Return a test of whether an editor keeps a completion when so much has been typed: the letters are in its label,
    in this order. It takes linear time for any typed text."""
    letters = [re.escape(letter) for letter in typed[:_MOST_LETTERS]]
    return re.compile("".join(f"[^{letter}]*{letter}" for letter in letters), re.IGNORECASE | re.DOTALL).match


_MOST_LETTERS = 100
"""Letters that are compared."""


class Completion(Struct, frozen=True):
    """A text that can be put at the cursor."""

    label: str
    kind: CompletionKind
    insert: str = ""
    """The text to insert; empty if it is the label."""
    snippet: bool = False
    """True if `insert` has places to fill in: `${1:name}`."""
    detail: str = ""
    documentation: str = ""
    """Markdown. A long one is left out here and given by `resolve`."""
    order: int = 5
    """Smaller numbers stand first."""
    span: Span | None = None
    """The text that is replaced; None for the word before the cursor."""
    deprecated: bool = False
    resolve: str = ""
    """The argument for the `resolve` function of the format, which returns the documentation."""


def snippet(label: str, insert: str, detail: str, order: int, span: Span) -> Completion:
    """Return a completion with places to fill in."""
    return Completion(label, "snippet", insert, True, detail, order=order, span=span)


class Signature(Struct, frozen=True):
    label: str
    parameters: tuple[tuple[str, str], ...] = ()
    """Each parameter, spelled as in the label, with its meaning."""
    active: int = 0
    documentation: str = ""


TokenKind: TypeAlias = Literal[
    "keyword", "variable", "parameter", "property", "function", "method", "type", "enumMember", "string", "number",
    "operator", "comment", "macro", "decorator", "namespace", "unresolved",
]  # fmt: skip
TokenMark: TypeAlias = Literal["declaration", "readonly", "deprecated", "modification"]


class Token(Struct, frozen=True):
    """A piece of text with a meaning. Of pieces that lie in each other, the inner one counts."""

    span: Span
    kind: TokenKind
    marks: tuple[TokenMark, ...] = ()


class Hint(Struct, frozen=True):
    """A text that the editor shows inside of a line, without it being in the document."""

    offset: int
    label: str
    kind: Literal["type", "parameter"] = "type"
    tooltip: str = ""
    before: bool = False
    """True if it stands before the text at the offset, and not behind the one before it."""


class Lens(Struct, frozen=True):
    """A line above a place, which can be clicked if it has a command."""

    span: Span
    title: str
    command: str = ""
    """`quire.run`, `quire.test`, `quire.showPrompt`, `quire.sign`, `quire.showProof`; empty for a plain text."""
    arguments: tuple[str, ...] = ()


class FileEdit(Struct, frozen=True):
    """Edits of one file. A file that does not exist is made first."""

    path: str
    edits: tuple[Edit, ...]
    creates: bool = False


ActionKind: TypeAlias = Literal["quickfix", "refactor", "refactor.extract", "refactor.rewrite", "source.fixAll.quire"]


class Action(Struct, frozen=True):
    """A change that the user can choose at a place."""

    title: str
    kind: ActionKind
    edits: tuple[FileEdit, ...] = ()
    codes: tuple[str, ...] = ()
    """The codes of the findings that it corrects."""
    preferred: bool = False
    command: str = ""
    """A command of the server that makes the edits, because they take long to find; then `edits` names the files that
    it changes. Its arguments are the address of the document and `arguments`."""
    arguments: tuple[str, ...] = ()


def insertion(at: int, new: str) -> Edit:
    """Return the edit that puts a text at an offset."""
    return Edit(Span(at, at), "", new)


def change(path: str, title: str, *edits: Edit, kind: ActionKind = "quickfix", codes: tuple[str, ...] = ()) -> Action:
    """Return a change of one document, which corrects the findings with some codes."""
    return Action(title, kind, (FileEdit(path, edits),), codes)


class Fold(Struct, frozen=True):
    """Lines that can be folded, counted from 1; the first one stays."""

    first: int
    last: int
    kind: Literal["region", "comment", "imports"] = "region"


_TICKS = re.compile(r"`+")


def fenced(text: str, language: str = "") -> str:
    """Return a text in a fence that is longer than any in it."""
    ticks = "`" * max(3, 1 + max((len(ticks_in) for ticks_in in _TICKS.findall(text)), default=0))
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def code(text: str) -> str:
    """Return a text as code in a line. Line ends become spaces."""
    line = " ".join(text.split())
    ticks = "`" * (1 + max((len(run) for run in _TICKS.findall(line)), default=0))
    space = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def paragraphs(*parts: str) -> str:
    """Join the parts of a hover; empty ones are left out."""
    return "\n\n".join(part for part in parts if part)
