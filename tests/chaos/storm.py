"""Many lives, one after the other, until enough processes were killed; and what to print when one goes wrong."""

from __future__ import annotations

import itertools
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from tests.chaos.documents import Story
from tests.chaos.life import Life, Lived, calm_life
from tests.chaos.stable import Stable
from tests.chaos.workspace import Place, make_place

KILLS_PER_LIFE = 16


@dataclass(slots=True)
class Storm:
    """What came of it. `kills` counts processes that died of one, not attempts that came too late. `report` is empty as
    long as nothing was found."""

    kills: int = 0
    lives: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    report: str = ""

    def add(self, lived: Lived, seed: int) -> None:
        self.kills += lived.deaths
        self.lives += 1
        self.hits += lived.hits
        if lived.problems:
            self.report += told(lived, seed, lived.place.story)

    def __str__(self) -> str:
        where = "".join(f"\n  {count:5} {name}" for name, count in self.hits.most_common())
        return f"{self.kills} kills in {self.lives} runs{where}"


def storm(
    stables: Sequence[Stable],
    folder: Path,
    story: Story,
    kills: int,
    seed: int,
    *,
    url: Callable[[], str] = lambda: "",
    kills_per_life: int = KILLS_PER_LIFE,
) -> Storm:
    """Kills at least so many processes of runs of this story: one run after the other for each of the stables, and
    those side by side, since most of a short process is waiting for the disk.

    `url` makes the store of each run, where that is not a file in its workspace."""
    found = Storm()
    calm = calm_life(stables[0], folder / "calm", story, url())
    seeds, typical, turn = itertools.count(seed), dict[str, float](), Lock()
    under_way = 0

    def lives(stable: Stable) -> None:
        nonlocal under_way
        while not found.report:
            with turn:
                planned = min(kills_per_life, kills - found.kills - under_way)
                # Kills that never meet anybody alive are for the caller to see, not to go on with for ever.
                if planned <= 0 or found.lives > kills:
                    return
                under_way += planned
                seed = next(seeds)
            draw = random.Random(seed)
            place = folder / f"seed-{seed}"
            life = Life(stable, make_drawn(place, story, url(), draw), draw, kills=planned, typical=typical)
            lived = life.live()
            if not lived.problems:
                life.judge.end(lived.sight, calm.sight, lived.place.folder, calm.place.folder)
                if lived.output != calm.output:
                    life.judge.problems.append(f"the output is {lived.output!r}, undisturbed {calm.output!r}")
                lived.problems = life.judge.problems
            with turn:
                under_way -= planned
                found.add(lived, seed)
            if not lived.problems:
                shutil.rmtree(place)

    with ThreadPoolExecutor(len(stables)) as threads:
        list(threads.map(lives, stables))
    return found


def make_drawn(folder: Path, story: Story, url: str, draw: random.Random) -> Place:
    """Now and then the store has to be brought up to date first, or is one that loses the last moments of a power cut
    (and must not lose any by the death of a process)."""
    old = not url and draw.random() < 0.25
    return make_place(
        folder, story, url=url, old_database=old, durability="process" if draw.random() < 0.3 else "power"
    )


def told(lived: Lived, seed: int, story: Story) -> str:
    """All that helps to find out. The moments of the kills are not the same twice, so the seed alone does not do."""
    problems = "\n".join(lived.problems)
    journal = "\n".join(
        f"  {run.row.id} {path}: {record.state}" for run in lived.sight.runs for path, record in run.effects.items()
    )
    ledger = "\n".join(f"  process {one.life}: {one.tool} {one.effect}" for one in lived.sight.ledger)
    return (
        f"{problems}\n\nseed {seed}, {story.name}; left in {lived.place.folder}\nprocesses:\n"
        + "\n".join(lived.told)
        + f"\njournal:\n{journal}\ntools:\n{ledger}\n"
        + f"to try again (the moments differ): make chaos N=200 STORY={story.name} SEED={seed}"
    )
