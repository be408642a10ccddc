"""Answer about the place of the cursor: completions, hovers, and the parameters of a call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire.lsp import wire
from quire.lsp.answers import MOST_COMPLETIONS, code, fits_typed
from quire.lsp.features import ask, place_in
from quire.lsp.name_targets import definitions_of
from quire.lsp.prompts import complete as complete_prompt
from quire.lsp.prompts import names_at
from quire.lsp.protocol import uri_in
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.answers import Completion, Hover, Signature
    from quire.lsp.document_view import View
    from quire.lsp.session import Session


def signature_help(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    place = place_in(session, params)
    answer: Signature | None = ask(place[0], "signatures", "signature", place[1]) if place else None
    if answer is None:
        return None
    parameters = [
        {"label": label, **({"documentation": {"kind": "markdown", "value": meaning}} if meaning else {})}
        for label, meaning in answer.parameters
    ]
    active = max(0, min(answer.active, len(parameters) - 1)) if parameters else 0
    signature: dict[str, Any] = {"label": answer.label, "parameters": parameters, "activeParameter": active}
    if answer.documentation:
        signature["documentation"] = {"kind": "markdown", "value": answer.documentation}
    return {"signatures": [signature], "activeSignature": 0, "activeParameter": active}


LONGEST = 20_000
"""Characters of a hover. A longer one is cut, because editors show it in a small window."""


def hover(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    view = session.desk.view(uri_in(params))
    if view is None:
        return None
    offset = view.text.offset(params.get("position"))
    home, answer = (view, ask(view, "hover", "hover", offset)) if view.format else _in_prompt(view, offset)
    if answer is None:
        return None
    text = answer.markdown if len(answer.markdown) <= LONGEST else answer.markdown[:LONGEST] + "\n\n…"
    if answer.value and (last := session.desk.last_runs.markdown(home, answer.value, answer.part)):
        text += f"\n\n{last}"
    kinds = session.client.value("textDocument.hover.contentFormat") or ["markdown"]
    kind = "markdown" if "markdown" in kinds else "plaintext"
    return {"contents": {"kind": kind, "value": text}, "range": view.text.range(answer.span)}


def _in_prompt(prompt: View, offset: int) -> tuple[View, Hover | None]:
    """Return the hover of a value that a prompt file names, with the first document that uses the file."""
    for name in names_at(prompt, offset):
        owner = prompt.folder.view(name.document)
        for path, span in definitions_of(prompt, name) if owner is not None else ():
            answer: Hover | None = ask(owner, "hover", "hover", span.start) if owner and path == owner.path else None
            if owner is not None and answer is not None:
                text = f"{answer.markdown}\n\nA value of {code(Path(owner.path).name)}."
                return owner, replace(answer, span=name.span, markdown=text)
    return prompt, None


def completion(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    view = session.desk.view(uri_in(params))
    if view is None:
        return None
    offset = view.text.offset(params.get("position"))
    completions: list[Completion] = (
        ask(view, "completion", "complete", offset) or [] if view.format else complete_prompt(view, offset)
    )
    if not completions and not view.format:
        return None
    word = Span(view.word(offset).start, offset)
    if len(completions) > MOST_COMPLETIONS:
        fits = fits_typed(view.source.text[(completions[0].span or word).start : offset])
        completions = sorted(completions, key=lambda item: not fits(item.label))
    snippets = session.client.can("textDocument.completion.completionItem.snippetSupport")
    uri = params["textDocument"]["uri"]
    items: list[wire.Json] = []
    span, where = word, view.text.range(word)
    for number, item in enumerate(completions[:MOST_COMPLETIONS]):
        if (item.span or word) is not span:  # mostly all of them replace the same text
            span = item.span or word
            where = view.text.range(span)
        items.append(wire.completion(item, where, snippets=snippets, number=number, uri=uri))
    return {"isIncomplete": len(completions) > MOST_COMPLETIONS, "items": items}


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
