"""Explain the place under the cursor of a knowledge file: its keys, its name, its users, and items that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Hover, Name
from quire.lsp.directive.grants import permissions
from quire.lsp.directive.item_words import id_of
from quire.lsp.knowledge.metadata import KEYS, metadata
from quire.lsp.markdown import code
from quire.trust.capabilities import Grants, capability
from quire.wording import first_of

if TYPE_CHECKING:
    from quire.lsp.views import View


def used_by(view: View) -> tuple[list[str], list[str]]:
    """Return the ids of the directives that name an item, and of those that may fetch it."""
    item_id = id_of(view.path)
    if not item_id:
        return [], []
    stem = item_id.rpartition("/")[2]
    needed = capability("fetch", "knowledge", item_id)
    naming: list[str] = []
    fetching: list[str] = []
    for other in view.folder.views():
        if other.format != "directive" or other.path == view.path:
            continue
        if stem in other.source.text and any(one.document == view.path for one in other.index.names):
            naming.append(id_of(other.path))
        elif "<fetch>" in other.source.text and Grants.of(one for one, _, _ in permissions(other)).covers(needed):
            fetching.append(id_of(other.path))
    return naming, fetching


_SHOWN = 12


def hover(view: View, offset: int) -> Hover | None:
    found = metadata(view)
    if not found.holds(offset):
        return _mention(view, offset)
    for entry in found.entries:
        if entry.key_span.start <= offset <= entry.key_span.end:
            meaning = KEYS.get(entry.key, "kept as it is, without an effect")
            return Hover(entry.key_span, f"{code(entry.key)} — {meaning}")
        for text, span in entry.values:
            if span.start <= offset <= span.end:
                if entry.key in ("name", "title"):
                    return Hover(span, _about(view))
                named = view.index.at(offset)
                if named is not None and named.document:
                    return _item(view, named)
                return Hover(span, f"{code(entry.key)} {code(text)}") if entry.key == "tags" else None
    return None


def _mention(view: View, offset: int) -> Hover | None:
    link = next((one for one in view.index.links if one.span.start <= offset <= one.span.end), None)
    if link is None:
        return None
    text = view.source.text[link.span.start : link.span.end]
    kind = link.tooltip.partition(" ")[0]
    return _item(
        view, Name("directive" if kind == "directive" else "knowledge", text, link.span, "reads", "", link.path)
    )


def _item(view: View, name: Name) -> Hover:
    from quire.lsp.directive.item_words import item_markdown

    return Hover(name.span, item_markdown(view, name))


def _about(view: View) -> str:
    from quire.lsp.directive.item_words import signature_words

    naming, fetching = used_by(view)
    lines = [f"**knowledge** {code(id_of(view.path))}", "", f"- {signature_words(view)}"]
    lines.append(f"- used by: {_listed(naming)}" if naming else "- no directive names it")
    if fetching:
        lines.append(f"- may be fetched by: {_listed(fetching)}")
    lines.append(f"- {len(view.reading.body):,} characters go into the prompt")
    return "\n".join(lines)


def _listed(names: list[str]) -> str:
    return ", ".join(first_of(names, _SHOWN))
