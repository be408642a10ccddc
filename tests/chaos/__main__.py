"""`make chaos N=2000`: kills real processes until enough of them died, and says what that found.

python -m tests.chaos --kills 2000 [--story playbook|pipeline|directive] [--store sqlite|postgresql] [--seed 1]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.documents import STORIES
from tests.chaos.stable import Stable
from tests.chaos.storm import Storm, storm


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=2_000)
    parser.add_argument("--story", choices=[story.name for story in STORIES], action="append")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    stories = [story for story in STORIES if not asked.story or story.name in asked.story]
    folder = Path(tempfile.mkdtemp(prefix="quire-chaos-"))
    failed = False
    with Stable(folder / "stable") as stable, Stable(folder / "other") as other:
        for story in stories:
            started = time.monotonic()
            found = _storm([stable, other], folder / story.name, story.name, -(-asked.kills // len(stories)), asked)
            print(
                f"{story.name} on {asked.store}, seed {asked.seed}: {found} ({time.monotonic() - started:.0f} s)",
                flush=True,
            )
            if found.report:
                failed = True
                print(found.report)
    if not failed:
        shutil.rmtree(folder)
    return 1 if failed else 0


def _storm(stables: list[Stable], folder: Path, name: str, kills: int, asked: argparse.Namespace) -> Storm:
    story = next(story for story in STORIES if story.name == name)
    if asked.store == "sqlite":
        return storm(stables, folder, story, kills, asked.seed)
    from tests.stores.postgres_server import shared_server

    server = shared_server()
    return storm(stables, folder, story, kills, asked.seed, url=lambda: server.url(schema=server.new_schema()))


if __name__ == "__main__":
    sys.exit(main())
