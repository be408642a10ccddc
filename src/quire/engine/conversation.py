"""Messages of a conversation with a model: the tools offered to it, the tool calls that it requests, its replies.

The stored and hashed forms of these values are part of the journals: they do not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import Struct

from quire.engine.premises import MOST_CALLS
from quire.errors import StepFailed

if TYPE_CHECKING:
    from quire.values import Value

CUT_OFF = "cut off at its limit of tokens"
REPEATED = "the reply was stopped: the model repeated itself"


def early_end(reply: Mapping[str, Value]) -> str:
    """Return the warning about a reply that did not finish by itself, or an empty text if it did."""
    if reply.get("cut") is True:
        at = reply.get("cut_at")
        return f"cut at {at:,} tokens ({reply.get('cut_by')})" if isinstance(at, int) and at else CUT_OFF
    return REPEATED if reply.get("finish_reason") == "repetition" else ""


def too_many_calls(calls: int) -> StepFailed:
    message = f"{calls:,} calls in one turn are too many: only the first {MOST_CALLS} were made"
    return StepFailed(message, kind="too_many_calls")


class ToolUse(Struct, frozen=True):
    """A tool call that a model requests."""

    id: str
    """Ties the result to this call."""
    name: str
    arguments: Mapping[str, Value]
    problem: str = ""
    """Says that the arguments could not be read: then `arguments` is empty, the tool is not called, and the model is
    told."""

    @classmethod
    def of(cls, stored: Sequence[Any]) -> ToolUse:
        """Build from the stored form that `as_record` returns."""
        return cls(*stored)

    def as_record(self) -> list[Value]:
        whole: list[Value] = [self.id, self.name, self.arguments]
        return [*whole, self.problem] if self.problem else whole


def uses_of(reply: Mapping[str, Value]) -> list[ToolUse]:
    """Return the tool calls of a recorded reply."""
    return [ToolUse.of(use) for use in cast("list[list[Any]]", reply.get("uses") or [])]


class Message(Struct, frozen=True, gc=False):
    """One message of a conversation with a model."""

    role: Literal["user", "assistant", "tool"]
    content: str
    uses: tuple[ToolUse, ...] = ()
    """The tool calls of an assistant's message."""
    answers: str = ""
    """In a `tool` message, the id of the call that it answers."""

    def as_value(self) -> Value:
        if not self.uses and not self.answers:
            return [self.role, self.content]
        uses: list[Value] = [[use.id, use.name, use.arguments] for use in self.uses]
        return [self.role, self.content, uses, self.answers]


class Offered(Struct, frozen=True):
    """A tool as it is offered to a model: its name, its purpose, the JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Value]
    id: str = ""
    """The canonical id, if the name does not say it."""
