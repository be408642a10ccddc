"""A process may die before or after any of its writes. For some of them (`make test-long`: for each): another one goes
on, comes to the same end, and performs nothing again that was recorded."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.depth import depth
from tests.engine.house import EchoModel, RecordingTools

from quire.engine.ports import Store
from quire.engine.records import EffectRecord, Status
from quire.engine.requests import ModelRequest, ToolRequest
from quire.errors import ToolFailed
from quire.library.document import Document, read
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.source import Source
from quire.stores import open_store
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

PLAYBOOK = """# Tea

## STEP 1: Choose

Choose a pot.

@output(pot)

## STEP 2: Ask

@elicit(select, "In {{pot}}?", "yes", "no")

## STEP 3: Fill

@tool(kitchen, fill, {"pot": "{{pot}}"})

## STEP 4: Brew

```if __elicit_step_2 == "no"```

### STEP 4a: Stop

Say why not.

```else```

### STEP 4b: Pour

Pour it.

### STEP 4c: Sugar

@elicit(confirm, "Sugar?")

```endif```
"""

FANS = """
pipeline: p
steps:
- tool: {name: first, args: {}, output: begun}
- for_each: {over: ctx.l, max_parallel: 1, on_error: "retry(1)", do: {call: {pipeline: both, pass: {i: "item"}}},
    collect: {transform: {value: "pipe"}}}
- for_each: {over: ctx.l, max_parallel: 2, on_error: continue, do: {tool: {name: odd, args: {i: !expr item}}},
    collect: {agent: {prompt: "sum up {pipe}"}}}
- fold: {items: [1, 2], init: "pipe", output: sum,
    do: {tool: {name: add, args: {a: !expr acc, i: !expr item}}}}
"""

BOTH = """
pipeline: both
steps:
- parallel: {branches: {
    a: {tool: {name: ask, args: {prompt: !expr 'join(["which ", i], "")'}}},
    b: {tool: {name: once, args: {i: !expr i}}}},
    collect: {transform: {value: "[a, b]"}}}
- tool: {name: then, args: {i: !expr pipe}}
"""

ABORTS = """
pipeline: p
steps:
- for_each: {over: ctx.l, max_parallel: 3, on_error: abort, do: {tool: {name: down, args: {i: !expr item}}},
    collect: {tool: {name: ask, args: {prompt: "go on?"}}}}
