"""The launch tools of threads: the four of them, and each registered pipeline under its own name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.records import FINAL, Batch, Status, Usage
from quire.errors import ToolFailed
from quire.formats.pipeline.inline import LAUNCH_PREFIX, LAUNCHING
from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs
from quire.library.input_schema import pipeline_schema
from quire.runs.launch import ASYNC, INLINE, KnownTools, Launcher, Launching, definition_help
from quire.runs.options import RunOptions
from quire.runs.pins import PinnedState
from quire.runs.resume import amendment_record, apply_amendments
from quire.tools.registry import ToolSpec

if TYPE_CHECKING:
    from quire.library.registered import Registered
    from quire.runs.runtime import Runtime
    from quire.trust.capabilities import Grants
    from quire.values import Value

_INPUT: dict[str, Value] = {
    "type": "object",
    "description": "the inputs that the pipeline declares, or reads as ctx.NAME",
}


class LaunchConnection:
    """Launch tools for the threads of one run, with the grants of the calling thread. Launched runs go on when the
    thread ends; closing waits for them."""

    def __init__(self, runtime: Runtime, run: str, grants: Grants, launching: Launching, known: KnownTools) -> None:
        self._runtime = runtime
        self._run = run
        self._grants = grants
        self._launching = launching
        self._known = known

    def tool_id(self, tool: str) -> str:
        return tool

    def known(self, tool: str) -> ToolSpec | None:
        return _spec(tool) if tool in LAUNCHING else None

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        found = {tool: _spec(tool) for tool in sorted(LAUNCHING)}
        for name, registered in sorted(self._runtime.registry().pipelines.items()):
            if self._grants.allows("execute", "pipeline", name):
                spec = _own_spec(name, registered)
                found[spec.name] = spec
        return found

    def longest(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> None:
        """A launch waits for the end of another run, which may wait for people."""

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        name, given = tool.name, arguments
        if name not in LAUNCHING:
            name, given = "run_pipeline", {"name": tool.id.removeprefix(LAUNCH_PREFIX), "input": arguments}
        await self._known.learn(given.get("definition"))
        run = launched_id(effect_id)
        people, options = self._runtime.driven.get(self._run, (None, RunOptions()))
        # A registered pipeline may do what the thread may do, whatever other runs may do by default.
        own = sorted(pattern for pattern in self._grants.patterns if not pattern.startswith("rye.reach."))
        options = replace(options, allow=() if INLINE in name else (*options.allow, *own))
        launcher = Launcher(
            self._run, self._runtime.identity, self._grants, run_id=run, within=self._grants, options=options
        )
        present = None if name.endswith(ASYNC) else people
        return (await self._launching.launch(name, given, launcher, people=present)).as_json()

    async def prompt(self, name: str) -> str:
        raise ToolFailed("pipelines have no prompts")

    async def close(self) -> None:
        await self._launching.settled()


class Allotments:
    """The `LaunchedRuns` port: budgets of runs that the threads of one run launch."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def budget_of(self, effect_id: str) -> float | None:
        run = launched_id(effect_id)
        row = await self._runtime.store.get(run)
        if row is None:
            return None
        return apply_amendments(PinnedState.of(row.pins), await self._runtime.store.effects(run)).budget

    async def halve(self, effect_id: str) -> float:
        store = self._runtime.store
        lease = await store.acquire(launched_id(effect_id))
        try:
            assert lease.row is not None  # noqa: S101  # as every run that is acquired
            pins, spent = PinnedState.of(lease.row.pins), lease.cost or 0.0
            now = apply_amendments(pins, lease.records)
            now = replace(now, budget=spent + ((now.budget or 0.0) - spent) / 2)
            await store.write(lease, Batch(effects=(amendment_record(now, pins, self._runtime.clock.now()),)))
            return now.budget or 0.0
        finally:
            await store.release(lease)

    def allot(self, effect_id: str, dollars: float, *, strictly: bool) -> None:
        self._runtime.allotted[launched_id(effect_id)] = (dollars, strictly)

    async def spent(self, effect_id: str) -> Usage | None:
        row = await self._runtime.store.get(launched_id(effect_id))
        if row is None:
            return Usage()
        # A run that failed or was cancelled goes on only if a person resumes it.
        at_rest = row.status in (*FINAL, Status.FAILED, Status.CANCELLED)
        return Usage(0, 0, row.cost) if at_rest or row.pins.get("budget") is None else None


def launched_id(effect_id: str) -> str:
    return f"L{hashlib.sha256(effect_id.encode()).hexdigest()[:15]}"


def _spec(tool: str) -> ToolSpec:
    subject = "definition" if INLINE in tool else "name"
    what = "a pipeline that is given as YAML text" if INLINE in tool else "a registered pipeline by its name"
    when = "goes on; its result comes later, as a message" if tool.endswith(ASYNC) else "waits for its result"
    schema: dict[str, Value] = {
        "type": "object",
        "properties": {subject: {"type": "string"}, "input": _INPUT},
        "required": [subject],
    }
    how = f" {definition_help(tool)}" if INLINE in tool else ""
    return ToolSpec(tool, tool, f"Launches {what} and {when}.{how}", schema, "idempotent")


def _own_spec(name: str, registered: Registered) -> ToolSpec:
    plan = registered.plan
    needed, optional = inferred_inputs(registered.tree), optional_inputs(registered.tree)
    schema: dict[str, Value] = {
        "type": "object",
        "properties": {one: {} for one in (*needed, *optional)},
        "required": list(needed),
    }
    if plan.declared is not None:
        schema = pipeline_schema(plan, registered.tree)
    described = registered.description or f"Runs the pipeline {name} and waits for its result."
    return ToolSpec(f"{LAUNCH_PREFIX}{name}", f"{LAUNCH_PREFIX}{name}", described, schema, "idempotent")
