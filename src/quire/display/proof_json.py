"""JSON of a proof for the API and the page: numbers with their words and footnotes, gates, flows and the lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.amount_words import written
from quire.analysis.lock.wording import told
from quire.display.flowchart_proof import effect_text
from quire.display.lock_diff import diff_data
from quire.display.proof_lines import NAMES, Footnotes, Seen, assumed_text, gate_text, proven_text, quantity_data

if TYPE_CHECKING:
    from quire.analysis.assumptions import Assumptions
    from quire.analysis.flow_paths import Flow
    from quire.analysis.gates import Gate
    from quire.analysis.quantities import Quantity
    from quire.library.lock_state import LockState
    from quire.runs.run_proof import RunProof
    from quire.runs.usage_seen import UsageSeen
    from quire.values import Value

_STANDINGS = {
    "none": "This workspace has no quire.lock.",
    "unreadable": "quire.lock cannot be read.",
    "new": "quire.lock has no entry of this document: what it may do was never reviewed.",
    "equal": "The document may do what quire.lock says, and no more.",
    "stale": "The document has changed since it was locked. It may do no more than before.",
    "wider": "The document may do more than quire.lock says.",
}


class _Kept(Footnotes):
    """Footnotes that are kept apart from the text."""

    def mark(self, *notes: str) -> str:
        super().mark(*notes)
        return ""


def numbers_data(
    quantities: Sequence[Quantity],
    sizes: Mapping[str, int],
    assumed: Assumptions | None = None,
    seen: Seen | None = None,
) -> dict[str, Value]:
    """Return the numbers of a proof by name. `words` are for people, `notes` the premises that they rest on; `sizes`
    are put into the formulas for `estimate`, and `assumed` for the words beside them."""
    guessed = assumed.sizes(size for one in quantities for size in one.most.sizes) if assumed else {}
    found: dict[str, Value] = {}
    for one in quantities:
        notes = _Kept()
        words = proven_text(one, notes)
        found[one.name] = {
            **quantity_data(one, sizes),
            "title": NAMES.get(one.name, one.name),
            "words": words,
            "notes": list(notes.notes),
            "assumed": (assumed_text(one, guessed) or None) if guessed else None,
            "seen": (seen.text(one.name) or None) if seen is not None and seen.runs else None,
        }
    return found


def proof_data(
    quantities: Sequence[Quantity], model: str, assumed: Assumptions, seen: UsageSeen, unknown: Iterable[str]
) -> dict[str, Value]:
    """Return the section `proof` of a document."""
    symbols = [size for one in quantities for size in one.most.sizes]
    sizes = assumed.sizes(symbols)
    shown = Seen(seen.runs, {name: spread.p95 for name, spread in seen.amounts.items()})
    return {
        "model": model or None,
        "numbers": numbers_data(quantities, sizes, assumed, shown),
        "assumed": dict(sizes),
        "assumed_words": str(assumed.used(symbols)) or None,
        "seen_runs": seen.runs,
        "unknown": list(unknown),
    }


def run_numbers_data(proof: RunProof) -> dict[str, Value]:
    """Return the numbers of a run that is not started yet, with the sizes of its inputs put into the formulas."""
    sized = [with_sizes(one, proof.sizes) for one in proof.quantities]
    used = {size for one in proof.quantities for size in one.most.sizes}
    return {
        "numbers": numbers_data(sized, {}),
        "formulas": {one.name: formula_text(one) for one in proof.quantities if one.most.sizes},
        "sizes": {name: count for name, count in proof.sizes.items() if name in used},
    }


def with_sizes(one: Quantity, sizes: Mapping[str, int]) -> Quantity:
    """Return a number with known sizes in its formulas. The ceiling of a number that cannot reach it is left out."""
    most = one.most.with_sizes(sizes)
    count = most.as_number
    kept = one.ceiling if one.ceiling is not None and (count is None or count > one.ceiling.most) else None
    return replace(one, most=most, about=one.about.with_sizes(sizes) if one.about is not None else None, ceiling=kept)


def formula_text(one: Quantity) -> str:
    return one.most.text(lambda count: written(count, one.unit))


def gates_data(gates: Iterable[Gate]) -> list[Value]:
    """Return the effects that change something, each with the questions before it."""
    return [
        {
            "effect": one.key,
            "step": one.way,
            "tool": one.tool,
            "class": one.effect.tool.effect,
            "tier": one.effect.tool.tier,
            "by_model": one.effect.by_model,
            "words": effect_text(one.effect),
            "verdict": one.verdict,
            "gate": gate_text(one),
            "questions": [{"step": asked.place.way, "kind": asked.kind} for asked in one.questions],
            "shown": list(one.shown),
        }
        for one in gates
    ]


def flows_data(flows: Iterable[Flow]) -> list[Value]:
    """Return the ways of text from outside, each with all places that it passes."""
    return [
        {
            "kind": one.kind,
            "text": one.text,
            "acts": one.acts,
            "step": one.place.way,
            "sink": one.sink,
            "places": [
                {"step": place.step or None, "what": place.what, "document": place.document or None}
                for place in one.trace.way()
            ],
        }
        for one in flows
    ]


def lock_data(state: LockState) -> dict[str, Value]:
    """Return how a document stands to the lock, with each difference in words."""
    found = diff_data(state.changes, state.assumed)
    changes = found["changes"]
    words = [told(change) for change in state.changes]
    listed = zip(changes, words, strict=True) if isinstance(changes, list) else ()
    return {
        "standing": state.standing,
        "words": _STANDINGS[state.standing],
        "problem": state.problem or None,
        "changes": [{**one, "words": said} for one, said in listed if isinstance(one, dict)],
    }
