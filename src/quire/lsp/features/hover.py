"""Show what stands under the cursor: what the format says of it, the value in the last run, the page of a finding."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire.lsp.features.request_places import ask
from quire.lsp.markdown import code
from quire.lsp.name_targets import definitions_of
from quire.lsp.parameters import uri_in
from quire.lsp.prompt_files import names_at

if TYPE_CHECKING:
    from quire.lsp.answers import Hover
    from quire.lsp.session import Session
    from quire.lsp.views import View

LONGEST = 20_000
"""Characters of a hover. A longer one is cut, because editors show it in a small window."""


def hover(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    view = session.desk.view(uri_in(params))
    if view is None:
        return None
    offset = view.text.offset(params.get("position"))
    home, found = (view, ask(view, "hover", "hover", offset)) if view.format else _in_prompt(view, offset)
    if found is None:
        return None
    text = found.markdown if len(found.markdown) <= LONGEST else found.markdown[:LONGEST] + "\n\n…"
    if found.value and (last := session.desk.last_runs.markdown(home, found.value, found.part)):
        text += f"\n\n{last}"
    if "markdown" not in (session.client.value("textDocument.hover.contentFormat") or ["markdown"]):
        return {"contents": {"kind": "plaintext", "value": text}, "range": view.text.range(found.span)}
    return {"contents": {"kind": "markdown", "value": text}, "range": view.text.range(found.span)}


def _in_prompt(prompt: View, offset: int) -> tuple[View, Hover | None]:
    """Return the hover of a value that a prompt file names, with the first document that uses the file."""
    for name in names_at(prompt, offset):
        owner = prompt.folder.view(name.document)
        for path, span in definitions_of(prompt, name) if owner is not None else ():
            found: Hover | None = ask(owner, "hover", "hover", span.start) if owner and path == owner.path else None
            if owner is not None and found is not None:
                text = f"{found.markdown}\n\nA value of {code(Path(owner.path).name)}."
                return owner, replace(found, span=name.span, markdown=text)
    return prompt, None
