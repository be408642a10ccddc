"""Ask the models of a list in their order: the next one where a service fails in a way that another may not.

A refused key, a refused request, and a reply that is of no use are not such failures; nor is any failure after text was
shown. A model that failed rests: for a while the calls of this process come to it last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from quire.engine.ports import Model, ModelCall, ModelReply, Priced
from quire.errors import ModelFailed, Parked

REST_SECONDS = 60.0
_PASSED_ON = frozenset({"rate_limit", "quota", "server", "timeout", "connection"})

_resting: dict[tuple[str, str], float] = {}
"""When the rest of a model of a workspace ends, by the monotonic clock."""


class Fallback:
    """Several models, by their names, that answer as one. `window` returns the most tokens that a model reads."""

    def __init__(self, models: Mapping[str, Model], folder: str, window: Callable[[str], int | None]) -> None:
        self._models = models
        self._folder = folder
        self._window = window

    @property
    def name(self) -> str:
        return " > ".join(self._models)

    def estimate(self, call: ModelCall) -> float | None:
        each = [model.estimate(call) if isinstance(model, Priced) else None for model in self._models.values()]
        return None if None in each else max(filter(None, each), default=0.0)

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        delays: tuple[float, ...] = ()
        parked: list[Parked] = []
        streamed = False

        def pass_on(piece: str) -> None:
            nonlocal streamed
            streamed = True
            on_delta(piece)

        now = time.monotonic()
        names = sorted(self._models, key=lambda name: _resting.get((self._folder, name), 0.0) > now)
        before, reason = next(iter(self._models)), "it failed a short time ago"
        while True:
            name, *names = names
            if name != before and call.on_switch is not None:
                call.on_switch({"from": before, "to": name, "reason": reason})
            try:
                reply = await self._models[name].complete(call, pass_on)
            except ModelFailed as error:
                failure = error
            else:
                return replace(reply, delays=(*delays, *reply.delays))
            failure.delays = delays = (*delays, *failure.delays)
            parked += [failure] if isinstance(failure, Parked) else []
            if failure.kind == "too_long":
                own = self._window(name)
                names = [other for other in names if own is None or (self._window(other) or own + 1) > own]
            elif failure.kind in _PASSED_ON:
                _resting[self._folder, name] = time.monotonic() + REST_SECONDS
            else:
                raise failure
            if streamed or not names:
                raise min(parked, key=lambda wait: wait.wake_at, default=failure)
            before, reason = name, failure.message
