"""The tools of a case: the gate of a real run, with connections that answer from scripts.

The gate checks grants, arguments and results as in every run, and scripts answer below it. Tools that only touch the
folder of the case are real unless a script replaces them. Any other tool needs a script: nothing is ever started or
sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import Denied, ToolFailed
from quire.plain_schema import plainly_fits
from quire.plan.built_in_tools import FETCH, SEND, SHELL
from quire.testing.observation import SeenCall
from quire.testing.world.scripts import ToolScripts, Unanswered
from quire.tools.gate import Gate
from quire.tools.registry import Connection, Connections, ToolSpec
from quire.trust.capabilities import canonical, denied_capability, mcp_tool, python_tool
from quire.trust.secrets import Redactor
from quire.values import copy
from quire.wording import cut
from quire.workspace.grants import denied_tools
from quire.workspace.mcp_config import BUILT_IN, ITEMS, PYTHON

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.budgets import Limits
    from quire.engine.ports import EffectClass
    from quire.engine.requests import ToolRequest
    from quire.plan.nodes import Plan
    from quire.testing.world.model import Meter
    from quire.testing.world.workspace import CaseFolder, CaseProcess
    from quire.tools.registry import Answer
    from quire.trust.capabilities import Grants
    from quire.values import Value
    from quire.workspace.settings import Settings

UNSCRIPTED = "unscripted"
"""The kind of a failure of which the case is told: a tool was called that has no script."""

_OUTSIDE = (FETCH, SEND, SHELL)
_ANY: Mapping[str, Value] = {"type": "object"}


class Unscripted(Struct, frozen=True):
    """A call that no script answered."""

    tool: str
    way: str
    reason: str


class CaseTools:
    """The tools of all processes of a case: their scripts, and the calls that were seen."""

    def __init__(self, scripts: ToolScripts, folder: CaseFolder, meter: Meter, *, shell: bool) -> None:
        """`shell` allows the script of `shell` to be `real`."""
        self.scripts = scripts
        self.seen: list[SeenCall] = []
        self.unscripted: list[Unscripted] = []
        self.unfit: list[Unscripted] = []
        """Scripted results that the tool could never return."""
        self.paths: dict[str, str] = {}
        """The paths of the calls, by the ids of their effects."""
        self.process: CaseProcess | None = None
        self.meter = meter
        self._folder = folder
        self._shell = shell

    def gate(
        self,
        settings: Settings,
        plans: Iterable[Plan],
        grants: Grants,
        clock: Callable[[], float],
        others: Callable[[Grants], Mapping[str, Connection]] = lambda grants: {},
    ) -> CaseGate:
        """Return the gate of one process. `others` returns the launch tools."""
        from quire.library.item_tools.connection import ItemsConnection
        from quire.tools.builtin.connection import BuiltInConnection

        def scoped(grants: Grants, limits: Limits | None = None) -> dict[str, Connection]:
            items = ItemsConnection(settings, grants, limits=limits)
            built_in = BuiltInConnection(self._folder.path, grants, {}, space=settings.user, clock=clock)
            return {BUILT_IN: _BuiltIn(built_in, self), ITEMS: _Items(items, self), **others(grants)}

        places = {**self._places(settings, plans), **scoped(grants)}
        return CaseGate(_CaseConnections(places), grants, self, scoped=scoped, denied=denied_tools(settings))

    async def play(
        self, spec: ToolSpec, place: str, arguments: dict[str, Value], effect_id: str, real: RealCall | None
    ) -> Value:
        """Answer a call from its script, or really."""
        try:
            played = self.scripts.play(spec.id, spec.name, place, arguments, effect_id)
        except Unanswered as unanswered:
            return self._unanswered(spec, f"its script does not answer this call: {unanswered}")
        if played is None:
            return await self._real(spec, real, is_scripted=False)
        if played.crash == "before":
            self._die()
        await asyncio.sleep(played.delay)
        value = await self._real(spec, real, is_scripted=True) if played.real else copy(played.value)
        if played.crash == "after":
            self._die()
        if played.real:
            return value
        if played.error is not None:
            raise ToolFailed(played.error.message, kind=played.error.kind)
        if spec.id in (FETCH, SEND) and isinstance(value, dict):
            value = {"url": arguments.get("url", ""), "headers": {}, **value}
        if reason := misfit(spec.id, value):
            self.unfit.append(Unscripted(spec.id, "", reason))
            raise ToolFailed(f"the scripted result of {spec.id} does not fit: {reason}", kind=UNSCRIPTED)
        return value

    def make_folder(self) -> None:
        """Make the folder of the case, because a real tool is about to look at it."""
        self._folder.make()

    def forget(self, recorded: Collection[str]) -> None:
        """Take back the scripted answers of a dead process whose paths are not in the journal."""
        self.scripts.forget({effect_id for effect_id, path in self.paths.items() if path in recorded})

    async def _real(self, spec: ToolSpec, real: RealCall | None, *, is_scripted: bool) -> Value:
        """Let the tool itself answer, if it stays in the folder of the case. `is_scripted`: its script says `real`."""
        if spec.id in _OUTSIDE or real is None:
            if spec.id == SHELL and is_scripted and self._shell and real is not None:
                self.make_folder()
                return await _in_real_loop(real)
            if is_scripted and spec.id == SHELL:
                return self._unanswered(spec, "commands run for real only with --allow shell on the command line")
            reason = "`real` is for tools that stay in the folder of the case" if is_scripted else "it has no script"
            return self._unanswered(spec, reason)
        self.make_folder()
        return await real()

    def _unanswered(self, spec: ToolSpec, reason: str) -> Value:
        self.unscripted.append(Unscripted(spec.id, "", reason))
        raise ToolFailed(f"{spec.id} was not called: {reason}", kind=UNSCRIPTED)

    def _die(self) -> None:
        if self.process is not None:
            self.process.die()

    def _places(self, settings: Settings, plans: Iterable[Plan]) -> dict[str, Connection]:
        """Return a scripted connection for each server, and one for Python functions."""
        from quire.plan.uses import tool_calls
        from quire.tools.builtin import NAMES

        tools: dict[str, set[str]] = {PYTHON: set(), **{name: set() for name in settings.servers}}
        for place, tool in tool_calls(plans):
            if place not in (BUILT_IN, ITEMS, ""):
                tools.setdefault(place, set()).add(tool)
            elif not place and canonical(tool) not in NAMES:
                self._spell(tools, tool)
        for name in self.scripts.names():
            if canonical(name) not in NAMES:
                self._spell(tools, name)
        return {place: _Server(place, names, self) for place, names in tools.items()}

    @staticmethod
    def _spell(tools: dict[str, set[str]], name: str) -> None:
        """Add a tool to the connection that its name spells: `SERVER/TOOL`, `SERVER__TOOL`, or a function."""
        parts = name.split("/")
        if parts[0] == "mcp" and len(parts) == 3:
            tools.setdefault(parts[1], set()).add(parts[2])
            return
        for mark in ("/", "__", "."):
            place, joint, tool = name.partition(mark)
            if joint and tool and (place in tools or (mark == "/" and place not in ("rye", BUILT_IN))):
                tools.setdefault(place, set()).add(tool)
                return
        if not name.startswith("rye/"):
            tools[PYTHON].add(name)


def misfit(tool_id: str, result: Value) -> str:
    """Return why a built-in tool could never return a result; empty if it could, or if that is not known."""
    from quire.plan.built_in_tools import RESULTS

    schema = RESULTS.get(tool_id)
    if schema is None or plainly_fits(schema, result):
        return ""
    import jsonschema_rs

    errors = jsonschema_rs.validator_for(dict(schema)).iter_errors(result)
    return next((cut(error.message, 200) for error in errors), "")


RealCall = Callable[[], "asyncio.Future[Value]"]


async def _in_real_loop(real: RealCall) -> Value:
    """Run a command in a loop with real time. The time of the case stands still meanwhile."""
    import threading
    from concurrent.futures import Future

    done: Future[Value] = Future()

    async def call() -> Value:
        return await real()

    def run() -> None:
        try:
            done.set_result(asyncio.run(call()))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="quire-test-shell", daemon=True).start()
    return done.result()


class _CaseConnections(Connections):
    async def close(self) -> None:
        """Close the connections one after the other: none of them is a server, which would take its time."""
        for name in self.names():
            await self.connection(name).close()


class CaseGate(Gate):
    """The gate of a case. It keeps every call, also those that were refused."""

    def __init__(
        self,
        registry: Connections,
        grants: Grants,
        tools: CaseTools,
        *,
        scoped: Callable[[Grants, Limits | None], Mapping[str, Connection]],
        denied: Grants,
    ) -> None:
        super().__init__(registry, grants, Redactor({}), scoped=scoped, denied=denied)
        self._tools = tools

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        name = request.tool
        call = SeenCall(request.path, request.label, canonical(name), name, copy(request.arguments))  # type: ignore[arg-type]
        if request.connection and request.connection not in (BUILT_IN, ITEMS):
            call.tool = self._registry.connection(request.connection).tool_id(name)
        elif not request.connection and (target := self._names.known(name)):
            call.tool = self._registry.connection(target[0]).tool_id(target[1])
        self._tools.seen.append(call)
        self._tools.paths[effect_id] = request.path
        with self._tools.meter:
            try:
                call.result = await super().call(request, effect_id)
            except Denied as error:
                call.failure, call.refused = str(error), denied_capability(str(error))
                raise
            except ToolFailed as error:
                call.failure = error.message
                raise
            return call.result


class _Wrapped:
    """A real connection whose tools may be scripted."""

    place = ""

    def __init__(self, inner: Connection, tools: CaseTools) -> None:
        self.inner = inner
        self.case = tools

    def tool_id(self, tool: str) -> str:
        return self.inner.tool_id(tool)

    def known(self, tool: str) -> ToolSpec | None:
        return self.inner.known(tool)

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        return await self.inner.tools(refresh=refresh)

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value | Answer:
        real = lambda: self.inner.call(tool, arguments, effect_id)  # noqa: E731
        return await self.case.play(tool, self.place, arguments, effect_id, real)  # type: ignore[arg-type]

    async def prompt(self, name: str) -> str:
        return await self.inner.prompt(name)

    async def close(self) -> None:
        await self.inner.close()


class _BuiltIn(_Wrapped):
    place = BUILT_IN

    def foreseen(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> ToolFailed | Denied | None:
        from quire.tools.registry import Foreseeing

        if self.case.scripts.find(tool.id, tool.name, BUILT_IN) is not None or tool.id in _OUTSIDE:
            return None
        self.case.make_folder()
        return self.inner.foreseen(tool, arguments) if isinstance(self.inner, Foreseeing) else None


class _Items(_Wrapped):
    place = ITEMS

    def offered(self, spec: ToolSpec) -> ToolSpec:
        from quire.tools.registry import Describing

        return self.inner.offered(spec) if isinstance(self.inner, Describing) else spec


class _Server:
    """A server, or the Python functions of a workspace, of which nothing is started: only scripts answer."""

    def __init__(self, place: str, names: Iterable[str], tools: CaseTools) -> None:
        self._place = place
        self._case = tools
        self._specs = {name: ToolSpec(self.tool_id(name), name, "", _ANY, self._effect(name)) for name in names}

    def tool_id(self, tool: str) -> str:
        return python_tool(tool) if self._place == PYTHON else mcp_tool(self._place, tool)

    def known(self, tool: str) -> ToolSpec | None:
        return self._specs.get(tool)

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        return self._specs

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        return await self._case.play(tool, self._place, arguments, effect_id, None)

    async def prompt(self, name: str) -> str:
        played = self._case.scripts.play(f"prompt:{self._place}/{name}", f"prompt:{name}", self._place, {})
        if played is None:
            raise ToolFailed(f'the test has no text for the prompt: script it under tools as "prompt:{name}"')
        if played.error is not None:
            raise ToolFailed(played.error.message, kind=played.error.kind)
        return str(played.value)

    async def close(self) -> None:
        pass

    def _effect(self, name: str) -> EffectClass:
        script = self._case.scripts.find(self.tool_id(name), name, self._place)
        return script.effect if script is not None and script.effect else "write"
