"""Complete and explain the metadata of a knowledge file, offer changes of it, and show its marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from quire.diagnostics import Edit, Severity
from quire.formats.directive import codes
from quire.formats.directive.knowledge import REQUIRED
from quire.lsp.answers import Action, Completion, Hover, Lens, Name, Token, TokenKind, change, code, insertion
from quire.lsp.desk import uri_of
from quire.lsp.directive.grants import permissions
from quire.lsp.directive.item_words import entries, id_of, item_markdown, signature_words
from quire.lsp.knowledge.metadata import KEYS, metadata
from quire.patterns import late_pattern
from quire.source import Span
from quire.trust.capabilities import Grants, capability
from quire.wording import first_of, pluralize

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.lsp.document_view import View


_KEY = late_pattern(r"([A-Za-z_][\w-]*)?$")
_VALUE = late_pattern(r"([A-Za-z_][\w-]*)[ \t]*:[ \t]*(?:\[(?:[^\]\n]*,)?[ \t]*)?[\"']?([^\"'\[\],\n]*)$")
_ITEM = late_pattern(r"[ \t]*-[ \t]+[\"']?([^\"'\n]*)$")
_MOST_READ = 200


def complete(view: View, offset: int) -> list[Completion]:
    read, line = metadata(view), view.line_before(offset)
    if read.part is None:
        return _whole(view) if not line.strip() else []
    if not read.holds(offset):
        return []
    if (value := _VALUE.fullmatch(line)) is not None:
        return _values(view, value[1], Span(offset - len(value[2]), offset))
    if (item := _ITEM.fullmatch(line)) is not None:
        above = [entry.key for entry in read.entries if entry.key_span.start < offset]
        return _values(view, above[-1], Span(offset - len(item[1]), offset)) if above else []
    if _KEY.fullmatch(line) is None:
        return []
    taken = {entry.key for entry in read.entries if not entry.key_span.holds(offset)}
    rest = view.line_after(offset)
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
            return [Completion(word, "enum", span=span) for word in _words(view, key)]
        case "title" | "description" | "body" | "content":
            return []
    own = id_of(view.path)
    return [
        Completion(entry, "reference", detail=kind, span=span, resolve=f"item:{kind}:{entry}")
        for kind in ("knowledge", "directive")
        for entry in entries(view.folder, kind)
        if entry != own or kind != "knowledge"
    ]


def _words(view: View, key: str) -> list[str]:
    """Return the words that other knowledge files have for a key."""
    words: dict[str, None] = {"reference": None} if key == "entry_type" else {}
    for entry in list(entries(view.folder, "knowledge").values())[:_MOST_READ]:
        other = view.folder.view(str(entry.path))
        if other is not None and other.path != view.path:
            for field in metadata(other).entries:
                if field.key == key:
                    words.update((word, None) for word, _ in field.values)
    return list(words)


def _whole(view: View) -> list[Completion]:
    """Return the metadata as a whole, for a file that has none yet."""
    name, category = PurePath(view.path).stem, id_of(view.path).rpartition("/")[0]
    lines = [f"name: {name}", "title: ${1:Title}", 'version: "1.0.0"', "entry_type: ${2:reference}"]
    lines += [f"category: {category}"] if category else []
    insert = "\n".join(["```yaml", *lines, "```", "", "${3}", ""])
    return [Completion("knowledge", "snippet", insert, snippet=True, documentation="The metadata of a knowledge file.")]


def actions(view: View, span: Span, findings: Sequence[Diagnostic]) -> list[Action]:
    return list(dict.fromkeys(_actions(view, findings)))


def _actions(view: View, findings: Sequence[Diagnostic]) -> Iterator[Action]:
    for finding in findings:
        if finding.code is codes.FIELD and (edit := _missing(view)) is not None:
            yield change(view.path, "Add the fields that signing requires", edit, codes=(finding.code.id,))
        elif finding.code is codes.PLACE and (edit := _place(view, finding)) is not None:
            yield change(
                view.path,
                f"Write {edit.new or 'no category'}, as the place of the file is",
                edit,
                codes=(finding.code.id,),
            )
    for finding in findings:
        if finding.severity is not Severity.ERROR and not finding.code.id.startswith("AL"):
            part = metadata(view).part
            if part is not None:
                at = max(view.line(finding.span.start).start, part.start)
                comment = f'# quire: allow {finding.code.id} because "say why"\n'
                yield change(
                    view.path, f"Allow {finding.code.id} because …", insertion(at, comment), codes=(finding.code.id,)
                )


def _missing(view: View) -> Edit | None:
    read = metadata(view)
    if read.part is None:
        return None
    texts = {
        "name": f"name: {PurePath(view.path).stem}",
        "title": f"title: {PurePath(view.path).stem.replace('-', ' ').replace('_', ' ').capitalize()}",
        "version": 'version: "1.0.0"',
        "entry_type": "entry_type: reference",
    }
    present = {entry.key for entry in read.entries}
    lines = [texts[name] for name in REQUIRED if name not in present]
    return insertion(read.part.start, "".join(f"{line}\n" for line in lines)) if lines else None


def _place(view: View, finding: Diagnostic) -> Edit | None:
    own = id_of(view.path)
    for entry in metadata(view).entries:
        for text, span in entry.values:
            if entry.key in ("name", "category") and finding.span.holds(span.start):
                new = PurePath(own).name if entry.key == "name" else own.rpartition("/")[0]
                return Edit(span, text, new)
    return None


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
        if stem in other.source.text and any(name.document == view.path for name in other.index.names):
            naming.append(id_of(other.path))
        elif "<fetch>" in other.source.text:
            grants = Grants.of(pattern for pattern, _, _ in permissions(other))
            fetching += [id_of(other.path)] if grants.covers(needed) else []
    return naming, fetching


_SHOWN = 12


def hover(view: View, offset: int) -> Hover | None:
    read = metadata(view)
    if not read.holds(offset):
        return _mention(view, offset)
    for entry in read.entries:
        if entry.key_span.holds(offset):
            meaning = KEYS.get(entry.key, "kept as it is, without an effect")
            return Hover(entry.key_span, f"{code(entry.key)} — {meaning}")
        for text, span in entry.values:
            if span.holds(offset):
                if entry.key in ("name", "title"):
                    return Hover(span, _about(view))
                named = view.index.at(offset)
                if named is not None and named.document:
                    return _item(view, named)
                return Hover(span, f"{code(entry.key)} {code(text)}") if entry.key == "tags" else None
    return None


def _mention(view: View, offset: int) -> Hover | None:
    link = next((link for link in view.index.links if link.span.holds(offset)), None)
    if link is None:
        return None
    text = link.span.of(view.source.text)
    kind = link.tooltip.partition(" ")[0]
    return _item(
        view, Name("directive" if kind == "directive" else "knowledge", text, link.span, "reads", "", link.path)
    )


def _item(view: View, name: Name) -> Hover:
    return Hover(name.span, item_markdown(view, name))


def _about(view: View) -> str:
    naming, fetching = used_by(view)
    lines = [f"**knowledge** {code(id_of(view.path))}", "", f"- {signature_words(view)}"]
    lines.append(f"- used by: {_listed(naming)}" if naming else "- no directive names it")
    if fetching:
        lines.append(f"- may be fetched by: {_listed(fetching)}")
    lines.append(f"- {len(view.reading.body):,} characters go into the prompt")
    return "\n".join(lines)


def _listed(names: list[str]) -> str:
    return ", ".join(first_of(names, _SHOWN))


def lenses(view: View) -> list[Lens]:
    read = metadata(view)
    if read.part is None:
        return []
    line = view.line(max(0, read.part.start - 1))
    naming, fetching = used_by(view)
    used = f"used by {len(naming)} {pluralize('directive', len(naming))}"
    if fetching:
        used += f", {len(fetching)} may fetch it"
    return [
        Lens(line, f"Sign ({signature_words(view)})", "quire.sign", (uri_of(view.path),)),
        Lens(line, used),
    ]


def tokens(view: View) -> list[Token]:
    tokens: list[Token] = []
    for entry in metadata(view).entries:
        tokens.append(Token(entry.key_span, "property"))
        kind: TokenKind = "enumMember" if entry.key in ("tags", "entry_type") else "string"
        if entry.key not in KEYS:
            continue
        tokens += [Token(span, "namespace" if entry.key == "references" else kind) for _, span in entry.values]
    return tokens
