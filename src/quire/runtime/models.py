"""What stands for a model in a run that asks none."""

from __future__ import annotations

from collections.abc import Callable

from quire.engine.ports import ModelCall, ModelReply
from quire.errors import ModelFailed


class NoModelHere:
    name = "none"

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        raise ModelFailed("this run was started without a model", kind="no_model")
