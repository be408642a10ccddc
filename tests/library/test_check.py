"""Playbooks for which the analysis is loaded: those that reach out, or seem to hold a key."""

from __future__ import annotations

import pytest

from quire.library.check import _reaches_out

REACHING = (
    '@tool(server, "name")',
    "@prompt(file:a.md)",
    "@model(large)",
    "-----BEGIN PRIVATE KEY-----",
    "the key sk-abc",
    "(sk_live)",
    "ghp_x",
    "gho_x",
    "xoxb-1",
    "xoxp-1",
    "AKIAIOSFODNN7",
    "AIzaSyD",
)
PLAIN = ("Ask for the task, at the risk of a list.", "a ghost", "@output(tool)", "xoxo-1", "skip", "taskA", "")


@pytest.mark.parametrize("text", REACHING)
def test_it_reaches_out(text: str) -> None:
    assert _reaches_out(f"# One\n\n## STEP 1: Do\n\n{text}\n")


@pytest.mark.parametrize("text", PLAIN)
def test_it_only_asks_a_model_and_people(text: str) -> None:
    assert not _reaches_out(f"# One\n\n## STEP 1: Do\n\n{text}\n")
