"""Show the parameters of the directive that is being typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Signature
from quire.lsp.playbook.directive_forms import FORMS, Form
from quire.lsp.playbook.layout import layout_of
from quire.lsp.playbook.tools import Argument, arguments_of, open_place, read_tool
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.lsp.views import View

_OPEN = late_pattern(r"[^\S\n]*+@(output|elicit|prompt|tool|context|model)\((.*+)$")


def signature(view: View, offset: int) -> Signature | None:
    """Return the form that fits what is typed, with the parameter at the cursor; None outside of a directive."""
    before = view.line_before(offset)
    found = _OPEN.match(before)
    layout = layout_of(view)
    if not found or (layout.parts and layout.part_at(offset) is None):
        return None
    word, typed = found[1], found[2]
    if typed.endswith(")") and not _quotes_open(typed):
        return None
    if word == "tool":
        return _tool(view, offset - len(before), offset)
    form = _fitting(word, typed)
    return _written(form, _active(word, form, typed))


def _written(form: Form, active: int) -> Signature:
    parameters = tuple((one.label, one.meaning) for one in form.parameters)
    return Signature(form.label, parameters, min(active, max(0, len(parameters) - 1)), form.meaning)


def _fitting(word: str, typed: str) -> Form:
    """Return the form that the typed text belongs to."""
    forms = FORMS[word]
    if word == "output":
        name, colon, rest = typed.partition(":") if "extract" not in typed.partition(":")[0] else (typed, "", "")
        if colon:
            is_enum = rest.strip().lower().startswith(("enum", "select", "choice"))
            return forms[2] if is_enum else forms[4] if "," in rest else forms[1]
        return forms[3] if "," in name else forms[0]
    if word == "elicit":
        kind = typed.partition(",")[0].strip().lower()
        return next((form for form in forms if form.parameters[0].label == kind), forms[0])
    if word == "prompt":
        return next((form for form in forms if _begins_alike(form.parameters[0].label, typed)), forms[0])
    if word == "context":
        return forms[0] if typed.strip() and "none".startswith(typed.strip()) else forms[1]
    return forms[0]


def _begins_alike(label: str, typed: str) -> bool:
    scheme = label.partition(":")[0]
    return bool(typed) and (typed.startswith(scheme) or scheme.startswith(typed) or typed[:2] == label[:2] == "{{")


def _active(word: str, form: Form, typed: str) -> int:
    """Return the number of the parameter at the cursor."""
    commas = _commas(typed)
    last = len(form.parameters) - 1
    if word == "output":
        if not commas:
            return 1 if ":" in typed and last else 0
        return last
    if word == "elicit" and commas:
        if "default:" in typed.rpartition(",")[2]:
            return last
        return min(commas, 2 if form.parameters[0].label == "select" else last)
    return 0


def _commas(typed: str) -> int:
    """Count the commas outside of quotes."""
    return sum(part.count(",") for part in typed.split('"')[::2])


def _quotes_open(typed: str) -> bool:
    return typed.count('"') % 2 == 1


def _tool(view: View, start: int, offset: int) -> Signature | None:
    """Return the form of a call, with the arguments of its tool where they are known."""
    call = read_tool(view.source.text, start, offset)
    form = FORMS["tool"][0]
    if call is None or call.arguments is None:
        return _written(form, 1 if call is not None and call.tool_span is not None else 0)
    known = arguments_of(view, call.connection, call.tool)
    if not known:
        return _written(form, 2)
    place, key, _ = open_place(view.source.text, call.arguments, offset)
    parameters = tuple((_argument(one), one.description) for one in known)
    active = next((at for at, one in enumerate(known) if one.name == key), 0) if place == "value" else 0
    label = f"@tool({call.connection}, {call.tool}, {{{', '.join(one for one, _ in parameters)}}})"
    return Signature(label, parameters, active, "Arguments with a ? may be left out.")


def _argument(one: Argument) -> str:
    return f'"{one.name}"{"" if one.required else "?"}: {one.type}'
