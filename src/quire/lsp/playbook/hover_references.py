"""Show what a playbook refers to: tools, documents, models and prompts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quire.lsp.markdown import fenced
from quire.lsp.playbook.callees import OWN, PYTHON
from quire.lsp.playbook.hover_text import escaped, paragraphs, quoted
from quire.lsp.playbook.index import tree_of
from quire.lsp.playbook.known_tools import Argument, arguments_of, authority_of, built_in
from quire.lsp.playbook.step_prompts import RUN_MODEL, resolved_model
from quire.wording import cut_off

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.views import View

LONGEST_TEXT = 2_000
_EFFECTS = {
    "read": "only reads",
    "idempotent": "writes; doing it twice is the same as once",
    "write": "changes something",
    "unknown": "may change something: the class of its effect is not known",
}
_WORDS = {"document": "playbook", "pipeline": "pipeline", "directive": "directive"}


def tool_hover(view: View, name: Name) -> str:
    """Return the facts about a tool or a connection."""
    if name.kind == "server":
        return _connection(view, name.text)
    connection = name.scope
    own = built_in(name.text) if connection == OWN else None
    if connection == OWN and own is None:
        return paragraphs(
            f"**{quoted(name.text)}** · not known", "Neither a built-in tool nor a document has this name."
        )
    head = f"**{quoted(name.text)}** · " + ("built-in tool" if own else _place(connection))
    known = arguments_of(view, connection, name.text)
    more = "" if own else "Its arguments are known when its server or module is started."
    return paragraphs(
        head,
        escaped(own.description) if own else "",
        tool_class(view, connection, name.text),
        argument_lines(known),
        more,
    )


def tool_class(view: View, connection: str, tool: str) -> str:
    """Return the class of a tool's effect, its tier, and who grants it."""
    found = authority_of(view, connection, tool)
    if found is None:
        return ""
    tier = f", tier {quoted(found.tier)}" if found.tier else ""
    missing = "a run needs `--allow`" if connection == OWN else "agree to this workspace with `quire trust`"
    granted = f"Granted by {found.granted_by}." if found.granted_by else f"Not granted: {missing}."
    return f"It {_EFFECTS.get(found.effect, found.effect)}{tier}. {granted}"


def argument_lines(known: Sequence[Argument] | None) -> str:
    """Return the arguments as a list, the required ones first."""
    lines = []
    for one in sorted(known or (), key=lambda one: not one.required):
        about = f": {escaped(one.description)}" if one.description else ""
        lines.append(f"- {quoted(one.name)} ({escaped(one.type)}{', required' if one.required else ''}){about}")
    return "\n".join(lines)


def _place(connection: str) -> str:
    return "function of this workspace" if connection == PYTHON else f"tool of the server {quoted(connection)}"


def _connection(view: View, name: str) -> str:
    settings = view.folder.settings
    if name == OWN:
        return "**`quire`** · built-in tools, and other documents by their names"
    if name == PYTHON:
        modules = ", ".join(map(quoted, settings.tools.modules)) if settings else ""
        return paragraphs("**`python`** · functions of this workspace", f"From {modules}." if modules else "")
    if settings is not None and name in settings.servers:
        return f"**{quoted(name)}** · MCP server"
    return paragraphs(f"**{quoted(name)}** · not known", "No server of `.mcp.json` has this name.")


def document_hover(view: View, name: Name) -> str:
    """Return the facts about a document that is called."""
    known = arguments_of(view, OWN, name.text)
    try:
        file = Path(name.document).relative_to(view.folder.path).as_posix()
    except ValueError:
        file = name.document
    library = view.folder.snapshot
    description = ""
    if library is not None:
        home = view.folder.view(name.document)
        tree = tree_of(home) if home is not None else None
        description = tree.description if tree else ""
    takes = argument_lines(known)
    return paragraphs(
        f"**{quoted(name.text)}** · {_WORDS[name.kind]}, {quoted(file)}",
        escaped(description),
        f"Inputs:\n\n{takes}" if takes else "It takes no inputs." if known is not None else "",
    )


def model_hover(view: View, name: Name) -> str:
    """Return the model that a name means here."""
    settings = view.folder.settings
    if settings is None:
        return ""
    kind = "agent" if name.kind == "agent" else "tier"
    model = resolved_model(settings, name.text)
    if not model:
        return paragraphs(
            f"**{quoted(name.text)}** · not known",
            "No tier and no profile of the settings has this name: the model of the run does the step.",
        )
    shown = model if model == RUN_MODEL else quoted(model)
    return f"**{quoted(name.text)}** · {kind}, means {shown}"


def prompt_hover(view: View, name: Name) -> str:
    """Return the text of a prompt."""
    home = view.folder.view(name.document)
    if home is None:
        return ""
    word = "prompt of the library" if name.kind == "prompt" else "file"
    return paragraphs(f"**{quoted(name.text)}** · {word}", fenced(cut_off(home.source.text, LONGEST_TEXT), "markdown"))
