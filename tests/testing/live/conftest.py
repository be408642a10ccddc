"""A model that answers from a list, and keeps the calls."""

from __future__ import annotations

from collections.abc import Callable

from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.errors import ModelFailed


class Answering:
    """Answers each call with the text that a function makes of its prompt; an exception is raised."""

    name = "stub:answering"

    def __init__(self, answer: Callable[[str], str | Exception], finish: str = "stop") -> None:
        self.answer = answer
        self.finish = finish
        self.calls: list[ModelCall] = []

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.calls.append(call)
        said = self.answer(call.messages[-1].content)
        if isinstance(said, Exception):
            raise said
        return ModelReply(said, self.name, Usage(10, 5, 0.001), self.finish)


FAILURE = ModelFailed("the service is away", kind="unreachable", transient=True)