- agent: {prompt: "end {pipe}"}
"""


class Died(Exception):
    """The process, at this write."""


class Mortal:
    """A store whose process dies at its nth write, before or after it; nothing works from then on."""

    def __init__(self, store: Store, nth: int, when: Literal["before", "after"]) -> None:
        self._store = store
        self._left = nth
        self._when = when
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in ("create", "write", "park", "answer"):
            return method

        async def mortal(*arguments: object) -> object:
            self.writes += 1
            self._left -= 1
            if self._left < 0 or (self._left == 0 and self._when == "before"):
                raise Died
            result = await method(*arguments)
            if self._left == 0:
                raise Died
            return result

        return mortal


@dataclass
class World:
    """What stays when a process dies: the folder, and what tools and models have done."""

    folder: Path
    document: Document
    inputs: dict[str, Value]
    tools: RecordingTools = field(default_factory=RecordingTools)
    model: EchoModel = field(default_factory=EchoModel)
    down: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tools.act = self._act
        (self.folder / "pipelines").mkdir(parents=True)
        (self.folder / "pipelines" / "both.yaml").write_text(BOTH, encoding="utf-8")

    def _act(self, request: ToolRequest) -> Value:
        if request.tool == "once" and "/try[1]/" in request.path and request.arguments["i"] == "x":
            raise ToolFailed("not at once")
        if request.tool == "odd" and request.arguments["i"] == "y":
            raise ToolFailed("odd")
        if request.tool == "down" and str(request.arguments["i"]) not in self.down:
            self.down.add(str(request.arguments["i"]))
            raise ToolFailed("down at first")
        return [request.tool, dict(request.arguments)]

    def open(self) -> Store:
        return open_store(self.folder / ".quire" / "quire.db", durability="process")

    def runtime(self, store: Store) -> Runtime:
        environ = {"QUIRE_HOME": str(self.folder / "home")}
        settings = load_settings(Workspace(self.folder), environ)
        return Runtime(settings, store, environ=environ, model=self.model, tools=self.tools)

    async def live(self, store: Store) -> int:
        """What a user does until the run has completed; says how often it had to be resumed."""
        runtime, failed = self.runtime(store), 0
        rows = await store.list()
        run = rows[0].id if rows else await runtime.start(self.document, self.inputs, RunOptions())
        while (status := (await runtime.row(run)).status) is not Status.COMPLETED:
            asked = await store.questions(run)
            if status is Status.AWAITING_INPUT:
                assert asked or await store.answers(run)
            for question in asked:
                await runtime.answer(run, question.path, "yes")
            failed += (await runtime.drive(run)).status is Status.FAILED
            assert failed < 4, (await runtime.row(run)).failure
        return failed

    def performed(self) -> Counter[str]:
        """How often each effect was, by what only it has: the id of a tool call, the prompt of a model."""
        return Counter([effect for _, _, effect in self.tools.calls] + self.model.asked())


async def end(world: World, store: Store) -> tuple[Value, dict[str, tuple[str, Value]], dict[str, str]]:
    """The output, the records, and the key in `World.performed` of each path."""
    (row,) = await store.list()
    view = await world.runtime(store).view(row.id)
    events = await store.events(row.id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    steps = Counter((event.type, event.path) for event in events if event.type in ("step_started", "step_completed"))
    assert set(steps.values()) <= {1}
    assert await store.questions(row.id) == []
    asked = view.replay.asked
    keys = {path: one.messages[-1].content for path, one in asked.items() if isinstance(one, ModelRequest)}
    return view.value, {one.path: (one.state, one.value) for one in view.effects}, keys


def key_of(run: str, record: EffectRecord, prompts: dict[str, str]) -> str:
    if record.kind == "model":
        return prompts[record.path]
    return hashlib.sha256(f"{run}\n{record.path}".encode()).hexdigest()[:32]


def worlds(folder: Path, text: str, name: str, inputs: dict[str, Value]) -> Callable[[str], World]:
    return lambda at: World(folder / at, read(Source.of(text, name)), inputs)


LIST: dict[str, Value] = {"l": ["x", "y", "z"]}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("text", "name", "inputs", "resumes"),
    [(PLAYBOOK, "tea.playbook.md", {}, 0), (FANS, "p.yaml", LIST, 0), (ABORTS, "p.yaml", LIST, 1)],
    ids=["playbook", "fans", "aborts"],
)
async def test_a_death_at_any_write_changes_nothing(
    tmp_path: Path, text: str, name: str, inputs: dict[str, Value], resumes: int, when: Literal["before", "after"]
) -> None:
    make = worlds(tmp_path, text, name, inputs)
    calm = make("calm")
    store = Mortal(calm.open(), 10**9, when)
    assert await calm.live(store) == resumes
    expected = await end(calm, store)
    await store.close()
    assert store.writes > 10
    for nth in range(1, store.writes + 1, depth(3, 1)):
        world = make(f"{when}-{nth}")
        mortal = Mortal(world.open(), nth, when)
        with contextlib.suppress(Died):
            await world.live(mortal)
        await mortal.close()
        again = world.open()
        before = world.performed()
        recorded = {
            key_of(row.id, one, expected[2])
            for row in await again.list()
            if row.status is Status.INTERRUPTED
            for one in await again.effects(row.id)
            if one.state == "ok" and one.kind in ("tool", "model")
        }
        assert await world.live(again) <= resumes + 1
        output, records, _ = await end(world, again)
        assert output == expected[0]
        # There may be more: a question of an attempt that is given up later is answered meanwhile.
        assert {path: records.get(path) for path in expected[1]} == expected[1]
        after = world.performed()
        assert {key: after[key] for key in recorded} == {key: before[key] for key in recorded}, nth
        await again.close()
