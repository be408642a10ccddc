"""Refuse questions in runs of generated documents: `python -m tests.analysis.refuse --seeds 5000`.

An effect that was called gated must not happen if one of its questions is refused wherever it is asked, however all
other questions are answered and whatever tools and models say. An effect that was called unreachable never happens.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Mapping

from tests.documents.gated import GatedPipelines, GatedPlaybooks
from tests.walks.answers import Performance, Performed, WalkLimits
from tests.walks.pure_walk import run_pure

from quire.analysis.approvals import REFUSALS, Gate, GateSearch, gates_of
from quire.analysis.proof import prove
from quire.engine.inputs import complete_inputs
from quire.engine.interpreter.callees import Environment
from quire.engine.interpreter.pipeline.interpret import interpret_pipeline
from quire.engine.interpreter.playbook.interpret import interpret
from quire.engine.premises import PureWork
from quire.engine.requests import HumanRequest, ModelRequest, ToolRequest, Walk
from quire.errors import StepFailed
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.library.proof_world import WorkspaceWorld
from quire.plan.nodes import Plan
from quire.source import Source
from quire.values import Value

WORDS = ("yes", "no", "send", "", "x")
LIMITS = WalkLimits(max_effects=500)


class KnownDocuments(WorkspaceWorld):
    """A world that has these callees, and no workspace."""

    def __init__(self, documents: Mapping[str, Plan]) -> None:
        super().__init__(Foresight(None), None)
        self._documents = documents

    def document(self, name: str) -> Plan | None:
        return self._documents.get(name)


class People:
    """Answers everything by chance, but some questions, by their ways, always in the same way."""

    def __init__(self, seed: int, always: Mapping[str, str]) -> None:
        self._draw = random.Random(seed)
        self._always = always
        self.effects: set[tuple[str, str]] = set()
        """The way and the number of each effect that happened."""

    def __call__(self, request: Performed) -> Performance | None:
        match request:
            case HumanRequest():
                return Performance(self._answer(request))
            case ToolRequest():
                command = request.arguments.get("command")
                self.effects.add((request.label, str(command[-1]) if isinstance(command, list | tuple) else ""))
                if self._draw.random() < 0.2:
                    raise StepFailed("broken", kind="tool", path=request.path)
                return Performance(self._result(request))
            case ModelRequest():
                return Performance({"text": self._draw.choice(WORDS)})
        return Performance(None)

    def _answer(self, request: HumanRequest) -> str:
        if request.label in self._always:
            return self._always[request.label]
        if request.kind == "confirm":
            return self._draw.choice(("yes", "yes", "no"))
        return self._draw.choice(request.options or WORDS)

    def _result(self, request: ToolRequest) -> Value:
        word = self._draw.choice(WORDS)
        return word if request.form == "text" or self._draw.random() < 0.7 else {"go": word, "code": 0}


class Refused:
    """One set of documents with its gates."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.plans: dict[str, Plan] = {}
        self.problems: list[str] = []
        for name, text in texts.items():
            reading = read(Source.of(text, f"{name}{'.playbook.md' if text.startswith('#') else '.yaml'}"))
            if reading.plan is None:
                self.problems += [f"{name}: {one.message}" for one in reading.diagnostics[:3]]
            else:
                self.plans[name] = reading.plan
        if "main" in self.plans:
            self.proof = prove(self.plans["main"], KnownDocuments(self.plans))
            self.gates = gates_of(self.proof)

    def begin(self, inputs: Mapping[str, Value]) -> Walk:
        work = PureWork()
        plan, setting = self.plans["main"], Environment(documents=self.plans, work=work)
        if plan.format == "pipeline":
            return interpret_pipeline(plan, inputs, setting)
        return interpret(plan, complete_inputs(plan, inputs), setting=setting)

    def effects(self, seed: int, always: Mapping[str, str]) -> set[tuple[str, str]]:
        """Return the effects that happen in a run."""
        draw = random.Random(seed)
        people = People(seed, always)
        inputs = {name: draw.choice(("yes", "no", "x")) for name in ("text", "flag")}
        run_pure(lambda work: self.begin(inputs), people, limits=LIMITS, listen=lambda said: None)
        return people.effects

    def broken(self, seed: int, tally: Counter[str]) -> Iterator[str]:
        """Yield what runs have shown to be wrong about the gates."""
        never = {_key(one) for one in self.gates if one.verdict == "never"} - {
            _key(one) for one in self.gates if one.verdict != "never"
        }
        for number in range(6):
            seen = self.effects(seed * 1_000 + number, {})
            tally["seen"] += len(seen)
            for key in seen & never:
                yield f"{key} happened, and was called unreachable"
        open_too = {_key(one) for one in self.gates if one.verdict not in ("gated", "never")}
        for gate in self.gates:
            tally[gate.verdict] += 1
            if gate.verdict != "gated" or _key(gate) in open_too:
                continue
            for always in _refusing(gate):
                for number in range(3):
                    tally["refused"] += 1
                    if _key(gate) in self.effects(seed * 1_000 + 500 + number, always):
                        yield f"{_key(gate)} happened although {always} ({gate.text})"


def _key(gate: Gate) -> tuple[str, str]:
    command = gate.effect.arguments.get("command")
    constant = command.constant if command is not None else None
    return gate.way, str(constant[-1]) if isinstance(constant, list | tuple) else _last(gate)


def _last(gate: Gate) -> str:
    """Return the number of an effect whose command is a list of a playbook."""
    fields = gate.effect.arguments["command"].fields
    return str(fields[str(len(fields) - 1)].constant)


def _refusing(gate: Gate) -> Iterator[dict[str, str]]:
    """Yield the answers by which a gate is refused: one question at a time, or all if they gate together."""
    if gate.jointly:
        for word in REFUSALS:
            yield {
                one.place.way: "no" if one.kind == "confirm" else word for one in gate.questions if one.kind != "select"
            }
        return
    search = GateSearch()
    for question in gate.questions:
        for word in search.refusals(question, gate.effect.conditions):
            yield {question.place.way: word}


def refuse_seed(seed: int, format: str, tally: Counter[str]) -> list[str]:
    """Draw the documents of a seed and refuse their questions."""
    texts = GatedPipelines(seed).documents() if format == "pipeline" else GatedPlaybooks(seed).documents()
    case = Refused(texts)
    if case.problems:
        tally["unreadable"] += 1
        return []
    return [f"{format} {seed}: {problem}" for problem in case.broken(seed, tally)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--format", choices=["pipeline", "playbook"], action="append")
    asked = parser.parse_args()
    tally: Counter[str] = Counter()
    problems: list[str] = []
    for format in asked.format or ["pipeline", "playbook"]:
        for seed in range(asked.first, asked.first + asked.seeds):
            problems += refuse_seed(seed, format, tally)
    print(dict(tally))
    print("\n".join(problems[:30]) or "nothing is wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
