"""Write coverage in the tracefile format of LCOV, so that editors and services paint documents.

Each line that something is decided on has a `DA`. Each question that is decided there is a block of branches (`BRDA`),
numbered from 0 on its line, so that an edit elsewhere does not change the numbers. A step is a line, not a branch. A
branch of a question that no run came to has `-` in place of a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from quire.testing.coverage.decisions import decision_id
from quire.values import clean

if TYPE_CHECKING:
    from quire.testing.coverage.decisions import Decision
    from quire.testing.coverage.report import DocumentCoverage


def lcov(coverages: Iterable[DocumentCoverage], name: str = "quire") -> str:
    """Return the tracefile of some documents. `name` has only letters, digits and `_`, as the format asks."""
    return "".join(f"{line}\n" for coverage in coverages for line in _record(coverage, name))


def _record(coverage: DocumentCoverage, name: str) -> Iterator[str]:
    lines: dict[int, list[Decision]] = {}
    for decision in coverage.decisions:
        lines.setdefault(coverage.line(decision), []).append(decision)
    reached = {one.block for one in coverage.decisions if coverage.count(one)}
    yield f"TN:{name}"
    yield f"SF:{_path(coverage.path)}"
    found = hit = 0
    for line in sorted(lines):
        for block, branches in enumerate(_blocks(lines[line])):
            counts = [coverage.count(one) for one in branches]
            asked = not reached.isdisjoint((branches[0].block, decision_id("steps", branches[0].place)))
            for branch, count in enumerate(counts):
                yield f"BRDA:{line},{block},{branch},{count if asked else '-'}"
            found += len(counts)
            hit += sum(1 for count in counts if count)
    yield f"BRF:{found}"
    yield f"BRH:{hit}"
    most = {line: max(map(coverage.count, decisions)) for line, decisions in sorted(lines.items())}
    for line, count in most.items():
        yield f"DA:{line},{count}"
    yield f"LF:{len(most)}"
    yield f"LH:{sum(1 for count in most.values() if count)}"
    yield "end_of_record"


def _blocks(decisions: list[Decision]) -> list[list[Decision]]:
    """Return the branches of a line, grouped by the question that they decide, in the order of the document."""
    blocks: dict[str, list[Decision]] = {}
    for decision in decisions:
        if decision.kind != "steps":
            blocks.setdefault(decision.block, []).append(decision)
    return list(blocks.values())


def _path(path: str) -> str:
    """Return a path on one line: a line end in a name would begin another record."""
    return clean(path).replace("\r", " ").replace("\n", " ")
