"""The tools and documents that a playbook can call, and the parts of a call, also of one that is half typed.

No server is started and no module is imported: tools of servers are known by their names in documents and in the lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import QuireError
from quire.library.registered import playbook_name
from quire.lsp.name_targets import MOST_READ, CallCircles, CalledDocument, called_document
from quire.lsp.tool_arguments import Argument, arguments_in
from quire.patterns import late_pattern
from quire.plan.built_in_tools import built_in_tool
from quire.plan.uses import is_built_in
from quire.source import PLACEHOLDER, Span
from quire.workspace.grants import granted_by

if TYPE_CHECKING:
    from quire.library.snapshot import Snapshot
    from quire.lsp.document_view import View

OWN, PYTHON = "quire", "python"
"""The connections of Quire's own tools and documents, and of the Python tools of a workspace."""


def called_by_tool(view: View, name: str) -> CalledDocument | None:
    """Return the document that `@tool(quire, NAME)` calls; None for a built-in tool, and for a name of nothing."""
    return called_document(view.folder, name, os.path.abspath) if name and not is_built_in(name) else None


def callable_documents(view: View) -> list[tuple[str, str]]:
    """Return the names of all documents that can be called, each with its kind. Those that would lead back to this
    playbook are left out."""
    library = view.folder.snapshot
    if library is None:
        return []
    documents: list[tuple[str, str]] = []
    try:
        documents += [(name, "pipeline") for name in sorted(library.registry().pipelines)]
        here = Path(view.path)
        documents += [(name, "playbook") for name, path in library.playbooks().paths.items() if path != here]
        documents += [(item_id, "directive") for item_id in sorted(library.ids("directive"))]
    except QuireError:
        pass
    circles = _circles(view, library, reads=len(documents) <= MOST_READ)
    return [(name, kind) for name, kind in documents if kind == "directive" or not circles.is_closed_by(name)]


def _circles(view: View, library: Snapshot, *, reads: bool) -> CallCircles:
    """Return the calls that may lead back to a playbook."""
    name = playbook_name(Path(view.path), library.settings.workspace.folder)
    last = name.rpartition("/")[2]
    try:
        is_short = name != "" and (library.playbooks().find(last) or ("",))[0] == name
    except QuireError:
        is_short = False
    names = {own_name: "" for own_name in ((name, last) if is_short else (name,)) if own_name}
    return CallCircles(library, "", {"": ()}, names, reads=reads)


def prompt_path(view: View, reference: str) -> str:
    """Return the file that a reference of `@prompt` means; empty if it is missing, if a run would not read it, or if
    it is known only in a run."""
    scheme, _, where = reference.partition(":")
    if scheme == "file" and "{{" not in where:
        from quire.formats.playbook.check import leaves_folder

        home = Path(view.path).parent
        return "" if leaves_folder(where) else _file_in(home / where.replace("\\", "/"), home)
    if scheme == "library":
        homes = _prompt_homes(view)
        return next((path for folder, home in homes if (path := _file_in(folder / f"{where}.md", home))), "")
    return ""


def prompt_folders(view: View) -> list[Path]:
    """Return the folders of the prompt library, in the order in which they are searched."""
    return [folder for folder, _ in _prompt_homes(view)]


def _prompt_homes(view: View) -> Iterator[tuple[Path, Path | None]]:
    """Yield the folders of the prompt library, each with the folder that its links must not leave."""
    settings = view.folder.settings
    if settings is None:
        return
    yield settings.workspace.folder / "prompts", settings.workspace.folder
    yield from ((folder, folder) for folder in settings.prompt_folders)
    yield settings.user / "prompts", None


def _file_in(path: Path, home: Path | None) -> str:
    """Return the path of a file; empty if it is missing, or is a link that leads out of `home`."""
    try:
        inside = home is None or path.resolve().is_relative_to(home.resolve())
        return os.path.abspath(path) if inside and path.is_file() else ""  # noqa: PTH100
    except (OSError, RuntimeError, ValueError):
        return ""


_NAME = r'[^\S\n]*+(?:"([^"\n]*+)"?+|([A-Za-z0-9_.-]*+))[^\S\n]*+'
_CALL = late_pattern(rf"[^\S\n]*+@tool\({_NAME}(?:,{_NAME}(?:(,)|(?=\)|$)))?")


class ToolText(Struct, frozen=True):
    """A call of a tool as it is written. Spans are without quotes."""

    connection: str
    connection_span: Span
    tool: str
    tool_span: Span | None
    """None if the comma before the tool is missing."""
    arguments: int | None
    """The offset behind the second comma; None if it is missing."""


def read_tool(text: str, start: int, end: int) -> ToolText | None:
    """Read the call on a line, or on the part of it before the cursor; None if there is none."""
    match = _CALL.match(text, start, end)
    if not match:
        return None
    first = 1 if match[1] is not None else 2
    second = 3 if match[3] is not None else 4
    has_tool = match[second] is not None
    return ToolText(
        match[first],
        Span(*match.span(first)),
        match[second] or "",
        Span(*match.span(second)) if has_tool else None,
        match.end(5) if match[5] else None,
    )


class JsonText(Struct, frozen=True):
    """A quoted text in JSON. Its span is without quotes."""

    span: Span
    depth: int
    """The number of objects and lists around it."""
    is_key: bool
    key: str
    """The key of the innermost object that a value belongs to; empty for a key itself."""
    is_open: bool = False
    """True if the closing quote is missing."""


