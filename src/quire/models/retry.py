"""Retry calls after transient failures of a provider. These are the only retries: those inside the SDKs are switched
off.

A call is retried only while none of its text has been streamed: text that was shown stays valid, and the joined pieces
are always the reply. A stream that breaks later fails the call at once, still marked as transient.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from math import ceil

from msgspec.structs import replace

from quire.engine.ports import Model, ModelCall, ModelReply, Priced
from quire.engine.premises import BACKOFF, RETRY_WAIT
from quire.errors import ModelFailed, Parked
from quire.models.rate_limits import provider_of

LONGEST_PARK = 7 * 86_400.0
"""A service that asks for a longer wait, in seconds, fails the call."""


class TransportFailed(ModelFailed):
    """A transient failure, with the seconds that the provider asked us to wait, if it said so."""

    def __init__(self, message: str, *, kind: str, retry_after: float | None = None) -> None:
        super().__init__(message, kind=kind, transient=True)
        self.retry_after = retry_after


class Retrying:
    """A model that tries again after 1, 2, 4 and 8 seconds, or later if the provider asks for it.

    If a provider asks for a wait longer than `longest`, the call fails at once and says so, as `Parked`; so do later
    calls until then, without a request.
    """

    def __init__(
        self,
        model: Model,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        backoff: tuple[float, ...] = BACKOFF,
        longest: float = RETRY_WAIT,
    ) -> None:
        self._model = model
        self._sleep = sleep
        self._backoff = backoff
        self._longest = longest
        self._parked: Parked | None = None

    @property
    def name(self) -> str:
        return self._model.name

    def estimate(self, call: ModelCall) -> float | None:
        return self._model.estimate(call) if isinstance(self._model, Priced) else None

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        if self._parked is not None and self._parked.wake_at > time.time():
            raise self._parked
        delays: list[float] = []
        streamed = False

        def pass_on(piece: str) -> None:
            nonlocal streamed
            streamed = True
            on_delta(piece)

        while True:
            try:
                reply = await self._model.complete(call, pass_on)
            except ModelFailed as error:
                failure = error
            else:
                return replace(reply, delays=(*reply.delays, *delays))
            wait = None if streamed else self._wait(failure, len(delays))
            if wait is None:
                failure.delays = tuple(delays)
                raise failure
            delays.append(wait)
            if call.on_retry is not None:
                call.on_retry(wait, failure.message)
            await self._sleep(wait)

    def _wait(self, failure: ModelFailed, tried: int) -> float | None:
        if not failure.transient:
            return None
        requested = (failure.retry_after if isinstance(failure, TransportFailed) else None) or 0.0
        if requested > self._longest:
            failure.message += f", and no call waits longer than {self._longest:g} s"
            failure.args = (failure.message,)
            if requested <= LONGEST_PARK:
                self._parked = Parked(failure.message, kind=failure.kind, transient=True)
                self._parked.wake_at = time.time() + requested
                self._parked.reason = f"{provider_of(self.name)} asks for {ceil(requested / 60)} min"
                raise self._parked
        elif tried < len(self._backoff):
            return max(self._backoff[tried], requested)
        return None
