"""The same on PostgreSQL: clients that are killed, and a server that is."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.documents import STORIES, Story
from tests.chaos.life import Life, calm_life
from tests.chaos.stable import Stable
from tests.chaos.storm import storm, told
from tests.chaos.workspace import make_place
from tests.depth import depth

pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg, of the extra cluster")

from tests.stores.postgres_server import PostgresServer, shared_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks after its processes in the way of Linux")

KILLS = depth(4, 20)
COULD_NOT_GO_ON = (2, 3)
"""Before it began, and in the middle."""


class MortalServer(PostgresServer):
    """Dies as a machine's memory killer would have it, and is started again."""

    def kill(self) -> None:
        self._killed = int((self._folder / "postmaster.pid").read_text().split()[0])
        os.kill(self._killed, signal.SIGKILL)

    def revive(self) -> None:
        """It does not start while its predecessor has not been reaped, or has children that did not notice yet."""
        deadline = time.monotonic() + 30
        while Path(f"/proc/{self._killed}").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        while True:
            try:
                return self.start()
            except subprocess.CalledProcessError:
                if time.monotonic() > deadline:
                    raise


@pytest.fixture(scope="module")
def mortal() -> Iterator[MortalServer]:
    server = MortalServer(Path(tempfile.mkdtemp(prefix="quire-pg-")))
    yield server
    server.remove()


@pytest.mark.parametrize("story", STORIES[1:], ids=lambda story: str(story.name))
def test_clients_are_killed(story: Story, tmp_path: Path, stables: list[Stable]) -> None:
    server = shared_server()
    found = storm(
        stables,
        tmp_path,
        story,
        KILLS,
        int(time.time()),
        url=lambda: server.url(schema=server.new_schema()),
        kills_per_life=10,
    )
    assert not found.report, found.report
    assert found.kills >= KILLS


@pytest.mark.parametrize("story", STORIES[2:], ids=lambda story: str(story.name))
def test_the_server_is_killed_while_a_run_goes_on(
    mortal: MortalServer, story: Story, tmp_path: Path, stable: Stable
) -> None:
    seed = int(time.time())
    draw = random.Random(seed)

    away = False

    def strike() -> bool:
        nonlocal away
        mortal.kill()
        away = True
        both = draw.random() < 0.3
        if not both:
            repair()
        return both

    def repair() -> None:
        nonlocal away
        if away:
            mortal.revive()
            away = False

    calm = calm_life(stable, tmp_path / "calm", story, mortal.url(schema=mortal.new_schema()))
    place = make_place(tmp_path / "struck", story, url=mortal.url(schema=mortal.new_schema()))
    life = Life(stable, place, draw, kills=3, cold_share=0, strike=strike, repair=repair, tolerated=COULD_NOT_GO_ON)
    lived = life.live()
    assert not lived.problems, told(lived, seed, story)
    life.judge.end(lived.sight, calm.sight, place.folder, calm.place.folder)
    assert not life.judge.problems, told(lived, seed, story)
    assert lived.output == calm.output
    assert lived.kills >= 1
    assert not any("Traceback" in said for said in lived.said)
