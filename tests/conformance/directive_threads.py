"""Directive cases that start a thread: a whole one on a scripted model and stub tools, or only its composition."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from msgspec.structs import replace
from tests.conformance.directive_items import house

from quire.engine.conversation import ToolUse
from quire.engine.interpreter.thread.child_threads import Children
from quire.engine.interpreter.thread.setup import ORCHESTRATE, Setup
from quire.engine.interpreter.thread.tool_calls import Calls
from quire.engine.interpreter.thread.tool_results import finished_walk, succeeded
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Event, Usage
from quire.engine.requests import Request, Walk
from quire.errors import ModelFailed, QuireError
from quire.library.document import load
from quire.library.item_tools.connection import ItemsConnection
from quire.models.retry import Retrying
from quire.plan.built_in_tools import FORK
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.stores import open_store
from quire.tools.builtin.connection import BuiltInConnection
from quire.tools.gate import Gate
from quire.tools.registry import Connection, Connections, ToolSpec
from quire.trust.capabilities import Grants
from quire.trust.secrets import Redactor
from quire.values import Value
from quire.workspace.consent import confirm
from quire.workspace.mcp_config import BUILT_IN, ITEMS
from quire.workspace.settings import Settings


def run_thread(given: dict[str, Any]) -> dict[str, Any]:
    files = {f"project:directives/{given['directive_id']}.md": given["text"], **(given.get("files") or {})}
    return _started(files, given["directive_id"], given)


def start_extends(given: dict[str, Any]) -> dict[str, Any]:
    files = {f"project:directives/{name}.md": text for name, text in given["directives"].items()}
    files |= {f"project:knowledge/{name}.md": text for name, text in given["knowledge"].items()}
    if given.get("project_hooks_yaml"):
        files["project:config/agent/hooks.yaml"] = given["project_hooks_yaml"]
    result = _started(files, given["leaf"], given)
    if result.get("error") and "system" not in result:
        return {"error": result["error"]}
    result["message"] = result.pop("first_message")
    result.pop("error", None)
    return result


def _started(files: dict[str, str], directive: str, given: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(house(Path(folder), files), granted=("*",))
        return asyncio.run(_run(settings, Path(folder), directive, given))


async def _run(settings: Settings, folder: Path, directive: str, given: dict[str, Any]) -> dict[str, Any]:
    confirm(settings)
    model = KitModel(given.get("model_script") or [])
    dispatched: list[str] = []
    gate = stub_gate(settings, given.get("tools") or {}, dispatched)
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)

    def stubbed(tool: str) -> Callable[..., Walk]:
        """Threads are tools of the engine's own: here they are stubs as all others are."""
        return lambda *_: finished_walk(succeeded(tool, (given.get("tools") or {}).get(tool, {"stub": True})))

    def fork(*_: object) -> Generator[Request, Any, Walk]:
        yield from ()
        return stubbed(FORK)()

    store = open_store(folder / "quire.db", durability="process")
    runtime = Runtime(settings, store, model=Retrying(model, sleep=sleep), tools=gate)
    heard: list[Event] = []
    try:
        document = load(settings.workspace.folder / ".ai" / "directives" / f"{directive}.md")
        run = await runtime.start(document, given.get("inputs") or {}, RunOptions(allow=("*",), force=True))

        def listen(event: Event) -> None:
            heard.append(event)
            if event.type == "tool_called":
                dispatched.append(str(event.data["tool"]))

        with mock.patch.object(Children, "fork", fork), mock.patch.object(Calls, "_look_after", stubbed(ORCHESTRATE)):
            await runtime.drive(run, listen=listen)
        _, setup = runtime.directives.compose(document, given.get("inputs") or {})
        return _result(model, heard, dispatched, delays, setup)
    except QuireError as error:
        # Refused before the first call: nothing was asked and nothing was run.
        return {"success": False, "status": "error", "error": str(error), "turns": 0, "dispatched": dispatched}
    finally:
        await runtime.close()


