"""Say what a table, a key or a value of `quire.toml` means. Values of variables and secrets are never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Hover
from quire.lsp.markdown import code
from quire.lsp.settings.toml_places import TomlKey, tables_of, texts_in
from quire.workspace.setting_keys import SettingKey, below, key_at, takes_names

if TYPE_CHECKING:
    from quire.lsp.settings.toml_places import TomlTable
    from quire.lsp.views import View
    from quire.source import Span

_CHOSEN = {
    ("agents",): "An agent: steps of pipelines name it as their `identity`.",
    ("models", "tiers"): "A tier: a name that stands for a model.",
    ("models", "providers"): "A service that speaks as OpenAI does.",
    ("pipelines", "entries"): "A registered pipeline, by the name that documents call it by.",
    ("playbooks",): "Settings of one playbook.",
    ("servers",): "A server of `.mcp.json`, and how far you trust it.",
    ("webhooks",): "A program that is told about questions and ends of runs.",
}


def hover(view: View, offset: int) -> Hover | None:
    """Return what is known about the place under the cursor."""
    for table in tables_of(view.source.text):
        if not table.span.start <= offset <= table.span.end:
            continue
        if table.header.start <= offset <= table.header.end and table.parts:
            return _in_header(table, offset)
        for key in reversed(table.keys):
            found = _in_key(view, key, offset)
            if found is not None:
                return found
    return None


def _in_header(table: TomlTable, offset: int) -> Hover | None:
    for depth, part in enumerate(table.parts):
        if part.span.start <= offset <= part.span.end:
            told = table_text(table.path[: depth + 1])
            return Hover(part.span, told) if told else None
    return None


def table_text(path: tuple[str, ...]) -> str:
    """Return the meaning of a table: the keys that it can have; empty for one that is not known."""
    if known := key_at(path):
        return key_text(known)
    keys = below(path)
    if not keys and not takes_names(path):
        return ""
    lines = [f"**[{'.'.join(path)}]**"]
    if path[:-1] in _CHOSEN:
        lines.append(_CHOSEN[path[:-1]])
    listed = [f"- {code(name)}: {one.text if one else 'a table'}" for name, one in keys.items()]
    return "\n\n".join([*lines, *(["\n".join(listed)] if listed else [])])


def _in_key(view: View, key: TomlKey, offset: int) -> Hover | None:
    above = len(key.path) - len(key.parts)
    for depth, part in enumerate(key.parts):
        if part.span.start <= offset <= part.span.end:
            told = table_text(key.path[: above + depth + 1])
            return Hover(part.span, told) if told else None
    if not key.value.start <= offset <= key.value.end:
        return None
    known = key_at(key.path)
    span, word = next(
        ((span, word) for word, span in texts_in(view.source.text, key.value) if span.start <= offset <= span.end),
        (key.value, ""),
    )
    told = _named_text(view, known, word) if known else ""
    return _value(known, span, told)


def _value(known: SettingKey | None, span: Span, told: str) -> Hover | None:
    if told:
        return Hover(span, told)
    return Hover(span, key_text(known)) if known is not None and known.text else None


def _named_text(view: View, known: SettingKey, word: str) -> str:
    """Return what is known about a tool that a value names."""
    if known.names != "tool" or not word:
        return ""
    from quire.plan.built_in_tools import ALIASES, BUILT_IN_TOOLS

    name = word.partition("=")[0]
    tool = next((one for one in BUILT_IN_TOOLS if name == one.name or ALIASES.get(name, name) == one.id), None)
    if tool is None:
        return ""
    granted = "" if tool.granted == "on request" else f"Granted without this entry: {tool.granted}."
    detail = {"host": "=HOST[:PORT]", "place": "=PLACE", "sandbox": "=network, =unsandboxed, =env:NAME"}.get(
        tool.detail
    )
    takes = f"A detail may follow: {code(detail)}." if detail else ""
    parts = (f"**tool {code(name)}**", tool.description, f"Risk: {tool.risk}.", granted, takes)
    return "\n\n".join(part for part in parts if part)


def key_text(known: SettingKey) -> str:
    """Return the meaning and the default of a key."""
    default = f"Default: {known.default}" if known.default not in ("", "–", "needed") else ""
    needed = "It is needed." if known.default == "needed" else ""
    meaning = known.text[:1].upper() + known.text[1:]
    words = f"One of {', '.join(map(code, known.words))}." if known.words and known.words[0] not in meaning else ""
    parts = (f"**{known.key}**", meaning, default, needed, words)
    return "\n\n".join(part for part in parts if part)
