"""The tools and documents that a playbook can call: their arguments, the class of their effects, and who grants them.

No server is started and no module is imported: tools of servers are known by their names in documents and in the lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from quire.errors import QuireError
from quire.lsp.playbook.callees import OWN, PYTHON
from quire.patterns import late_pattern
from quire.plan.built_in_tools import ALIASES, BUILT_IN_TOOLS, BuiltInTool

if TYPE_CHECKING:
    from quire.lsp.views import View
    from quire.values import Value

_USE = late_pattern(r'@tool\([^\S\n]*+"?+([^",()\n]++)"?+[^\S\n]*+,[^\S\n]*+"?+([A-Za-z0-9_.-]++)')


class Argument(Struct, frozen=True):
    """An argument of a tool, or an input of a document that is called."""

    name: str
    type: str
    required: bool
    description: str = ""
    options: tuple[str, ...] = ()
    """The only values, as JSON or as texts; empty if any of its type will do."""
    is_text: bool = True


def built_in(name: str) -> BuiltInTool | None:
    """Return the built-in tool of a name or an id."""
    identity = ALIASES.get(name, name)
    return next((tool for tool in BUILT_IN_TOOLS if tool.id == identity), None)


def connections(view: View) -> list[tuple[str, str]]:
    """Return the names that can stand first in `@tool`, each with what it is."""
    settings = view.folder.settings
    found = [(OWN, "built-in tools and documents")]
    if settings is not None:
        found += [(PYTHON, "functions of this workspace")] if settings.tools.modules else []
        found += [(name, "MCP server") for name in settings.servers]
    return found


def tool_names(view: View, connection: str) -> list[str]:
    """Return the names of tools of a server that are known without asking it: from the lock, and from calls in other
    documents."""
    found: dict[str, None] = {}
    for path in view.folder.files:
        if path.endswith(".md") and (other := view.folder.view(path)) is not None and "@tool(" in other.source.text:
            found |= {one[2]: None for one in _USE.finditer(other.source.text) if one[1].strip() == connection}
    found |= {one[2]: None for one in _USE.finditer(view.source.text) if one[1].strip() == connection}
    found |= dict.fromkeys(_locked(view, connection))
    return sorted(found)


def _locked(view: View, connection: str) -> list[str]:
    settings = view.folder.settings
    if settings is None:
        return []
    from quire.library.lock_file import load_lock, lock_path

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
    own = built_in(tool)
    if own is not None:
        return _arguments(own.schema)
    library = view.folder.snapshot
    if library is None or not tool:
        return None
    from quire.library.input_schema import input_schema

    try:
        document = library.find(tool)
        return _arguments(input_schema(document)) if document is not None else None
    except QuireError:
        return None


def _arguments(schema: Mapping[str, Value]) -> tuple[Argument, ...]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return ()
    needed = required if isinstance(required, list | tuple) else ()
    return tuple(_argument(name, one, name in needed) for name, one in properties.items() if isinstance(one, Mapping))


def _argument(name: str, schema: Mapping[str, Value], required: bool) -> Argument:
    options, type = schema.get("enum"), schema.get("type")
    texts = tuple(str(one) for one in options) if isinstance(options, list | tuple) else ()
    if type == "boolean":
        texts = ("true", "false")
    elif isinstance(type, list | tuple):
        type = " or ".join(str(one) for one in type)
    description = str(schema.get("description", ""))
    words = (
        " | ".join(f'"{one}"' for one in texts) if texts and type != "boolean" else str(type or _alternatives(schema))
    )
    return Argument(name, words, required, description, texts, type != "boolean")


def _alternatives(schema: Mapping[str, Value]) -> str:
    several = schema.get("anyOf")
    if not isinstance(several, list | tuple):
        return "any value"
    kinds = [str(cast("Mapping[str, Value]", one).get("type", "")) for one in several if isinstance(one, Mapping)]
    return " or ".join(filter(None, kinds)) or "any value"


class Authority(Struct, frozen=True):
    """How dangerous a tool is, and who allows it."""

    effect: str
    """`read`, `idempotent`, `write` or `unknown`."""
    tier: str
    granted_by: str
    """In words; empty if nobody grants it."""


def authority_of(view: View, connection: str, tool: str) -> Authority | None:
    """Return the class, the tier and the grant of a tool; None if the settings cannot be read."""
    settings = view.folder.settings
    if settings is None:
        return None
    from quire.workspace.grants import granted_by

    words = view.folder.foresight.words
    try:
        needed = words.tool(connection, tool)
        grants = [granted_by(settings, one) for one in needed]
    except QuireError:
        return None
    return Authority(words.effect(needed[0]), words.tier(needed[0]), grants[0] if all(grants) else "")
