"""Many cases: `python -m quire.testing.simulator --seeds 200`. One that fails is printed with how to see it again."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from quire.testing.simulator.case import Case, Verdict, check
from quire.testing.simulator.generate import FORMATS
from quire.testing.simulator.shrink import shrunk

COMMAND = "python -m quire.testing.simulator"


@dataclass(frozen=True, slots=True)
class Tally:
    """What one seed came to, small enough to be sent from process to process."""

    seed: int
    problems: list[str]
    counts: dict[str, int] = field(default_factory=dict)


def run_seed(seed: int, format: str = "") -> Tally:
    case = Case.of_seed(seed, format)
    try:
        verdict = check(case)
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


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many (200)")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first of them (0)")
    parser.add_argument("--seed", type=int, help="only this one, told in full")
    parser.add_argument("--format", choices=list(FORMATS), default="", help="only documents of this format")
    parser.add_argument("--jobs", type=int, default=1, help="processes to use (1)")
    parser.add_argument("--replay", metavar="CODE", help="a case as it was printed")
    parser.add_argument("--shrink-seconds", type=float, default=60.0, help="how long to make a failing case smaller")
    given = parser.parse_args()
    if given.replay is not None:
        return tell(Case.decoded(given.replay))
    if given.seed is not None:
        return tell(Case.of_seed(given.seed, given.format))
    return run_many(range(given.first, given.first + given.seeds), given.format, given.jobs, given.shrink_seconds)


def run_many(seeds: range, format: str, jobs: int, shrink_seconds: float) -> int:
    began = time.monotonic()
    totals: Counter[str] = Counter()
    failed: list[Tally] = []
    for tally in _tallies(seeds, format, jobs):
        totals.update(tally.counts)
        if tally.problems:
            failed.append(tally)
            only = f" --format {format}" if format else ""
            print(f"seed {tally.seed}: {tally.problems[0]}\n  again: {COMMAND} --seed {tally.seed}{only}", flush=True)
    taken = time.monotonic() - began
    told = ", ".join(f"{count} {name}" for name, count in sorted(totals.items()))
    print(f"{len(seeds)} seeds in {taken:.1f} s ({len(seeds) / max(taken, 0.001):.1f} a second): {told}")
    if not failed:
        return 0
    print(f"{len(failed)} failed; seed {failed[0].seed} is made smaller:")
    tell(shrunk(Case.of_seed(failed[0].seed, format), seconds=shrink_seconds))
    return 1


def _tallies(seeds: range, format: str, jobs: int) -> Iterator[Tally]:
    if jobs == 1:
        yield from (run_seed(seed, format) for seed in seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_seed, seeds, [format] * len(seeds), chunksize=4)


def tell(case: Case) -> int:
    """One case: its documents, its faults, how its processes ended, what is wrong."""
    scenario = case.scenario()
    for name, text in scenario.files.items():
        print(f"--- {name}\n{text}")
    print(f"--- {len(case.faults)} faults")
    for fault in case.faults:
        print(f"{fault.kind} of process {fault.process} at {fault.at}")
    verdict = check(case)
    print("--- what happened")
    print("\n".join(verdict.trace))
    print("--- problems" if verdict.problems else "--- no problems")
    print("\n".join(verdict.problems))
    print(f"again: {COMMAND} --replay {case.encoded()}")
    return 1 if verdict.problems else 0


if __name__ == "__main__":
    sys.exit(main())
