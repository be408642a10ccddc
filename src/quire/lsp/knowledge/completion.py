"""Complete the metadata of a knowledge file: its keys and their values."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from quire.formats.directive.knowledge import REQUIRED
from quire.lsp.answers import Completion
from quire.lsp.directive.item_words import entries, id_of
from quire.lsp.knowledge.metadata import KEYS, metadata
from quire.patterns import late_pattern
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View

_KEY = late_pattern(r"([A-Za-z_][\w-]*)?$")
_VALUE = late_pattern(r"([A-Za-z_][\w-]*)[ \t]*:[ \t]*(?:\[(?:[^\]\n]*,)?[ \t]*)?[\"']?([^\"'\[\],\n]*)$")
_ITEM = late_pattern(r"[ \t]*-[ \t]+[\"']?([^\"'\n]*)$")
_MOST_READ = 200


def complete(view: View, offset: int) -> list[Completion]:
    found, line = metadata(view), view.line_before(offset)
    if found.part is None:
        return _whole(view) if not line.strip() else []
    if not found.holds(offset):
        return []
    if (value := _VALUE.fullmatch(line)) is not None:
        return _values(view, value[1], Span(offset - len(value[2]), offset))
    if (item := _ITEM.fullmatch(line)) is not None:
        above = [one.key for one in found.entries if one.key_span.start < offset]
        return _values(view, above[-1], Span(offset - len(item[1]), offset)) if above else []
    if _KEY.fullmatch(line) is None:
        return []
    taken = {one.key for one in found.entries if not one.key_span.start <= offset <= one.key_span.end}
    rest = view.source.text[offset:].partition("\n")[0]
    return [
        Completion(
            key,
            "property",
            key if ":" in rest else f"{key}: ",
            documentation=meaning,
            order=3 if key in REQUIRED else 5,
            span=Span(offset - len(line), offset),
        )
        for key, meaning in KEYS.items()
        if key not in taken
    ]


def resolve(view: View, what: str) -> str:
    from quire.lsp.directive.completion import resolve as of_directive

    return of_directive(view, what)


def _values(view: View, key: str, span: Span) -> list[Completion]:
    match key:
        case "name":
            return [Completion(PurePath(view.path).stem, "value", detail="the name of the file", span=span)]
        case "category":
            folder = id_of(view.path).rpartition("/")[0]
            return [Completion(folder, "folder", detail="the folder of the file", span=span)] if folder else []
        case "version":
            quoted = view.source.text[span.start - 1 : span.start] in ("'", '"')
            return [Completion("1.0.0", "value", "1.0.0" if quoted else '"1.0.0"', span=span)]
        case "entry_type" | "tags":
            return [Completion(one, "enum", span=span) for one in _words(view, key)]
        case "title" | "description" | "body" | "content":
            return []
    own = id_of(view.path)
    return [
        Completion(one, "reference", detail=kind, span=span, resolve=f"item:{kind}:{one}")
        for kind in ("knowledge", "directive")
        for one in entries(view.folder, kind)
        if one != own or kind != "knowledge"
    ]


def _words(view: View, key: str) -> list[str]:
    """Return the words that other knowledge files have for a key."""
    found: dict[str, None] = {"reference": None} if key == "entry_type" else {}
    for entry in list(entries(view.folder, "knowledge").values())[:_MOST_READ]:
        other = view.folder.view(str(entry.path))
        if other is not None and other.path != view.path:
            for one in metadata(other).entries:
                if one.key == key:
                    found.update((word, None) for word, _ in one.values)
    return list(found)


def _whole(view: View) -> list[Completion]:
    """Return the metadata as a whole, for a file that has none yet."""
    name, category = PurePath(view.path).stem, id_of(view.path).rpartition("/")[0]
    lines = [f"name: {name}", "title: ${1:Title}", 'version: "1.0.0"', "entry_type: ${2:reference}"]
    lines += [f"category: {category}"] if category else []
    insert = "\n".join(["```yaml", *lines, "```", "", "${3}", ""])
    return [Completion("knowledge", "snippet", insert, snippet=True, documentation="The metadata of a knowledge file.")]
