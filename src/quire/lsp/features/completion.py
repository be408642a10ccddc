"""Complete what is being typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.lsp import wire
from quire.lsp.answers import MOST_COMPLETIONS, fits_typed
from quire.lsp.features.request_places import ask
from quire.lsp.parameters import uri_in
from quire.lsp.prompt_files import complete as complete_prompt
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.answers import Completion
    from quire.lsp.session import Session


def completion(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    view = session.desk.view(uri_in(params))
    if view is None:
        return None
    offset = view.text.offset(params.get("position"))
    found: list[Completion] = (
        ask(view, "completion", "complete", offset) or [] if view.format else complete_prompt(view, offset)
    )
    if not found and not view.format:
        return None
    word = Span(view.word(offset).start, offset)
    if len(found) > MOST_COMPLETIONS:
        fits = fits_typed(view.source.text[(found[0].span or word).start : offset])
        found = sorted(found, key=lambda one: not fits(one.label))
    snippets = session.client.can("textDocument.completion.completionItem.snippetSupport")
    uri = params["textDocument"]["uri"]
    items: list[wire.Json] = []
    span, where = word, view.text.range(word)
    for number, one in enumerate(found[:MOST_COMPLETIONS]):
        if (one.span or word) is not span:  # mostly all of them replace the same text
            span = one.span or word
            where = view.text.range(span)
        items.append(wire.completion(one, where, snippets=snippets, number=number, uri=uri))
    return {"isIncomplete": len(found) > MOST_COMPLETIONS, "items": items}


def resolve(session: Session, params: Mapping[str, Any]) -> dict[str, Any]:
    """Add the documentation of a completion that the user looks at."""
    item = dict(params)
    data = params.get("data")
    if isinstance(data, Mapping) and isinstance(data.get("uri"), str) and isinstance(data.get("resolve"), str):
        view = session.desk.view(data["uri"])
        text = ask(view, "completion", "resolve", data["resolve"]) if view is not None else None
        if text:
            item["documentation"] = {"kind": "markdown", "value": text}
    return item
