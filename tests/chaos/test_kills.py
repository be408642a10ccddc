"""Real processes, killed with -9 at random moments: the next one goes on, and in the end nothing is missing or twice.

This is the small version; `make test-long` kills more of them, and `make chaos N=2000` as many as one likes. A failure
prints the seed and all that is known; a test that fails once in a hundred times has found something all the same.
"""

from __future__ import annotations

import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.chaos.documents import STORIES, Story
from tests.chaos.life import Life, Lived, calm_life
from tests.chaos.stable import Stable
from tests.chaos.storm import storm, told
from tests.chaos.workspace import make_place, settle_in
from tests.depth import depth

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks after its processes in the way of Linux")

KILLS = depth(6, 100)
"""Of each story, however long a slow machine takes for them."""

NEIGHBOUR_KILLS = depth(3, 10)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: str(story.name))
def test_kill_9_at_any_moment(story: Story, tmp_path: Path, stables: list[Stable]) -> None:
    found = storm(stables, tmp_path, story, KILLS, int(time.time()), kills_per_life=10)
    assert not found.report, found.report
    assert found.kills >= KILLS
    assert sum(found.hits.values()) == found.kills


def test_the_death_of_one_does_not_harm_its_neighbour(tmp_path: Path, stables: list[Stable]) -> None:
    """Two runs are driven and killed at the same time, on one database."""
    seed = int(time.time())
    stories = STORIES[0], STORIES[1]
    calm = [calm_life(stables[0], tmp_path / f"calm-{story.name}", story) for story in stories]
    host = replace(make_place(tmp_path / "both", stories[0]), shared=True)
    places = [host, settle_in(host, stories[1])]
    with ThreadPoolExecutor(2) as threads:
        lives = [
            Life(one, place, random.Random(seed + number), kills=NEIGHBOUR_KILLS)
            for number, (one, place) in enumerate(zip(stables, places, strict=True))
        ]
        both: list[Lived] = list(threads.map(lambda life: life.live(), lives))
    for life, lived, undisturbed in zip(lives, both, calm, strict=True):
        assert not lived.problems, told(lived, seed, life.place.story)
        life.judge.end(lived.sight, undisturbed.sight, life.place.folder, undisturbed.place.folder)
        assert not life.judge.problems, told(lived, seed, life.place.story)
        assert lived.output == undisturbed.output
    # A short life may come to its end between two plans to kill it; its neighbour's is long.
    assert any(lived.deaths for lived in both)
