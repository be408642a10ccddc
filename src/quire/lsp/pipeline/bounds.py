"""Bounds of steps and documents in a few characters, from the proof of a document.

A proof of a large document takes long. Hovers ask for it only if it is there already or quickly made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.analysis.proof import Bound, Proof
    from quire.lsp.views import View

QUICK = 20_000
"""Characters of a document that is analysed while the user waits."""


def quick_proof(view: View) -> Proof | None:
    """Return the proof of a document that is small, or was analysed before."""
    if "proof" in view.__dict__ or len(view.source.text) <= QUICK:
        return view.proof
    return None


def step_bound(view: View, label: str) -> str:
    """Return how often a step runs or asks a model at most; empty if nothing is known, or if it is just once."""
    proof = quick_proof(view)
    if proof is None:
        return ""
    from quire.analysis.amounts import number as amount_of

    for model in proof.model_calls:
        if model.place.step.label == label and not model.place.document:
            calls = str(model.often.times(amount_of(model.calls)))
            return f"{calls} model {'call' if calls == '1' else 'calls'}"
    return next((f"{rounds} rounds" for at, rounds in fan_rounds(proof).items() if at == label), "")


def fan_rounds(proof: Proof) -> dict[str, str]:
    """Return how many rounds the fans and loops of the document itself have at most, by label."""
    return {fan.place.step.label: str(fan.rounds) for fan in proof.fans if not fan.place.document}


def document_bound(view: View) -> str:
    """Return the bound of a whole document: `≤ 6·|readers| calls`; empty if it cannot be proven."""
    proof = view.proof
    if proof is None:
        return ""
    parts = [_counted(proof.bound("model_calls"), "call")]
    if not proof.bound("questions").most.is_nothing:
        parts.append(_counted(proof.bound("questions"), "question"))
    if proof.unknown:
        parts.append(f"and what {', '.join(proof.unknown[:3])} does")
    return ", ".join(parts)


def _counted(bound: Bound, word: str) -> str:
    if bound.most.is_endless:
        return f"any number of {word}s"
    count = bound.most.as_number
    if count is None:
        return f"≤ {bound.most} {word}s"
    if not count:
        return f"no {word}s"
    return f"{'' if bound.least == count else '≤ '}{count:,} {pluralize(word, count)}"
