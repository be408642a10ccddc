"""Write a generated document into a workspace, prove it, and walk it by hand in a scripted world."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from tests.simulator.fakes import offers_of
from tests.simulator.scenario import Scenario

from quire.analysis.proof import Proof
from quire.engine.ports import EffectClass, ModelCall, ModelReply, Tools
from quire.engine.records import Usage
from quire.engine.requests import Load, ToolRequest
from quire.library.document import load
from quire.library.foresight import Foresight
from quire.runs.options import RunOptions
from quire.runs.pins import PinnedRun
from quire.runs.runtime import Runtime
from quire.stores.sqlite.in_memory import MemoryStore
from quire.values import Value


class _Model:
    name = "simulated"

    async def complete(self, call: ModelCall, on_delta: Any) -> ModelReply:
        return ModelReply("never asked", self.name, Usage())


class _Tools:
    """Tools that are only asked what they are."""

    def effect_class(self, request: ToolRequest) -> EffectClass:
        return "write"

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        return None

    async def offers(self, names: Any) -> Any:
        return offers_of(names)

    async def offers_under(self, grants: Any) -> Any:
        return []

    async def prompt(self, server: str, name: str) -> str:
        return f"prompt {name} of {server}"


class OpenedDocument:
    """A document of a scenario that has been started once, with its proof."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        """Raises `QuireError` if the document does not start."""
        self.loop = asyncio.new_event_loop()
        settings = scenario.settle(folder)
        document = load(settings.workspace.folder / scenario.document)
        tools = cast("Tools", _Tools())
        runtime = Runtime(settings, MemoryStore(), environ={}, model=_Model(), tools=tools)

        async def started() -> Any:
            run = await runtime.start(document, scenario.inputs, RunOptions(allow=("*",)))
            return await runtime.stored(await runtime.row(run))

        pinned = self.loop.run_until_complete(started())
        self.start: PinnedRun = pinned
        self._loader = runtime.loader("run", pinned.pins, tools)
        foresight = Foresight(settings)
        self.plan = document.runnable()
        self.proof: Proof = foresight.proof(self.plan, document.name, "simulated")
        self.envelope = foresight.envelope(self.plan, document.name)

    def load(self, request: Load) -> str | None:
        return self.loop.run_until_complete(self._loader.load(request))

    def close(self) -> None:
        self.loop.close()


def sizes_of(inputs: Mapping[str, Value]) -> dict[str, int]:
    """Return the sizes of inputs and of all their parts, by the symbols that formulas have for them.

    Items of one list share a symbol: it stands for the largest of them.
    """
    found: dict[str, int] = {}
    _measure("ctx", {**inputs}, found)
    for name, value in inputs.items():
        _measure(name, value, found)
    return found


def _measure(name: str, value: Value, found: dict[str, int]) -> None:
    from quire.values import encode

    text = value if isinstance(value, str) else encode(value)
    items = len(value) if isinstance(value, list | tuple | Mapping) else 0
    for symbol, count in ((f"|{name}|", items), (f"‖{name}‖", len(text.encode("utf-8", "surrogatepass")))):
        found[symbol] = max(found.get(symbol, 0), count)
    if isinstance(value, Mapping):
        for key, part in value.items():
            _measure(f"{name}.{key}", part, found)
    elif isinstance(value, list | tuple):
        for part in value:
            _measure(f"{name}[]", part, found)
