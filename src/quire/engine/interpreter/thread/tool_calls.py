"""Turn a model's tool call into a request to the gate, a question, a call of another document, or a thread of its own.

The name that the model used is resolved to one id first, and `rye_execute` to the item that it names; that id is both
checked and dispatched, regardless of the arguments.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire.engine.interpreter.callees import Opened, below, call_document, confined
from quire.engine.interpreter.pipeline.simple import question
from quire.engine.interpreter.thread.budgets import Purse, SharedPurse
from quire.engine.interpreter.thread.child_threads import Children, SpawnCheck, in_call_order
from quire.engine.interpreter.thread.setup import FORKING, ORCHESTRATE, ORCHESTRATING, ParentContext, Setup
from quire.engine.interpreter.thread.tool_results import ToolResult, as_tool_result, failed, finished_walk
from quire.engine.requests import Emit, Load, Meter, Metering, Request, Steps, ToolRequest, Walk
from quire.errors import Refused, StepFailed
from quire.formats.pipeline.inline import LAUNCH_PREFIX, LAUNCHING
from quire.plan.built_in_tools import ASK, BUILT_IN_TOOLS, FORK, SHELL
from quire.plan.uses import LAUNCHES, has_agents, prompt_schemes, tool_calls
from quire.trust.capabilities import Grants, canonical, capability, from_flat_name

if TYPE_CHECKING:
    from quire.engine.conversation import Offered, ToolUse
    from quire.engine.interpreter.thread.budgets import Cost
    from quire.values import Value

EXECUTE = "rye/execute"
ACTIONS = {"rye/fetch": "fetch", "rye/sign": "sign", EXECUTE: "execute"}
HERE = ("rye/", "python/")
OUTSIDE = ("rye/web/", "mcp/", *(tool.id for tool in BUILT_IN_TOOLS if tool.from_outside))
"""Tools that bring content from outside: a thread that has read such content must not launch pipelines."""


class Calls:
    """The tool calls of one thread. `offered` maps the names that the model was told to the ids of the tools.

    `launched` is true once a launched run may send the thread a letter.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.offered: dict[str, str] = {}
        self.children = Children(setup)
        self.untrusted = setup.untrusted
        self._spent: dict[str, float] = {}
        self.launched = False
        self._brought = False
        self._grants = Grants.of(setup.grants, setup.declared)

    def uncounted(self) -> float:
        """Return the cost of the documents called in this turn, added up in the order of the calls."""
        total = 0.0
        for path in in_call_order(self._spent):
            total += self._spent[path]
        self._spent.clear()
        return total

    def own_tools(self) -> list[Offered]:
        """Return the tools that the engine itself implements; no connection has them."""
        return [tool for tool in (FORKING, ORCHESTRATING) if self._grants.allows("execute", "tool", tool.id)]

    def starts_a_thread(self, use: ToolUse) -> bool:
        tool = self.offered.get(use.name) or from_flat_name(use.name)
        return tool == FORK or (tool == EXECUTE and _as_thread(use.arguments))

    def calls_a_document(self, use: ToolUse) -> bool:
        """Tell whether a call runs a document.

        Documents pay from this thread's own purse, so concurrent threads must leave some money there.
        """
        tool = self.offered.get(use.name) or from_flat_name(use.name)
        return tool == EXECUTE and use.arguments.get("item_type") in ("pipeline", "playbook")

    def prepare(
        self, use: ToolUse, path: str, label: str, cost: Cost, sharing: int = 1
    ) -> Generator[Request, Any, Walk]:
        """Return the walk of one call, after requesting everything that must be known before the calls of a turn run
        concurrently.

        `sharing` is the number of threads and documents among which the remaining budget is divided.
        """
        tool = self.offered.get(use.name) or from_flat_name(use.name)
        try:
            tool, arguments = _meant(tool, use.arguments)
            match tool:
                case "rye/agent/threads/thread_directive":
                    self._grants.require("execute", "tool", FORK)
                    yield Emit("tool_called", path, label, {"tool": tool})
                    return (yield from self.children.fork(arguments, path, label, cost, sharing, self._forking()))
                case "rye/agent/threads/orchestrator":
                    self._grants.require("execute", "tool", ORCHESTRATE)
                    yield Emit("tool_called", path, label, {"tool": tool})
                    return self._look_after(arguments, path, label)
                case "rye/execute":
                    return (yield from self._execute(arguments, path, label, cost, sharing))
                case "ask":
                    self._grants.require("execute", "tool", ASK)
                    return as_tool_result(tool, _sent(question(arguments, f"{path}/ask", label, path)))
        except StepFailed as error:
            return finished_walk(failed(tool, error))
        except Refused as error:
            return finished_walk(failed(tool, StepFailed(str(error), kind="denied")))
        self.untrusted = self.untrusted or self._comes_from_outside(tool)
        if _launches(tool):
            return self._launch(tool, arguments, path, label)
        return self._dispatch(tool, arguments, path, label)

    def _look_after(self, arguments: Mapping[str, Value], path: str, label: str) -> Walk:
        return as_tool_result(ORCHESTRATE, self.children.orchestrate(arguments, path, label))

    def _launch(self, tool: str, arguments: Mapping[str, Value], path: str, label: str) -> Walk:
        """Launch a pipeline as a run of its own."""
        inputs: Value = arguments
        name = tool.removeprefix(LAUNCH_PREFIX)
        if tool == "run_pipeline":
            name, inputs = str(arguments.get("name", "")), arguments.get("input")
        elif tool in LAUNCHING:
            self.launched = True
            if self.untrusted:
                return finished_walk(failed(tool, _floor()))
            return self._dispatch(tool, arguments, path, label)
        if self.setup.composed.rules > 3:
            return as_tool_result(tool, self._registered(tool, name, arguments, path, label), [f"{path}/tool"])

        def call() -> Steps:
            self._check_document("pipeline", name)
            passed = inputs if isinstance(inputs, Mapping) else {}
            stores: dict[str, Value] = {}
            # The pipeline is part of this run; 0.1.0 did not return the run's id.
            whole = self.setup.composed.rules > 1
            run: dict[str, Value] = {}
            if whole:
                run["run_id"] = yield Load(f"{path}/run", label, "run", "")
            try:
                output = yield from self._document(f"pipeline:{name}", passed, path, label, stores)
            except StepFailed as error:
                return {"status": "error", "data": {**run, "error": error.message}}
            data: dict[str, Value] = {**run, "output": output}
            return {"status": "ok", "data": {**data, "named_stores": stores} if whole else data}

        return as_tool_result(tool, call())

    def _registered(self, tool: str, name: str, arguments: Mapping[str, Value], path: str, label: str) -> Steps:
        """Run a registered pipeline and wait for it. One that waits for a person sends a letter at its end."""
        self._check_document("pipeline", name)
        text: str | None = yield Load(f"{path}/load", label, "document", f"pipeline:{name}")
        opened = self.setup.open_document(text) if text is not None and self.setup.open_document is not None else None
        envelope: Value = yield self._request(tool, arguments, path, label)
        self.launched = self.launched or (isinstance(envelope, Mapping) and envelope.get("status") == "started")
        self._brought = self._brought or (opened is not None and self._brings(opened))
        return envelope

    def _comes_from_outside(self, tool: str) -> bool:
        """Tell whether the result of a tool may contain content from outside.

        An unknown name may be another name of an MCP server's tool.
        """
        if tool == SHELL:
            return self._grants.covers(capability("execute", "tool", "rye/web"))
        here = tool == ASK or tool.startswith(HERE) or _launches(tool)
        return tool.startswith(OUTSIDE) or not here

    def _brings(self, opened: Opened) -> bool:
        """Tell whether the result of a document may contain content from outside."""
        plans = opened.setting.documents.values()
        if opened.setting.bundles or has_agents(plans) or any("mcp" in prompt_schemes(plan) for plan in plans):
            return True
        named = [canonical(tool) for place, tool in tool_calls(plans) if place in ("", "quire")]
        served = any(place not in ("", "quire", "python") for place, _ in tool_calls(plans))
        return served or any(self._comes_from_outside(tool) for tool in named if tool not in opened.setting.documents)

    def hear(self, outside: bool) -> None:
        """Note that results arrived, with or without content from outside."""
        self.untrusted = self.untrusted or outside or self._brought or self.children.outside

    def _about(self, item_type: str, grants: Grants | None = None) -> SpawnCheck:
        """Return the facts for starting a child. A grant of this type is needed for the item that an id resolves to."""

        def check(item_id: str) -> None:
            try:
                (grants or self._grants).require("execute", item_type, item_id)
            except Refused as error:
                raise StepFailed(str(error), kind="denied") from None

        return SpawnCheck(check, self.untrusted)

    def _forking(self) -> SpawnCheck:
        """Return the facts for the tool that starts threads: a thread that names directives starts only these."""
        named = self.setup.startable.patterns if self.setup.composed.rules > 3 else ["rye.*"]
        return self._about("directive", Grants.of(named, self.setup.declared))

    def _check_document(self, item_type: str, item_id: str) -> None:
        self._grants.require("execute", item_type, item_id)
        if item_type == "pipeline" and self.untrusted:
            raise _floor()

    def run_directive(
        self, item_id: str, inputs: Mapping[str, Value], path: str, label: str, cost: Cost
    ) -> Generator[Request, Any, ToolResult]:
        """Run a child, wait for it, and return its result. Raises `StepFailed` if it cannot be started."""
        walk, _ = yield from self.children.thread(item_id, inputs, {}, path, label, cost, self._about("directive"))
        return (yield from walk)  # type: ignore[return-value]  # the value of such a walk

    def _dispatch(self, tool: str, arguments: Mapping[str, Value], path: str, label: str) -> Walk:
        """Send the call through the one gate."""
        return as_tool_result(tool, _sent(self._request(tool, arguments, path, label)), [f"{path}/tool"])

    def _request(self, tool: str, arguments: Mapping[str, Value], path: str, label: str) -> ToolRequest:
        action = ACTIONS.get(tool)
        place, name = ("rye", action) if action else (LAUNCHES if _launches(tool) else "", tool)
        held = self.setup
        request = ToolRequest(
            f"{path}/tool", label, place, name, arguments, None, held.grants, held.declared, held.limits
        )
        if place == LAUNCHES and held.limits.spend is not None:
            request.money = held.purse
        return request

    def _execute(
        self, arguments: Mapping[str, Value], path: str, label: str, cost: Cost, sharing: int
    ) -> Generator[Request, Any, Walk]:
        """Run `rye_execute` for anything but a tool."""
        item_type, item_id = str(arguments.get("item_type", "")), str(arguments.get("item_id", ""))
        parameters = arguments.get("parameters")
        inputs = parameters if isinstance(parameters, Mapping) else {}
        if arguments.get("dry_run") is True:
            return self._dispatch(EXECUTE, arguments, path, label)
        if item_type == "directive" and _as_thread(arguments):
            self._grants.require("execute", item_type, item_id)
            forked: dict[str, Value] = {
                "directive_id": item_id,
                "inputs": inputs,
                "async": arguments.get("async"),
                "limit_overrides": arguments.get("limit_overrides"),
            }
            return (yield from self.children.fork(forked, path, label, cost, sharing, self._about(item_type)))
        if item_type in ("pipeline", "playbook"):
            self._check_document(item_type, item_id)
            return as_tool_result(item_id, self._document(f"{item_type}:{item_id}", inputs, path, label))
        return self._dispatch(EXECUTE, arguments, path, label)

    def _document(
        self, which: str, inputs: Mapping[str, Value], path: str, label: str, stores: dict[str, Value] | None = None
    ) -> Steps:
        text: str | None = yield Load(f"{path}/load", label, "document", which)
        if text is None:
            raise StepFailed(f"there is no {which.replace(':', ' ')}", kind="unknown_item")
        if self.setup.open_document is None:
            raise StepFailed("no document can be called here", kind="call")
        opened = self.setup.open_document(text)
        others = [plan.format for plan in opened.setting.documents.values()]
        if self.untrusted and (which.startswith("pipeline:") or set(others) != {"playbook"}):
            raise _floor()
        held, purse = self.setup, SharedPurse(self.setup.purse)
        above = ParentContext(
            Grants.of(held.grants),
            held.limits,
            purse,
            depth=held.depth + 1,
            declared=held.declared,
            untrusted=self.untrusted,
            startable=held.startable,
        )
        setting = replace(opened.setting, above=above)
        try:
            called = below(label, call_document(opened.name, inputs, f"{path}/", path, setting, stores))
            walk = confined(called, held.grants, purse, held.limits)
            try:
                output = yield from walk
            except StepFailed:
                yield from _settled(purse, path)
                raise
            yield from _settled(purse, path)
            return output
        finally:
            self._spent[path] = purse.spent
            self._brought = self._brought or self._brings(opened)


