"""The first messages of a directive, its bound and its signature, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.lsp.bounds import with_price
from quire.lsp.directive.item_words import signature_words
from quire.lsp.markdown import code, fenced

if TYPE_CHECKING:
    from quire.lsp.views import View

LONGEST_PROMPT = 8_000
"""Characters of a prompt in a hover. The command that shows prompts gives all of it."""


def prompt_markdown(view: View) -> str:
    """Return the hover of a directive as a whole."""
    from quire.lsp.directive.item_words import id_of

    name = id_of(view.path)
    lines = [f"**directive** {code(name)}" if name else "**directive**", f"- {signature_words(view)}"]
    if bound := bound_words(view):
        lines.append(f"- {with_price(view, bound)}")
    return "\n".join(lines) + "\n\n" + _prompt(view)


def bound_words(view: View) -> str:
    """Return the bound of a run in one line, without its price; empty if nothing is known."""
    from quire.analysis.quantities import quantities
    from quire.display.preflight_line import preflight_line

    proof = view.proof
    if proof is None:
        return ""
    return preflight_line(quantities(proof, view.folder.foresight.world("").premises), {})


def _prompt(view: View) -> str:
    from quire.display.transcript import prompt_text
    from quire.lsp.prompts import preview_of

    try:
        found = preview_of(view, "")
    except QuireError as error:
        return f"The first message is not known: {error}"
    text = prompt_text(found.request)
    cut = text[:LONGEST_PROMPT] + ("\n…" if len(text) > LONGEST_PROMPT else "")
    return "The first messages, with stand-ins for values that only a run knows:\n\n" + fenced(cut)
