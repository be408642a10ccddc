"""A disk that fills up under a run: it waits for room, says so in a line, and goes on where it was.

Processes that give up after a moment stand for those that give up after ten minutes.

The database lies on a file system in memory that is hardly larger than itself; where none can be mounted, and besides,
the files of the process may only grow to a certain size.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.chaos.documents import STORIES, Story
from tests.chaos.life import Life, Lived, calm_life
from tests.chaos.stable import Stable
from tests.chaos.storm import told
from tests.chaos.workspace import Place, make_place
from tests.depth import depth

from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import find_workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks after its processes in the way of Linux")

COULD_NOT_GO_ON = (2, 3)
"""Before it began, and in the middle."""

ROOM = 3_000_000
NO_ROOM = "no room left on the disk of"
DRIVES = depth(3, 8)
"""How many processes of a run have too little room."""


class SmallDisk:
    """A tmpfs in the place of the database's folder, and a file that takes all of it but a little."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)], capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")

    def leave(self, free: int) -> None:
        filler = self.folder / "filler"
        filler.unlink(missing_ok=True)
        room = _free(self.folder)
        if free < room:
            with suppress(OSError):  # a process that goes on writing was quicker: the disk is full
                filler.write_bytes(b"x" * (room - free))

    def empty(self) -> None:
        (self.folder / "filler").unlink(missing_ok=True)

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.folder)], check=True)


def _free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


@pytest.fixture
def small_disks() -> Iterator[Callable[[Place], SmallDisk]]:
    disks: list[SmallDisk] = []

    def mount(place: Place) -> SmallDisk:
        disks.append(SmallDisk(place.database.parent))
        return disks[-1]

    yield mount
    for disk in disks:
        disk.unmount()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: str(story.name))
def test_a_disk_that_fills_up(
    story: Story, tmp_path: Path, stable: Stable, small_disks: Callable[[Place], SmallDisk]
) -> None:
    seed = int(time.time())
    draw = random.Random(seed)
    place = impatient(make_place(tmp_path / "full", story))
    disk = small_disks(place)
    drives = iter(range(DRIVES))

    def disturb(left: int) -> None:
        if next(drives, None) is None:
            disk.empty()
        else:
            disk.leave(draw.choice((0, 4_096, draw.randrange(120_000))))

    life = Life(stable, place, draw, kills=0, gaps=True, disturb=disturb, tolerated=COULD_NOT_GO_ON)
    _same_in_the_end(life, calm_life(stable, tmp_path / "calm", story), seed, NO_ROOM)


@pytest.mark.parametrize("story", STORIES[1:], ids=lambda story: str(story.name))
def test_files_that_may_not_grow(story: Story, tmp_path: Path, stable: Stable) -> None:
    seed = int(time.time())
    draw = random.Random(seed)
    place = impatient(make_place(tmp_path / "full", story))
    drives = iter(range(DRIVES))

    def limit() -> int | None:
        if next(drives, None) is None:
            return None
        sizes = [file.stat().st_size for file in (place.database, place.log) if file.exists()]
        return max([16_384, *sizes]) + draw.randrange(40_000)

    life = Life(stable, place, draw, kills=0, gaps=True, file_limit=limit, tolerated=COULD_NOT_GO_ON)
    _same_in_the_end(life, calm_life(stable, tmp_path / "calm", story), seed, NO_ROOM, "check the disk and its quota")


def impatient(place: Place) -> Place:
    return replace(place, environ={**place.environ, "CHAOS_PATIENCE": "0.2"})


MANY = """pipeline: many
steps:
- for_each:
    over: ctx.items
    max_items: 100
    max_parallel: 3
    on_error: abort
    do: {tool: {name: count, args: {item: "{item}"}}}
    collect: {transform: {value: pipe}}
    output: done
"""
COUNT = """
import os, time
from pathlib import Path
from quire import tool

@tool(name="count")
def count(item: str, effect_id: str) -> str:
    with Path(os.environ["LEDGER"]).open("a") as file:
        file.write(effect_id + "\\n")
    time.sleep(0.05)
    return "x" * 3000
"""


def test_effects_that_have_ended_wait_for_room(tmp_path: Path, small_disks: Callable[[Place], SmallDisk]) -> None:
    """reliability M3: their results are in hand; given up, they would be performed again."""
    work, ledger = tmp_path / "work", tmp_path / "ledger"
    work.mkdir()
    (work / "quire.toml").write_text('[tools]\nmodules = ["counting"]\nallow = ["count"]\n')
    (work / "counting.py").write_text(COUNT)
    (work / "many.yaml").write_text(MANY)
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home"), "LEDGER": str(ledger)}
    confirm(load_settings(find_workspace(work), environ))
    disk = small_disks(Place(work, STORIES[0]))
    command = [sys.executable, "-m", "quire", "run", "many.yaml", "-i", f"items={list(range(60))}"]
    with subprocess.Popen(command, cwd=work, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as quire:
        try:
            until(lambda: ledger.exists() and ledger.read_text().count("\n") > 10)
            disk.leave(0)
            assert quire.stderr is not None
            while b"nothing can be recorded yet, trying again: no room left" not in (line := quire.stderr.readline()):
                assert line, "it ended"
            time.sleep(1.0)
            disk.empty()
            quire.communicate(timeout=60)
        finally:
            quire.kill()
    assert quire.returncode == 0
    performed = ledger.read_text().split()
    assert len(performed) == len(set(performed)) == 60


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _same_in_the_end(life: Life, calm: Lived, seed: int, *words: str) -> None:
    lived = life.live()
    story = life.place.story
    assert not lived.problems, told(lived, seed, story)
    life.judge.end(lived.sight, calm.sight, life.place.folder, calm.place.folder)
    assert not life.judge.problems, told(lived, seed, story)
    assert lived.output == calm.output
    refused = [said for said, code in zip(lived.said, lived.codes, strict=True) if code in COULD_NOT_GO_ON]
    assert refused, "there was always enough room"
    for said in refused:
        first, *rest = said.strip().splitlines()
        assert first.startswith("quire: ") and any(one in first for one in words), said
        assert all(line.startswith("nothing that was recorded is lost: quire resume") for line in rest[:1]), said
        assert len(rest) <= 1, said
