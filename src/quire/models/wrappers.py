"""Models with something added that the settings say: settings of their calls, or a price.

A model whose price is not asked for before a call, such as a script, stays one: see `Priced`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as with_fields
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.ports import Model, ModelCall, ModelReply, Priced
from quire.engine.premises import REPLY_TOKENS, longest_reply, smallest
from quire.models.prices import dollars
from quire.models.tokens import call_tokens_at_most

if TYPE_CHECKING:
    from quire.models.choose import CallSettings
    from quire.models.prices import ModelRate


def with_settings(model: Model, settings: CallSettings) -> Model:
    """Return the model with these settings of its calls; the model itself if none of them is set."""
    if not settings.as_value():
        return model
    return PricedWithSettings(model, settings) if isinstance(model, Priced) else WithSettings(model, settings)


class WithSettings:
    """A model whose calls have settings of their own, such as those of a tier; those of the call come first."""

    def __init__(self, model: Model, settings: CallSettings) -> None:
        self._model = model
        self._settings = settings

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        return await self._model.complete(self._set(call), on_delta)

    def _set(self, call: ModelCall) -> ModelCall:
        own = self._settings
        reasoning = call.reasoning or own.reasoning
        return with_fields(
            call,
            temperature=own.temperature if call.temperature is None else call.temperature,
            max_tokens=self._longest(call, reasoning),
            usual_tokens=call.usual_tokens and own.max_tokens is None,
            reasoning=reasoning,
            timeout=own.timeout if call.timeout is None else call.timeout,
        )

    def _longest(self, call: ModelCall, reasoning: str) -> int | None:
        if not call.usual_tokens:
            return smallest(call.max_tokens, self._settings.max_tokens)
        if self._settings.max_tokens is not None:
            return smallest(self._settings.max_tokens, call.left_tokens)
        thinks = "" if call.reasoning else reasoning
        return smallest(longest_reply(call.max_tokens, None, thinks), call.left_tokens)


class PricedWithSettings(WithSettings):
    def estimate(self, call: ModelCall) -> float | None:
        return self._model.estimate(self._set(call)) if isinstance(self._model, Priced) else None


class WithPrice:
    """A model with a price set by the user: it is charged by its tokens, and price lists are ignored."""

    def __init__(self, model: Model, rate: ModelRate) -> None:
        self._model = model
        self._rate = rate

    @property
    def name(self) -> str:
        return self._model.name

    def estimate(self, call: ModelCall) -> float | None:
        return self._cost(call_tokens_at_most(call), call.max_tokens or REPLY_TOKENS)

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        reply = await self._model.complete(with_fields(call, cache=""), on_delta)
        usage = reply.usage
        # A reply whose tokens were not counted has a price, but it is unknown.
        cost = self._cost(usage.input_tokens, usage.output_tokens) if usage.output_tokens > 0 else None
        return replace(reply, usage=replace(usage, cost=cost))

    def _cost(self, read: int, written: int) -> float:
        return dollars(self._rate.cost(read, written))
