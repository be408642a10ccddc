"""Look for the run of a document that makes the most model calls: `python -m tests.analysis.worst_cases`.

Each world follows a plan of its own: how many tries fail, how many turns use tools, how long lists are, whether replies
fit only at the last correction. What people and models decide is drawn.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import cast

from msgspec import UNSET, Struct
from msgspec.structs import replace
from tests.analysis.explore import seen_in
from tests.walks.answers import Performance, Performed, WalkLimits
from tests.walks.pure_walk import run_pure
from tests.walks.runs import with_inputs

from quire.analysis.amounts import Amount
from quire.engine.ports import Tools
from quire.engine.premises import MOST_CALLS, REPAIRS
from quire.engine.requests import Boundary, Failure, HumanRequest, Load, Meter, ModelRequest, Offer, ToolRequest
from quire.errors import QuireError, Refused, StepFailed
from quire.formats.test.parse import parse
from quire.formats.test.syntax import Case, TestFile
from quire.library.foresight import Foresight
from quire.library.interface import input_schema
from quire.plan.pipeline_work import Fold, ForEach
from quire.runs.pins import PinnedRun
from quire.schema_types import ListOf
from quire.source import NOWHERE, read_source
from quire.testing.case_run import Bench, CaseRun
from quire.testing.discovery import open_document
from quire.testing.exploration.draw import Draw
from quire.testing.virtual_loop import VirtualLoop
from quire.trust.capabilities import Grants, canonical, flat_name
from quire.values import Value, clean, copy, encode
from quire.workspace.grants import default_grants, reaching

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_EFFECTS = 5_000
MOST_IN_A_PART = 5
"""Paragraphs that a document may take at once, of a text that it takes apart."""
_TRY = re.compile(r"/try\[(\d+)\]")
_AGAIN = re.compile(r"/retry\[(\d+)\]$")


class Strategy(Struct, frozen=True):
    """How a world makes a run long."""

    failing: int = 0
    """Tries that fail before one goes well."""
    turns: int = 0
    """Turns in which a model uses a tool."""
    items: int = 0
    """Items of every list in inputs and results; 0 leaves them as the cases have them."""
    misfits: bool = True
    """Whether replies fit only at the last correction."""
    answer: str = ""
    """How people answer a question of yes or no; drawn if it is empty."""


class Found(Struct, frozen=True):
    """The worst run of a document."""

    document: str
    proven: Amount
    seen: int

    @property
    def ratio(self) -> float | None:
        """Proven by seen; None if a size is left in the formula, or if nothing is proven."""
        most = self.proven.as_number
        return None if most is None else most / self.seen if self.seen else (1.0 if most == 0 else float("inf"))


class GateAnswers:
    """Results of tools and texts, as the gate and the files of a case give them. The same path gets the same answer."""

    def __init__(self, loop: VirtualLoop, run: CaseRun, pinned: PinnedRun) -> None:
        self._loop = loop
        self._run = run
        self._pinned = pinned
        self._done: dict[str, Performance] = {}

    @cached_property
    def _gate(self) -> Tools:
        pins, settings = self._pinned.pins, self._run._settings
        granted = default_grants(settings, pins.allow)
        if self._pinned.plan.format == "directive":
            # Each request carries the grants of its thread, which the gate narrows to these.
            granted = Grants(frozenset({"*"}) | reaching(granted))
        else:
            granted = granted.narrow(Grants.of(pins.grants))
        return self._run._runtime().gate(self._pinned.plans, granted, "run")

    def __call__(self, request: ToolRequest | Load) -> Performance:
        if request.path not in self._done:
            try:
                value = self._loop.run(self._answered(request))
                self._done[request.path] = Performance(copy(value))
            except (StepFailed, Refused) as error:
                self._done[request.path] = Performance(failure=Failure.of(error))
        return self._done[request.path]

    async def _answered(self, request: ToolRequest | Load) -> Value:
        if isinstance(request, ToolRequest):
            return await self._gate.call(request, "")
        text = await self._run._runtime().loader("run", self._pinned.pins, self._gate).load(request)
        return clean(text) if text is not None else None


class Stage(Struct):
    """A case that has been started: its files, its tools and its texts answer what the worst world does not."""

    start: PinnedRun
    run: CaseRun
    answers: GateAnswers
    results: dict[str, list[Value]]
    children: list[dict[str, Value]]
    """Calls that start a thread, with all that it needs."""

    @classmethod
    def of(cls, bench: Bench, case: Case) -> Stage | None:
        plain = Case("worst", NOWHERE, replace(case.setting, model=None, cassette=None), None)
        try:
            prepared = CaseRun(bench, plain).prepare()
        except QuireError:
            return None
        if prepared is None:
            return None
        run = CaseRun(bench, plain, start=prepared)
        run._prepare()
        results: dict[str, list[Value]] = {}
        for tool, script in case.setting.tools.items():
            for part in (script, *script.sequence, *(one for _, one in script.when)):
                if part.returns is not UNSET:
                    results.setdefault(canonical(tool), []).append(part.returns)
        return cls(prepared.run, run, GateAnswers(bench.loop, run, prepared.run), results, _starting(bench))


def _starting(bench: Bench) -> list[dict[str, Value]]:
    """Return calls that start the directives of the workspace that others are named to start."""
    foresight = Foresight(bench.settings)
    world = foresight.world()
    found: dict[str, dict[str, Value]] = {}
    own = foresight.whole(bench.document.runnable(), bench.document.name).thread
    called = [foresight.called_directive(one) for one in foresight.directive_ids or () if one.startswith("house/")]
    for thread in [own] if own is not None else [one.thread for one in called if one is not None]:
        children = world.thread(thread).children if thread is not None else ()
        for name, child in children or ():
            given: dict[str, Value] = {
                one.name: 1 if one.type == "number" else "x" for one in child.inputs if one.required
            }
            limits: dict[str, Value] = {"turns": 1000, "spend": 1000, "tokens": 10**9}
            found[name] = {
                "item_type": "directive",
                "item_id": name,
                "parameters": given,
                "thread": "fork",
                "limit_overrides": limits,
            }
    return list(found.values())


class _World:
    def __init__(self, strategy: Strategy, seed: int, stage: Stage) -> None:
        self._strategy = strategy
        self._draw = Draw(seed)
        self._seed = seed
        self._stage = stage
        self._again = 0
        self._favourite = seed if seed % 2 else None
        """Which of several words replies always choose; None if it is drawn."""

    def __call__(self, request: Performed) -> Performance | None:
        match request:
            case ModelRequest():
                return self._model(request)
            case ToolRequest():
                return self._tool(request)
            case HumanRequest(kind="confirm") if self._strategy.answer:
                return Performance(self._strategy.answer)
            case HumanRequest():
                return Performance(clean(self._draw.answer(request)))
            case Load(scheme="run"):
                return Performance("run")
            case Load():
                return self._stage.answers(request)
            case Offer(grants=None):
                return Performance([[name, "", {"type": "object"}] for name in request.names])
            case Offer():
                return Performance([[flat_name("rye/file-system/read"), "", {}, "rye/file-system/read"]])
            case Boundary():
                return None

    def _fails(self, path: str) -> bool:
        tried = [int(number) for number in _TRY.findall(path)]
        return bool(tried) and tried[-1] <= self._strategy.failing

    def _tool(self, request: ToolRequest) -> Performance:
        if self._fails(request.path):
            return Performance(failure=Failure("tool", "it failed"))
        known = self._stage.results.setdefault(canonical(request.tool), [])
        done = self._stage.answers(request)
        if done is not None and done.failure is not None:
            # An item that was added to a list is named after one that is there.
            done = self._stage.answers(replace(request, path=f"{request.path}/instead", arguments=_first(request)))
        if done is not None and done.failure is None:
            known.append(done.value)
        value = self._draw.one_of(known) if known else self._draw.anything()
        if isinstance(value, str) and "\n\n" in value and self._strategy.items:
            value = paragraphs(value, self._strategy.items * (1 + self._seed % MOST_IN_A_PART))
        return Performance(copy(longer(value, self._strategy.items)))

    def _model(self, request: ModelRequest) -> Performance:
        meter = Meter(1, 1, 0.0)
        value: dict[str, Value] = {"text": "", "model": "worst", "finish_reason": "stop"}
        said = sum(message.role == "assistant" for message in request.messages)
        again = _AGAIN.search(request.path)
        if request.bounds is not None and self._strategy.failing and (again is None or int(again[1]) < 2):
            return Performance(meter=meter, failure=Failure("overloaded", "busy"))
        if request.bounds is not None and not said and self._stage.children:
            value["uses"] = [
                [f"child{number}", "rye_execute", {**self._stage.children[number % len(self._stage.children)]}]
                for number in range(MOST_CALLS)
            ]
            return Performance(value, meter)
        if request.tools and (said < self._strategy.turns or request.bounds is not None):
            tool = next((one for one in request.tools if "return" not in one.name), request.tools[0])
            self._again += 1
            value["uses"] = [[f"use{self._again}", tool.name, {"path": f"f{self._again}"}]]
            return Performance(value, meter)
        last = request.path.endswith(f"/repair[{REPAIRS}]")
        misfit = self._strategy.misfits and not last
        fails = self._fails(request.path) and not (last and self._favourite is None and self._draw.seldom())
        if request.schema is not None and (misfit or fails):
            value["text"] = "not yet"
        elif request.schema is not None:
            drawn = [self._draw.fitting(request.schema) for _ in range(4 if self._strategy.items else 1)]
            fitting = longer(max(drawn, key=lambda one: len(encode(one))), self._strategy.items, request.schema)
            value["text"] = encode(quoting(fitting, request.messages[0].content, request.schema, self._favourite))
        elif self._fails(request.path):
            return Performance(meter=meter, failure=Failure("overloaded", "busy"))
        else:
            value["text"] = self._draw.reply(replace(request, tools=()))[0].strip() or "x"
        return Performance(value, meter)


def _first(request: ToolRequest) -> dict[str, Value]:
    return {name: one.lstrip("0123456789") if isinstance(one, str) else one for name, one in request.arguments.items()}


def quoting(value: Value, prompt: str, schema: Value, favourite: int | None) -> Value:
    """Return a reply whose texts are words of the prompt, for documents that look for them there."""
    if isinstance(value, Mapping):
        parts = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
        known = parts if isinstance(parts, Mapping) else {}
        return {name: quoting(part, prompt, known.get(name), favourite) for name, part in value.items()}
    if isinstance(value, list | tuple):
        of = schema.get("items") if isinstance(schema, Mapping) else None
        return [quoting(part, prompt, of, favourite) for part in value]
    words = schema.get("enum") if isinstance(schema, Mapping) else None
    if favourite is not None and isinstance(words, list | tuple) and words:
        return words[favourite // 2 % len(words)]
    free = not isinstance(schema, Mapping) or not ({"enum", "const", "pattern", "format"} & set(schema))
    return prompt.split()[-1][-12:] if isinstance(value, str) and free and prompt.strip() else value


def longer(value: Value, items: int, schema: Value = None) -> Value:
    """Return a value whose lists have so many items, if they have any, or as many as the schema allows."""
    known: Mapping[str, Value] = schema if isinstance(schema, Mapping) else {}
    if isinstance(value, Mapping):
        fields = known.get("properties")
        types = fields if isinstance(fields, Mapping) else {}
        return {name: longer(part, items, types.get(name)) for name, part in value.items()}
    if isinstance(value, list | tuple):
        parts = [longer(part, items, known.get("items")) for part in value]
        most = known.get("maxItems")
        count = min(items, most) if isinstance(most, int) else items
        return [_other(parts[at % len(parts)], at) for at in range(count)] if parts and items else parts
    return value


def paragraphs(text: str, count: int) -> str:
    """Return a text with so many paragraphs, which are those of a text again and again."""
    known = [one for one in text.split("\n\n") if one.strip()]
    return "\n\n".join(known[at % len(known)] for at in range(count))


def _other(value: Value, number: int) -> Value:
    """Return a text that no other item has, so that lists stay as long if each item counts once."""
    return f"{number}{value}" if isinstance(value, str) and number else value


def strategies(bench: Bench) -> Iterator[Strategy]:
    plan, sizes = bench.document.runnable(), {0}
    for _, step in plan.steps():
        if isinstance(step.work, ForEach | Fold) and step.work.max_items:
            sizes.add(min(step.work.max_items, 200))
    types = [one.type for one in plan.declared or ()]
    types += [one.type for schema in plan.schemas.values() for one in schema.fields]
    sizes |= {one.max_items for one in types if isinstance(one, ListOf) and one.max_items}
    turns = {0, 3, *(one.turns for one in bench.settings.agents.values() if one.turns), 8, 25}
    for failing in (0, 1, 2, 3):
        for items in sorted(sizes, reverse=True):
            for count in sorted(turns):
                for misfits in (True, False):
                    yield Strategy(failing, count, items, misfits, "yes" if failing % 2 else "")


def worst_run(bench: Bench, file: TestFile, seeds: int, enough: float = 1.0) -> Found:
    """Return the most model calls that any world makes the document do. A run that comes close `enough` to what is
    proven ends the search."""
    plan = bench.document.runnable()
    proven = Foresight(bench.settings).proof(plan, bench.document.name).bound("model_calls").most
    name, most, known = bench.document.name, 0, proven.as_number
    if known == 0 or (known is None and enough > 1):
        return Found(name, proven, 0)
    examples = [case.setting.inputs for case in file.cases if case.setting.inputs]
    schema = input_schema(bench.document)
    stages = [stage for case in file.cases if (stage := Stage.of(bench, case)) is not None]
    try:
        for strategy in strategies(bench):
            for seed in range(seeds if stages else 0):
                stage = stages[seed % len(stages)]
                drawn = stage.start.pins.inputs if seed < len(stages) else Draw(seed).inputs(schema, examples)
                inputs = _inputs(stage.start, drawn, strategy.items)
                limits = WalkLimits(max_effects=MOST_EFFECTS)
                begin = with_inputs(stage.start, inputs).walk
                try:
                    end = run_pure(begin, _World(strategy, seed, stage), limits=limits, listen=lambda said: None)
                except QuireError:
                    continue
                most = max(most, seen_in(end)["model_calls"])
                if known is not None and most * enough >= known:
                    return Found(name, proven, most)
    finally:
        for stage in stages:
            stage.run.world.folder.remove()
    return Found(name, proven, most)


def _inputs(start: PinnedRun, drawn: Mapping[str, Value], items: int) -> Mapping[str, Value]:
    from quire.engine.declared_inputs import complete_declared
    from quire.engine.inputs import complete_inputs

    plan = start.plan
    for given in (cast("Mapping[str, Value]", longer(dict(drawn), items)), drawn):
        try:
            if plan.format == "playbook":
                return complete_inputs(plan, given)
            return complete_declared(plan, given) if plan.format == "pipeline" else {**start.pins.inputs, **given}
        except QuireError:
            continue
    return start.pins.inputs


def opened(path: Path) -> tuple[Bench, TestFile] | None:
    reading = parse(read_source(path))
    if reading.file is None or not reading.file.cases:
        return None
    try:
        return open_document(reading.source, reading.file), reading.file
    except QuireError:
        return None


def main() -> int:
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    for path in sorted(one for one in EXAMPLES.rglob("*.test.yaml") if wanted in one.name):
        found = opened(path)
        if found is None:
            continue
        worst = worst_run(*found, seeds=int(sys.argv[1]) if len(sys.argv) > 1 else 20)
        ratio = f"{worst.ratio:.2f}" if worst.ratio is not None else "-"
        name = Path(worst.document).name
        print(f"{name:36} proven {str(worst.proven)[:24]:>24}  seen {worst.seen:>5}  {ratio}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
