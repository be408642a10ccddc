"""Real processes, killed with -9 at random moments: the next one goes on, and in the end nothing is missing or twice.

This is the small version; `make chaos N=2000` does the same for longer. A failure prints the seed and all that is
known; a test that fails once in a hundred times has found something all the same.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from tests.chaos.documents import STORIES, Story
from tests.chaos.stable import Stable
from tests.chaos.storm import storm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks after its processes in the way of Linux")

KILLS = 80
SECONDS = 11.0
FEWEST = 8
"""On the slowest machine. Fewer, and the test does not test."""


@pytest.mark.parametrize("story", STORIES, ids=lambda story: str(story.name))
def test_kill_9_at_any_moment(story: Story, tmp_path: Path, stable: Stable) -> None:
    deadline = time.monotonic() + SECONDS
    found = storm(stable, tmp_path, story, KILLS, int(time.time()), deadline=deadline, kills_per_life=8)
    assert not found.report, found.report
    assert found.kills >= FEWEST
