"""Many lives, one after the other, until enough processes were killed; and what to print when one goes wrong."""

from __future__ import annotations

import math
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.documents import Story
from tests.chaos.life import Life, Lived, calm_life
from tests.chaos.stable import Stable
from tests.chaos.workspace import Place, make_place

KILLS_PER_LIFE = 16


@dataclass(slots=True)
class Storm:
    """What came of it. `report` is empty as long as nothing was found."""

    kills: int = 0
    lives: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    report: str = ""

    def __str__(self) -> str:
        where = "".join(f"\n  {count:5} {name}" for name, count in self.hits.most_common())
        return f"{self.kills} kills in {self.lives} runs{where}"


def storm(
    stable: Stable,
    folder: Path,
    story: Story,
    kills: int,
    seed: int,
    *,
    deadline: float = math.inf,
    url: Callable[[], str] = lambda: "",
    kills_per_life: int = KILLS_PER_LIFE,
) -> Storm:
    """Kills at least so many processes of runs of this story, or as many as can be until the deadline.

    `url` makes the store of each run, where that is not a file in its workspace."""
    found = Storm()
    calm = calm_life(stable, folder / "calm", story, url())
    typical: dict[str, float] = {}
    while found.kills < kills and time.monotonic() < deadline:
        draw = random.Random(seed)
        place = folder / f"seed-{seed}"
        life = Life(
            stable,
            make_drawn(place, story, url(), draw),
            draw,
            kills=min(kills_per_life, kills - found.kills),
            typical=typical,
            until=deadline,
        )
        lived = life.live()
        if not lived.problems:
            life.judge.end(lived.sight, calm.sight, lived.place.folder, calm.place.folder)
            if lived.output != calm.output:
                life.judge.problems.append(f"the output is {lived.output!r}, undisturbed {calm.output!r}")
            lived.problems = life.judge.problems
        found.kills += lived.kills
        found.lives += 1
        found.hits += lived.hits
        if lived.problems:
            found.report = told(lived, seed, story)
            return found
        shutil.rmtree(place)
        seed += 1
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
