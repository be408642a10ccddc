"""Playbook cases of the kit, through the same runtime that the command line uses.

Only what the kit scripts is a stand-in: the model's replies, the tools' results, the person and the clock.
Documents, prompts and the database are real files in a fresh folder.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quire import formats
from quire.engine.conversation import Offered
from quire.engine.driver.drive import DriveResult
from quire.engine.ports import EffectClass, ModelCall, ModelReply
from quire.engine.records import Event, Question, Status, Usage
from quire.engine.requests import ToolRequest
from quire.errors import ModelFailed, QuireError, StepFailed, ToolFailed, Unreadable
from quire.formats.playbook.write import as_vector
from quire.library.document import load
from quire.plan.nodes import Plan
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.source import Source
from quire.stores import open_store
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace


def parse_playbook(given: dict[str, Any]) -> dict[str, Any]:
    return dict(as_vector(formats.read(Source.of(given["text"], given.get("name", "playbook.md")))))


def run_playbook(given: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(Case(given, Path(folder)).result())


class ScriptedModel:
    name = "scripted"

    def __init__(self, given: dict[str, Any]) -> None:
        self.calls: list[dict[str, Any]] = []
        self._replies = list(given.get("ai", []))
        self._default = given.get("ai_default")

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        messages = [{"role": message.role, "content": message.content} for message in call.messages]
        self.calls.append({"system": call.system, "messages": messages})
        reply = self._replies.pop(0) if self._replies else self._default
        if reply is None:
            raise ModelFailed("the script has no reply left", kind="script")
        if isinstance(reply, dict):
            raise ModelFailed(str(reply["error"]))
        for at in range(0, len(reply), 5):
            on_delta(reply[at : at + 5])
        return ModelReply(reply, self.name, Usage())


class ScriptedTools:
    def __init__(self, given: dict[str, Any]) -> None:
        self.calls: list[dict[str, Any]] = []
        self._results = list(given.get("tools", []))
        self._prompts: dict[str, str] = given.get("prompts", {})

    def effect_class(self, request: ToolRequest) -> EffectClass:
        return "write"

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        arguments = dict(request.arguments)
        self.calls.append({"connection": request.connection, "tool": request.tool, "args": arguments})
        result = self._results.pop(0) if self._results else {"error": "the script has no result left"}
        if "error" in result:
            raise ToolFailed(str(result["error"]))
        value: Value = result["result"]
        return value

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        return []

    async def offers(self, names: Sequence[str]) -> Sequence[Offered]:
        raise AssertionError("no agent here")

    async def prompt(self, server: str, name: str) -> str:
        text = self._prompts.get(f"mcp:{server}/{name}")
        if text is None:
            raise StepFailed(f"no prompt {name} at {server}", kind="prompt")
        return text


class ScriptedPeople:
    def __init__(self, elicit: dict[str, Any] | list[str]) -> None:
        self._by_step = elicit if isinstance(elicit, dict) else {}
        self._in_turn = list(elicit) if isinstance(elicit, list) else []
        self._left = {
            label: list(answer) if isinstance(answer, list) else [answer] for label, answer in self._by_step.items()
        }

    async def ask(self, question: Question, problem: str) -> str | None:
        left = self._left.get(question.label, self._in_turn)
        return left.pop(0) if left else None


class MovableClock:
    def __init__(self) -> None:
        self.time = 1_800_000_000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


class Case:
    def __init__(self, given: dict[str, Any], folder: Path) -> None:
        self._given = given
        self._folder = folder
        self._model = ScriptedModel(given)
        self._tools = ScriptedTools(given)
        self._people = ScriptedPeople(given.get("elicit", {}))
        self._clock = MovableClock()
        self._events: list[dict[str, str]] = []
        self._first_stop: dict[str, Any] | None = None

    async def result(self) -> dict[str, Any]:
        path = self._folder / self._given.get("path", "playbook.md")
        for file, text in [*self._files(), (path, self._given["text"])]:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="")
        runtime = self._runtime()
        try:
            document = load(path)
            unattended = bool(self._given.get("unattended"))
            options = RunOptions(
                breakpoints=tuple(str(number) for number in self._given.get("breakpoints", [])),
                answers=self._given_answers(document.runnable()) if unattended else {},
                unattended=unattended,
                force=True,
            )
            run = await runtime.start(document, self._given.get("inputs", {}), options)
        except (QuireError, Unreadable) as error:
            return {"status": "failed", "error": str(error), "calls": [], "tool_calls": [], "events": []}
        ended = await self._drive(runtime, run, None)
        for resume in self._given.get("resume", []):
            if ended.status in (Status.COMPLETED, Status.FAILED):
                break
            self._clock.time += 3600 * resume.get("after_hours", 0)
            if resume.get("fresh_process"):
                await runtime.close()
                runtime = self._runtime()
            try:
                ended = await self._drive(runtime, run, resume.get("overrides"))
            except QuireError:
                break
        result = await self._report(runtime, run, ended)
        await runtime.close()
        return result

    def _given_answers(self, plan: Plan) -> dict[str, str]:
        """Nobody can be asked, but what was answered beforehand counts, as with `--answer`."""
        asking = [step.label for _, step in plan.steps() if step.ask]
        elicit = self._given.get("elicit") or {}
        given = elicit if isinstance(elicit, dict) else dict(zip(asking, elicit, strict=False))
        first = {label: answer[0] if isinstance(answer, list) else answer for label, answer in given.items() if answer}
        return {label: answer for label, answer in first.items() if label in asking}

    def _files(self) -> list[tuple[Path, str]]:
        files = [(self._folder / name, text) for name, text in self._given.get("files", {}).items()]
        for reference, text in self._given.get("prompts", {}).items():
            scheme, _, where = reference.partition(":")
            if scheme == "library":
                files.append((self._folder / "prompts" / f"{where}.md", text))
        return files

    def _runtime(self) -> Runtime:
        environ = {"QUIRE_HOME": str(self._folder / "home")}
        settings = load_settings(Workspace(self._folder), environ)
        store = open_store(self._folder / ".quire" / "quire.db", durability="process", now=self._clock.now)
        return Runtime(settings, store, environ=environ, model=self._model, tools=self._tools, clock=self._clock)

    async def _drive(self, runtime: Runtime, run: str, overrides: Mapping[str, str] | None) -> DriveResult:
        ended = await runtime.drive(run, people=self._people, listen=self._hear, overrides=overrides)
        stopped = ended.status in (Status.PAUSED, Status.AWAITING_INPUT)
        if stopped and self._first_stop is None:
            state = (await runtime.view(run)).state()
            self._first_stop = {
                "status": str(ended.status),
                "paused_at_step": state["paused_at_step"],
                "call_count": len(self._model.calls),
                "state": state,
            }
        return ended

    def _hear(self, event: Event) -> None:
        if event.replayed:
            return
        kind = {"delta": "content", "step_completed": "done", "step_failed": "error"}.get(event.type)
        if kind:
            self._events.append({"type": kind, "step": event.label, "text": str(event.live.get("text", ""))})

    async def _report(self, runtime: Runtime, run: str, ended: DriveResult) -> dict[str, Any]:
        view = await runtime.view(run)
        steps = view.replay.progress.steps.values()
        pending = [
            {"type": question.kind, "prompt": question.prompt, "options": list(question.options)}
            for question in view.questions
        ]
        return {
            "status": str(view.row.status),
            "error": ended.failure.message if ended.failure else "",
            "calls": self._model.calls,
            "tool_calls": self._tools.calls,
            "steps": {step.label: step.status for step in steps},
            "outputs": {step.label: step.output for step in steps if step.output is not None},
            "displayed": {step.label: step.displayed for step in steps if step.output is not None},
            "named": dict(view.named),
            "final_output": view.output,
            "artifact_type": view.artifact_type,
            "pending_elicit": pending[0] if pending else None,
            "events": self._events,
            "first_stop": self._first_stop,
        }
