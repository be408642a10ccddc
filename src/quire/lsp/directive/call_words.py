"""The calls that instructions spell out, `rye_execute(…)`, in words: their arguments, and those of the item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.lsp.directive.item_files import path_of_item
from quire.lsp.markdown import code
from quire.plan.built_in_tools import BUILT_IN_TOOLS, FORK
from quire.trust.capabilities import canonical

if TYPE_CHECKING:
    from quire.lsp.directive.calls import Argument, SpelledCall
    from quire.lsp.views import View
    from quire.values import Value


def action_schema(primary: str) -> tuple[str, Mapping[str, Value], tuple[str, ...]]:
    """Return description, arguments and required arguments of an action."""
    from quire.library.item_tools.connection import ACTIONS

    spec = ACTIONS[primary]
    properties, required = spec.schema.get("properties"), spec.schema.get("required")
    return (
        spec.description,
        properties if isinstance(properties, Mapping) else {},
        tuple(str(one) for one in required) if isinstance(required, list | tuple) else (),
    )


def call_markdown(primary: str, call: SpelledCall | None = None, argument: Argument | None = None) -> str:
    """Return what a call does, or the meaning of one of its arguments."""
    from quire.lsp.directive.item_words import schema_lines

    description, properties, required = action_schema(primary)
    if argument is None or call is None:
        schema: dict[str, Value] = {"properties": properties, "required": list(required)}
        return "\n".join([f"{code(f'rye_{primary}')} — {description}", "", *schema_lines(schema)])
    if not argument.within:
        about = properties.get(argument.name)
        text = about.get("description") if isinstance(about, Mapping) else None
        return f"{code(argument.name)} of {code(f'rye_{primary}')}" + (f" — {text}" if isinstance(text, str) else "")
    about = parameters_of_tool(call.value("item_id")).get(argument.name) if argument.within == "parameters" else None
    text = about.get("description") if isinstance(about, Mapping) else None
    if about is None:
        return ""
    return f"{code(argument.name)} of {code(call.value('item_id'))}" + (f" — {text}" if isinstance(text, str) else "")


def parameters_of_tool(item_id: str) -> Mapping[str, Value]:
    """Return the arguments of a tool of Quire by name; empty for another tool."""
    identity = canonical(item_id)
    if identity == FORK:
        from quire.engine.interpreter.thread.setup import FORKING

        schema: Mapping[str, Value] = FORKING.schema
    else:
        tool = next((one for one in BUILT_IN_TOOLS if one.id == identity), None)
        schema = tool.schema if tool else {}
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def parameters_of(view: View, item_type: str, item_id: str) -> dict[str, str]:
    """Return the parameters that an item takes, with their meanings."""
    if item_type == "tool":
        given = parameters_of_tool(item_id)
        return {
            name: str(about.get("description", about.get("type", ""))) if isinstance(about, Mapping) else ""
            for name, about in given.items()
        }
    path = path_of_item(view.folder, item_type, item_id)
    home = view.folder.view(path) if path else None
    if home is None:
        return {}
    if home.format == "directive":
        return {one.name: " ".join(one.description.split()) for one in home.reading.partial.inputs if one.name}
    plan = home.document.plan if home.document else None
    return {one.name: one.description for one in plan.inputs} if plan else {}
