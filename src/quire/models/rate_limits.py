"""Limits of model calls that all runs of a process share: calls side by side, calls a minute, tokens a minute. After
the gate of a provider comes that of all processes, in `shared_gate`.

A call that does not fit waits, before its own time-out begins. Runs take turns, and the calls of one run go in their
order. Calls pass several gates in a fixed order and hold nothing else meanwhile, so none waits for another in a circle.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quire.engine.ports import Model, ModelCall, ModelReply, Priced
from quire.engine.premises import REPLY_TOKENS
from quire.models.choose import ModelSettings, ProviderLimits, members_of
from quire.models.tokens import call_tokens_about

if TYPE_CHECKING:
    from quire.models.shared_gate import SharedGate

MINUTE = 60.0
PATIENCE = 2.0
"""Seconds that a call waits before its run is told."""
TOLD_AGAIN = 10.0
"""Seconds after which a gate may tell another run that it waits."""
_CLOSE = 1e-6


class Bucket:
    """An amount that may be used per minute: it is full at first and fills again evenly."""

    def __init__(self, most: int, now: float) -> None:
        self.most = most
        self._level = float(most)
        self._at = now

    def lacks(self, amount: float, now: float) -> float:
        """Return the seconds until the amount is available. More than a full bucket is never asked for."""
        self._level = min(self.most, self._level + (now - self._at) * self.most / MINUTE)
        self._at = now
        missing = min(amount, self.most) - self._level
        return missing * MINUTE / self.most if missing > _CLOSE else 0.0

    def use(self, amount: float) -> None:
        """Use an amount, or give it back. The level may fall below zero: then later calls wait longer."""
        self._level -= amount


class _Waiting:
    """A call that waits; `future` belongs to its event loop, and is done when the call may continue."""

    def __init__(self, run: str, tokens: float) -> None:
        self.run = run
        self.tokens = tokens
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()
        self.admitted = False

    def admit(self) -> bool:
        """Let the call continue; return False if its event loop is closed."""
        self.admitted = True
        try:
            self.loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            return False
        return True

    def _wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Gate:
    """The limits of one provider, tier or agent. Runs in several threads and event loops may share it."""

    def __init__(self, name: str, limits: ProviderLimits) -> None:
        self.name = name
        self._now = time.monotonic
        self._lock = threading.Lock()
        self._running = 0
        self._queues: dict[str, deque[_Waiting]] = {}
        """The waiting calls of each run; the first run is next."""
        self._timed: _Waiting | None = None
        """The call for which a timer runs."""
        self._told = -TOLD_AGAIN
        self._calls: Bucket | None = None
        self._tokens: Bucket | None = None
        self.limits = ProviderLimits()
        self.set(limits)

    def set(self, limits: ProviderLimits) -> None:
        """Use other limits from now on: the settings may have changed since the process was started."""
        if limits == self.limits:
            return
        with self._lock:
            now = self._now()
            self.limits = limits
            self._calls = Bucket(limits.calls_per_minute, now) if limits.calls_per_minute else None
            self._tokens = Bucket(limits.tokens_per_minute, now) if limits.tokens_per_minute else None
            self._advance()

    async def enter(self, run: str, tokens: float, on_wait: Callable[[str], None] | None = None) -> None:
        """Wait until a call fits. `tokens` is an estimate, which `leave` corrects."""
        with self._lock:
            if not self._queues and self._seconds(tokens) == 0.0:
                self._take(tokens)
                return
            mine = _Waiting(run, tokens)
            self._queues.setdefault(run, deque()).append(mine)
            self._advance()
        telling = mine.loop.call_later(PATIENCE, self._tell, on_wait) if on_wait else None
        try:
            await mine.future
        except asyncio.CancelledError:
            with self._lock:
                if mine.admitted:
                    self._give_back(tokens)
                else:
                    self._remove(mine)
                self._advance()
            raise
        finally:
            if telling is not None:
                telling.cancel()

    def leave(self, unused: float) -> None:
        """End a call; `unused` is the part of its tokens that it did not use, negative if it used more."""
        with self._lock:
            self._running -= 1
            if self._tokens is not None:
                self._tokens.use(-unused)
            self._advance()

    def _seconds(self, tokens: float) -> float | None:
        """Return the seconds after which a call fits; None if another call has to end first."""
        if self.limits.at_once is not None and self._running >= self.limits.at_once:
            return None
        now = self._now()
        calls = self._calls.lacks(1, now) if self._calls is not None else 0.0
        return max(calls, self._tokens.lacks(tokens, now) if self._tokens is not None else 0.0)

    def _take(self, tokens: float, sign: int = 1) -> None:
        self._running += sign
        if self._calls is not None:
            self._calls.use(sign)
        if self._tokens is not None:
            self._tokens.use(sign * tokens)

    def _give_back(self, tokens: float) -> None:
        self._take(tokens, -1)

    def _remove(self, waiting: _Waiting) -> None:
        queue = self._queues.get(waiting.run)
        if queue is not None and waiting in queue:
            queue.remove(waiting)
            if not queue:
                del self._queues[waiting.run]
        if self._timed is waiting:
            self._timed = None

    def _advance(self) -> None:
        """Admit the calls that fit, one run after the other, and set a timer if the next one fits later."""
        while self._queues:
            run, queue = next(iter(self._queues.items()))
            first = queue[0]
            seconds = self._seconds(first.tokens)
            if seconds is None:
                return
            if seconds > 0.0:
                self._set_timer(first, seconds)
                return
            self._remove(first)
            if run in self._queues:
                self._queues[run] = self._queues.pop(run)
            self._take(first.tokens)
            if not first.admit():
                self._give_back(first.tokens)

    def _set_timer(self, first: _Waiting, seconds: float) -> None:
        if self._timed is first:
            return
        self._timed = first
        try:
            first.loop.call_soon_threadsafe(first.loop.call_later, seconds, self._on_time, first)
        except RuntimeError:  # its event loop is closed, so nothing waits there
            self._remove(first)
            self._advance()

    def _on_time(self, first: _Waiting) -> None:
        with self._lock:
            if self._timed is first:
                self._timed = None
                self._advance()

    def _tell(self, on_wait: Callable[[str], None]) -> None:
        now = self._now()
        if now - self._told >= TOLD_AGAIN:
            self._told = now
            on_wait(f"waiting for {self.name}: {self._words()}")

    def _words(self) -> str:
        limits = self.limits
        named = {
            "at once": limits.at_once,
            "calls a minute": limits.calls_per_minute,
            "tokens a minute": limits.tokens_per_minute,
        }
        return ", ".join(f"{most:,} {words}" for words, most in named.items() if most is not None)


_gates: dict[Hashable, Gate] = {}
_opening = threading.Lock()


def gate_of(key: Hashable, name: str, limits: ProviderLimits) -> Gate:
    """Return the one gate of this process for a key."""
    with _opening:
        if key not in _gates:
            _gates[key] = Gate(name, limits)
        gate = _gates[key]
    gate.set(limits)
    return gate


_SAME_ACCOUNT = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "openai-decisions": "openai",
    "azure-responses": "azure",
}


def provider_of(spec: str) -> str:
    """Return the name under which limits of a model are looked up: its provider, or the host of its address. Several
    protocols of one provider are one account."""
    if spec.startswith(("http://", "https://")):
        return urlsplit(spec).netloc
    name = spec.partition(":")[0].removeprefix("gateway/")
    return _SAME_ACCOUNT.get(name, name)


def limited(model: Model, spec: str, config: ModelSettings) -> Model:
    """Return the model with the limits that hold for it; the model itself if there are none."""
    provider = provider_of(spec)
    gates: list[Gate | SharedGate] = []
    tiers = [
        most
        for name, settings in config.tier_settings.items()
        if spec in members_of(config.tiers.get(name, "")) and (most := settings.at_once) is not None
    ]
    if tiers:
        gates.append(gate_of(("model", config.folder, spec), spec, ProviderLimits(min(tiers))))
    for key, table in ((("folder", config.folder), config.folder_limits), (("user",), config.limits)):
        if (limits := table.get(provider)) is not None:
            gates.append(gate_of((*key, provider), provider, limits))
            if config.shared:
                from quire.models.shared_gate import shared_gate

                gates.append(shared_gate(config.shared, " ".join((*key, provider)), provider, limits))
    if not gates and not config.agent_limits:
        return model
    kind = PricedLimited if isinstance(model, Priced) else Limited
    return kind(model, gates, config)


class Limited:
    """A model whose calls pass gates, first that of the agent that calls."""

    def __init__(self, model: Model, gates: Sequence[Gate | SharedGate], config: ModelSettings) -> None:
        self._model = model
        self._gates = gates
        self._config = config

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        read = call_tokens_about(call)
        most = read + (call.max_tokens or REPLY_TOKENS)
        used = 0
        passed: list[Gate | SharedGate] = []
        try:
            for gate in self._gates_of(call):
                with call.untimed():
                    await gate.enter(call.run, most, call.on_wait)
                passed.append(gate)
            used = read
            reply = await self._model.complete(call, on_delta)
            used = reply.usage.input_tokens + reply.usage.output_tokens or most
            return reply
        finally:
            for gate in passed:
                gate.leave(most - used)

    def _gates_of(self, call: ModelCall) -> Iterator[Gate | SharedGate]:
        config = self._config
        if (most := config.agent_limits.get(call.identity)) is not None:
            yield gate_of(("agent", config.folder, call.identity), f"agent {call.identity}", ProviderLimits(most))
        yield from self._gates


class PricedLimited(Limited):
    def estimate(self, call: ModelCall) -> float | None:
        return self._model.estimate(call) if isinstance(self._model, Priced) else None
