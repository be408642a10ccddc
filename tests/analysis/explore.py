"""Compare what happens with what was proven: `python -m tests.analysis.explore --seeds 5000 --format pipeline`.

Documents of all formats are drawn, proven, and walked in worlds that draw their answers or make the walk as long as it
can become. Nothing may happen more often than proven, nor less often in a run that completes, and no tool may be
called that the envelope does not have.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.analysis.hard_worlds import STYLES, HardWorld, thread_paths
from tests.analysis.workspaces import OpenedDocument, sizes_of
from tests.documents import DOCUMENTS
from tests.documents.draw import Draw
from tests.documents.sized import draw_inputs
from tests.simulator.scenario import Scenario
from tests.walks.answers import WalkEnd, WalkLimits
from tests.walks.pure_walk import run_pure
from tests.walks.runs import with_inputs

from quire.analysis.amounts import total
from quire.analysis.costs import COUNTED, OUTPUT_OF, SURE_INPUT_OF, TOOLS_OF, WINDOW_OF
from quire.analysis.proof import Proof
from quire.engine.ports import ModelCall
from quire.engine.records import Status
from quire.engine.requests import HumanRequest, ModelRequest, ToolRequest
from quire.errors import QuireError
from quire.library.capability_words import Words
from quire.models.tokens import call_tokens_at_most
from quire.trust.capabilities import Grants, canonical, capability
from quire.values import Value

MOST_EFFECTS = 6_000
MOST_EFFECTS_OF_A_TREE = 1_500
"""Less for directives: the proofs of a tree of threads are far above what a walk can do."""
WALKS = 6
"""Worlds that each document is walked in."""


@dataclass(slots=True)
class Tally:
    """The result of one seed."""

    seed: int
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def seen_in(end: WalkEnd) -> dict[str, int]:
    """Count what happened in a walk. Calls that a limit refused were not made."""
    asked = end.asked.values()
    return {
        "model_calls": sum(
            isinstance(one, ModelRequest) and (one.bounds is None or one.bounds.reached is None) for one in asked
        ),
        "tool_calls": sum(isinstance(one, ToolRequest) for one in asked),
        "questions": sum(isinstance(one, HumanRequest) for one in asked),
        "threads": len(thread_paths(end.asked)),
        "output_tokens": sum(meter.output_tokens for meter in end.meters.values()),
        "input_tokens": sum(_read_by(one) for one in asked if isinstance(one, ModelRequest)),
    }


def _read_by(request: ModelRequest) -> int:
    """Return the tokens of a call if its texts have as many as they can."""
    return call_tokens_at_most(
        ModelCall(request.system, request.messages, request.closing, schema=request.schema, tools=request.tools)
    )


def proven_for(proof: Proof, inputs: Mapping[str, Value]) -> dict[str, int | None]:
    """Return the bounds for these inputs; None where there is none. Sizes of parts that are not there are 0."""
    sizes = sizes_of(inputs)
    amounts = {kind: proof.cost.amount(kind) for kind in COUNTED}
    outputs = [proof.cost.amount(kind) for kind in proof.cost.kinds() if kind.startswith(OUTPUT_OF)]
    found: dict[str, int | None] = {}
    for kind, amount in amounts.items():
        known = {size: sizes.get(size, 0) for size in amount.sizes}
        found[kind] = amount.with_sizes(known).as_number
    tokens: list[int | None] = [
        one.with_sizes({size: sizes.get(size, 0) for size in one.sizes}).as_number for one in outputs
    ]
    found["output_tokens"] = None if None in tokens else sum(one or 0 for one in tokens)
    if not any(kind.startswith(WINDOW_OF) for kind in proof.cost.kinds()):
        read = total(proof.cost.amount(kind) for kind in proof.cost.kinds() if kind.startswith(SURE_INPUT_OF))
        found["input_tokens"] = read.with_sizes({size: sizes.get(size, 0) for size in read.sizes}).as_number
    return found


def broken(opened: OpenedDocument, inputs: Mapping[str, Value], end: WalkEnd) -> Iterator[str]:
    """Yield what a walk has shown to be wrong about the proof."""
    proof, seen = opened.proof, seen_in(end)
    for kind, most in proven_for(proof, inputs).items():
        if most is not None and seen[kind] > most:
            yield f"{seen[kind]} {kind}, and {most} proven"
        if end.status is Status.COMPLETED and kind in COUNTED and seen[kind] < proof.bound(kind).least:
            yield f"{seen[kind]} {kind} in a completed run, and at least {proof.bound(kind).least} proven"
    yield from _outside(opened, end)


def _outside(opened: OpenedDocument, end: WalkEnd) -> Iterator[str]:
    """Yield the calls that are not among the effects of the proof, or of a class that it does not count."""
    proof = opened.proof
    if proof.unknown or proof.incomplete:
        return
    held = Grants.of(fact.tool.capability for fact in proof.effects)
    words = Words({"sim": None})
    classes = {kind.removeprefix(TOOLS_OF) for kind in proof.cost.kinds() if kind.startswith(TOOLS_OF)}
    for request in end.asked.values():
        if not isinstance(request, ToolRequest) or (request.grants is not None and request.connection == "rye"):
            continue
        if request.grants is not None and not Grants.of(request.grants).allows("execute", "tool", request.tool):
            continue
        named = canonical(request.tool)
        asked = words.tool(request.connection, request.tool)
        for needed in asked if request.grants is None else (capability("execute", "tool", named),):
            if not held.covers(needed):
                yield f"{request.tool} was called, which needs {needed}, outside of {sorted(held.patterns)[:5]}"
    if not classes and any(isinstance(one, ToolRequest) and one.grants is None for one in end.asked.values()):
        yield "tools were called, and no class of them is counted"


def explore_seed(seed: int, format: str, walks: int = WALKS) -> Tally:
    """Draw the document of a seed, prove it, and walk it in several worlds."""
    tally = Tally(seed)
    scenario = DOCUMENTS[format](Draw.seeded(f"{format} {seed}"))
    with tempfile.TemporaryDirectory(prefix="quire-", ignore_cleanup_errors=True) as folder:
        try:
            opened = OpenedDocument(scenario, Path(folder))
        except QuireError:
            tally.counts["not started"] += 1
            return tally
        try:
            for number in range(walks):
                _walk(opened, scenario, seed, number, tally)
        finally:
            opened.close()
    return tally


def _walk(opened: OpenedDocument, scenario: Scenario, seed: int, number: int, tally: Tally) -> None:
    inputs = dict(opened.start.pins.inputs)
    if scenario.name == "sized":
        drawn = draw_inputs(Draw.seeded(f"inputs {seed} {number}"), long=number > 2)
        inputs = {name: value for name, value in drawn.items() if name in inputs or opened.plan.declared is None}
        if not _fits(opened, inputs):
            inputs = dict(opened.start.pins.inputs)
    style = STYLES[number % len(STYLES)]
    starts = tuple(sorted(name.removeprefix(".ai/directives/").removesuffix(".md") for name in scenario.files))
    directives = starts if scenario.name == "directive" else ()
    directives = tuple(name for name in directives if name.startswith("sim/"))
    documents = tuple(
        name.removeprefix("pipelines/").removesuffix(".yaml")
        for name in scenario.files
        if name.startswith("pipelines/")
    )
    world = HardWorld(seed * 100 + number, style, opened.load, directives, documents)
    limits = WalkLimits(max_effects=MOST_EFFECTS if scenario.name != "directive" else MOST_EFFECTS_OF_A_TREE)
    try:
        end = run_pure(with_inputs(opened.start, inputs).walk, world, limits=limits, listen=lambda said: None)
    except QuireError:
        tally.counts["refused"] += 1
        return
    tally.counts[str(end.status)] += 1
    tally.counts["walks"] += 1
    for name, count in seen_in(end).items():
        tally.counts[name] += count
    tally.problems += [f"world {number} ({style}): {problem}" for problem in broken(opened, inputs, end)]


def _fits(opened: OpenedDocument, inputs: Mapping[str, Value]) -> bool:
    from quire.engine.declared_inputs import complete_declared

    try:
        if opened.plan.declared is not None:
            complete_declared(opened.start.plan, inputs)
    except QuireError:
        return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.analysis.explore", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many (200)")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first of them (0)")
    parser.add_argument("--seed", type=int, help="only this one, with its documents")
    parser.add_argument("--format", choices=list(DOCUMENTS), help="only documents of this format")
    parser.add_argument("--walks", type=int, default=WALKS, help=f"worlds for each document ({WALKS})")
    parser.add_argument("--jobs", type=int, default=1, help="processes to use (1)")
    given = parser.parse_args(arguments)
    formats = [given.format] if given.format else list(DOCUMENTS)
    if given.seed is not None:
        return max(_tell(given.seed, format, given.walks) for format in formats)
    return max(_many(format, given) for format in formats)


def _many(format: str, given: argparse.Namespace) -> int:
    began, totals, failed = time.monotonic(), Counter[str](), 0
    seeds = range(given.first, given.first + given.seeds)
    for tally in _tallies(seeds, format, given.walks, given.jobs):
        totals.update(tally.counts)
        if tally.problems:
            failed += 1
            if failed <= 20:
                print(f"{format} seed {tally.seed}: {tally.problems[0]}", flush=True)
    told = ", ".join(f"{count:,} {name}" for name, count in sorted(totals.items()))
    print(f"{format}: {len(seeds):,} seeds in {time.monotonic() - began:.0f} s, {failed} broke a proof; {told}")
    return int(failed > 0)


def _tallies(seeds: range, format: str, walks: int, jobs: int) -> Iterator[Tally]:
    if jobs == 1:
        yield from (explore_seed(seed, format, walks) for seed in seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(explore_seed, seeds, [format] * len(seeds), [walks] * len(seeds), chunksize=16)


def _tell(seed: int, format: str, walks: int) -> int:
    for name, text in DOCUMENTS[format](Draw.seeded(f"{format} {seed}")).files.items():
        print(f"--- {name}\n{text}")
    tally = explore_seed(seed, format, walks)
    print("\n".join(tally.problems) or "no problems", dict(tally.counts))
    return int(bool(tally.problems))


if __name__ == "__main__":
    sys.exit(main())
