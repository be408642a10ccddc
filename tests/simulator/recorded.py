"""A real run, written down so that it can be simulated: what its model said, its tools did and its people answered.

Everything is kept by path, so that each effect comes to the same again whenever, and however often, it is performed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from tests.simulator.fakes import Cast, World, answer_to
from tests.simulator.scenario import Scenario

from quire.engine.conversation import Offered
from quire.engine.ports import EffectClass, Model, ModelCall, ModelReply, Tools
from quire.engine.records import Event, Question, Status
from quire.engine.requests import ToolRequest
from quire.errors import ModelFailed, Refused, StepFailed
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.stores import open_store
from quire.values import Value
from quire.workspace.settings import Settings

Said: TypeAlias = ModelReply | StepFailed
Did: TypeAlias = "Value | StepFailed | Refused"


@dataclass(slots=True)
class Recorded:
    """`value` is what the real run gave."""

    status: Status = Status.PENDING
    value: Value = None
    said: dict[str, Said] = field(default_factory=dict)
    did: dict[str, Did] = field(default_factory=dict)
    classes: dict[str, EffectClass] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    prompts: dict[tuple[str, str], str] = field(default_factory=dict)
    offered: dict[tuple[str, ...], Sequence[Offered]] = field(default_factory=dict)

    def cast(self) -> Cast:
        def reply(call: ModelCall, path: str, world: World) -> ModelReply:
            # For real its thread was stopped before that: here it is a little later, and comes to nothing either.
            said = self.said.get(path) or ModelFailed("nothing was said here", kind="stopped")
            if isinstance(said, StepFailed):
                raise said
            return said

        def act(request: ToolRequest, world: World) -> Value:
            did = self.did[request.path]
            if isinstance(did, StepFailed | Refused):
                raise did
            return did

        def answer(question: Question) -> str:
            return self.answers.get(question.path) or answer_to(question)

        def offers(names: Sequence[str]) -> Sequence[Offered]:
            return self.offered[tuple(names)]

        return Cast(
            reply,
            act,
            lambda request: self.classes[request.path],
            answer,
            lambda server, name: self.prompts[server, name],
            offers,
            offers,
        )

    def scenario(self, name: str, files: Mapping[str, str], document: str, inputs: Mapping[str, Value]) -> Scenario:
        return Scenario(name, files, document, inputs, cast=self.cast())


async def record(
    settings: Settings,
    document: str,
    inputs: Mapping[str, Value],
    model: Model | None,
    answers: Mapping[str, str],
    allow: tuple[str, ...],
    database: Path,
    environ: Mapping[str, str],
) -> Recorded:
    """Runs a document of a workspace for real, on the model that is given."""
    recorded = Recorded()
    store = open_store(database, durability="process")
    heard = _Hearing(recorded, model) if model is not None else None
    runtime = _Runtime(settings, store, environ=environ, model=heard)
    runtime.recorded = recorded
    try:
        started = await runtime.start(
            load(settings.workspace.folder / document), inputs, RunOptions(answers=answers, allow=allow)
        )
        await runtime.drive(started, listen=heard.hear if heard else lambda event: None)
        recorded.status, recorded.value = (await runtime.row(started)).status, (await runtime.view(started)).value
        for record in await store.effects(started):
            if record.kind == "ask":
                recorded.answers[record.path] = str(record.value)
    finally:
        await runtime.close()
    return recorded


class _Hearing:
    """A model whose replies are kept by the path that the drive tells of."""

    def __init__(self, recorded: Recorded, model: Model) -> None:
        self._recorded = recorded
        self._model = model
        self._path = ""

    @property
    def name(self) -> str:
        return self._model.name

    def hear(self, event: Event) -> None:
        if event.type == "delta":
            self._path = event.path

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        on_delta("")
        path = self._path
        try:
            reply = await self._model.complete(call, on_delta)
        except StepFailed as error:
            self._recorded.said[path] = error
            raise
        self._recorded.said[path] = reply
        return reply


class _Runtime(Runtime):
    """One whose gate is listened to."""

    recorded: Recorded

    def gate(self, *given: Any, **more: Any) -> Tools:
        gate: Any = super().gate(*given, **more)
        call, prompt = gate.call, gate.prompt
        offers, offers_under = gate.offers, gate.offers_under
        recorded = self.recorded

        async def called(request: ToolRequest, effect_id: str) -> Value:
            recorded.classes[request.path] = gate.effect_class(request)
            try:
                result: Value = await call(request, effect_id)
            except (StepFailed, Refused) as error:
                recorded.did[request.path] = error
                raise
            recorded.did[request.path] = result
            return result

        async def prompted(server: str, name: str) -> str:
            recorded.prompts[server, name] = await prompt(server, name)
            return recorded.prompts[server, name]

        async def offered(names: Sequence[str]) -> Sequence[Offered]:
            recorded.offered[tuple(names)] = await offers(names)
            return recorded.offered[tuple(names)]

        async def offered_under(grants: Sequence[str], *rest: Any) -> Sequence[Offered]:
            recorded.offered[tuple(grants)] = await offers_under(grants, *rest)
            return recorded.offered[tuple(grants)]

        gate.call, gate.prompt, gate.offers, gate.offers_under = called, prompted, offered, offered_under
        listened: Tools = gate
        return listened
