"""Differences of locks in words."""

from __future__ import annotations

import pytest

from quire.analysis.assumptions import assumptions_of
from quire.analysis.lock.compare import Change
from quire.analysis.lock.difference_words import told
from quire.units import Size

CREATE = "rye.execute.tool.mcp.tickets.create"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change("a", "document", "wider", "a", new="new"), "new document"),
        (Change("a", "document", "narrower", "a", old="locked"), "removed"),
        (Change("a", "plan", "other", "plan", "x", "y"), "its steps or prompts have changed"),
        (Change("a", "may", "wider", CREATE, new="elevated, write"), "may mcp.tickets.create (elevated, write)"),
        (Change("a", "may", "wider", "rye.fetch.*", new="safe, read", example="rye.fetch.knowledge.x"),
         "may fetch.* (safe, read), e.g. fetch.knowledge.x"),
        (Change("a", "may", "wider", "x*", new="none, unknown", decided=False),
         "may x* (none, unknown), which could not be compared"),
        (Change("a", "may", "other", CREATE, "write, read", "elevated, read"),
         "may mcp.tickets.create: write, read → elevated, read"),
        (Change("a", "unknown", "wider", "called document", new="gone"), "calls gone, which is not here"),
        (Change("a", "asks", "wider", "server", new="s"), "uses the server s"),
        (Change("a", "asks", "narrower", "model", old="m"), "does not use the model m"),
        (Change("a", "most", "wider", "model_calls", "1", "2·|readers|"),
         "model calls 1 → 2·|readers| (1 → 40 at readers = 20)"),
        (Change("a", "most", "wider", "money", "0.40", "0.29·|readers| + 0.40"),
         "money ≤ $0.40 → ≤ $0.29·|readers| + 0.40 (≤ $0.40 → ≤ $6.20 at readers = 20)"),
        (Change("a", "most", "wider", "money", "0.2·|readers|", "0.2·|others|"),
         "money ≤ $0.2·|readers| → ≤ $0.2·|others| (≤ $4.00 → ≤ $0.2·|others| at readers = 20)"),
        (Change("a", "most", "wider", "money", "", "unpriced"), "money not locked → unpriced"),
        (Change("a", "gate", "wider", "4 x", "2 confirm", "none"), "question before 4 x: 2 confirm → none"),
        (Change("a", "flow", "wider", "flow", new="1 a → 2 b"), "flow 1 a → 2 b"),
        (Change("a", "allow", "other", "allow", new="TA101: why"), "hides TA101: why"),
        (Change("", "tool", "wider", "t/a", "sha256:1", "sha256:2"),
         "the tool t/a has other schemas or hints than it was locked with"),
        (Change("", "price", "wider", "m", "3 15", "4 15"), "price of m: 3 15 → 4 15"),
    ],
)  # fmt: skip
def test_words(change: Change, words: str) -> None:
    assert told(change, assumptions_of({"readers": Size(20)})) == words


def test_without_bars_for_tables() -> None:
    change = Change("a", "most", "wider", "model_calls", "1", "6·|readers| + 30")
    assert told(change, bars=False) == "model calls 1 → 6·readers + 30"
