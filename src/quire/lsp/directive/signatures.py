"""Show the arguments of a call that is being typed in the instructions, and the parameters of its item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.lsp.answers import Signature
from quire.lsp.directive.calls import action_schema, parameters_of
from quire.lsp.directive.completion import fence_around
from quire.lsp.directive.completion_values import call_around
from quire.lsp.markdown import code
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.lsp.directive.calls import SpelledCall
    from quire.lsp.views import View

_KEY = late_pattern(r"[\"'](\w+)[\"']\s*:[^:{}]*$")


def signature(view: View, offset: int) -> Signature | None:
    text = view.source.text
    start, end = fence_around(text)
    if start is not None and offset <= end:
        return None
    call = call_around(text, offset, end if start is not None else 0)
    if call is None:
        return None
    typed = text[call.open - 1 : offset]
    if call.levels > 1 and call.arguments and any(one.name == "parameters" for one in call.arguments):
        found = _parameters(view, call, typed)
        if found is not None:
            return found
    return _arguments(call, offset, typed)


def _arguments(call: SpelledCall, offset: int, typed: str) -> Signature:
    description, properties, required = action_schema(call.primary)
    shown = {name: name if name in required else f"{name}?" for name in properties}
    label = f"rye_{call.primary}({', '.join(shown.values())})"
    names = list(properties)
    last = next((one for one in reversed(call.arguments) if not one.within and one.name_span.start < offset), None)
    after_comma = bool(call.commas) and (last is None or call.commas[-1] >= last.name_span.start)
    if last is not None and not after_comma and last.name in names:
        active = names.index(last.name)
    else:
        taken = {one.name for one in call.arguments if not one.within}
        active = next((at for at, name in enumerate(names) if name not in taken), len(names))
    parameters = tuple((shown[name], _meaning(properties[name])) for name in names)
    return Signature(label, parameters, active, description)


def _parameters(view: View, call: SpelledCall, typed: str) -> Signature | None:
    """Return the parameters of the item that is called, as if it were a function; None if it is not known."""
    item_id = call.value("item_id")
    found = parameters_of(view, call.item_type, item_id) if item_id else {}
    if not found:
        return None
    key = _KEY.search(typed)
    names = list(found)
    taken = {one.name for one in call.arguments if one.within == "parameters"}
    if key is not None and key[1] in names:
        active = names.index(key[1])
    else:
        active = next((at for at, name in enumerate(names) if name not in taken), len(names))
    label = f"{item_id}({', '.join(names)})"
    return Signature(label, tuple(found.items()), active, f"The parameters of the {call.item_type} {code(item_id)}.")


def _meaning(about: object) -> str:
    if not isinstance(about, Mapping):
        return ""
    text, choices = about.get("description"), about.get("enum")
    if isinstance(choices, list | tuple):
        return f"one of {', '.join(map(str, choices))}" + (f"; {text}" if isinstance(text, str) else "")
    return text if isinstance(text, str) else ""
