"""The model, the tools, the texts and the people of a simulation: what each says depends on what it is asked alone.

So the output of a run says whether something was lost, done twice in a way that shows, or mixed up. What a tool does,
its name says: `read…`, `same…` and `write…` are the three classes of effects, `broken…` always fails, `flaky…` fails at the
first attempt of a retry, `odd…` for some arguments, `down…` when it is first called in this world.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quire.engine.ports import EffectClass, Loader, ModelCall, ModelReply
from quire.engine.records import Question, Usage
from quire.engine.requests import Load, Offered, ToolRequest, ToolUse
from quire.errors import ModelFailed, ToolFailed
from quire.testing.simulator.process import Pace, Process
from quire.testing.simulator.witness import Witness
from quire.values import Value, encode

PRICE = 0.01
"""What a model call costs here, in dollars."""

FAILURE = "it does not work"
"""All failures read the same: which of several branches failed first is nobody's output."""

PROGRAM = "PROGRAM:"
"""Before what the model of a thread is to do, in the text of its directive: a list of turns, as JSON in one line."""

OFFERS = tuple(
    Offered(f"sim_{name}", f"Simulated: {name}.", {"type": "object"}, f"sim/{name}")
    for name in ("read", "same", "write", "broken", "odd")
)


def digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def odd(text: str) -> bool:
    return int(digest(text), 16) % 3 == 0


@dataclass(slots=True)
class World:
    """What stays when a process dies, beside the file: what tools have done."""

    called: set[str] = field(default_factory=set)


class SimulatedModel:
    name = "simulated"

    def __init__(self, process: Process, witness: Witness, pace: Pace, world: World, reply: Replies) -> None:
        self._process = process
        self._witness = witness
        self._pace = pace
        self._world = world
        self._reply = reply

    def estimate(self, call: ModelCall) -> float:
        return PRICE

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self._process.must_live()
        on_delta("")
        path = self._process.heard
        self._process.point(f"before {path}")
        self._witness.model_begins(self._process, path)
        await self._pace.effect()
        self._process.point(f"after {path}")
        reply = self._reply(call, self._world)
        on_delta(reply.text)
        return reply


Replies = Callable[[ModelCall, World], ModelReply]


def reply_to(call: ModelCall, world: World) -> ModelReply:
    first, said = call.messages[0].content, call.messages[-1].content
    usage = Usage(10, 5, PRICE)
    if PROGRAM in first:
        return _follow(call, first, usage)
    if "failing-once" in said and said not in world.called:
        world.called.add(said)
        raise ModelFailed(FAILURE, kind="tool")
    mark = digest(call.system, *(message.content for message in call.messages))
    if call.schema is not None:
        good = len(call.messages) > 1 or not odd(mark)
        text = encode({"mark": mark, "fine": odd(said)}) if good else "not yet"
    elif call.closing is not None:
        text = f"thought {mark}\n{encode(_closing(call.closing, mark))}"
    else:
        text = f"thought {mark}"
    return ModelReply(text, "simulated", usage)


def _closing(schema: Mapping[str, Value], mark: str) -> dict[str, Value]:
    named: Any = schema.get("properties") or {}
    return {name: mark for name in named}


def _follow(call: ModelCall, first: str, usage: Usage) -> ModelReply:
    """The turn that the program has for as many turns as there were; then the outputs, made of all results."""
    line = first[first.index(PROGRAM) + len(PROGRAM) :].splitlines()[0]
    program: list[Any] = json.loads(line)
    turn = sum(message.role == "assistant" for message in call.messages)
    if turn < len(program):
        if isinstance(program[turn], str):
            return ModelReply(program[turn], "simulated", usage)
        calls = [(one["name"], one["input"]) for one in program[turn]]
    else:
        results = [settled(message.content) for message in call.messages if message.role == "tool"]
        calls = [("directive_return", {"out": digest(*results)})]
    uses = tuple(ToolUse(f"call-{turn}-{number}", *one) for number, one in enumerate(calls))
    return ModelReply("", "simulated", usage, uses=uses)


