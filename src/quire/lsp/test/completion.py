"""Complete test files: keys by their place, names of the tested document, status words, matchers, and expressions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from quire.expr.functions import FUNCTIONS
from quire.formats import belongs_to_test
from quire.formats.test.expected import EXPRESSION_NAMES
from quire.formats.test.fields import description_of, keys_at, takes_expression, takes_mapping, takes_matcher, words_at
from quire.library.document import place_of
from quire.lsp.answers import Completion, CompletionKind
from quire.lsp.test.cursor_places import Place, place_at
from quire.lsp.test.index import ITEM, Role, key_role, value_role
from quire.lsp.test.tested import TestedDocument, tested
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.plan.vocabulary import LIMITS
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.document_view import View

MOST_FILES = 200
_PLAIN = re.compile(r"(?:\.\./)*[A-Za-z_][A-Za-z0-9_./ -]*[A-Za-z0-9_]|[A-Za-z_]")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
_TOOL_NAME = re.compile(r"""\bname:[ \t]*["']?([A-Za-z0-9_./-]+)""")
_TAG = re.compile(r"\btags:[ \t]*\[([^\]\n]*)\]")
_DETAILS: dict[Role, str] = {
    "input": "input",
    "model step": "step that asks a model",
    "person step": "step that asks a person",
    "step": "step",
    "tool": "tool",
    "argument": "argument",
    "named": "named value",
    "store": "store",
    "output": "output",
    "hook": "hook",
    "limit": "limit",
    "config": "table of quire.toml",
}
_KINDS: dict[Role, CompletionKind] = {
    "tool": "function",
    "config": "module",
    "argument": "property",
    "hook": "function",
}


def complete(view: View, offset: int) -> list[Completion]:
    """Return the completions at the cursor. The text need not be valid."""
    text = view.source.text
    place = place_at(text, offset)
    document = tested(view)
    if place.kind == "text":
        return []
    if place.tag == "!expr":
        return list(_in_expression(document, text, place, offset))
    if place.kind == "key":
        keys = [*_keys(view, document, place)]
        # An item of a list may be a plain word instead of a mapping.
        return [*keys, *(_values(view, document, place) if place.path[-1:] == (ITEM,) else ())]
    return list(_values(view, document, place))


def resolve(view: View, what: str) -> str:
    """Return the documentation of a name of the tested document: `input place`, `step 2`."""
    from quire.lsp.test.hover import name_text

    role, _, name = what.partition(":")
    return name_text(tested(view), role, name, ()) if role in _DETAILS else ""


def _keys(view: View, document: TestedDocument, place: Place) -> Iterator[Completion]:
    role = key_role(place.path)
    if role is not None:
        names = _names(view, document, role, place.path, place.word.start)
        yield from (_key_of(view, place, name, role) for name in names if name not in place.present)
    for name, meaning in keys_at(place.path).items():
        if name in place.present or (role is not None and takes_matcher(place.path)):
            continue
        insert = f"{name}: " if not takes_mapping((*place.path, name)) or place.in_flow else f"{name}:"
        yield Completion(name, "property", insert, documentation=meaning, order=3, span=place.word)
    if place.path and place.path[-1] == "model" and "default" not in place.present:
        meaning = "The reply to every call that no other entry answers."
        yield Completion("default", "keyword", "default: ", documentation=meaning, order=4, span=place.word)


def _key_of(view: View, place: Place, name: str, role: Role) -> Completion:
    span, written = _written(view, place, name)
    page = f"{role}:{name}" if role in ("input", "model step", "person step", "step", "tool") else ""
    kind, detail = _KINDS.get(role, "variable"), _DETAILS.get(role, "")
    return Completion(name, kind, f"{written}: ", detail=detail, order=1, span=span, resolve=page)


def _written(view: View, place: Place, name: str) -> tuple[Span, str]:
    """Return the text to replace and the name as it is written, with quotes where YAML needs them."""
    text = view.source.text
    start, end = place.word.start, place.word.end
    quote = text[start - 1] if start > 0 and text[start - 1] in "\"'" else ""
    if quote:
        end = end + 1 if text[end : end + 1] == quote else end
        return Span(start - 1, end), f"{quote}{name}{quote}"
    plain = _PLAIN.fullmatch(name) is not None and name.lower() not in _WORDS
    return place.word, name if plain else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _names(view: View, document: TestedDocument, role: Role, path: tuple[str, ...], offset: int) -> Iterable[str]:
    match role:
        case "input":
            return document.inputs
        case "model step" | "person step" | "step":
            return document.labels(role)
        case "tool":
            return document.tools
        case "argument":
            tool = _tool_around(view.source.text, path, offset)
            facts = document.tool(tool)
            return facts.schema.get("properties", {}) if facts else ()
        case "named" | "store" | "output":
            right = {"playbook": "named", "pipeline": "store", "directive": "output"}.get(document.format)
            return document.values if role == right else ()
        case "hook":
            return document.hooks
        case "limit":
            return LIMITS
        case "config":
            from quire.workspace.setting_keys import tables

            return tables()
    return ()


def names_at(view: View, role: Role, place: Place) -> list[str]:
    """Return the names of the document that can stand at a place."""
    return list(_names(view, tested(view), role, place.path, place.word.start))