def _result(
    model: KitModel, heard: list[Event], dispatched: list[str], delays: list[float], setup: Setup
) -> dict[str, Any]:
    ended = next((event.data for event in reversed(heard) if event.type == "thread_ended"), {})
    offered = next((event.data["tools"] for event in heard if event.type == "tools_offered"), [])
    hooked = [event.data for event in heard if event.type == "hook_action"]
    cost: Any = ended.get("cost") or {}
    first = model.calls[0] if model.calls else None
    return {
        **{name: ended.get(name) for name in ("success", "status", "outputs", "result", "limit_type", "error")},
        "closing_message": ended.get("closing_message"),
        "turns": cost.get("turns", None if model.calls else 0),
        "spend": cost.get("spend"),
        "dispatched": dispatched,
        "offered": offered,
        "system": first.system if first else "",
        "first_message": first.messages[0].content if first else "",
        "tool_results": [event.data["result"] for event in heard if event.type == "tool_told"],
        "hook_actions": [one["item_id"] for one in hooked],
        "hook_params": [one["params"] for one in hooked],
        "retry_delays": delays,
        "capabilities": list(setup.grants),
        "limits": setup.limits.as_value(),
        "after_step_actions": [
            action.item_id for hook in setup.composed.hooks if hook.event == "after_step" for action in hook.actions
        ],
        "warnings": [text for text in _warnings(heard) if "is unsigned" not in text],
    }


def _warnings(heard: list[Event]) -> list[str]:
    return [str(event.data["message"]) for event in heard if event.type == "warning"]


class KitModel:
    """Answers as the script says, then `done`. It has a known price: an entry's estimate is what it may cost."""

    name = "kit"

    def __init__(self, script: list[dict[str, Any]]) -> None:
        self.calls: list[ModelCall] = []
        self._script = list(script)

    def estimate(self, call: ModelCall) -> float | None:
        entry = self._script[0] if self._script else {}
        return float(entry.get("estimate", entry.get("spend", 0.0)))

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.calls.append(call)
        entry: dict[str, Any] = self._script.pop(0) if self._script else {"text": "done"}
        if "error" in entry:
            kind = entry["error"]["kind"]
            raise ModelFailed(entry["error"]["message"], kind=kind, transient=kind not in ("auth", "invalid", "quota"))
        text = entry.get("text") or ""
        on_delta(text)
        uses = tuple(
            ToolUse(f"call-{len(self.calls)}-{number}", one["name"], one.get("input") or {})
            for number, one in enumerate(entry.get("tool_calls") or [])
        )
        return ModelReply(text, self.name, Usage(0, 0, float(entry.get("spend", 0.0))), uses=uses)


class StubBuiltIn(BuiltInConnection):
    def __init__(self, settings: Settings, grants: Grants, results: Mapping[str, Any], dispatched: list[str]) -> None:
        super().__init__(settings.workspace.folder, grants, {})
        self._results = results
        self._dispatched = dispatched

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        self._dispatched.append(tool.id)
        return self._results.get(tool.id, {"stub": True})


class StubActions(ItemsConnection):
    """Looks at the grants as the real one does, and reads nothing."""

    def __init__(self, settings: Settings, grants: Grants, results: Mapping[str, Any], dispatched: list[str]) -> None:
        super().__init__(settings, grants)
        self._held = grants
        self._results = results
        self._dispatched = dispatched

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        item_type = str(arguments.get("item_type") or arguments.get("scope") or "directive")
        self._held.require(tool.name, item_type, str(arguments.get("item_id") or ""))  # type: ignore[arg-type]
        self._dispatched.append(tool.id)
        return self._results.get(tool.id, {"stub": True})


def stub_gate(settings: Settings, results: Mapping[str, Any], dispatched: list[str]) -> Gate:
    def scoped(grants: Grants, limits: object = None) -> dict[str, Connection]:
        return {
            BUILT_IN: StubBuiltIn(settings, grants, results, dispatched),
            ITEMS: StubActions(settings, grants, results, dispatched),
        }

    everything = Grants.of(["rye.*"])
    return Gate(Connections(scoped(everything)), everything, Redactor({}), scoped=scoped)
