"""How much a playbook asks of models and people at most, in short words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.analysis.proof import Bound, Proof
    from quire.lsp.views import View

SMALL = 30_000
"""Characters of a document whose proof takes a few milliseconds."""


def bound_words(view: View, *, quick: bool = False) -> str:
    """Return the bound of a document: `≤ 6 calls, 1 question`; empty for one that cannot run. With `quick`, only if the
    proof is there already or takes no time."""
    proof = proof_of(view, quick=quick)
    if proof is None:
        return ""
    parts = [_counted(proof.bound("model_calls"), "call")]
    if not proof.bound("questions").most.is_nothing:
        parts.append(_counted(proof.bound("questions"), "question"))
    if proof.unknown:
        parts.append(f"and what {', '.join(proof.unknown[:3])} does")
    return ", ".join(parts)


def proof_of(view: View, *, quick: bool = False) -> Proof | None:
    """Return the proof of a document; with `quick`, None for a large one that was not proven yet."""
    if quick and "proof" not in vars(view) and len(view.source.text) > SMALL:
        return None
    return view.proof


def _counted(bound: Bound, word: str) -> str:
    if bound.most.is_endless:
        return f"any number of {word}s"
    count = bound.most.as_number
    if count is None:
        return f"≤ {bound.most} {word}s"
    if not count:
        return f"no {word}s"
    return f"{'' if bound.least == count else '≤ '}{count:,} {pluralize(word, count)}"
