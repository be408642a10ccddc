"""The simulator is worth something only if it finds what is wrong: bugs are planted, and each has to be found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.documents import SCENARIOS
from tests.simulator.case import simulate
from tests.simulator.faults import Fault

from quire.engine.driver.branches import Slots
from quire.engine.driver.journal import Journal, Ledger
from quire.engine.driver.perform import Performer
from quire.engine.driver.walker import Walker
from quire.engine.records import EffectRecord, WriteResult
from quire.stores import row_decoder
from quire.stores.sqlite import writer

Plant = Callable[[pytest.MonkeyPatch], None]


def forgets_a_result(patch: pytest.MonkeyPatch) -> None:
    """Whoever goes on does not see model replies that are recorded."""
    init = Journal.__init__
    patch.setattr(Journal, "__init__", lambda self, found: init(self, [one for one in found if one.kind != "model"]))


def loses_a_record(patch: pytest.MonkeyPatch) -> None:
    """Results of tools go to the interpreter and never to the file."""
    write = Ledger.write

    async def lossy(self: Ledger, record: EffectRecord | None = None, **more: Any) -> WriteResult:
        if record is not None and record.kind == "tool" and record.state == "ok":
            self.journal.add(record)
            return WriteResult()
        return await write(self, record, **more)

    patch.setattr(Ledger, "write", lossy)


def makes_ids_anew(patch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(1000))
    patch.setattr(Performer, "effect_id", lambda self, path: f"{path} {next(numbers)}")


def ignores_the_limit(patch: pytest.MonkeyPatch) -> None:
    init = Slots.__init__
    patch.setattr(Slots, "__init__", lambda self, limit, start: init(self, 50, start))


def never_fences(patch: pytest.MonkeyPatch) -> None:
    """A process that was taken over goes on to write."""
    patch.setattr(writer.Writer, "_attempt_alone", lambda self, write: self._attempt_together([write]))
    patch.setattr(writer, "learn", lambda connection, held: WriteResult())


def mixes_answers_up(patch: pytest.MonkeyPatch) -> None:
    take = row_decoder.answer
    patch.setattr(row_decoder, "answer", lambda run, row, seal: replace(take(run, row, seal), value="something else"))


def forgets_to_wait(patch: pytest.MonkeyPatch) -> None:
    """A question is answered with nothing at all by whoever drives for the second time."""
    ask = Walker._ask

    async def hasty(self: Walker, request: Any, branch: Any) -> str:
        if self._resumed:
            await self._write(self._performer.settled(request, ""), consume=(request.path,))
            return ""
        return await ask(self, request, branch)

    patch.setattr(Walker, "_ask", hasty)


def counts_events_from_nothing(patch: pytest.MonkeyPatch) -> None:
    """Each drive says again what was said, and numbers it as if it were the first."""
    marks = row_decoder.marks

    def none(told: Sequence[Any]) -> tuple[int, frozenset[tuple[str, str]]]:
        return marks(told)[0], frozenset()

    patch.setattr(row_decoder, "marks", none)


PLANTED: list[tuple[Plant, str, str, str]] = [
    (forgets_a_result, "crash", "pipeline", "performed again although its result"),
    (loses_a_record, "crash", "playbook", "its journal ends before its end"),
    (makes_ids_anew, "crash", "pipeline", "under two effect ids"),
    (ignores_the_limit, "crash", "pipeline", "are allowed"),
    (never_fences, "takeover", "directive", "after it had been taken over"),
    (mixes_answers_up, "crash", "playbook", "and recorded as"),
    (forgets_to_wait, "crash", "playbook", "without faults"),
    (counts_events_from_nothing, "crash", "playbook", "was kept 2 times"),
]


@pytest.mark.parametrize(("plant", "kind", "name", "told"), PLANTED, ids=[one[0].__name__ for one in PLANTED])
def test_a_planted_bug_is_found(plant: Plant, kind: Any, name: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    found: list[str] = []
    for at in (12, 20, 33, 47, 5, 9, 60, 80):
        faults = (Fault(0, kind, at), Fault(1, kind, at))
        found += simulate(SCENARIOS[name], faults, at).problems
        if any(told in problem for problem in found):
            return
    raise AssertionError(found)


def test_and_nothing_is_found_where_nothing_is_planted() -> None:
    for at in (12, 20, 33):
        assert simulate(SCENARIOS["playbook"], (Fault(0, "crash", at),), at).problems == []
