"""All that can be seen of a workspace between two processes: its store, and what its tools wrote down."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.workspace import Place

from quire.engine.ports import Store
from quire.engine.records import Answer, EffectRecord, Event, Letter, Question, RunRow, Status
from quire.stores import open_store
from quire.trust.seal import user_seal


@dataclass(frozen=True, slots=True)
class Performed:
    """A tool was called: by which process of the run's life, under which effect id."""

    life: int
    tool: str
    effect: str


@dataclass(slots=True)
class RunSeen:
    row: RunRow
    effects: dict[str, EffectRecord]
    events: Sequence[Event]
    questions: Sequence[Question]
    answers: dict[str, Answer]

    def results(self) -> dict[str, EffectRecord]:
        return {path: record for path, record in self.effects.items() if record.state != "intent"}


@dataclass(slots=True)
class Sight:
    runs: list[RunSeen] = field(default_factory=list)
    letters: Sequence[Letter] = ()
    ledger: list[Performed] = field(default_factory=list)
    damage: str = ""
    schema: int = 0

    @property
    def main(self) -> RunSeen | None:
        """The run that `quire run` made; launched ones have ids of their own kind."""
        return next((run for run in self.runs if not run.row.id.startswith("L")), None)

    @property
    def unfinished(self) -> list[RunSeen]:
        return [run for run in self.runs if run.row.status is not Status.COMPLETED]

    @property
    def done(self) -> bool:
        return self.main is not None and not self.unfinished


def effect_id(run: str, path: str) -> str:
    return hashlib.sha256(f"{run}\n{path}".encode()).hexdigest()[:32]


def look(place: Place, scratch: Path) -> Sight:
    sight = Sight(ledger=_ledger(place.folder / place.story.ledger))
    if place.url or place.database.exists():
        if not place.url:
            # What a crash left in the file stays for the next process to find, unless others are at work there.
            database = place.database if place.shared else place.copy(scratch)
            sight.damage, sight.schema = _inspect(database)
        seal = user_seal(Path(place.environ["QUIRE_HOME"]), {})
        asyncio.run(_read(open_store(place.url or database, seal=seal), sight, place.story.titles))
    return sight


async def _read(store: Store, sight: Sight, titles: Collection[str]) -> None:
    try:
        for row in await store.list():
            if row.title not in titles:
                continue
            sight.runs.append(
                RunSeen(
                    row,
                    {record.path: record for record in await store.effects(row.id)},
                    await store.events(row.id),
                    await store.questions(row.id),
                    {answer.path: answer for answer in await store.answers(row.id)},
                )
            )
        sight.letters = await store.letters()
    finally:
        await store.close()


def _ledger(file: Path) -> list[Performed]:
    if not file.exists():
        return []
    lines = [line.split(" ") for line in file.read_text().splitlines()]
    return [Performed(int(life), tool, effect) for life, tool, effect in lines]


def _inspect(database: Path) -> tuple[str, int]:
    """What SQLite finds wrong with the file, and the version of its tables."""
    connection = sqlite3.connect(database)
    try:
        found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        return str(error), 0
    finally:
        connection.close()
    return ("" if found == ["ok"] else "; ".join(found)), version
