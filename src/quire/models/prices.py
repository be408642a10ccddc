"""A model whose price the user has said: it is charged by its tokens, whatever a list says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quire.engine.ports import LONGEST_REPLY, Model, ModelCall, ModelReply
from quire.models.settings import Price

CHARACTERS_A_TOKEN = 3
MILLION = 1_000_000


class WithPrice:
    """A model and what its tokens cost."""

    def __init__(self, model: Model, price: Price) -> None:
        self._model = model
        self._price = price

    @property
    def name(self) -> str:
        return self._model.name

    def estimate(self, call: ModelCall) -> float | None:
        said = len(call.system) + sum(len(message.content) for message in call.messages)
        offered = sum(len(tool.name) + len(tool.description) + len(str(tool.schema)) for tool in call.tools)
        return self._cost((said + offered) // CHARACTERS_A_TOKEN + 1, call.max_tokens or LONGEST_REPLY)

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        reply = await self._model.complete(call, on_delta)
        usage = reply.usage
        # A reply that nobody counted has a price, which is not known.
        cost = self._cost(usage.input_tokens, usage.output_tokens) if usage.output_tokens > 0 else None
        return replace(reply, usage=replace(usage, cost=cost))

    def _cost(self, read: int, written: int) -> float:
        return (read * self._price.input + written * self._price.output) / MILLION
