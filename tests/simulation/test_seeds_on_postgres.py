"""Random documents under random faults, with PostgreSQL instead of a file. `make simulate STORE=postgresql` runs more.

The life without faults is on a file, so that both stores have to come to the same output and the same journal.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.depth import depth
from tests.simulation.documents import SCENARIOS, without_faults

pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg, of the extra cluster")

from tests.simulator.__main__ import main
from tests.simulator.case import Case, check, simulate
from tests.simulator.databases import SchemaShelf, Shelves, shelves_of
from tests.simulator.faults import Fault
from tests.stores.postgres_server import shared_server

from quire.engine.records import Status
from quire.stores.postgres import writer
from quire.stores.postgres.statements import PostgresStatements

SEEDS = {"playbook": depth(2, 12), "pipeline": depth(2, 12), "directive": depth(2, 8)}
PART = 2


@pytest.fixture(scope="module")
def url() -> str:
    return shared_server().url()


@pytest.fixture(scope="module")
def shelves(url: str) -> Shelves:
    return shelves_of(url)


@pytest.mark.parametrize(
    ("format", "first"), [(name, first) for name, count in SEEDS.items() for first in range(0, count, PART)]
)
def test_seeds_on_a_server(format: str, first: int, shelves: Shelves) -> None:
    for seed in range(first, first + PART):
        verdict = check(Case.of_seed(seed, format), shelves)
        again = f"python -m tests.simulation --format {format} --seed {seed}"
        assert not verdict.problems, (again, verdict.problems, verdict.trace)


@pytest.mark.parametrize("name", SCENARIOS)
def test_who_is_cut_off_from_the_server_is_fenced(name: str, shelves: Shelves) -> None:
    met = []
    calm = without_faults(name)
    for at in (1, 4, 9, 16):
        verdict = simulate(SCENARIOS[name], (Fault(0, "takeover", at),), at, shelves=shelves, calm=calm)
        assert not verdict.problems, (at, verdict.problems, verdict.trace)
        assert verdict.lived is not None and verdict.lived.row.status is Status.COMPLETED
        met += verdict.trace
    assert any("Fenced" in line for line in met), met


@pytest.mark.parametrize("name", SCENARIOS)
def test_who_meets_a_lock_does_not_get_the_run(name: str, shelves: Shelves) -> None:
    met = []
    calm = without_faults(name)
    for at in (1, 4, 9, 16):
        verdict = simulate(SCENARIOS[name], (Fault(0, "duplicate", at),), at, shelves=shelves, calm=calm)
        assert not verdict.problems, (at, verdict.problems, verdict.trace)
        met += verdict.trace
    assert any("RunBusy" in line for line in met), met


def test_a_store_that_never_fences_is_found(shelves: Shelves, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug is planted: whoever was taken over takes the epoch, and the end of the journal, for its own."""

    async def together(connection: Any, writes: Any, seal: Any) -> Any:
        for number, epoch, _, _, place in await (
            await connection.execute(PostgresStatements.LEARN, ([one.held.number for one in writes],))
        ).fetchall():
            for one in writes:
                if one.held.number == number:
                    one.held.epoch, one.held.tail.place = epoch, place
        return await honest(connection, writes, seal)

    async def not_alone(connection: Any, write: Any, seal: Any) -> None:
        return None

    honest = writer._write_together
    monkeypatch.setattr(writer, "_write_together", together)
    monkeypatch.setattr(writer, "_write_alone", not_alone)
    found: list[str] = []
    for at in (4, 9, 16, 12, 20, 33, 47):
        found += simulate(SCENARIOS["directive"], (Fault(0, "takeover", at),), at, shelves=shelves).problems
        if any("after it had been taken over" in problem for problem in found):
            return
    raise AssertionError(found)


def test_no_schema_is_left_behind(url: str) -> None:
    def there() -> bool:
        return shared_server().do("SELECT count(*) FROM pg_namespace WHERE nspname = %s", shelf.schema) == [(1,)]

    shelf = SchemaShelf(url)
    assert there()
    shelf.close()
    assert not there()


def test_the_command_on_a_server(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "2", "--format", "playbook", "--store", url]) == 0
    assert capsys.readouterr().out.startswith("2 seeds in ")
    assert main(["--seed", "0", "--format", "playbook", "--store", url]) == 0
    assert "python -m tests.simulator --store URL --replay " in capsys.readouterr().out
