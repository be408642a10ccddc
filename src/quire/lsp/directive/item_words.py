"""Items, inputs, outputs and tools that a directive names, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.lsp.directive.signature_state import signature_words
from quire.lsp.directive.tags import scan
from quire.lsp.markdown import code
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.views import View
    from quire.values import Value

_LONGEST = 300


def item_markdown(view: View, name: Name) -> str:
    """Return title, place and signature of an item that a name means."""
    kind = "playbook" if name.kind == "document" else name.kind
    head = f"**{kind}** {code(name.text)}"
    home = view.folder.view(name.document) if name.document else None
    if home is None:
        known = any(sign in name.text for sign in "{$*")
        return f"{head}\n\n" + ("Its id is filled in when the hook acts." if known else "It is in no space.")
    lines = [f"{head}\n", f"- {code(_shown(view, name.document))}"]
    if text := described(home):
        lines.insert(1, f"{text}\n")
    if home.format in ("directive", "knowledge"):
        lines.append(f"- {signature_words(home)}")
    if inputs := _inputs(home):
        lines.append(f"- inputs: {inputs}")
    return "\n".join(lines)


def described(home: View) -> str:
    """Return what a document says about itself."""
    if home.format == "knowledge":
        title = home.reading.metadata.get("title")
        return cut_line(title, _LONGEST) if isinstance(title, str) else ""
    if home.format == "directive":
        found = scan(home.source.text).below("metadata", "description")
        return cut_line(" ".join(found.text[0].split()), _LONGEST) if found else ""
    try:
        plan = home.document.plan if home.document else None
    except QuireError:
        return ""
    return cut_line(plan.description or plan.title, _LONGEST) if plan else ""


def _inputs(home: View) -> str:
    if home.format == "directive":
        inputs = home.reading.partial.inputs
        return ", ".join(code(one.name) + (" (required)" if one.required else "") for one in inputs if one.name)
    plan = home.document.plan if home.document and home.format != "knowledge" else None
    return ", ".join(code(one.name) + (" (required)" if one.required else "") for one in plan.inputs) if plan else ""


def _shown(view: View, path: str) -> str:
    home = str(view.folder.path)
    return path[len(home) + 1 :] if path.startswith(f"{home}/") else path


def parameter_markdown(view: View, name: Name) -> str:
    """Return the declaration of an input or an output, of this directive or of one that it calls."""
    home = view.folder.view(name.document) if name.document else view
    where = f" of {code(_shown(view, name.document))}" if name.document else ""
    head = f"**{name.kind}** {code(name.text)}{where}"
    if home is None or home.format != "directive":
        return head
    directive = home.reading.partial
    known = directive.inputs if name.kind == "input" else directive.outputs
    found = next((one for one in known if one.name == name.text), None)
    if found is None:
        return f"{head}\n\nIt is not declared."
    facts = [code(found.type), "required" if found.required else "optional"]
    if found.default is not None:
        facts.append(f"default {code(found.default)}")
    text = " ".join(found.description.split())
    return f"{head} — {', '.join(facts)}" + (f"\n\n{cut_line(text, _LONGEST)}" if text else "")


def tool_markdown(item_id: str) -> str:
    """Return description and arguments of a tool; what is known of a tool of a server is its name alone."""
    from quire.plan.vocabulary import CONTROL

    if item_id == CONTROL:
        return f"**tool** {code(item_id)}\n\nDecides how the thread goes on. It needs no permission."
    tool = next((one for one in BUILT_IN_TOOLS if one.id == item_id), None)
    if tool is None:
        if item_id.startswith("mcp/"):
            return f"**tool** {code(item_id)}\n\nA tool of an MCP server, which is not started to ask about it."
        return f"**tool** {code(item_id)}"
    lines = [f"**tool** {code(tool.id)}, also {code(tool.name)}", "", tool.description, "", f"- class: {tool.effect}"]
    return "\n".join([*lines, *schema_lines(tool.schema)])


def schema_lines(schema: Mapping[str, Value]) -> list[str]:
    """Return the arguments of a schema, one a line."""
    properties, required = schema.get("properties"), schema.get("required")
    needed = required if isinstance(required, list | tuple) else ()
    if not isinstance(properties, Mapping):
        return []
    found = []
    for name, one in properties.items():
        about = one if isinstance(one, Mapping) else {}
        type, text = about.get("type"), about.get("description")
        words = [str(type)] if isinstance(type, str) else []
        words += [f"one of {', '.join(map(str, choices))}"] if isinstance(choices := about.get("enum"), list) else []
        words += ["required"] if name in needed else []
        said = f" — {text}" if isinstance(text, str) else ""
        found.append(f"- {code(name)}" + (f" ({', '.join(words)})" if words else "") + said)
    return found