def _meant(tool: str, arguments: Mapping[str, Value]) -> tuple[str, Mapping[str, Value]]:
    """Return the id that is called, and its arguments: `rye_execute` of a tool becomes that tool."""
    if tool != EXECUTE or arguments.get("item_type") != "tool":
        return tool, arguments
    item_id, parameters = arguments.get("item_id"), arguments.get("parameters")
    if not isinstance(item_id, str) or not item_id.strip("/ "):
        raise StepFailed("rye_execute needs the item_id of a tool", kind="arguments")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise StepFailed("the parameters of rye_execute must be an object", kind="arguments")
    if _as_thread(arguments):
        raise StepFailed("only a directive can be executed as a thread", kind="arguments")
    named = canonical(item_id.strip("/ "))
    if named == EXECUTE:
        raise StepFailed("rye_execute cannot execute itself", kind="arguments")
    if arguments.get("dry_run") is True:
        return EXECUTE, arguments
    return named, parameters or {}


def _launches(tool: str) -> bool:
    return tool in LAUNCHING or tool.startswith(LAUNCH_PREFIX)


def _floor() -> StepFailed:
    why = "content from the network or from an MCP server was read in this thread: it launches no pipeline"
    return StepFailed(why, kind="denied")


def _as_thread(arguments: Mapping[str, Value]) -> bool:
    return arguments.get("thread") not in (None, "", "inline", False)


def _settled(purse: Purse, path: str) -> Steps:
    """Settle the purse of a called document from its records.

    A replay does not walk through the part that a failure cut off, but the records have its cost.
    """
    meters: list[Meter] = yield Metering(below=(path,))
    purse.settle(meters[0].cost or 0.0)


def _sent(request: Request) -> Steps:
    return (yield request)
