"""Worlds that answer a walk: one that draws everything, and those that make it as long as it can become.

In the worst worlds models use as many tools as they may in each turn, replies fit only when the last try is made, and
what fails does so until it is tried for the last time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from tests.walks.answers import Performance, Performed

from quire.engine.interpreter.thread.setup import ORCHESTRATE
from quire.engine.premises import MOST_CALLS, REPAIRS
from quire.engine.requests import Boundary, Failure, HumanRequest, Load, Meter, ModelRequest, Offer, ToolRequest
from quire.errors import Denied, StepFailed
from quire.plan.built_in_tools import FORK, RETURN
from quire.testing.exploration.draw import Draw
from quire.trust.capabilities import Grants, canonical, flat_name
from quire.values import Value, clean, copy

STYLES = ("drawn", "drawn", "greedy", "stubborn", "generous")
"""`greedy` models use all turns with many calls; `stubborn` ones fail and misfit until the last try; `generous` tools
and models return long lists."""
_TURNS = 60


class HardWorld:
    """Answers requests. `load` returns texts of the workspace; `starts` are directives that threads may start."""

    def __init__(
        self,
        seed: int,
        style: str,
        load: Callable[[Load], str | None],
        starts: tuple[str, ...] = (),
        documents: tuple[str, ...] = (),
    ) -> None:
        self._draw = Draw(seed)
        self._chance = random.Random(seed)
        self._style = style
        self._load = load
        self._starts = starts
        self._documents = documents
        self.threads: set[str] = set()
        self.denied: set[str] = set()

    def __call__(self, request: Performed) -> Performance | None:
        match request:
            case ModelRequest():
                return self._model(request)
            case ToolRequest():
                self._require(request)
                return self._tool(request)
            case HumanRequest():
                return Performance(clean(self._answer(request)))
            case Load(scheme="run"):
                return Performance("run")
            case Load():
                return Performance(self._load(request))
            case Offer(grants=None):
                return Performance([[name, "", {"type": "object"}] for name in request.names])
            case Offer():
                return Performance([[f"sim_{name}", "", {}, f"sim/{name}"] for name in ("read", "write")])
            case Boundary():
                return None
            case _:
                assert_never(request)

    def _require(self, request: ToolRequest) -> None:
        if request.grants is None or request.connection:
            return
        try:
            Grants.of(request.grants).require("execute", "tool", canonical(request.tool))
        except Denied as error:
            raise StepFailed(str(error), kind="denied") from None

    def _answer(self, request: HumanRequest) -> str:
        if request.title.startswith("limit of"):
            return self._chance.choice(("no", "100"))
        if "waits:" in request.prompt:
            return self._chance.choice(("yes", "yes", "yes", "no"))
        return self._draw.answer(request)

    def _tool(self, request: ToolRequest) -> Performance:
        if self._fails(request.path):
            return Performance(failure=Failure("tool", f"it failed {self._chance.random()}"))
        if self._style == "generous" or self._chance.randrange(3) == 0:
            words: list[Value] = [f"w{number}" for number in range(self._chance.randrange(6))]
            return Performance({"list": words})
        return Performance(copy(self._draw.anything()))

    def _fails(self, path: str) -> bool:
        if self._style == "stubborn":
            return "/try[" not in path or self._chance.randrange(3) > 0
        return self._style == "drawn" and self._chance.randrange(6) == 0

    def _model(self, request: ModelRequest) -> Performance:
        tokens = request.bounds.tokens if request.bounds is not None and request.bounds.tokens is not None else 4096
        meter = Meter(self._chance.randrange(200), min(tokens, self._chance.randrange(4096)), 0.01)
        if self._style == "drawn" and self._chance.randrange(8) == 0:
            return Performance(meter=meter, failure=Failure("overloaded", "busy"))
        if self._style == "stubborn" and "/repair" not in request.path and self._chance.randrange(3) == 0:
            return Performance(meter=meter, failure=Failure("overloaded", "busy"))
        value: dict[str, Value] = {"text": "", "model": "hard", "finish_reason": "stop"}
        uses = self._uses(request)
        if uses:
            value["uses"] = [[f"use{number}", name, copy(given)] for number, (name, given) in enumerate(uses)]
        else:
            value["text"] = self._text(request)
        return Performance(value, meter)

    def _text(self, request: ModelRequest) -> str:
        if request.schema is not None:
            last = request.path.endswith(f"/repair[{REPAIRS}]")
            if self._style == "stubborn" and not last:
                return "not yet"
            if self._style == "generous":
                return '{"names": ["a", "b", "c"], "fine": true, "mark": "m"}'
        if self._style == "generous" and request.bounds is None and len(request.path) % 2:
            return '["a", "b", {"list": ["c", "d"]}]'
        text, _ = self._draw.reply(_without_tools(request))
        return text if text.strip() else "x"

    def _uses(self, request: ModelRequest) -> list[tuple[str, dict[str, Value]]]:
        if not request.tools:
            return []
        turns = sum(message.role == "assistant" for message in request.messages)
        many = self._style in ("greedy", "stubborn")
        if not many and self._chance.randrange(3) == 0:
            return []
        if many and turns > _TURNS:
            return []
        count = self._chance.choice((1, 1, 2, 5, MOST_CALLS, MOST_CALLS + 1)) if many else self._chance.randrange(1, 4)
        if request.bounds is None:
            names = [tool.name for tool in request.tools]
            return [(self._chance.choice(names), self._arguments()) for _ in range(count)]
        return [self._thread_use(request) for _ in range(min(count, 12) if self._starts else count)]

    def _arguments(self) -> dict[str, Value]:
        return {"of": self._chance.random(), "prompt": "?"}

    def _thread_use(self, request: ModelRequest) -> tuple[str, dict[str, Value]]:
        kinds: list[str] = ["sim_read", "sim_write", "ask", "none_such"]
        if self._chance.randrange(6) == 0:
            return RETURN, {"out": "x"} if self._chance.randrange(3) else {}
        if self._starts:
            kinds += ["fork", "execute", "wait"]
        if self._documents:
            kinds += ["document", "document", "launch"]
        kind = self._chance.choice(kinds)
        given: dict[str, Value]
        match kind:
            case "fork":
                given = {"directive_id": self._chance.choice(self._starts), "async": self._chance.randrange(3) == 0}
                if self._chance.randrange(3) == 0:
                    given["limit_overrides"] = {"turns": 1000, "spawns": 1000, "depth": 1000}
                return flat_name(FORK), given
            case "execute":
                given = {"item_type": "directive", "item_id": self._chance.choice(self._starts), "thread": "fork"}
                return "rye_execute", given
            case "wait":
                return flat_name(ORCHESTRATE), {"operation": "wait_threads", "timeout": 10**6}
            case "launch":
                tool = self._chance.choice(("run_pipeline", "run_pipeline", "run_pipeline_async"))
                return tool, {"name": self._chance.choice(self._documents), "input": {"topic": "tea"}}
            case "document":
                name = self._chance.choice(self._documents)
                return "rye_execute", {"item_type": "pipeline", "item_id": name, "parameters": {"topic": "tea"}}
        return kind, self._arguments()


def _without_tools(request: ModelRequest) -> Any:
    from msgspec.structs import replace

    return replace(request, tools=())


def thread_paths(paths: Mapping[str, object]) -> set[str]:
    """Return the paths of all threads but the outermost one of a directive."""
    found: set[str] = set()
    for path in paths:
        parts = path.split("/thread/")
        found.update("/thread/".join(parts[:at]) for at in range(1, len(parts)))
    return found
