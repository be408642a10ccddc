"""The doors of a simulated process: a model, tools, texts and a person, each of which it can die before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.simulator.fakes import PRICE, Cast, World
from tests.simulator.observer import Witness
from tests.simulator.process import Pace, Process

from quire.engine.conversation import Offered
from quire.engine.ports import EffectClass, Loader, ModelCall, ModelReply
from quire.engine.records import Question
from quire.engine.requests import Load, ToolRequest
from quire.values import Value


class _Door:
    def __init__(self, process: Process, witness: Witness, pace: Pace, world: World, cast: Cast) -> None:
        self._process = process
        self._witness = witness
        self._pace = pace
        self._world = world
        self._cast = cast


class SimulatedModel(_Door):
    name = "simulated"

    def estimate(self, call: ModelCall) -> float:
        return PRICE

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self._process.must_live()
        on_delta("")
        path = self._process.heard
        self._process.point(f"before {path}")
        self._witness.model_begins(self._process, path)
        await self._witness.unless_stopped(path, self._pace.effect())
        self._process.point(f"after {path}")
        reply = self._cast.reply(call, path, self._world)
        on_delta(reply.text)
        return reply


class SimulatedTools(_Door):
    def effect_class(self, request: ToolRequest) -> EffectClass:
        return self._cast.effect_class(request)

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        self._process.point(f"before {request.path}")
        writes = self.effect_class(request) == "write"
        self._witness.tool_begins(self._process, request.path, effect_id, writes=writes)
        try:
            await self._witness.unless_stopped(request.path, self._pace.effect())
            self._process.point(f"after {request.path}")
            return self._cast.act(request, self._world)
        finally:
            self._witness.tool_ends(self._process, request.path)

    async def offers(self, names: Sequence[str]) -> Sequence[Offered]:
        return self._cast.offers(names)

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        self._process.point("before offers")
        await self._pace.effect()
        self._process.point("after offers")
        return self._cast.offers_under(grants)

    async def prompt(self, server: str, name: str) -> str:
        return self._cast.prompt(server, name)


class SeenLoader:
    """A loader whose loads are effects as all others."""

    def __init__(self, loader: Loader, process: Process, witness: Witness, pace: Pace) -> None:
        self._loader = loader
        self._process = process
        self._witness = witness
        self._pace = pace

    async def load(self, request: Load) -> str | None:
        self._process.point(f"before {request.path}")
        self._witness.other_begins(self._process, request.path)
        await self._pace.effect()
        text = await self._loader.load(request)
        self._process.point(f"after {request.path}")
        return text


class Present:
    """Somebody who sits at the terminal of a process, and answers at once."""

    def __init__(self, process: Process, witness: Witness, pace: Pace, cast: Cast) -> None:
        self._process = process
        self._witness = witness
        self._pace = pace
        self._cast = cast

    async def ask(self, question: Question, problem: str) -> str | None:
        self._process.point(f"before {question.path}")
        self._witness.asked[question.path] = question
        if question.path in self._witness.live and not self._witness.stale:
            self._witness.blame(f"{question.path} was asked again after its answer had been recorded")
        await self._pace.effect()
        self._process.point(f"after {question.path}")
        return self._cast.answer(question)
