"""Connections beside those of the settings: the launch tools of threads, and tools of servers that are held to a lock.

MCP servers are asked for their tools to pin them, but started only if the user has agreed to the workspace. With
`[trust] locked` a tool that has changed since it was locked cannot be called.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from quire.analysis.lock.file import FILE_NAME, NOT_ASKED, LockedTool
from quire.engine.premises import TOOL_SECONDS
from quire.engine.records import FINAL, Batch, Status, Usage
from quire.errors import QuireError, ToolFailed, Untrusted
from quire.formats.pipeline.inline import LAUNCH_PREFIX, LAUNCHING
from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs
from quire.library.interface import pipeline_schema
from quire.library.tool_pins import pin_of, server_pins
from quire.runs.drives import amendment_record, apply_amendments
from quire.runs.launch import ASYNC, INLINE, KnownTools, Launcher, Launching, definition_help
from quire.runs.options import RunOptions
from quire.runs.pins import PinnedState
from quire.runs.workspace_gate import redactor_of
from quire.telemetry import traceparent_of
from quire.tools.registry import Timed, ToolSpec
from quire.values import Value, sha256
from quire.workspace.consent import require_trusted

if TYPE_CHECKING:
    from quire.library.registered import Registered
    from quire.runs.runtime import Runtime
    from quire.tools.registry import Answer, Connection
    from quire.trust.capabilities import Grants
    from quire.workspace.settings import Settings


_INPUT: dict[str, Value] = {
    "type": "object",
    "description": "the inputs that the pipeline declares, or reads as ctx.NAME",
}


class LaunchConnection:
    """Launch tools for the threads of one run, with the grants of the calling thread. Launched runs continue when the
    thread ends; closing waits for them."""

    def __init__(self, runtime: Runtime, run: str, grants: Grants, launching: Launching, tools: KnownTools) -> None:
        self._runtime = runtime
        self._run = run
        self._grants = grants
        self._launching = launching
        self._tools = tools

    def tool_id(self, tool: str) -> str:
        return tool

    def known(self, tool: str) -> ToolSpec | None:
        return _spec(tool) if tool in LAUNCHING else None

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        specs = {tool: _spec(tool) for tool in sorted(LAUNCHING)}
        for name, registered in sorted(self._runtime.registry().pipelines.items()):
            if self._grants.allows("execute", "pipeline", name):
                spec = _own_spec(name, registered)
                specs[spec.name] = spec
        return specs

    def longest(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> None:
        """A launch waits for the end of another run, which may wait for people."""

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        name = tool.name
        if name not in LAUNCHING:
            name, arguments = "run_pipeline", {"name": tool.id.removeprefix(LAUNCH_PREFIX), "input": arguments}
        await self._tools.learn(arguments.get("definition"))
        run = launched_id(effect_id)
        people, options = self._runtime.driven.get(self._run, (None, RunOptions()))
        # A registered pipeline has the permissions of its thread, not the default ones of other runs.
        own = sorted(pattern for pattern in self._grants.patterns if not pattern.startswith("rye.reach."))
        options = replace(
            options, allow=() if INLINE in name else (*options.allow, *own), trace=traceparent_of(effect_id)
        )
        launcher = Launcher(
            self._run, self._runtime.identity, self._grants, run_id=run, within=self._grants, options=options
        )
        present = None if name.endswith(ASYNC) else people
        return (await self._launching.launch(name, arguments, launcher, people=present)).as_json()

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
    return f"L{sha256(effect_id.encode())[:15]}"


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
        "properties": {input_name: {} for input_name in (*needed, *optional)},
        "required": list(needed),
    }
    if plan.declared is not None:
        schema = pipeline_schema(plan, registered.tree)
    described = registered.description or f"Runs the pipeline {name} and waits for its result."
    return ToolSpec(f"{LAUNCH_PREFIX}{name}", f"{LAUNCH_PREFIX}{name}", described, schema, "idempotent")


PATIENCE = 60.0
"""Seconds for which a server may start and list its tools."""


class ServerListing(Struct, frozen=True):
    """The tools that servers have listed. `not_asked` are the others, each with the reason."""

    pins: Mapping[str, LockedTool] = field(default_factory=dict)
    not_asked: Mapping[str, str] = field(default_factory=dict)
    specs: Mapping[str, ToolSpec] = field(default_factory=dict)
    """The tools as they describe themselves, by the names of their pins."""


async def ask_servers(settings: Settings, names: Iterable[str]) -> ServerListing:
    """Start the servers of these names and return their tools. A server that does not answer is not an error: its tools
    keep their pins."""
    servers = [name for name in names if name in settings.servers]
    if not servers:
        return ServerListing()
    try:
        code = require_trusted(settings)
    except Untrusted:
        return ServerListing({}, dict.fromkeys(servers, "you have not agreed to the workspace: quire trust workspace"))
    from quire.tools.mcp import McpConnection, in_one_line

    redact = redactor_of(settings).text
    listed: dict[str, ToolSpec] = {}

    async def ask(name: str) -> dict[str, LockedTool] | str:
        server = settings.servers[name]
        files = code.servers[name].files if server.command else None
        connection = McpConnection(server, settings.workspace.folder, os.environ, confirmed=files, redact=redact)
        try:
            specs = list((await asyncio.wait_for(connection.tools(), PATIENCE)).values())
            listed.update(
                (f"{name}/{spec.name}", replace(spec, description=redact(spec.description))) for spec in specs
            )
            return server_pins(name, specs)
        except QuireError as error:
            return redact(in_one_line(error))
        except TimeoutError:
            return f"no answer in {PATIENCE:.0f} seconds"
        finally:
            await connection.close()

    pins: dict[str, LockedTool] = {}
    not_asked: dict[str, str] = {}
    for name, answer in zip(servers, await asyncio.gather(*map(ask, servers)), strict=True):
        if isinstance(answer, str):
            not_asked[name] = answer
        else:
            pins |= answer
    return ServerListing(pins, not_asked, listed)


class PinnedConnection:
    """A `Connection` whose tools have to be those of a lock. A tool without a pin did not exist when it was locked; one
    that was never asked about has nothing to be compared with."""

    def __init__(self, name: str, inner: Connection, pins: Mapping[str, LockedTool]) -> None:
        self._name = name
        self._inner = inner
        self._pins = pins

    def tool_id(self, tool: str) -> str:
        return self._inner.tool_id(tool)

    def known(self, tool: str) -> ToolSpec | None:
        spec = self._inner.known(tool)
        return self._held(spec) if spec else None

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        specs = await self._inner.tools(refresh=refresh)
        return {name: self._held(spec) for name, spec in specs.items()}

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value | Answer:
        return await self._inner.call(tool, arguments, effect_id)

    def longest(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> float | None:
        return self._inner.longest(tool, arguments) if isinstance(self._inner, Timed) else TOOL_SECONDS.of("mcp")

    async def prompt(self, name: str) -> str:
        return await self._inner.prompt(name)

    async def close(self) -> None:
        await self._inner.close()

    def keep(self) -> None:
        self._inner.keep()  # type: ignore[attr-defined]  # it is one to an MCP server

    def _held(self, spec: ToolSpec) -> ToolSpec:
        key = f"{self._name}/{spec.name}"
        pin = self._pins.get(key)
        if pin is not None and (pin.digest == NOT_ASKED or pin.digest == pin_of(spec).digest):
            return spec
        what = "did not exist when it was locked" if pin is None else "is not the tool that was locked (LK107)"
        return replace(spec, changed=f"{key} {what}: look at it, then run quire lock, which writes {FILE_NAME} again")
