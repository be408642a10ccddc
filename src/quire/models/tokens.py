"""Tokens of texts before a model has counted them: a number that is not exceeded, and one that is about right.

The engine does not see tokenizers, so both numbers rest on premises. `tokens_at_most` takes a token for at least one
byte of UTF-8, as tokenizers do that fall back to bytes, and adds the frame that services put around messages and tools.
A tokenizer that rewrites a text before it cuts it (NFKC turns one rare ligature into 18 letters) can exceed it.
`tokens_about` takes three characters for a token: prose has fewer tokens than that; digits, code and texts in Chinese
may have more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.engine.premises import JSON_GROWTH, TOKENS_A_CALL, TOKENS_A_MESSAGE
from quire.models.choose import CHARACTERS_A_TOKEN
from quire.values import encode

if TYPE_CHECKING:
    from quire.engine.ports import ModelCall

BYTES_A_CHARACTER = 4
"""The longest character in UTF-8."""
TOKENS_A_TOOL = 64
"""Marks around the name, the description and the schema of a tool."""


def tokens_at_most(characters: int, messages: int = 1, tools: int = 0) -> int:
    """Return the most tokens that a call reads whose texts, names and schemas have this many characters in all."""
    return BYTES_A_CHARACTER * characters + _frame(messages, tools)


def text_tokens_at_most(text: str) -> int:
    """Return the most tokens of a text that is known: its bytes, without the frame of a call."""
    # Half of a pair that is stored alone is sent as a replacement character, which has three bytes as well.
    return len(text.encode("utf-8", "surrogatepass"))


def tokens_about(characters: int) -> int:
    """Return an estimate of the tokens of a text with this many characters."""
    return characters // CHARACTERS_A_TOKEN + 1


def call_tokens_at_most(call: ModelCall) -> int:
    """Return the most tokens that a call reads."""
    texts = [call.system, *(message.content for message in call.messages)]
    texts += [tool.name + tool.description for tool in call.tools]
    uses = [use for message in call.messages for use in message.uses]
    texts += [use.name + use.id * 2 for use in uses]  # the result names the call as well
    values = [tool.schema for tool in call.tools] + [use.arguments for use in uses]
    values += [value for value in (call.schema, call.closing) if value is not None]
    read = sum(map(text_tokens_at_most, texts)) + JSON_GROWTH * sum(
        text_tokens_at_most(encode(value)) for value in values
    )
    return read + _frame(len(call.messages) + len(uses) + 1, len(call.tools))


def call_tokens_about(call: ModelCall) -> int:
    """Estimate the tokens that a call reads; the service counts them later."""
    texts = len(call.system) + sum(len(message.content) for message in call.messages)
    offered = sum(len(tool.name) + len(tool.description) + len(str(tool.schema)) for tool in call.tools)
    return tokens_about(texts + offered)


def _frame(messages: int, tools: int) -> int:
    return TOKENS_A_MESSAGE * messages + TOKENS_A_TOOL * tools + TOKENS_A_CALL