def _tool_around(text: str, path: tuple[str, ...], offset: int) -> str:
    """Return the tool whose arguments are typed: by the path of its script, or by the `name` before the `input`."""
    if "tools" in path and "tool_calls" not in path:
        return path[path.index("tools") + 1]
    matches = list(_TOOL_NAME.finditer(text, max(0, offset - 500), offset))
    return matches[-1][1] if matches else ""


def _values(view: View, document: TestedDocument, place: Place) -> Iterator[Completion]:
    role = value_role(place.path)
    kind: CompletionKind = _KINDS.get(role, "value") if role else "value"
    for name, detail in _value_names(view, document, role, place.path) if role is not None else ():
        span, written = _written(view, place, name)
        page = f"{role}:{name}" if role in ("model step", "step", "tool") else ""
        yield Completion(name, kind, written, detail=detail, order=1, span=span, resolve=page)
    description = description_of(place.path)
    for word in words_at(place.path):
        yield Completion(word, "enum", documentation=description, order=2, span=place.word)
    yield from _matchers(place)


def _matchers(place: Place) -> Iterator[Completion]:
    """Yield the matchers where an expectation stands."""
    expression = takes_expression(place.path)
    matcher = takes_matcher(place.path)
    if expression or matcher:
        insert, about = '!expr "${1:value == 1}"', description_of(("always", ITEM))
        yield Completion("!expr", "keyword", insert, snippet=True, documentation=about, order=4, span=place.word)
    if matcher:
        meaning = "The value that is kept beside the test, in its .snap.yaml."
        yield Completion("!snapshot", "keyword", documentation=meaning, order=4, span=place.word)
        for name, meaning in keys_at(("cases", ITEM, "expect", "output")).items():
            yield Completion(
                name, "keyword", f"{{{name}: ${{1}}}}", snippet=True, detail="matcher", documentation=meaning, order=3,
                span=place.word,
            )  # fmt: skip


def _value_names(view: View, document: TestedDocument, role: Role, path: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    match role:
        case "model step" | "step":
            return ((name, _DETAILS[role]) for name in document.labels(role))
        case "tool":
            return ((name, "tool") for name in document.tools)
        case "answer":
            label = path[path.index("answers" if "answers" in path else "answer") + 1]
            return ((answer, "answer") for answer in document.answers(label))
        case "input value":
            return ((word, "value") for word in _words_of(document.inputs.get(path[-1], {})))
        case "made value":
            return ((word, "value") for word in document.values.get(path[-1], ()))
        case "grant":
            return ((tool.name, "tool") for tool in BUILT_IN_TOOLS if tool.granted != "always")
        case "tag":
            words = (word.strip(" \"'") for line in _TAG.findall(view.source.text) for word in line.split(","))
            return ((word, "tag") for word in dict.fromkeys(words) if word)
        case "document":
            return _documents(view)
        case "file" | "rows" | "rubric":
            return _files(view, role)
    return ()


def _words_of(schema: object) -> list[str]:
    if not isinstance(schema, dict):
        return []
    words = [str(value) for value in schema.get("enum", ())]
    if schema.get("type") == "boolean":
        words += ["true", "false"]
    if "default" in schema and str(schema["default"]) not in words:
        words.append(str(schema["default"]))
    return words


def _documents(view: View) -> Iterator[tuple[str, str]]:
    """Yield the documents of the workspace that can run, as paths from the folder of the test."""
    folder = Path(view.path).parent
    files = (path for path in view.folder.files if not belongs_to_test(Path(path).name))
    paths = [path for path in files if place_of(Path(path), "knowledge") is None]
    names = [Path(os.path.relpath(path, folder)).as_posix() for path in paths[:MOST_FILES]]
    for name in sorted(names, key=lambda name: (name.count("/"), name)):
        yield name, "document"


def _files(view: View, role: Role) -> Iterator[tuple[str, str]]:
    """Yield the files beside the test that can stand here."""
    ends = {"rows": (".csv", ".jsonl"), "rubric": (".judge.yaml",)}.get(role, ("",))
    folder = Path(view.path).parent
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return
    for name in names[:MOST_FILES]:
        if name.endswith(ends) and name != Path(view.path).name and not name.startswith("."):
            yield name, "file"


_READ = re.compile(r"\b(inputs|named|stores|outputs|row)\.([A-Za-z0-9_]*)$")


def _in_expression(document: TestedDocument, text: str, place: Place, offset: int) -> Iterator[Completion]:
    """Yield the names that an expression can read: `inputs.place`, and the functions."""
    before = text[place.word.start : offset]
    if read := _READ.search(before):
        span = Span(offset - len(read[2]), offset)
        names = {"inputs": document.inputs, "row": ()}.get(read[1], document.values)
        for name in names:
            yield Completion(name, "variable", order=1, span=span)
        return
    start = offset
    while start > place.word.start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    for name in EXPRESSION_NAMES:
        yield Completion(name, "variable", order=1, span=Span(start, offset))
    for name, function in FUNCTIONS.items():
        yield Completion(
            name, "function", f"{name}(", detail=function.forms[0], documentation=function.meaning, order=3,
            span=Span(start, offset),
        )  # fmt: skip
