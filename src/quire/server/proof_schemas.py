"""JSON Schemas of proofs: numbers, gates, flows, and how a document stands to the lock. Each part may be null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.server.schemas import FLAG, NAME, TEXT, answer_of

if TYPE_CHECKING:
    from quire.values import Value

_TEXTS: Mapping[str, Value] = {"type": "array", "items": TEXT}
_OR_NULL_TEXT: Mapping[str, Value] = {"type": ["string", "null"]}
_COUNTS: Mapping[str, Value] = {"type": "object", "additionalProperties": {"type": "integer"}}

NUMBER_OF_PROOF: Mapping[str, Value] = answer_of(
    formula=_OR_NULL_TEXT,
    most={"type": ["number", "null"]},
    least={"type": "integer"},
    unit={"type": "string", "enum": ["count", "tokens", "dollars", "milliseconds"]},
    sizes=_TEXTS,
    proven=FLAG,
    premises=_TEXTS,
    reasons=_TEXTS,
    title=TEXT,
    words=TEXT,
    notes=_TEXTS,
    assumed=_OR_NULL_TEXT,
    seen=_OR_NULL_TEXT,
)
_NUMBERS: Mapping[str, Value] = {"type": "object", "additionalProperties": NUMBER_OF_PROOF}


def _or_null(schema: Mapping[str, Value]) -> Mapping[str, Value]:
    return {**schema, "type": [str(schema["type"]), "null"]}


PROOF = _or_null(
    answer_of(
        model=_OR_NULL_TEXT,
        numbers=_NUMBERS,
        assumed=_COUNTS,
        assumed_words=_OR_NULL_TEXT,
        seen_runs={"type": "integer"},
        unknown=_TEXTS,
    )
)
RUN_PROOF = _or_null(
    answer_of(numbers=_NUMBERS, formulas={"type": "object", "additionalProperties": TEXT}, sizes=_COUNTS)
)
GATES: Mapping[str, Value] = {
    "type": ["array", "null"],
    "items": answer_of(
        effect=TEXT,
        step=TEXT,
        tool=TEXT,
        **{"class": {"type": "string", "enum": ["read", "idempotent", "write"]}},
        tier=TEXT,
        by_model=FLAG,
        words=TEXT,
        verdict={"type": "string", "enum": ["gated", "ignored", "open", "never"]},
        gate=TEXT,
        questions={"type": "array", "items": answer_of(step=TEXT, kind=NAME)},
        shown=_TEXTS,
    ),
}
FLOWS: Mapping[str, Value] = {
    "type": ["array", "null"],
    "items": answer_of(
        kind={"type": "string", "enum": ["argument", "decision", "prompt", "private"]},
        text=TEXT,
        acts=FLAG,
        step=TEXT,
        sink=TEXT,
        places={"type": "array", "items": answer_of(step=_OR_NULL_TEXT, what=TEXT, document=_OR_NULL_TEXT)},
    ),
}
LOCK = _or_null(
    answer_of(
        standing={"type": "string", "enum": ["none", "unreadable", "new", "equal", "stale", "wider"]},
        words=TEXT,
        problem=_OR_NULL_TEXT,
        changes={
            "type": "array",
            "items": answer_of(
                kind=NAME,
                direction={"type": "string", "enum": ["wider", "narrower", "other"]},
                code=NAME,
                name=TEXT,
                old=_OR_NULL_TEXT,
                new=_OR_NULL_TEXT,
                example=_OR_NULL_TEXT,
                words=TEXT,
            ),
        },
    )
)
PROOF_PARTS: Mapping[str, Mapping[str, Value]] = {"proof": PROOF, "gates": GATES, "flows": FLOWS, "lock": LOCK}
"""The parts of a document that are proven, by the names of `fields`."""
