"""Tokens before a call: the bound counts bytes and everything that is sent; the estimate counts characters."""

from __future__ import annotations

import pytest

from quire.engine.conversation import Message, Offered, ToolUse
from quire.engine.ports import ModelCall
from quire.engine.premises import TOKENS_A_CALL, TOKENS_A_MESSAGE
from quire.models.tokens import (
    TOKENS_A_TOOL,
    call_tokens_about,
    call_tokens_at_most,
    text_tokens_at_most,
    tokens_about,
    tokens_at_most,
)


@pytest.mark.parametrize(
    ("text", "most"), [("", 0), ("plain", 5), ("é", 2), ("字", 3), ("🙂", 4), ("\ud800", 3), ("0" * 9, 9)]
)
def test_a_text_has_at_most_its_bytes(text: str, most: int) -> None:
    assert text_tokens_at_most(text) == most
    assert most <= tokens_at_most(len(text))


def test_messages_and_tools_have_a_frame() -> None:
    bare = tokens_at_most(0, messages=0)
    assert bare == TOKENS_A_CALL
    assert tokens_at_most(10, messages=2, tools=3) == 40 + bare + 2 * TOKENS_A_MESSAGE + 3 * TOKENS_A_TOOL


@pytest.mark.parametrize(("characters", "about"), [(0, 1), (2, 1), (3, 2), (3_000, 1_001)])
def test_an_estimate_takes_three_characters(characters: int, about: int) -> None:
    assert tokens_about(characters) == about


LONG = "é" * 1_000
USE = ToolUse("call_1", "look", {"path": LONG})
TOOL = Offered("look", LONG, {"type": "object", "title": LONG})


@pytest.mark.parametrize(
    "call",
    [
        ModelCall(LONG, ()),
        ModelCall("", (Message("user", LONG),)),
        ModelCall("", (Message("assistant", "", (USE,)),)),
        ModelCall("", (), tools=(Offered("look", LONG, {}),)),
        ModelCall("", (), tools=(Offered("look", "", {"title": LONG}),)),
        ModelCall("", (), schema={"title": LONG}),
        ModelCall("", (), closing={"title": LONG}),
    ],
)
def test_every_text_of_a_call_counts(call: ModelCall) -> None:
    assert call_tokens_at_most(call) >= 2_000 + TOKENS_A_CALL


def test_the_bound_is_above_the_estimate() -> None:
    call = ModelCall(LONG, (Message("user", LONG), Message("assistant", LONG, (USE,))), tools=(TOOL,))
    assert call_tokens_at_most(call) > call_tokens_about(call) > 1_000
