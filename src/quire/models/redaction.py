"""A model whose replies contain no secrets: they are removed before anything is shown, recorded or handed on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as with_fields
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.conversation import ToolUse
from quire.engine.ports import Model, ModelCall, ModelReply, Priced, Rehearsed
from quire.errors import ModelFailed

if TYPE_CHECKING:
    from quire.trust.secrets import Redactor
    from quire.values import Value


class Redacted:
    """A model wrapped with a redactor. Its replies may quote a key that was in a prompt, a file or a result."""

    def __init__(self, model: Model, redactor: Redactor) -> None:
        self._model = model
        self._redactor = redactor

    @property
    def name(self) -> str:
        return self._model.name

    def estimate(self, call: ModelCall) -> float | None:
        return self._model.estimate(call) if isinstance(self._model, Priced) else None

    def pass_over(self, call: ModelCall) -> None:
        if isinstance(self._model, Rehearsed):
            self._model.pass_over(call)

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        stream = self._redactor.stream()

        def show(piece: str) -> None:
            # An empty piece is a sign of life and is passed on.
            if (shown := stream.add(piece)) or not piece:
                on_delta(shown)

        if (tell := call.on_switch) is not None:
            call = with_fields(
                call, on_switch=lambda switch: tell({key: self._redactor.value(text) for key, text in switch.items()})
            )
        try:
            reply = await self._model.complete(call, show)
        except ModelFailed as error:
            error.message = self._redactor.text(error.message)
            error.args = (error.message,)
            raise
        if last := stream.end():
            on_delta(last)
        uses = tuple(
            ToolUse(use.id, use.name, self._arguments(use), self._redactor.text(use.problem)) for use in reply.uses
        )
        text = self._redactor.text(reply.text)
        return reply if text == reply.text and not uses else replace(reply, text=text, uses=uses)

    def _arguments(self, use: ToolUse) -> dict[str, Value]:
        arguments = self._redactor.value(dict(use.arguments))
        return arguments if isinstance(arguments, dict) else {}
