"""Bounds of the steps of a pipeline in a few characters, from its proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.bounds import quick_proof

if TYPE_CHECKING:
    from quire.analysis.proof import Proof
    from quire.lsp.views import View


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
