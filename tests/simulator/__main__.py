"""Many cases: `python -m tests.simulator --seeds 200`. One that fails is printed with how to see it again."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from tests.documents import FORMATS
from tests.simulator.case import Case, Verdict, check
from tests.simulator.databases import Shelves, shelves_of
from tests.simulator.shrink import shrunk

COMMAND = "python -m tests.simulator"


@dataclass(frozen=True, slots=True)
class Tally:
    """What one seed came to, small enough to be sent from process to process."""

    seed: int
    problems: list[str]
    counts: dict[str, int] = field(default_factory=dict)


def run_seed(seed: int, format: str = "", store: str = "") -> Tally:
    case = Case.of_seed(seed, format)
    try:
        verdict = check(case, shelves_of(store))
    except Exception as error:
        return Tally(seed, [f"{type(error).__name__}: {error}"])
    return Tally(seed, verdict.problems, _counts(verdict))


def _counts(verdict: Verdict) -> dict[str, int]:
    lived = verdict.lived
    if lived is None:
        return {}
    counts = Counter({"drives": lived.witness.drives, "effects": lived.witness.performed})
    counts["points"] = sum(process.points for process in lived.processes)
    counts["deaths"] = sum(process.dead for process in lived.processes)
    counts[lived.row.format] += 1
    for line in verdict.trace:
        counts["fenced"] += "Fenced" in line
        counts["busy"] += "RunBusy" in line
    return dict(counts)


def main(arguments: Sequence[str] | None = None, *, store: str = "", command: str = "") -> int:
    """`store` and `command` are for whoever has a server at hand: its URL, and how to come back to it."""
    parser = argparse.ArgumentParser(prog=command or COMMAND, description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many (200)")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first of them (0)")
    parser.add_argument("--seed", type=int, help="only this one, told in full")
    parser.add_argument("--format", choices=list(FORMATS), default="", help="only documents of this format")
    parser.add_argument("--jobs", type=int, default=1, help="processes to use (1)")
    parser.add_argument("--replay", metavar="CODE", help="a case as it was printed")
    parser.add_argument("--shrink-seconds", type=float, default=60.0, help="how long to make a failing case smaller")
    parser.add_argument("--store", metavar="URL", default=store, help="a PostgreSQL database, in schemas of its own")
    given = parser.parse_args(arguments)
    again = command or (f"{COMMAND} --store URL" if given.store else COMMAND)
    if given.replay is not None:
        return tell(Case.decoded(given.replay), again, shelves_of(given.store))
    if given.seed is not None:
        return tell(Case.of_seed(given.seed, given.format), again, shelves_of(given.store))
    return run_many(given, again)


def run_many(given: argparse.Namespace, again: str) -> int:
    seeds, format = range(given.first, given.first + given.seeds), given.format
    began = time.monotonic()
    totals: Counter[str] = Counter()
    failed: list[Tally] = []
    for tally in _tallies(seeds, format, given.store, given.jobs):
        totals.update(tally.counts)
        if tally.problems:
            failed.append(tally)
            only = f" --format {format}" if format else ""
            print(f"seed {tally.seed}: {tally.problems[0]}\n  again: {again} --seed {tally.seed}{only}", flush=True)
    taken = time.monotonic() - began
    told = ", ".join(f"{count} {name}" for name, count in sorted(totals.items()))
    print(f"{len(seeds)} seeds in {taken:.1f} s ({len(seeds) / max(taken, 0.001):.1f} a second): {told}")
    if not failed:
        return 0
    print(f"{len(failed)} failed; seed {failed[0].seed} is made smaller:")
    shelves = shelves_of(given.store)
    case = Case.of_seed(failed[0].seed, format)
    tell(shrunk(case, lambda case: check(case, shelves).problems, seconds=given.shrink_seconds), again, shelves)
    return 1


def _tallies(seeds: range, format: str, store: str, jobs: int) -> Iterator[Tally]:
    if jobs == 1:
        yield from (run_seed(seed, format, store) for seed in seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_seed, seeds, [format] * len(seeds), [store] * len(seeds), chunksize=4)


def tell(case: Case, again: str, shelves: Shelves) -> int:
    """One case: its documents, its faults, how its processes ended, what is wrong."""
    scenario = case.scenario()
    for name, text in scenario.files.items():
        print(f"--- {name}\n{text}")
    print(f"--- {len(case.faults)} faults")
    for fault in case.faults:
        print(f"{fault.kind} of process {fault.process} at {fault.at}")
    verdict = check(case, shelves)
    print("--- what happened")
    print("\n".join(verdict.trace))
    print("--- problems" if verdict.problems else "--- no problems")
    print("\n".join(verdict.problems))
    print(f"again: {again} --replay {case.encoded()}")
    return 1 if verdict.problems else 0


if __name__ == "__main__":
    sys.exit(main())
