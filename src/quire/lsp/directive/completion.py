"""Complete the typed text of a directive, and show the arguments of a call in its instructions.

The place is found by looking back from the cursor (`open_at`), so it is known in text that is not well-formed. Elements
and attributes come from `elements`, values, texts and calls from `completion_values`.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from quire.lsp.answers import Completion, Name, Signature, code
from quire.lsp.directive.completion_values import call_around, in_call, references, texts_of, values_of
from quire.lsp.directive.elements import ELEMENTS, ElementMeaning, children_of, meaning_of
from quire.lsp.directive.instruction_calls import action_schema, parameters_of
from quire.lsp.directive.item_words import KINDS, id_of, item_markdown, path_of_item, tool_markdown
from quire.lsp.directive.tags import open_at, read_attributes, scan
from quire.patterns import late_pattern
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.directive.instruction_calls import SpelledCall
    from quire.lsp.directive.tags import Attribute, Tagged
    from quire.lsp.document_view import View
    from quire.lsp.tool_arguments import Schema


_TAG_START = late_pattern(r"<(/?)([\w.-]*)$")
_OPEN_TAG = late_pattern(r"<([A-Za-z_][\w.-]*+)((?:[^<>\"']|\"[^\"<]*+\"|'[^'<]*+')*)(?:(\"|')([^\"'<>\n]*+))?$")
_BODY_ELEMENTS = ("process", "success_criteria", "step", "criterion", "execute", "fetch", "sign")
_LOOK_BACK = 3_000
"""Characters before the cursor in which the tag that is being typed begins."""


def complete(view: View, offset: int) -> list[Completion]:
    fence = scan(view.source.text).fence
    if fence is None:
        return _whole(view) if not view.line_before(offset).strip() else []
    if fence.holds(offset):
        return _in_fence(view, offset, fence.start)
    return _in_body(view, offset, fence.end) if offset > fence.end else []


def resolve(view: View, what: str) -> str:
    """Return what is known about a completion: `item:TYPE:ID`, `tool:ID` or `grant:CAPABILITY`."""
    kind, _, rest = what.partition(":")
    if kind == "tool":
        return tool_markdown(rest)
    if kind == "grant":
        from quire.lsp.directive.grants import permission_markdown

        return permission_markdown(view, rest)
    if kind == "item":
        item_type, _, item_id = rest.partition(":")
        if item_type in KINDS:
            path = path_of_item(view.folder, item_type, item_id)
            return item_markdown(view, Name(KINDS[item_type], item_id, Span(0, 0), "reads", "", path))
    return ""


# In the fence


def _in_fence(view: View, offset: int, start: int) -> list[Completion]:
    text = view.source.text
    around = open_at(text, start, offset)
    near = text[max(start, offset - _LOOK_BACK) : offset]
    if (typed := _TAG_START.search(near)) is not None:
        span = Span(offset - len(typed[2]), offset)
        return _closing(around, span, text, offset) if typed[1] else _elements(around, span, text, offset)
    if (tag := _OPEN_TAG.search(near)) is not None:
        begin = max(start, offset - _LOOK_BACK) + tag.start()
        return _in_tag(view, offset, begin, tag[1], around)
    return _in_text(view, offset, around)


def _closing(around: list[Tagged], span: Span, text: str, offset: int) -> list[Completion]:
    if not around:
        return []
    end = "" if text.startswith(">", offset) else ">"
    return [Completion(tag.tag, "keyword", tag.tag + end, order=at, span=span) for at, tag in enumerate(around[::-1])]


def _elements(around: list[Tagged], span: Span, text: str, offset: int, *, mark: str = "") -> list[Completion]:
    """Return the elements that can stand here. `mark` is `<` if it is not typed yet."""
    if not around:
        return [_element("directive", "", span, mark, text, offset)]
    parent, above = around[-1], around[-2].tag if len(around) > 1 else ""
    names = children_of(parent.tag, above)
    return [_element(name, parent.tag, span, mark, text, offset) for name in names]


def _element(name: str, parent: str, span: Span, mark: str, text: str, offset: int) -> Completion:
    meaning = meaning_of(f"{parent}>{name}" if parent else name) or ElementMeaning("")
    closed = text.startswith(">", offset)
    attributes = "".join(f' {needed}="${{{at}}}"' for at, needed in enumerate(meaning.needed, 1))
    rest = " />" if meaning.empty else f">${{{len(meaning.needed) + 1}}}</{name}>"
    insert = f"{mark}{name}" if closed else f"{mark}{name}{attributes}{rest}"
    return Completion(
        f"{mark}{name}" if mark else name,
        "class",
        insert,
        snippet=not closed,
        detail=f"in <{parent}>" if parent else "",
        documentation=meaning.meaning,
        order=7 if parent in ("directive", "metadata") and f"<{name}" in text else 5,
        span=span,
    )


def _in_tag(view: View, offset: int, begin: int, name: str, around: list[Tagged]) -> list[Completion]:
    text = view.source.text
    attributes, _ = read_attributes(text, begin + 1 + len(name), offset)
    last = attributes[-1] if attributes else None
    if last is not None and not last.quoted and text[last.value_span.start - 1] in "\"'":
        span = Span(last.value_span.start, offset)
        return values_of(view, name, last.name, attributes, around, span)
    return _attributes(view, offset, name, attributes, around)


def _attributes(
    view: View, offset: int, name: str, attributes: tuple[Attribute, ...], around: list[Tagged]
) -> list[Completion]:
    parent = around[-1].tag if around else ""
    element = meaning_of(f"{parent}>{name}" if parent else name)
    word = view.word(offset)
    if element is None or view.source.text[word.start - 1 : word.start] not in " \n\t":
        return []
    after, _ = read_attributes(view.source.text, word.end, word.end + _LOOK_BACK)
    taken = {attribute.name for attribute in attributes if attribute.value_span.end < word.start} | {
        attribute.name for attribute in after if attribute.quoted
    }
    rest = view.source.text[word.end : word.end + 1]
    return [
        Completion(
            attribute,
            "property",
            attribute if rest == "=" else f'{attribute}="${{1}}"',
            snippet=rest != "=",
            documentation=meaning,
            order=3 if attribute in element.needed else 5,
            span=Span(word.start, offset),
        )
        for attribute, meaning in element.attributes.items()
        if attribute not in taken
    ]


def _in_text(view: View, offset: int, around: list[Tagged]) -> list[Completion]:
    """Complete the text of an element."""
    if completions := references(view, offset, around):
        return completions
    if not around:
        line = view.line_before(offset)
        span = Span(offset - len(line.lstrip()), offset)
        return _elements(around, span, view.source.text, offset, mark="<") if not line.strip() else []
    completions = texts_of(view, offset, around)
    typed = view.source.text[around[-1].inner_start : offset]
    if not completions and not typed.rpartition("\n")[2].rpartition(">")[2].strip():
        completions = _elements(around, Span(offset, offset), view.source.text, offset, mark="<")
    return completions


# After the fence, and without one


def _in_body(view: View, offset: int, start: int) -> list[Completion]:
    if (completions := in_call(view, offset, start)) is not None:
        return completions
    if completions := references(view, offset, []):
        return completions
    text = view.source.text
    line = view.line_before(offset)
    if (typed := _TAG_START.search(line)) is not None:
        around = open_at(text, start, offset)
        span = Span(offset - len(typed[2]), offset)
        if typed[1]:
            return _closing(around, span, text, offset)
        return [_element(name, "", span, "", text, offset) for name in _BODY_ELEMENTS if name in ELEMENTS]
    if (tag := _OPEN_TAG.search(line)) is not None and tag[1] in ELEMENTS:
        return _in_tag(view, offset, offset - len(line) + tag.start(), tag[1], [])
    return []


def _whole(view: View) -> list[Completion]:
    """Return a whole directive, for a file that has none yet."""
    name = PurePath(view.path).stem
    category = id_of(view.path).rpartition("/")[0]
    insert = (
        f'# ${{1:What it does}}\n\n```xml\n<directive name="{name}" version="1.0.0">\n  <metadata>\n'
        f"    <description>${{2}}</description>\n    <category>{category}</category>\n    <author>${{3}}</author>\n"
        '    <model tier="${4:low}" />\n    <limits turns="${5:6}" tokens="${6:8000}" spend="${7:0.05}" />\n'
        "    <permissions>\n      <execute>\n        <tool>${8:rye.file-system.read}</tool>\n      </execute>\n"
        '    </permissions>\n  </metadata>\n\n  <inputs>\n    <input name="${9:topic}" type="string" required="true">'
        '${10}</input>\n  </inputs>\n</directive>\n```\n\n<process>\n  <step name="${11:first}">\n    ${12}\n'
        "  </step>\n</process>\n\n<success_criteria>\n  <criterion>${13}</criterion>\n</success_criteria>\n"
    )
    return [Completion("directive", "snippet", insert, snippet=True, documentation="A whole directive.")]


_KEY = late_pattern(r"[\"'](\w+)[\"']\s*:[^:{}]*$")


def signature(view: View, offset: int) -> Signature | None:
    text = view.source.text
    fence = scan(text).fence
    if fence is not None and offset <= fence.end:
        return None
    call = call_around(text, offset, fence.end if fence is not None else 0)
    if call is None:
        return None
    if call.levels > 1 and any(argument.name == "parameters" for argument in call.arguments):
        return _parameters(view, call, text[call.open - 1 : offset]) or _arguments(call, offset)
    return _arguments(call, offset)


def _arguments(call: SpelledCall, offset: int) -> Signature:
    description, properties, required = action_schema(call.primary)
    shown = {name: name if name in required else f"{name}?" for name in properties}
    label = f"rye_{call.primary}({', '.join(shown.values())})"
    names = list(properties)
    written = [argument for argument in call.arguments if not argument.within]
    last = next((argument for argument in reversed(written) if argument.name_span.start < offset), None)
    after_comma = bool(call.commas) and (last is None or call.commas[-1] >= last.name_span.start)
    if last is not None and not after_comma and last.name in names:
        active = names.index(last.name)
    else:
        taken = {argument.name for argument in written}
        active = next((at for at, name in enumerate(names) if name not in taken), len(names))
    parameters = tuple((shown[name], _meaning(properties[name])) for name in names)
    return Signature(label, parameters, active, description)


def _parameters(view: View, call: SpelledCall, typed: str) -> Signature | None:
    """Return the parameters of the item that is called, as if it were a function; None if it is not known."""
    item_id = call.value("item_id")
    meanings = parameters_of(view, call.item_type, item_id) if item_id else {}
    if not meanings:
        return None
    key = _KEY.search(typed)
    names = list(meanings)
    taken = {argument.name for argument in call.arguments if argument.within == "parameters"}
    if key is not None and key[1] in names:
        active = names.index(key[1])
    else:
        active = next((at for at, name in enumerate(names) if name not in taken), len(names))
    label = f"{item_id}({', '.join(names)})"
    return Signature(label, tuple(meanings.items()), active, f"The parameters of the {call.item_type} {code(item_id)}.")


def _meaning(about: Schema) -> str:
    text, choices = about.get("description"), about.get("enum")
    if isinstance(choices, list | tuple):
        return f"one of {', '.join(map(str, choices))}" + (f"; {text}" if isinstance(text, str) else "")
    return text if isinstance(text, str) else ""
