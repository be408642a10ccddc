"""A fork in which everybody says the same again comes to the same end, from whatever step it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from tests.runs.travel import Travel

from quire.engine.conversation import ToolUse
from quire.engine.driver.drive import DriveResult
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import EffectRecord, Status
from quire.engine.requests import ModelRequest
from quire.errors import ModelFailed, RunState
from quire.runs.diff import diff
from quire.runs.fork import Changes, fork
from quire.runs.outcome import RunView
from quire.runs.runtime import Runtime
from quire.runs.why import traced
from quire.stores import open_store
from quire.values import fingerprint


class Parrot:
    """Says what the model of another run said to the same words; anything else it has never heard.

    What a child tells its parent has the time in it that it took, so in a thread the turn has to do."""

    name = "parrot"

    def __init__(self, view: RunView) -> None:
        records = {record.path: record for record in view.effects}
        self.asked: list[str] = []
        self._by_turn = view.row.format == "directive"
        self._said: dict[str, EffectRecord] = {}
        for path, request in view.replay.asked.items():
            if isinstance(request, ModelRequest) and path in records:
                self._said[self._key(request)] = records[path]

    def _key(self, asked: ModelRequest | ModelCall) -> str:
        if self._by_turn:
            return asked.label
        return fingerprint([asked.system, *(message.as_value() for message in asked.messages)])

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        record = self._said[self._key(call)]
        self.asked.append(record.path)
        if record.failure is not None:
            raise ModelFailed(record.failure.message, kind=record.failure.kind)
        value = cast("Mapping[str, Any]", record.value)
        assert record.usage is not None
        uses = tuple(ToolUse(*use) for use in value.get("uses", []))
        return ModelReply(value["text"], value["model"], record.usage, value["finish_reason"], uses=uses)


async def to_the_end(runtime: Runtime, run: str, effects: Mapping[str, EffectRecord]) -> DriveResult:
    """People answer and set what they answered and set before."""
    ended = await runtime.drive(run)
    while ended.status is not Status.COMPLETED:
        row = await runtime.row(run)
        overrides = None
        if ended.status is Status.AWAITING_INPUT:
            for question in await runtime.store.questions(run):
                await runtime.answer(run, question.path, str(effects[question.path].value))
        else:
            assert ended.status is Status.PAUSED, ended.failure
            overrides = cast("Mapping[str, Any]", effects[row.ended_by[0]].value)
        ended = await runtime.drive(run, overrides=overrides)
    return ended


@pytest.mark.parametrize("name", ["everything", "board", "parent"])
async def test_the_same_end_from_every_step(tmp_path: Path, name: str) -> None:
    travel = Travel(tmp_path / "work")
    run: str = await getattr(travel, name)()
    async with travel.runtime() as looking:
        origin = await traced(looking, run)
    effects = {record.path: record for record in origin.effects}
    # The turns of children have their directive's name in their label, and are no places to fork from.
    labels = [step.label for step in origin.replay.progress.steps.values() if not step.label.startswith("demo/")]
    forked = 0
    for label in labels:
        parrot = Parrot(origin)
        store = open_store(travel.folder / ".quire" / "quire.db", durability="process")
        runtime = Runtime(travel.settings, store, environ=travel.environ, model=parrot)
        try:
            try:
                made = await fork(runtime, run, label, Changes())
            except RunState as error:
                assert "has not come to" in str(error) and label == "4c"
                continue
            assert len(made.kept) + len(parrot.asked) <= len(effects)
            ended = await to_the_end(runtime, made.run, effects)
            found = diff(origin, await traced(runtime, made.run))
            assert [step.state for step in found.steps if step.state.startswith("only")] == []
            if name == "parent":
                assert cast("Mapping[str, Any]", ended.result)["output"] == {"said": "hello Bo"}
            else:
                assert found.same, (label, found)
            forked += 1
        finally:
            await runtime.close()
    assert forked >= 4
