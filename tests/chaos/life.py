"""One run from its start to its end, through as many processes as it takes."""

from __future__ import annotations

import random
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.documents import Story, answer_to
from tests.chaos.judge import Judge
from tests.chaos.kills import Kill, draw_kill
from tests.chaos.sight import RunSeen, Sight, effect_id, look
from tests.chaos.stable import Exit, Stable
from tests.chaos.workspace import Place, make_place

from quire.engine.records import Status

MOST_PROCESSES = 300
WAITING = 4
TYPICAL = 0.3


@dataclass(slots=True)
class Lived:
    """`kills` are the moments at which something struck, `deaths` the processes that a kill took: one may have ended by
    itself just before. `hits` says in which state it found the run; `told` is the whole story, for a failure."""

    place: Place
    sight: Sight
    output: str = ""
    kills: int = 0
    deaths: int = 0
    problems: list[str] = field(default_factory=list)
    hits: Counter[str] = field(default_factory=Counter)
    codes: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Life:
    """`disturb` may do something to the world before each process, given how many kills are left; `strike` something
    else than killing it when its moment comes, and says whether the process is to die as well. `repair` comes before
    anybody looks. `file_limit` is how large files may get, `gaps` as the judge has it. `tolerated` are the exits that
    these may cause."""

    stable: Stable
    place: Place
    draw: random.Random
    kills: int
    cold_share: float = 0.04
    disturb: Callable[[int], None] = lambda left: None
    strike: Callable[[], bool] = lambda: True
    repair: Callable[[], None] = lambda: None
    file_limit: Callable[[], int | None] = lambda: None
    tolerated: tuple[int, ...] = ()
    gaps: bool = False
    judge: Judge = field(init=False)
    typical: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.judge = Judge(self.place.story.side_by_side, gaps=self.gaps)

    def live(self) -> Lived:
        scratch = self.place.folder.parent / "look"
        lived = Lived(self.place, look(self.place, scratch))
        for life in range(MOST_PROCESSES):
            self.judge.look(lived.sight, life)
            lived.problems = self.judge.problems
            if lived.problems:
                return lived
            if lived.sight.done:
                lived.output = self._output(lived.sight)
                return lived
            left = self.kills - lived.kills
            self.disturb(left)
            exit, kill, words, struck = self._process(life, lived.sight, left > 0)
            self.repair()
            before, lived.sight = lived.sight, look(self.place, scratch)
            lived.told.append(_line(life, words, exit, kill))
            lived.kills += struck
            if exit.killed:
                lived.deaths += 1
                lived.hits[hit(before, lived.sight, life, kill)] += 1
            if not exit.killed and exit.code not in (0, WAITING, *self.tolerated):
                lived.problems.append(f"process {life} (quire {shlex.join(words)}) ended with {exit.code}:\n{exit.err}")
                return lived
            lived.codes.append(exit.code)
            lived.said.append(exit.err)
        lived.problems.append(f"not done after {MOST_PROCESSES} processes")
        return lived

    def _process(self, life: int, sight: Sight, killing: bool) -> tuple[Exit, Kill | None, list[str], bool]:
        words = self._words(sight)
        typical = self.typical.get(words[0], TYPICAL)
        kill = draw_kill(self.draw, self.place, typical * 1.2, self.cold_share) if killing else None
        trigger = kill.trigger(self.place) if kill else lambda elapsed: False
        struck = False

        def now(elapsed: float) -> bool:
            nonlocal struck
            if struck or not trigger(elapsed):
                return False
            struck = True
            return self.strike()

        exit = self.stable.run(
            words,
            self.place.folder,
            {**self.place.environ, "CHAOS_LIFE": str(life)},
            now=now,
            cold=kill.cold if kill else False,
            file_limit=self.file_limit(),
        )
        if not struck:
            self.typical[words[0]] = (typical + exit.after) / 2
        return exit, kill, words, struck

    def _words(self, sight: Sight) -> list[str]:
        """What somebody would do now: start it, answer a question, or go on."""
        if sight.main is None:
            return ["run", self.place.story.document, "--script", self.place.story.script_file, "-q"]
        run = self.draw.choice(sight.unfinished)
        if run.questions and (run.row.status is Status.AWAITING_INPUT or self.draw.random() < 0.5):
            question = self.draw.choice(run.questions)
            only = ["--hold"] if self.draw.random() < 0.1 else []
            return ["answer", run.row.id, question.path, answer_to(question.prompt), "-q", *only]
        return ["resume", run.row.id, "-q"]

    def _output(self, sight: Sight) -> str:
        assert sight.main is not None
        return self.stable.run(["runs", sight.main.row.id, "--output"], self.place.folder, self.place.environ).out


def hit(before: Sight, after: Sight, life: int, kill: Kill | None) -> str:
    """Where the kill found the process, as far as one can tell from what it left."""
    where = "cold start: " if kill is not None and kill.cold else ""
    if not after.runs:
        return where + ("migration or start" if after.schema else "start")
    recorded = {effect_id(run.row.id, path) for run in after.runs for path in run.results()}
    if any(one.life == life and one.effect not in recorded for one in after.ledger):
        return where + "tool under way"
    if any(record.state == "intent" for run in after.runs for record in run.effects.values()):
        return where + "tool announced"
    changed = _changed(before, after)
    if not changed:
        return where + "start or replay"
    if any(run.row.status is Status.COMPLETED for run in changed):
        return where + "after completion"
    if all(run.row.status is Status.AWAITING_INPUT for run in changed):
        return where + ("answer stored" if any(run.answers for run in changed) else "after parking")
    return where + "between records (model, commit, pure steps)"


def _changed(before: Sight, after: Sight) -> list[RunSeen]:
    known = {run.row.id: (run.row.status, run.row.epoch, len(run.effects), len(run.answers)) for run in before.runs}
    return [
        run
        for run in after.runs
        if known.get(run.row.id) != (run.row.status, run.row.epoch, len(run.effects), len(run.answers))
    ]


def _line(life: int, words: list[str], exit: Exit, kill: Kill | None) -> str:
    how = "killed" if exit.killed else f"exit {exit.code}"
    plan = f" (planned: {kill.by} {kill.count or ''} +{kill.delay * 1000:.1f} ms)" if kill else ""
    return f"{life:3} quire {shlex.join(words)}: {how} after {exit.after * 1000:.1f} ms{plan}"


def calm_life(stable: Stable, folder: Path, story: Story, url: str = "") -> Lived:
    """The same without a single kill."""
    lived = Life(stable, make_place(folder, story, url=url), random.Random(0), kills=0).live()
    assert not lived.problems, lived.problems
    return lived
