"""The model, the tools, the texts and the people of a simulation: what each says depends on what it is asked alone.

So the output of a run says whether something was lost, done twice in a way that shows, or mixed up. What a tool does,
its name says: `read…`, `same…` and `write…` are the three classes of effects, `broken…` always fails, `flaky…` fails at
the first attempt of a retry, `odd…` for some arguments, `down…` when it is first called in this world.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quire.engine.conversation import Offered, ToolUse
from quire.engine.ports import EffectClass, ModelCall, ModelReply
from quire.engine.records import Question, Usage
from quire.engine.requests import ToolRequest
from quire.errors import ModelFailed, ToolFailed
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


def reply_to(call: ModelCall, path: str, world: World) -> ModelReply:
    first, said = call.messages[0].content, call.messages[-1].content
    usage = Usage(10, 5, PRICE)
    if PROGRAM in first:
        return _follow(call, first, usage)
    if "failing-once" in said and said not in world.called:
        world.called.add(said)
        raise ModelFailed(FAILURE, kind="tool")
    mark = digest(call.system, *(message.content for message in call.messages))
    if call.tools and call.schema is None and len(call.messages) < 4 and odd(mark):
        use = ToolUse(f"use-{mark}", call.tools[0].name, {"of": mark})
        return ModelReply("", "simulated", usage, uses=(use,))
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
    return dict.fromkeys(named, mark)


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


def class_of(request: ToolRequest) -> EffectClass:
    match request.tool.removeprefix("sim/")[:4]:
        case "read":
            return "read"
        case "same":
            return "idempotent"
    return "write"


def act_on(request: ToolRequest, world: World) -> Value:
    name, given = request.tool.removeprefix("sim/"), encode(request.arguments)
    if name.startswith("broken"):
        raise ToolFailed(FAILURE)
    if name.startswith("flaky") and "/try[1]/" in request.path:
        raise ToolFailed(FAILURE)
    if name.startswith("odd") and odd(given):
        raise ToolFailed(FAILURE)
    if name.startswith("down") and name not in world.called:
        world.called.add(name)
        raise ToolFailed(FAILURE)
    return {"did": name, "mark": digest(name, given)}


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


def prompt_of(server: str, name: str) -> str:
    return f"prompt {name} of {server}"


def offers_of(names: Sequence[str]) -> Sequence[Offered]:
    return [Offered(name, f"Simulated: {name}.", {"type": "object"}) for name in names]


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays what. A recorded run has a cast of its own, which says and does what was recorded."""

    reply: Callable[[ModelCall, str, World], ModelReply] = reply_to
    act: Callable[[ToolRequest, World], Value] = act_on
    effect_class: Callable[[ToolRequest], EffectClass] = class_of
    answer: Callable[[Question], str] = answer_to
    prompt: Callable[[str, str], str] = prompt_of
    offers: Callable[[Sequence[str]], Sequence[Offered]] = offers_of
    offers_under: Callable[[Sequence[str]], Sequence[Offered]] = lambda grants: OFFERS


SIMULATED = Cast()
