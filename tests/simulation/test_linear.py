"""The journal grows with the effects, not with the square of them, and a replay adds nothing to it."""

from __future__ import annotations

from pathlib import Path

from tests.simulator.case import live
from tests.simulator.faults import Fault
from tests.simulator.lifecycle import Lived
from tests.simulator.scenario import Scenario


def many(count: int) -> Scenario:
    items = ", ".join(f"i{number}" for number in range(count))
    text = (
        f"pipeline: p\nsteps:\n- for_each: {{items: [{items}], max_parallel: 4, on_error: abort, "
        "do: {tool: {name: read, args: {of: !expr item}}}, collect: {transform: {value: pipe}}}\n"
    )
    return Scenario("many", {"p.yaml": text}, "p.yaml", max_parallel=4)


def lived(count: int, folder: Path, faults: tuple[Fault, ...] = ()) -> Lived:
    return live(many(count), folder, faults, "linear")


def size(lived: Lived) -> int:
    return sum(file.stat().st_size for file in lived.folder.glob("quire.db*"))


def test_bytes_are_linear_in_the_effects(tmp_path: Path) -> None:
    sizes = [size(lived(count, tmp_path / str(count))) for count in (200, 400, 800)]
    first, second = sizes[1] - sizes[0], sizes[2] - sizes[1]
    assert first > 0
    assert 1.5 * first < second < 2.6 * first, sizes


def test_crashes_add_a_constant_each(tmp_path: Path) -> None:
    calm = lived(200, tmp_path / "calm")
    faults = tuple(Fault(process, "crash", 90) for process in range(4))
    crashed = lived(200, tmp_path / "crashed", faults)
    assert crashed.witness.problems == []
    assert sum(process.dead for process in crashed.processes) == 4
    assert crashed.witness.results.total() == calm.witness.results.total() == 200
    # Each of the four had at most `max_parallel` calls under way.
    assert crashed.witness.performed <= 200 + 4 * 4