def settled(content: str) -> str:
    """A result without what it cost: how long things took is nobody's output."""
    try:
        return encode(_without_cost(json.loads(content)))
    except ValueError:
        return content


def _without_cost(value: Any) -> Any:
    """Results of threads hold results as JSON in texts."""
    if isinstance(value, dict):
        return {name: _without_cost(part) for name, part in value.items() if name != "cost"}
    if isinstance(value, str) and value.startswith("{"):
        return settled(value)
    return [_without_cost(part) for part in value] if isinstance(value, list) else value


class SimulatedTools:
    def __init__(self, process: Process, witness: Witness, pace: Pace, world: World) -> None:
        self._process = process
        self._witness = witness
        self._pace = pace
        self._world = world

    def effect_class(self, request: ToolRequest) -> EffectClass:
        match request.tool.removeprefix("sim/")[:4]:
            case "read":
                return "read"
            case "same":
                return "idempotent"
        return "write"

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        self._process.point(f"before {request.path}")
        writes = self.effect_class(request) == "write"
        self._witness.tool_begins(self._process, request.path, effect_id, writes=writes)
        try:
            await self._pace.effect()
            self._process.point(f"after {request.path}")
            return self._act(request)
        finally:
            self._witness.tool_ends(self._process, request.path)

    def _act(self, request: ToolRequest) -> Value:
        name, given = request.tool.removeprefix("sim/"), encode(request.arguments)
        if name.startswith("broken"):
            raise ToolFailed(FAILURE)
        if name.startswith("flaky") and "/try[1]/" in request.path:
            raise ToolFailed(FAILURE)
        if name.startswith("odd") and odd(given):
            raise ToolFailed(FAILURE)
        if name.startswith("down") and name not in self._world.called:
            self._world.called.add(name)
            raise ToolFailed(FAILURE)
        return {"did": name, "mark": digest(name, given)}

    async def offers(self, names: Sequence[str]) -> Sequence[Offered]:
        return [Offered(name, f"Simulated: {name}.", {"type": "object"}) for name in names]

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        self._process.point("before offers")
        await self._pace.effect()
        self._process.point("after offers")
        return OFFERS

    async def prompt(self, server: str, name: str) -> str:
        return f"prompt {name} of {server}"


class SeenLoader:
    """A loader whose loads are effects as all others."""

    def __init__(self, loader: Loader, process: Process, witness: Witness, pace: Pace) -> None:
        self._loader = loader
        self._process = process
        self._witness = witness
        self._pace = pace

    async def load(self, request: Load) -> str | None:
        self._process.point(f"before {request.path}")
        self._witness.other_begins(self._process, request.path)
        await self._pace.effect()
        text = await self._loader.load(request)
        self._process.point(f"after {request.path}")
        return text


def answer_to(question: Question) -> str:
    """What a person here says: always the same to the same question."""
    if question.path.endswith("/uncertain"):
        return "yes"
    if question.title.startswith("limit of"):
        return "100000"
    mark = digest(question.prompt)
    match question.kind:
        case "confirm":
            return "yes" if "waits:" in question.prompt or int(mark, 16) % 2 else "no"
        case "select":
            return question.options[int(mark, 16) % len(question.options)]
    return f"answer {mark}"


class Present:
    """Somebody who sits at the terminal of a process, and answers at once."""

    def __init__(self, process: Process, witness: Witness, pace: Pace) -> None:
        self._process = process
        self._witness = witness
        self._pace = pace

    async def ask(self, question: Question, problem: str) -> str | None:
        self._process.point(f"before {question.path}")
        self._witness.asked[question.path] = question
        if question.path in self._witness.live and not self._witness.stale:
            self._witness.blame(f"{question.path} was asked again after its answer had been recorded")
        await self._pace.effect()
        self._process.point(f"after {question.path}")
        return answer_to(question)
