"""One simulation as a value: what was drawn for the document, which faults, how fast things are."""

from __future__ import annotations

import base64
import json
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.documents import draw_scenario
from tests.documents.draw import Draw
from tests.simulator.checks import judge
from tests.simulator.databases import FileShelf, Shelves
from tests.simulator.faults import Fault, draw_faults
from tests.simulator.lifecycle import Life, Lived
from tests.simulator.loop import ServerLoop, Stuck, run
from tests.simulator.observer import Witness
from tests.simulator.process import Pace
from tests.simulator.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Case:
    """`choices` make the document; `pace` is the seed of how long things take."""

    choices: tuple[int, ...]
    faults: tuple[Fault, ...]
    pace: int
    attended: bool = False
    slow: bool = False

    @classmethod
    def of_seed(cls, seed: int, format: str = "") -> Case:
        document = Draw.seeded(f"document {seed}")
        draw_scenario(document, format)
        rest = Draw.seeded(f"faults {seed}")
        return cls(tuple(document.taken), draw_faults(rest), seed, rest.chance(25), rest.chance(30))

    def scenario(self) -> Scenario:
        return draw_scenario(Draw.given(self.choices))

    def encoded(self) -> str:
        faults = [[fault.process, fault.kind, fault.at] for fault in self.faults]
        plain = json.dumps([self.choices, faults, self.pace, self.attended, self.slow])
        return base64.urlsafe_b64encode(zlib.compress(plain.encode())).decode()

    @classmethod
    def decoded(cls, text: str) -> Case:
        choices, faults, pace, attended, slow = json.loads(zlib.decompress(base64.urlsafe_b64decode(text)))
        return cls(tuple(choices), tuple(Fault(*fault) for fault in faults), pace, attended, slow)


@dataclass(slots=True)
class Verdict:
    """`problems` is empty where all is well; `trace` says how each process ended."""

    problems: list[str]
    trace: list[str] = field(default_factory=list)
    calm: Lived | None = None
    lived: Lived | None = None


def simulate(
    scenario: Scenario,
    faults: tuple[Fault, ...],
    pace: int | str = 0,
    *,
    attended: bool = False,
    slow: bool = False,
    shelves: Shelves = FileShelf,
    calm: Lived | None = None,
) -> Verdict:
    """Lives the scenario twice, without and with faults, and compares. Without them it is on a file in any case: all
    stores have to come to the same. A test that tries many faults gives the same `calm_life` to all of them."""
    with tempfile.TemporaryDirectory(prefix="quire-", ignore_cleanup_errors=True) as folder:
        calm = calm or live(scenario, Path(folder, "calm"), (), f"calm {pace}")
        if calm.witness.problems:
            return Verdict([f"without faults: {problem}" for problem in calm.witness.problems], calm.trace, calm)
        lived = Path(folder, "lived")
        return disturbed(scenario, calm, faults, pace, lived, attended=attended, slow=slow, shelves=shelves)


def calm_life(scenario: Scenario, pace: int | str = 0) -> Lived:
    """Lives the scenario once without faults."""
    with tempfile.TemporaryDirectory(prefix="quire-", ignore_cleanup_errors=True) as folder:
        return live(scenario, Path(folder, "calm"), (), f"calm {pace}")


def disturbed(
    scenario: Scenario,
    calm: Lived,
    faults: tuple[Fault, ...],
    pace: int | str,
    folder: Path,
    *,
    attended: bool = False,
    slow: bool = False,
    shelves: Shelves = FileShelf,
) -> Verdict:
    """Lives it with faults, where how it goes without them is known."""
    try:
        lived = live(scenario, folder, faults, f"lived {pace}", attended=attended, slow=slow, shelves=shelves)
    except Stuck as stuck:
        return Verdict([str(stuck)], [], calm)
    return Verdict(judge(scenario, calm, lived), lived.trace, calm, lived)


def at_every_point(scenario: Scenario, pace: int | str = 0, *, stride: int = 1) -> Iterator[tuple[int, Verdict]]:
    """The scenario once for each point at which one of its processes can die, or each so many of them."""
    with tempfile.TemporaryDirectory(prefix="quire-", ignore_cleanup_errors=True) as folder:
        calm = live(scenario, Path(folder, "calm"), (), f"lived {pace}")
        # The drives after the first one die at the points of theirs: what they had not come to before is there too.
        for number, process in enumerate(calm.processes):
            for point in range(1, process.points + 1, stride):
                faults = (Fault(number, "crash", point),)
                yield point, disturbed(scenario, calm, faults, pace, Path(folder, f"{number}-{point}"))


def live(
    scenario: Scenario,
    folder: Path,
    faults: tuple[Fault, ...],
    pace: str,
    *,
    attended: bool = False,
    slow: bool = False,
    shelves: Shelves = FileShelf,
) -> Lived:
    loop = ServerLoop()
    folder.mkdir(parents=True)
    witness = Witness(scenario.cast.answer, scenario.max_parallel)
    shelf = shelves(folder)
    life = Life(scenario, folder, shelf, faults, loop, witness, Pace(pace, slow=slow), attended)
    try:
        return run(loop, life.live())
    finally:
        shelf.close()


def check(case: Case, shelves: Shelves = FileShelf) -> Verdict:
    return simulate(case.scenario(), case.faults, case.pace, attended=case.attended, slow=case.slow, shelves=shelves)
