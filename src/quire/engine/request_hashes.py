"""Compute the hash of a request, by which the journal recognizes the request in a replay."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from quire.engine.earlier_results import SystemText
from quire.engine.requests import Boundary, Halt, HumanRequest, Join, Load, ModelRequest, Offer, ToolRequest, WorkCheck
from quire.values import canonical_of_checked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quire.engine.requests import Recorded

KINDS: Mapping[type[Recorded], str] = {
    ModelRequest: "model",
    ToolRequest: "tool",
    HumanRequest: "ask",
    Load: "load",
    Offer: "offer",
    Boundary: "break",
    Join: "join",
    Halt: "halt",
    WorkCheck: "work",
}
"""The name of each kind of request in the journal and in the hash."""

_SYSTEM = b'"system":"'


def request_hash(request: Recorded) -> str:
    return hashed_request(request)[0]


def hashed_request(request: Recorded) -> tuple[str, int]:
    """Return the hash that the journal keeps, and the number of bytes that were hashed for it."""
    if isinstance(request, ModelRequest) and isinstance(request.instructions, SystemText):
        return _hashed_in_pieces(request, request.instructions)
    written = canonical_of_checked([KINDS[type(request)], request.content()])
    return hashlib.sha256(written).hexdigest(), len(written)


def _hashed_in_pieces(request: ModelRequest, instructions: SystemText) -> tuple[str, int]:
    """Compute the same hash without writing the earlier results as JSON again.

    The request is written with an empty system text, and the real one is hashed at its place. Keys are sorted, so the
    last key named `system` is the right one.
    """
    written = canonical_of_checked([KINDS[ModelRequest], request.content_with("")])
    at = written.rindex(_SYSTEM) + len(_SYSTEM)
    hashed = hashlib.sha256(written[:at])
    length = instructions.update(hashed)
    hashed.update(written[at:])
    return hashed.hexdigest(), len(written) + length
