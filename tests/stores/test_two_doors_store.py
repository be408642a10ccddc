"""A question that somebody looks at in one process and another process answers, on every store."""

from __future__ import annotations

import asyncio

import pytest
from tests.engine.house import House
from tests.engine.test_two_doors import PATIENCE, Thinker, asking, begun
from tests.stores.conftest import Shelf

from quire.engine.driver import drive as driving
from quire.engine.records import Status
from quire.errors import RunState


@pytest.mark.parametrize("first", ["here", "elsewhere"])
async def test_the_first_answer_counts(shelf: Shelf, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    monkeypatch.setattr(driving, "CANCEL_POLL_SECONDS", 0.01 if first == "elsewhere" else 3600.0)
    house, other, thinker = House(shelf.open()), shelf.open(), Thinker()
    house.people = thinker  # type: ignore[assignment]
    await house.create()
    task = await begun(house, thinker, asking())
    (question,) = await other.questions()
    if first == "elsewhere":
        await other.answer(house.run, question.path, question.hash, "no")
    else:
        thinker.mind.set_result("yes")
    ended = await asyncio.wait_for(task, PATIENCE)
    answer = "yes" if first == "here" else "no"
    assert (ended.status, ended.result) == (Status.COMPLETED, answer)
    assert [record.value for record in await other.effects(house.run)] == [answer]
    assert thinker.told == ([] if first == "here" else [("1/ask", "no")])
    with pytest.raises(RunState):
        await other.answer(house.run, question.path, question.hash, "no")