def json_texts(text: str, at: int, end: int) -> Iterator[JsonText]:
    """Yield the quoted texts of JSON from an offset on. The JSON may be cut off, and may hold placeholders."""
    stack: list[str] = []
    keys: list[str] = [""]
    expects_key = False
    while at < end:
        sign = text[at]
        if sign == '"':
            stop = at + 1
            while stop < end and text[stop] != '"':
                stop += 2 if text[stop] == "\\" else 1
            stop = min(stop, end)
            is_key = expects_key and bool(stack) and stack[-1] == "{"
            span = Span(at + 1, stop)
            yield JsonText(span, len(stack), is_key, "" if is_key else keys[-1], stop >= end)
            if is_key:
                keys[-1] = text[at + 1 : stop]
                expects_key = False
            at = stop
        elif sign == "{" and (hole := PLACEHOLDER.match(text, at, end)):
            at = hole.end() - 1
        elif sign in "{[":
            stack.append(sign)
            keys.append("")
            expects_key = sign == "{"
        elif sign in "}]" and stack:
            stack.pop()
            keys.pop()
            expects_key = False
        elif sign == ",":
            expects_key = bool(stack) and stack[-1] == "{"
        at += 1


def open_place(text: str, start: int, end: int) -> tuple[str, str, int]:
    """Return what is being typed at the end of a JSON text: `key`, `value` or an empty text for neither, the key of a
    value, and where the typed part begins. Only the outermost object counts."""
    texts = list(json_texts(text, start, end))
    last = texts[-1] if texts else None
    if last is not None and last.is_open and last.depth == 1:
        return ("key", "", last.span.start) if last.is_key else ("value", last.key, last.span.start)
    if last is not None and last.is_open:
        return "", "", end
    rest = text[last.span.end + 1 if last else start : end]
    bare = rest.strip()
    if last is None:
        return ("key", "", end) if bare == "{" else ("", "", end)
    if last.depth == 1 and last.is_key and bare.startswith(":"):
        typed = rest.partition(":")[2].lstrip()
        if typed and not typed.isalpha():
            return "", "", end
        return "value", last.span.of(text), end - len(typed)
    return ("key", "", end) if bare.endswith(",") and last.depth == 1 else ("", "", end)


_USE = late_pattern(r'@tool\([^\S\n]*+"?+([^",()\n]++)"?+[^\S\n]*+,[^\S\n]*+"?+([A-Za-z0-9_.-]++)')


def connections(view: View) -> list[tuple[str, str]]:
    """Return the names that can stand first in `@tool`, each with what it is."""
    settings = view.folder.settings
    names = [(OWN, "built-in tools and documents")]
    if settings is not None:
        names += [(PYTHON, "functions of this workspace")] if settings.tools.modules else []
        names += [(name, "MCP server") for name in settings.servers]
    return names


def tool_names(view: View, connection: str) -> list[str]:
    """Return the names of tools of a server that are known without asking it: from the lock, and from calls in other
    documents."""
    names: dict[str, None] = {}
    for path in view.folder.files:
        if path.endswith(".md") and (other := view.folder.view(path)) is not None and "@tool(" in other.source.text:
            names |= {match[2]: None for match in _USE.finditer(other.source.text) if match[1].strip() == connection}
    names |= {match[2]: None for match in _USE.finditer(view.source.text) if match[1].strip() == connection}
    names |= dict.fromkeys(_locked(view, connection))
    return sorted(names)


def _locked(view: View, connection: str) -> list[str]:
    settings = view.folder.settings
    if settings is None:
        return []
    from quire.library.lock_check import load_lock, lock_path

    try:
        reading = load_lock(lock_path(settings.workspace))
    except QuireError:
        return []
    tools = reading.lock.tools if reading is not None and reading.lock is not None else {}
    return [name.partition("/")[2] for name in tools if name.startswith(f"{connection}/")]


def arguments_of(view: View, connection: str, tool: str) -> tuple[Argument, ...] | None:
    """Return the arguments of a built-in tool, or the inputs of a document; None if they are not known."""
    if connection != OWN:
        return None
    own = built_in_tool(tool)
    if own is not None:
        return arguments_in(own.schema)
    library = view.folder.snapshot
    if library is None or not tool:
        return None
    from quire.library.interface import input_schema

    try:
        document = library.find(tool)
        return arguments_in(input_schema(document)) if document is not None else None
    except QuireError:
        return None


class Authority(Struct, frozen=True):
    """How dangerous a tool is, and who allows it."""

    effect: str
    """`read`, `idempotent`, `write` or `unknown`."""
    tier: str
    granted_by: str
    """In words; empty without a grant."""


def authority_of(view: View, connection: str, tool: str) -> Authority | None:
    """Return the class, the tier and the grant of a tool; None if the settings cannot be read."""
    settings = view.folder.settings
    if settings is None:
        return None
    words = view.folder.foresight.words
    try:
        needed = words.tool(connection, tool)
        grants = [granted_by(settings, capability) for capability in needed]
    except QuireError:
        return None
    return Authority(words.effect(needed[0]), words.tier(needed[0]), grants[0] if all(grants) else "")
