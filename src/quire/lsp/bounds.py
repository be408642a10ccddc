"""Bounds of a document in a few words, from its proof, and the lenses above every document.

A proof of a large document takes long. Hovers and hints ask for it only if it is there already or quickly made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.lsp.answers import Lens
from quire.lsp.desk import uri_of
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.analysis.proof import Proof
    from quire.analysis.quantities import Quantity
    from quire.lsp.views import View
    from quire.source import Span

QUICK = 30_000
"""Characters of a document that is analysed while the user waits: it takes a few milliseconds."""


def quick_proof(view: View) -> Proof | None:
    """Return the proof of a document that is small, or was analysed before."""
    if "proof" in vars(view) or len(view.source.text) <= QUICK:
        return view.proof
    return None


def bound_words(view: View, *, quick: bool = False) -> str:
    """Return the bound of a document: `≤ 6·|readers| calls, stopped at 100, 1 question`; empty for one that cannot run.
    With `quick`, only if the proof is there already or takes no time."""
    proof = quick_proof(view) if quick else view.proof
    if proof is None:
        return ""
    from quire.analysis.quantities import quantities

    found = {one.name: one for one in quantities(proof, view.folder.foresight.world().premises)}
    parts = [_counted(found["model_calls"], "call")]
    if not found["questions"].most.is_nothing:
        parts.append(_counted(found["questions"], "question"))
    if proof.unknown:
        parts.append(f"and what {', '.join(proof.unknown[:3])} does")
    return ", ".join(parts)


def with_price(view: View, bound: str) -> str:
    """Return the words of a bound with the most that a run costs, as far as that is known."""
    price = view.folder.prices.words(view)
    return f"{bound}, {price}" if price else bound


def document_lenses(view: View, span: Span, *, cases: int, bound: str, sign: str = "Sign") -> Iterator[Lens]:
    """Yield the lenses that every document has: run, test if there are cases, bound and sign.

    None of them costs anything: Run and Sign put a command into a terminal of the editor.
    """
    uri = uri_of(view.path)
    yield Lens(span, "Run", "quire.run", (uri,))
    if cases:
        yield Lens(span, f"Test ({cases} {pluralize('case', cases)})", "quire.test", (uri,))
    if bound:
        yield Lens(span, bound, "quire.showProof", (uri,))
    yield Lens(span, sign, "quire.sign", (uri,))


def _counted(number: Quantity, word: str) -> str:
    stop = f", stopped at {number.ceiling.most:,}" if number.ceiling is not None else ""
    if number.most.is_endless:
        return f"any number of {word}s{stop}"
    count = number.most.as_number
    if count is None:
        return f"≤ {number.most} {word}s{stop}"
    if not count:
        return f"no {word}s"
    return f"{'' if number.least == count else '≤ '}{count:,} {pluralize(word, count)}{stop}"
