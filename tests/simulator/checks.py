"""Whether a run with faults came to what it comes to without them, and kept the laws on its way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from tests.simulator.fakes import PRICE, settled
from tests.simulator.lifecycle import Lived
from tests.simulator.scenario import Scenario

from quire.engine.records import REFUSED, EffectRecord, Status
from quire.values import encode

STEPS = ("step_started", "step_completed", "step_skipped")
_TURN = re.compile(r"(.*thread)/turn\[(\d+)\]/model$")
_CHILD = re.compile(r"(.*thread)/turn\[\d+\]/.*?/thread/")


def judge(scenario: Scenario, calm: Lived, lived: Lived) -> list[str]:
    """Everything that is wrong with how a run went; nothing where all is well."""
    found = list(lived.witness.problems)
    found += _events(lived)
    found += _counts(scenario, lived)
    found += _limits(scenario, lived)
    if scenario.exact:
        found += _same(calm, lived)
    elif lived.row.status not in (Status.COMPLETED, Status.FAILED):
        found.append(f"the run is {lived.row.status} in the end")
    return found


def _same(calm: Lived, lived: Lived) -> Iterator[str]:
    if lived.row.status is not calm.row.status:
        ends = f"{lived.row.status} ({_why(lived)}) in the end, without faults it is {calm.row.status} ({_why(calm)})"
        yield f"the run is {ends}"
        return
    if lived.row.failure != calm.row.failure:
        yield f"the run failed with {lived.row.failure}, without faults with {calm.row.failure}"
    if lived.row.status is Status.COMPLETED and lived.value != calm.value:
        yield f"the output is {lived.value!r}, without faults {calm.value!r}"
    if lived.row.status is not Status.COMPLETED:
        return
    want, have = _comparable(calm, lived), _comparable(lived, calm)
    for path in want:
        if path not in have:
            yield f"{path} is missing in the journal"
        elif want[path] != have[path]:
            yield f"{path} is recorded as {have[path]}, without faults as {want[path]}"
    stopped, told = _halted(calm, lived), _steps(lived)
    for step in _steps(calm):
        if step not in told and not step[1].startswith(stopped):
            yield f"{step[0]} of {step[1]} was never said"


def _why(lived: Lived) -> str:
    return lived.row.failure.message if lived.row.failure else "no failure"


def _steps(lived: Lived) -> Counter[tuple[str, str]]:
    return Counter((event.type, event.path) for event in lived.events if event.type in STEPS)


def _comparable(one: Lived, other: Lived) -> dict[str, str]:
    """The records that have to be there whoever was faster. What a failure cut off, or a parent halted, need not be,
    nor what an attempt had done that was given up."""
    cut = _cut(one, other)
    halted = _halted(one, other)
    attempts, others = _attempts(one), _attempts(other)
    return {
        record.path: f"{record.state} {settled(encode(record.value))}".replace(str(one.folder), "")
        for record in one.records
        if record.kind not in ("abort", "halt", "break")
        and not record.path.startswith((*cut, *halted))
        and all(attempts[at] == others.get(at) == number for at, number in _tries(record.path))
    }


def _cut(*lives: Lived) -> tuple[str, ...]:
    """Below which paths a failure has stopped what was beside it."""
    return tuple(one.path.removesuffix("abort") for lived in lives for one in lived.records if one.kind == "abort")


def _halted(*lives: Lived) -> tuple[str, ...]:
    """Below which paths something may have been stopped: children that go on beside a parent that stopped some."""
    found: dict[str, None] = {}
    if any(record.kind == "halt" for lived in lives for record in lived.records):
        for record in (record for lived in lives for record in lived.records):
            for child in re.finditer(r"/tool\[\d+\]/thread(?=/)", record.path):
                found[record.path[: child.end()] + "/"] = None
    return tuple(found)


def _attempts(lived: Lived) -> dict[str, int]:
    """How often something was tried. One that failed while its process died need not fail again."""
    found: dict[str, int] = {}
    for record in lived.records:
        for at, number in _tries(record.path):
            found[at] = max(found.get(at, 0), number)
    return found


def _tries(path: str) -> list[tuple[str, int]]:
    return [(path[: found.start()], int(found[1])) for found in re.finditer(r"/try\[(\d+)\]", path)]


def _events(lived: Lived) -> Iterator[str]:
    seqs = [event.seq for event in lived.events]
    # What a full disk took with it is said again by the next drive, under a new number.
    gaps = any(process.failing_write for process in lived.processes)
    if seqs != (sorted(set(seqs)) if gaps else list(range(1, len(seqs) + 1))):
        yield f"the events are not numbered one after the other: {seqs}"
    for step, times in _steps(lived).items():
        if times > 1:
            yield f"{step[0]} of {step[1]} was kept {times} times"


def _counts(scenario: Scenario, lived: Lived) -> Iterator[str]:
    witness = lived.witness
    disturbed = sum(process.disturbed for process in lived.processes)
    for path, times in (witness.tool_calls + witness.model_calls).items():
        once = scenario.on_uncertain == "fail" and path in witness.writing
        most = 1 + witness.superseded[path] + (0 if once else disturbed + witness.lost[path])
        if times > most:
            yield f"{path} was performed {times} times, with {disturbed} disturbances that is {times - most} too many"
    for path, times in witness.intents.items():
        if times > 1 + witness.superseded[path] + disturbed + witness.lost[path]:
            yield f"{path} was announced {times} times, with {disturbed} disturbances"
    for path, times in witness.results.items():
        if times > 1 + witness.superseded[path]:
            yield f"{path} has {times} results"


def _limits(scenario: Scenario, lived: Lived) -> Iterator[str]:
    calls = [one for one in lived.records if one.kind == "model" and not _refused(one)]
    pipeline = lived.row.format == "pipeline"
    if pipeline and scenario.max_model_calls and len(calls) > scenario.max_model_calls:
        yield f"{len(calls)} model calls, {scenario.max_model_calls} are allowed"
    turns = Counter(found[1] for one in calls if one.state == "ok" and (found := _TURN.match(one.path)))
    for thread, count in turns.items():
        if scenario.max_turns and count > scenario.max_turns:
            yield f"{thread} took {count} turns, {scenario.max_turns} are allowed"
    # All that was ever recorded, also where a resume has removed the record, and all that was ever paid: a process that
    # died, or whose disk was full, has said before a call what it may cost.
    spent, paid = lived.row.cost or 0.0, PRICE * lived.witness.model_calls.total()
    if scenario.max_spend and max(spent, paid) > scenario.max_spend + PRICE / 100:
        yield f"${spent:.4f} were counted and ${paid:.4f} paid, ${scenario.max_spend:.4f} are allowed"
    if scenario.max_spend and paid > spent + PRICE / 100:
        yield f"${paid:.4f} were paid, and only ${spent:.4f} counted"
    for thread, children in _children(lived).items():
        if scenario.max_spawns and len(children) > scenario.max_spawns:
            yield f"{thread} started {len(children)} threads, {scenario.max_spawns} are allowed"


def _refused(record: EffectRecord) -> bool:
    return record.failure is not None and (record.failure.kind == REFUSED or record.failure.kind.endswith("_exceeded"))


def _children(lived: Lived) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for record in lived.records:
        match = _CHILD.match(record.path)
        if match is not None:
            found.setdefault(match[1], set()).add(match[0])
    return found
