"""Complete the values of attributes, the texts of elements, references to inputs, and calls in a directive."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING

from quire.engine.premises import THREAD_LIMITS
from quire.lsp.answers import Completion
from quire.lsp.directive.elements import VALUES
from quire.lsp.directive.hooks import DECISION_MEANINGS, EVENTS, OPERATOR_MEANINGS, paths_of
from quire.lsp.directive.instruction_calls import CALL, LONGEST, SpelledCall, action_schema, call_at, parameters_of
from quire.lsp.directive.item_words import KINDS, entries, id_of
from quire.lsp.directive.tags import declared_inputs, declared_outputs
from quire.models.choose import MODEL_BY_KEY
from quire.patterns import late_pattern
from quire.plan.built_in_tools import BUILT_IN_TOOLS, FORK
from quire.plan.vocabulary import CONTEXT, CONTROL, DECISIONS, ITEM_TYPES, LIMIT_ALIASES, PRIMARIES
from quire.source import Span
from quire.trust.capabilities import canonical
from quire.workspace.secrets import shown_model

if TYPE_CHECKING:
    from quire.lsp.directive.tags import Attribute, Tagged
    from quire.lsp.document_view import View

_INPUT = late_pattern(r"\{input:(\w*)$")
_EXPRESSION = late_pattern(r"\$\{([^{}\n]*?)([\w.]*)$")
_MEANINGS = {**EVENTS, **OPERATOR_MEANINGS, **DECISION_MEANINGS}
ORCHESTRATOR = "rye/agent/threads/orchestrator"


def values_of(
    view: View, tag: str, attribute: str, attributes: tuple[Attribute, ...], around: list[Tagged], span: Span
) -> list[Completion]:
    """Complete the value of an attribute."""
    parent = around[-1] if around else None
    if words := VALUES.get(f"{tag}.{attribute}"):
        return _words(words, span)
    match tag, attribute:
        case "directive", "extends":
            return items(view, "directive", span)
        case "directive", "name":
            return [Completion(PurePath(view.path).stem, "value", detail="the name of the file", span=span)]
        case "directive", "version":
            return [Completion("1.0.0", "value", span=span)]
        case "model", "tier" | "fallback":
            return tiers(view, span)
        case "model", "id":
            return models(view, span)
        case "condition", "path":
            hook = next((tag for tag in reversed(around) if tag.tag == "hook"), None)
            return paths(view, hook.value("event") if hook else "", span)
        case (("action" | "execute" | "fetch" | "sign"), "item_id"):
            kind = next((written.value.strip() for written in attributes if written.name == "item_type"), "")
            return items(view, kind, span)
        case "param", "name" if parent is not None:
            return parameters(view, parent, span)
        case "param", "value" if parent is not None and parent.value("item_id") == CONTROL:
            return _words(DECISIONS, span)
        case "limits", _:
            value = THREAD_LIMITS.get(LIMIT_ALIASES.get(attribute, attribute))
            return [Completion(f"{value}", "value", detail="the default", span=span)] if value is not None else []
    return []


def _words(words: tuple[str, ...], span: Span) -> list[Completion]:
    return [Completion(word, "enum", documentation=_MEANINGS.get(word, ""), span=span) for word in words]


def texts_of(view: View, offset: int, around: list[Tagged]) -> list[Completion]:
    """Complete the text of the innermost element."""
    tag = around[-1]
    typed = view.source.text[tag.inner_start : offset]
    if tag.children or "<" in typed:
        return []
    span = Span(offset - len(typed.lstrip()), offset)
    parent = around[-2] if len(around) > 1 else None
    if parent is not None and parent.tag in PRIMARIES and tag.tag in ITEM_TYPES:
        return grants(view, parent.tag, tag.tag, span)
    if parent is not None and parent.tag == "context" and tag.tag in CONTEXT:
        return items(view, "knowledge", span)
    if tag.tag == "category":
        folder = id_of(view.path).rpartition("/")[0]
        return [Completion(folder, "folder", detail="the folder of the file", span=span)] if folder else []
    if tag.tag == "param" and tag.value("name") == "action" and parent and parent.value("item_id") == CONTROL:
        return _words(DECISIONS, span)
    if tag.tag == "param" and tag.value("name") == "directive_id":
        return items(view, "directive", span)
    return []


def references(view: View, offset: int, around: list[Tagged]) -> list[Completion]:
    """Complete `{input:` and, where it can be read, `${`."""
    text, line = view.source.text, view.line_before(offset)
    if (match := _INPUT.search(line)) is not None:
        end = "" if text.startswith(("}", ":", "|", "?"), offset) else "}"
        span = Span(offset - len(match[1]), offset)
        return [Completion(name, "variable", name + end, detail="input", span=span) for name in declared_inputs(text)]
    if (match := _EXPRESSION.search(line)) is not None:
        end = "" if "}" in text[offset : offset + 80].partition("\n")[0] else "}"
        span = Span(offset - len(match[2]), offset)
        hook = next((tag for tag in reversed(around) if tag.tag == "hook"), None)
        if hook is not None:
            return paths(view, hook.value("event"), span, end)
        names = (f"inputs.{name}" for name in declared_inputs(text))
        return [Completion(name, "variable", name + end, detail="input", span=span) for name in names]
    if line.endswith("{") and not line.endswith("${"):
        return [
            Completion(f"{{input:{name}}}", "variable", detail="input", span=Span(offset - 1, offset))
            for name in declared_inputs(text)
        ]
    return []


def items(view: View, item_type: str, span: Span) -> list[Completion]:
    """Return the ids of items of a type; tools of Quire for tools; everything for a type that is not written yet."""
    if item_type == "tool" or not item_type:
        completions = [
            Completion(tool_id, "function", detail="tool", span=span, resolve=f"tool:{tool_id}")
            for tool_id in tool_ids(view)
        ]
        if item_type:
            return completions
        kinds: tuple[str, ...] = ("directive", "knowledge")
    else:
        completions, kinds = [], (item_type,) if item_type in KINDS else ()
    own = id_of(view.path)
    for kind in kinds:
        completions += [
            Completion(id, "reference", detail=f"{kind}, {entry.space}", span=span, resolve=f"item:{kind}:{id}")
            for id, entry in entries(view.folder, kind).items()
            if not (kind == view.format and id == own)
        ]
    return completions


def tool_ids(view: View) -> list[str]:
    """Return the ids of tools that are known without starting anything."""
    settings = view.folder.settings
    servers = [f"mcp/{name}/" for name in settings.servers] if settings else []
    return [*(tool.id for tool in BUILT_IN_TOOLS), FORK, ORCHESTRATOR, CONTROL, *servers]


def grants(view: View, primary: str, item_type: str, span: Span) -> list[Completion]:
    """Return patterns for a permission: each item, and each folder of items."""
    if item_type == "tool":
        ids = [item_id for item_id in tool_ids(view) if item_id != CONTROL]
        ids += ["python/"] if view.folder.settings and view.folder.settings.tools.modules else []
    else:
        ids = list(entries(view.folder, item_type))
    folders = dict.fromkeys(f"{item_id.rpartition('/')[0]}/*" for item_id in ids if "/" in item_id)
    mark = "." if item_type == "tool" and "/" not in span.of(view.source.text) else "/"
    patterns = [*(item_id for item_id in ids if not item_id.endswith("/")), *folders]
    completions = []
    for at, pattern in enumerate(patterns):
        label = pattern.replace("/", mark) if pattern.startswith("rye/") else pattern
        granted = f"rye.{primary}.{item_type}.{pattern.replace('/', '.')}"
        order = 4 if at < len(ids) else 6
        completions.append(
            Completion(label, "value", detail=_tier(view, granted), order=order, span=span, resolve=f"grant:{granted}")
        )
    return [
        *completions,
        Completion("*", "value", detail=_tier(view, f"rye.{primary}.{item_type}.*"), order=9, span=span),
    ]


def _tier(view: View, pattern: str) -> str:
    from quire.lsp.directive.grants import tier

    risk = tier(view, pattern)
    return risk.value if risk else ""


def paths(view: View, event: str, span: Span, end: str = "") -> list[Completion]:
    """Return the values that a hook on an event can read."""
    text = view.source.text
    meanings = paths_of(event, declared_inputs(text), declared_outputs(text))
    return [Completion(path, "field", path + end, detail=meaning, span=span) for path, meaning in meanings.items()]


def parameters(view: View, action: Tagged, span: Span) -> list[Completion]:
    """Return the names of parameters that the item of an action takes."""
    if action.value("item_id") == CONTROL:
        return [Completion(name, "property", span=span) for name in ("action", "message")]
    meanings = parameters_of(view, action.value("item_type"), action.value("item_id"))
    return [Completion(name, "property", documentation=meaning, span=span) for name, meaning in meanings.items()]


def tiers(view: View, span: Span) -> list[Completion]:
    """Return the tiers of the workspace, then those that every directive may name."""
    from quire.models.tiers import FAMILIES

    settings = view.folder.settings
    own = dict(settings.models.tiers) if settings else {}
    completions = [Completion(name, "enum", detail=shown_model(spec), order=3, span=span) for name, spec in own.items()]
    return completions + [
        Completion(name, "enum", detail="a size of model", order=5 if at == 0 else 7, span=span)
        for family in FAMILIES
        for at, name in enumerate(family)
        if name not in own
    ]


def models(view: View, span: Span) -> list[Completion]:
    """Return models that are configured, or that a provider has whose key is set. An address with a password is left
    out: it does not belong into a document."""
    settings = view.folder.settings
    specs = dict.fromkeys(settings.models.tiers.values()) if settings else {}
    if settings and settings.models.default:
        specs[settings.models.default] = None
    specs |= dict.fromkeys(spec for variable, spec in MODEL_BY_KEY.items() if os.environ.get(variable))
    return [Completion(spec, "constant", span=span) for spec in specs if shown_model(spec) == spec]


_NAME = late_pattern(r"(?<![\w/.])(r|ry|rye|rye_\w*)$")
_VALUE = late_pattern(r"(\w+)\s*=\s*([\"'])([^\"'\n]*)$")
_KEY = late_pattern(r"[{,]\s*([\"']?)(\w*)$")
_PARAMETER_VALUE = late_pattern(r"[\"'](\w+)[\"']\s*:\s*[\"']([^\"'\n]*)$")
_ARGUMENT = late_pattern(r"[(,]\s*(\w*)$")


def call_around(text: str, offset: int, start: int) -> SpelledCall | None:
    """Return the call whose parentheses are around an offset, as far as it is written before that."""
    begin = max(start, offset - LONGEST)
    matches = list(CALL.finditer(text, begin, offset))
    if not matches or matches[-1].end() >= offset:
        return None
    call = call_at(text, matches[-1], offset)
    return None if call.end < offset or not call.levels else call


def in_call(view: View, offset: int, start: int) -> list[Completion] | None:
    """Complete a call; None if no call is being typed."""
    call = call_around(view.source.text, offset, start)
    if call is not None:
        return _inside(view, offset, call)
    typed = _NAME.search(view.line_before(offset))
    return _names(Span(offset - len(typed[1]), offset)) if typed else None


def _names(span: Span) -> list[Completion]:
    templates = {
        "execute": 'rye_execute(item_type="${1:tool}", item_id="${2}", parameters={${3}})',
        "fetch": 'rye_fetch(query="${1}", scope="${2:knowledge}")',
        "sign": 'rye_sign(item_type="${1:directive}", item_id="${2}")',
    }
    return [
        Completion(
            f"rye_{primary}",
            "function",
            templates[primary],
            snippet=True,
            documentation=action_schema(primary)[0],
            span=span,
        )
        for primary in PRIMARIES
    ]


def _inside(view: View, offset: int, call: SpelledCall) -> list[Completion]:
    text = view.source.text
    typed = text[call.open - 1 : offset]
    depth = call.levels
    if depth == 1 and (value := _VALUE.search(typed)) is not None:
        return _values(view, call, value[1], Span(offset - len(value[3]), offset))
    if depth == 1 and (name := _ARGUMENT.search(typed)) is not None:
        return _arguments(call, Span(offset - len(name[1]), offset), text, offset)
    if depth > 1 and (match := _PARAMETER_VALUE.search(typed)) is not None:
        starts = match[1] == "directive_id"
        return items(view, "directive", Span(offset - len(match[2]), offset)) if starts else []
    if depth > 1 and (key := _KEY.search(typed)) is not None:
        return _keys(view, call, depth, Span(offset - len(key[2]), offset), key[1], text[offset : offset + 1])
    return []


def _arguments(call: SpelledCall, span: Span, text: str, offset: int) -> list[Completion]:
    _, properties, required = action_schema(call.primary)
    taken = {argument.name for argument in call.arguments if not argument.within}
    completions = []
    for name, about in properties.items():
        if name in taken:
            continue
        kind, description = about.get("type"), about.get("description")
        value = "{${1}}" if kind == "object" else "${1}" if kind in ("integer", "boolean") else '"${1}"'
        meaning = description if isinstance(description, str) else ""
        order = 3 if name in required else 5
        has_value = text[offset : offset + 1] == "="
        insert = name if has_value else f"{name}={value}"
        completions.append(
            Completion(name, "property", insert, snippet=not has_value, documentation=meaning, order=order, span=span)
        )
    return completions


def _values(view: View, call: SpelledCall, name: str, span: Span) -> list[Completion]:
    if name in ("item_type", "scope"):
        return [Completion(word, "enum", span=span) for word in ITEM_TYPES]
    if name == "item_id":
        return items(view, call.item_type, span)
    _, properties, _ = action_schema(call.primary)
    choices = properties.get(name, {}).get("enum")
    words = ["inline", "fork"] if name == "thread" else choices if isinstance(choices, list) else []
    return [Completion(str(word), "enum", span=span) for word in words]


def _keys(view: View, call: SpelledCall, depth: int, span: Span, quote: str, after: str) -> list[Completion]:
    """Return the names of the parameters of the item that is called."""
    item_id, within = call.value("item_id"), "parameters"
    if depth > 2:
        if canonical(item_id) != FORK:
            return []
        within = "parameters.inputs"
        meanings = parameters_of(view, "directive", call.value("directive_id", "parameters"))
    else:
        meanings = parameters_of(view, call.item_type, item_id)
    taken = {argument.name for argument in call.arguments if argument.within == within}
    result = []
    for name, meaning in meanings.items():
        if name in taken:
            continue
        insert = (name + ("" if after == quote else quote)) if quote else f'"{name}": "${{1}}"'
        result.append(Completion(name, "property", insert, snippet=not quote, documentation=meaning, span=span))
    return result
