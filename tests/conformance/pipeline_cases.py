"""Pipeline cases of the kit that run, through the same runtime that the command line uses.

Only what the kit scripts is a stand-in: tools, the agent's replies, the person. Commands of `shell` steps run for real.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.conformance.pipeline_static import load_all

from quire.engine.conversation import Offered
from quire.engine.driver.drive import Drive
from quire.engine.ports import EffectClass, ModelCall, ModelReply
from quire.engine.records import Event, Question, Status, Usage
from quire.engine.requests import ToolRequest
from quire.errors import BadDocument, QuireError, StepFailed, ToolFailed
from quire.formats.pipeline.syntax import AgentBody
from quire.formats.pipeline.walks import walk
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.stores import open_store
from quire.tools.builtin.paths import Protection
from quire.tools.builtin.shell import Shell
from quire.values import Value, value_of
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace
from quire.workspace.settings import AgentSettings, SpawnSettings

KIT = Path(__file__).resolve().parents[3] / "shared" / "conformance"
sys.path.insert(0, str(KIT))

from stubs import ProcessDeath, ScriptedAgent, ScriptedTools, ToolFailure, UnknownTool  # type: ignore[import-not-found]


def run_pipeline(given: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(Case(given, Path(folder)).phase(given, first=True))


def resume_pipeline(given: dict[str, Any]) -> dict[str, Any]:
    async def phases(case: Case) -> list[dict[str, Any]]:
        return [await case.phase(phase, first=phase["mode"] == "run") for phase in given["phases"]]

    with tempfile.TemporaryDirectory() as folder:
        return {"phases": asyncio.run(phases(Case(given, Path(folder))))}


class KitModel:
    name = "scripted"

    def __init__(self, spec: dict[str, Any] | None) -> None:
        self.agent = ScriptedAgent(spec)
        self.identities: list[str] = []
        self.allowed: list[list[str] | None] = []

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.identities.append(call.identity)
        self.allowed.append(None if call.allow is None else list(call.allow))
        text = "\n\n".join(self.agent.reply(call.messages[-1].content))
        return ModelReply(text, self.name, Usage())


class KitTools:
    def __init__(self, spec: dict[str, Any] | None, shell: bool, folder: Path) -> None:
        self.scripted = ScriptedTools(spec)
        self._shell = shell
        self._folder = folder

    def effect_class(self, request: ToolRequest) -> EffectClass:
        return "write"

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        if request.tool == "shell" and "shell" not in self.scripted.spec:
            return await self._run(request)
        try:
            value: Value = await self.scripted(request.tool, json.loads(json.dumps(dict(request.arguments))))
        except UnknownTool:
            raise ToolFailed(f"{request.tool} does not resolve to a tool") from None
        except ToolFailure as error:
            raise ToolFailed(str(error)) from None
        return value

    async def _run(self, request: ToolRequest) -> Value:
        if not self._shell:
            raise ToolFailed("shell is not granted")
        # The kit says nothing of a sandbox, and its commands are harmless.
        shell = Shell(self._folder, Protection(), os.environ, sandbox=False)
        return value_of(str(await shell.run({**request.arguments, "stdin": request.stdin})))

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        return []

    async def offers(self, names: Sequence[str]) -> Sequence[Offered]:
        return [Offered(name, "", {"type": "object"}) for name in names]

    async def prompt(self, server: str, name: str) -> str:
        raise StepFailed("no prompts here")


class KitPeople:
    def __init__(self, answers: dict[str, str]) -> None:
        self._answers = answers

    async def ask(self, question: Question, problem: str) -> str | None:
        return None if problem else self._answers.get(question.prompt)


class Case:
    def __init__(self, given: dict[str, Any], folder: Path) -> None:
        self._given = given
        self._folder = folder
        self._run = ""

    async def phase(self, given: dict[str, Any], *, first: bool) -> dict[str, Any]:
        files, error = load_all(self._given["pipelines"])
        if error:
            return {"error": error}
        self._write_files()
        model, tools = (
            KitModel(given.get("agent")),
            KitTools(given.get("tools"), bool(self._given.get("shell")), self._folder),
        )
        runtime = self.runtime(model, tools, files)
        events: list[list[Any]] = []
        result: dict[str, Any] = {"error": None}
        try:
            if first:
                document = load(self._folder / "root.yaml")
                self._run = await runtime.start(document, self._given.get("input") or {}, RunOptions(force=True))
            await self._drive(runtime, given, events, result)
        except BadDocument as error:
            result["error"] = {"class": "load", "message": str(error)}
        except ProcessDeath:
            result["error"] = {"class": "crash", "message": "the process died"}
        except QuireError as error:
            result["error"] = {"class": "step", "message": str(error)}
        finally:
            await runtime.close()
        return {
            **result,
            "tool_calls": tools.scripted.calls,
            "agent_prompts": model.agent.prompts,
            "agent_identities": model.identities,
            "agent_tool_allow": model.allowed,
            "max_live": tools.scripted.max_live,
            "events": events,
        }

    async def _drive(
        self, runtime: Runtime, given: dict[str, Any], events: list[list[Any]], result: dict[str, Any]
    ) -> None:
        cancel_before = given.get("cancel_before_step")
        drives: list[Drive] = []

        def began(drive: Drive) -> None:
            drives.append(drive)
            if cancel_before == 0:
                drive.stop()

        def hear(event: Event) -> None:
            if not event.path.isdecimal():
                return
            index = int(event.path)
            if event.type == "step_started":
                events.append(["pipeline_step_started", index - 1, step_kind(event), event.data["total"]])
            elif event.type == "step_completed":
                if event.replayed:
                    events.pop()  # it has only been passed through; the step that is resumed starts again
                else:
                    events.append(["pipeline_step_completed", index, step_kind(event), event.data["total"]])
                if index == cancel_before:
                    drives[0].stop()

        people = KitPeople(given.get("answers") or {})
        ended = await runtime.drive(self._run, people=people, listen=hear, began=began)
        row = await runtime.row(self._run)
        match ended.status:
            case Status.COMPLETED:
                found: Any = ended.result
                result.update(output=found["output"], stores=found["stores"])
            case Status.PAUSED:
                result["error"] = {"class": "cancelled", "message": "stopped at a step boundary"}
            case Status.AWAITING_INPUT:
                result["error"] = {"class": "awaiting_input", "message": "it waits for a person"}
                result["pending"] = [question.prompt for question in await runtime.store.questions(self._run)]
            case _:
                message = ended.failure.message if ended.failure else ""
                where = kit_path(row.ended_by[0]) if row.ended_by else ""
                result["error"] = {"class": "step", "message": message, "path": where}

    def _write_files(self) -> None:
        root, *others = self._given["pipelines"]
        (self._folder / "root.yaml").write_text(root, encoding="utf-8")
        (self._folder / "pipelines").mkdir(exist_ok=True)
        for number, text in enumerate(others):
            (self._folder / "pipelines" / f"file{number}.yaml").write_text(text, encoding="utf-8")

    def runtime(self, model: KitModel, tools: KitTools, files: list[Any]) -> Runtime:
        environ = {"QUIRE_HOME": str(self._folder / "home")}
        identity = self._given.get("identity", "me")
        identities = self._given.get("identities")
        if identities is None:
            bodies = (step.body for file in files for pipeline in file.pipelines for _, step in walk(pipeline))
            identities = [body.identity.text for body in bodies if isinstance(body, AgentBody) and body.identity]
            identities.append(identity)
        settings = replace(
            load_settings(Workspace(self._folder), environ),
            agents={name: AgentSettings() for name in identities},
            spawn=SpawnSettings(**(self._given.get("caps") or {})),
        )
        store = open_store(self._folder / ".quire" / "quire.db", durability="process")
        return Runtime(
            settings,
            store,
            environ=environ,
            model=model,
            tools=tools,
            identity=identity,
            repairs=self._given.get("repairs", 2),
        )


def step_kind(event: Event) -> str:
    """`shell` is written for a tool of that name."""
    kind = str(event.data["title"])
    return "tool" if kind == "shell" else kind


_PART = re.compile(r"(fold|for_each|parallel)\[(.*)\]")


def kit_path(path: str) -> str:
    """A path of the engine as the kit writes it: positions from 0, roles and attempts left out."""
    parts: list[str] = []
    for segment in path.split("/"):
        found = _PART.fullmatch(segment)
        if found:
            parts += [found[1], found[2]]
        elif segment.isdecimal():
            parts.append(str(int(segment) - 1))
        elif segment in ("call", "match", "for_each", "parallel", "collect"):
            parts.append(segment)
    return ".".join(parts)
