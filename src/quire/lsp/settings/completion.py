"""Complete and explain `quire.toml`: tables, keys, words, and the tools, models, agents and files that values name.

Values of variables and secrets are never shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quire.lsp.answers import Completion, Hover, code, paragraphs
from quire.lsp.settings.toml_places import TomlKey, TomlPart, TomlTable, tables_of, texts_in
from quire.models.choose import MODEL_BY_KEY
from quire.plan.built_in_tools import BUILT_IN_TOOLS, built_in_tool
from quire.source import Span
from quire.workspace.setting_keys import SETTING_KEYS, SettingKey, below, key_at, takes_names

if TYPE_CHECKING:
    from quire.lsp.document_view import View


MOST_ENTRIES = 200
_TABLES = tuple(dict.fromkeys(".".join(key.parts[:-1]) for key in SETTING_KEYS if len(key.parts) > 1))
"""The names of all tables; a part in capitals is a name that the user chooses."""
_HEADER = re.compile(r"\[+[ \t]*([^\]#\n]*)$")
_KEY = re.compile(r"[ \t]*([A-Za-z0-9_.\"'-]*)$")
_VALUE = re.compile(r"""[ \t]*([A-Za-z0-9_."'-]+)[ \t]*=[ \t]*(.*)$""")
_OPEN_KEY = re.compile(r"(?:\{|,)[ \t]*([A-Za-z0-9_-]*)$")
_INNER = re.compile(r"""([A-Za-z0-9_-]+)[ \t]*=[ \t]*("?)([^",{}]*)$""")


def complete(view: View, offset: int) -> list[Completion]:
    """Return the completions at the cursor. The text need not be TOML."""
    line = view.line_before(offset)
    tables = tables_of(view.source.text)
    if header := _HEADER.fullmatch(line.strip()):
        return list(_tables(view, header[1], offset))
    before = [table for table in tables if table.header.end <= offset and table.span.start <= offset]
    table = before[-1] if before else tables[0]
    if value := _VALUE.fullmatch(line):
        path = (*table.path, *_split(value[1]))
        return list(_in_value(view, path, value[2], offset))
    if inside := _key_around(table, offset):
        return list(_in_value(view, inside, line, offset))
    if key := _KEY.fullmatch(line):
        above = list(_headers(key[1], offset)) if line == key[1] and "." not in line else []
        return [*_keys(table, tables, key[1], offset), *above]
    return []


def resolve(view: View, what: str) -> str:
    """Return the meaning of a table or a key: `runs.expiry`."""
    return table_text(tuple(what.split(".")))


def _split(name: str) -> tuple[str, ...]:
    return tuple(part.strip(" \t\"'") for part in name.split("."))


def _key_around(table: TomlTable, offset: int) -> tuple[str, ...]:
    """Return the key whose value goes over several lines around an offset; empty if there is none."""
    inside = [key for key in table.keys if key.value.start < offset <= key.value.end]
    return inside[-1].path if inside else ()


def _tables(view: View, typed: str, offset: int) -> Iterator[Completion]:
    """Yield the names of tables; a part that the user chooses is a place to fill in."""
    span = Span(offset - len(typed), offset)
    close = "" if view.source.text[offset : offset + 1] == "]" else "]"
    for name in _TABLES:
        if any(part.isupper() for part in name.split(".")):
            numbered = iter(range(1, 9))
            parts = [f"${{{next(numbered)}:{part.lower()}}}" if part.isupper() else part for part in name.split(".")]
            yield Completion(name, "module", ".".join(parts) + close, snippet=True, order=3, span=span, resolve=name)
        else:
            yield Completion(name, "module", name + close, order=2, span=span, resolve=name)


def _headers(typed: str, offset: int) -> Iterator[Completion]:
    """Yield whole lines that begin a table, for a line in which only a word is typed."""
    span = Span(offset - len(typed), offset)
    for name in _TABLES:
        if not any(part.isupper() for part in name.split(".")):
            yield Completion(f"[{name}]", "module", order=6, span=span, resolve=name)


def _keys(table: TomlTable, tables: list[TomlTable], typed: str, offset: int) -> Iterator[Completion]:
    above, _, word = typed.rpartition(".")
    path = (*table.path, *(_split(above) if above else ()))
    here = Span(offset - len(word), offset)
    present = {
        key.path[len(path)]
        for other in tables
        for key in other.keys
        if key.path[: len(path)] == path and len(key.path) > len(path) and key.parts[-1].span.end != offset
    }
    for name, setting in below(path).items():
        if name in present:
            continue
        if setting is None and not table.parts and not above:
            continue  # tables are written with brackets
        insert = f"{name}." if setting is None else f"{name} = {_template(setting)}"
        detail = f"default: {setting.default}" if setting and setting.default not in ("", "–", "needed") else ""
        needed = setting is not None and setting.default == "needed"
        yield Completion(
            name, "module" if setting is None else "property", insert, snippet=setting is not None, detail=detail,
            documentation=setting.text if setting else "", order=1 if needed else 2, span=here,
        )  # fmt: skip


def _template(key: SettingKey) -> str:
    """Return a value to fill in, of the kind that the key has."""
    if key.default.startswith("`[") or "events" in key.key or key.key.endswith((".allow", ".folders", ".command")):
        return '["${1}"]'
    if key.words == ("true", "false"):
        return "${1:true}"
    if key.default.strip("`").replace(".", "").isdigit() or key.key.endswith(_NUMBERS):
        return "${1}"
    return '"${1}"'


_NUMBERS = (".at_once", ".turns", ".max_tokens", ".temperature", "_per_minute", ".input", ".output", ".pure_work",
            ".context_budget")  # fmt: skip


def _in_value(view: View, path: tuple[str, ...], typed: str, offset: int) -> Iterator[Completion]:
    """Yield the possible values. Inside of braces the keys of a table are completed."""
    if "{" in typed:
        inner = typed[typed.rindex("{") :]
        if named := _INNER.search(inner):
            path, typed = (*path, named[1]), named[2] + named[3]
        elif key := _OPEN_KEY.search(inner):
            for name, setting in below(path).items():
                insert = f"{name} = {_template(setting)}" if setting else f"{name} = "
                span = Span(offset - len(key[1]), offset)
                yield Completion(name, "property", insert, snippet=setting is not None, order=1, span=span,
                                 documentation=setting.text if setting else "")  # fmt: skip
            return
    setting = key_at(path)
    if setting is None:
        return
    quote = _open_quote(typed)
    word = typed[quote + 1 :] if quote >= 0 else re.search(r"[A-Za-z0-9_./:*=-]*$", typed)[0]  # type: ignore[index]
    span = Span(offset - len(word), offset)
    plain = setting.words == ("true", "false")
    for name, detail in _words(view, setting):
        insert = name if quote >= 0 or plain else f'"{name}"'
        yield Completion(name, "enum" if setting.words else "value", insert, detail=detail, order=1, span=span)


def _open_quote(typed: str) -> int:
    """Return the column of a quote that is not closed; -1 if there is none."""
    at = -1
    for column, sign in enumerate(typed):
        if sign == '"':
            at = column if at < 0 else -1
    return at


def _words(view: View, key: SettingKey) -> Iterator[tuple[str, str]]:
    yield from ((word, "") for word in key.words)
    match key.names:
        case "tool":
            yield from _tools(view)
        case "model":
            yield from ((name, "tier") for name in _names(view, ("models", "tiers")))
            yield from ((name, "") for name in dict.fromkeys(MODEL_BY_KEY.values()))
        case "agent":
            yield from ((name, "agent") for name in _names(view, ("agents",)))
        case "folder":
            yield from ((name, "folder") for name in _entries(view, folders=True))
        case "pipeline":
            yield from ((name, "file") for name in _entries(view, folders=False))


def _tools(view: View) -> Iterator[tuple[str, str]]:
    details = {"host": "=HOST", "place": "=PLACE", "sandbox": "=network"}
    for tool in BUILT_IN_TOOLS:
        yield tool.name, f"{tool.risk}{', takes ' + details[tool.detail] if tool.detail else ''}"
    settings = view.folder.settings
    for server in settings.servers if settings else ():
        yield f"{server}/*", "all tools of a server"


def _names(view: View, table: tuple[str, ...]) -> list[str]:
    """Return the names that the user has chosen in a table of this file."""
    tables = tables_of(view.source.text)
    paths = [*(other.path for other in tables), *(key.path for other in tables for key in other.keys)]
    names = dict.fromkeys(path[len(table)] for path in paths if path[: len(table)] == table != path)
    return list(names) if takes_names(table) else []


def _entries(view: View, *, folders: bool) -> list[str]:
    """Return the folders, or the YAML files, of the workspace as paths from the file of settings."""
    home = Path(view.path).parent
    if not folders:
        paths = [path for path in view.folder.files if path.endswith((".yaml", ".yml"))]
        names = [Path(os.path.relpath(path, home)).as_posix() for path in paths[:MOST_ENTRIES]]
        return [name for name in names if not name.endswith(".test.yaml")]
    try:
        folder_names = sorted(entry.name for entry in os.scandir(home) if entry.is_dir())
    except OSError:
        return []
    return [name for name in folder_names if not name.startswith(".")][:MOST_ENTRIES]


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
        if not table.span.holds(offset):
            continue
        if table.header.holds(offset) and table.parts:
            return _in_parts(table.parts, table.path, offset)
        answers = (_in_key(view, key, offset) for key in reversed(table.keys))
        if (answer := next(filter(None, answers), None)) is not None:
            return answer
    return None


def _in_parts(parts: Sequence[TomlPart], path: tuple[str, ...], offset: int) -> Hover | None:
    """Return the meaning of the part of a dotted name at an offset; `path` is that of the last part."""
    for depth, part in enumerate(parts, len(path) - len(parts) + 1):
        if part.span.holds(offset):
            text = table_text(path[:depth])
            return Hover(part.span, text) if text else None
    return None


def table_text(path: tuple[str, ...]) -> str:
    """Return the meaning of a table: the keys that it can have; empty for one that is not known."""
    if key := key_at(path):
        return key_text(key)
    keys = below(path)
    if not keys and not takes_names(path):
        return ""
    listed = "\n".join(f"- {code(name)}: {key.text if key else 'a table'}" for name, key in keys.items())
    return paragraphs(f"**[{'.'.join(path)}]**", _CHOSEN.get(path[:-1], ""), listed)


def _in_key(view: View, key: TomlKey, offset: int) -> Hover | None:
    if any(part.span.holds(offset) for part in key.parts):
        return _in_parts(key.parts, key.path, offset)
    if not key.value.holds(offset):
        return None
    setting = key_at(key.path)
    if setting is None:
        return None
    texts = texts_in(view.source.text, key.value)
    word, span = next(((word, span) for word, span in texts if span.holds(offset)), ("", key.value))
    text = _tool_text(word) if setting.names == "tool" and word else ""
    return Hover(span, text or key_text(setting)) if text or setting.text else None


def _tool_text(word: str) -> str:
    """Return what is known about a tool that a value names."""
    name = word.partition("=")[0]
    tool = built_in_tool(name)
    if tool is None:
        return ""
    granted = "" if tool.granted == "on request" else f"Granted without this entry: {tool.granted}."
    details = {"host": "=HOST[:PORT]", "place": "=PLACE", "sandbox": "=network, =unsandboxed, =env:NAME"}
    takes = f"A detail may follow: {code(details[tool.detail])}." if tool.detail else ""
    return paragraphs(f"**tool {code(name)}**", tool.description, f"Risk: {tool.risk}.", granted, takes)


def key_text(key: SettingKey) -> str:
    """Return the meaning and the default of a key."""
    default = f"Default: {key.default}" if key.default not in ("", "–", "needed") else ""
    needed = "It is needed." if key.default == "needed" else ""
    meaning = key.text[:1].upper() + key.text[1:]
    words = f"One of {', '.join(map(code, key.words))}." if key.words and key.words[0] not in meaning else ""
    return paragraphs(f"**{key.key}**", meaning, default, needed, words)
