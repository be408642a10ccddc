"""Answers for pure walks in tests: replies by label, results by tool, answers of people by label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from tests.walks.answers import Performance, Performed, WalkEnd, WalkLimits
from tests.walks.pure_walk import run_pure
from tests.walks.runs import run_of

from quire.engine.interpreter.callees import Environment
from quire.engine.interpreter.thread.compose import Bundle
from quire.engine.requests import (
    Boundary,
    HumanRequest,
    Load,
    Meter,
    ModelRequest,
    Offer,
    ToolRequest,
)
from quire.errors import Denied, StepFailed
from quire.library.callees import read_directive
from quire.library.document import read
from quire.plan.nodes import Plan
from quire.plan.vocabulary import last_label
from quire.runs.pins import PinnedRun
from quire.source import Source
from quire.trust.capabilities import Grants, flat_name
from quire.values import Value

OFFERED = ("rye/file-system/read", "rye/file-system/write", "rye/bash")


def plan_of(text: str) -> Plan:
    """The plan of a document: a directive if it has the fence of one, a playbook if it begins with a heading."""
    if "<directive" in text:
        return read_directive(Source.of(text, "d.md"))
    document = read(Source.of(text, "p.playbook.md" if text.lstrip().startswith("#") else "p.yaml"))
    assert document.plan is not None, document.diagnostics
    return document.plan


def start_of(text: str, inputs: Mapping[str, Value] | None = None, *, plan: Plan | None = None) -> PinnedRun:
    """Where a walk of a document begins."""
    found = plan if plan is not None else plan_of(text)
    if found.format != "directive":
        return run_of(found, inputs)
    return run_of(found, inputs, Environment(bundles={"": Bundle("main", {"main": text})}))


@dataclass
class Scripted:
    """Answers of a case. A list is used up one by one; its last entry stays."""

    model: Mapping[str, object] = field(default_factory=dict)
    """By label: a text, a failure, a performance, calls of tools, or a list of these."""
    tools: Mapping[str, Value | Exception] = field(default_factory=dict)
    people: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    prompts: list[tuple[str, str]] = field(default_factory=list)
    calls: list[tuple[str, Mapping[str, Value]]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _used: dict[str, int] = field(default_factory=dict)

    def __call__(self, request: Performed) -> Performance | None:
        match request:
            case ModelRequest():
                return self._model(request)
            case ToolRequest():
                return self._tool(request)
            case HumanRequest():
                given = self.people.get(last_label(request.label))
                return None if given is None else Performance(given)
            case Load():
                return Performance(self.texts.get(request.where))
            case Offer(grants=None):
                return Performance([[name, "", {}] for name in request.names])
            case Offer(grants=grants):
                held = Grants.of(grants or ())
                return Performance(
                    [[flat_name(one), "", {}, one] for one in OFFERED if held.allows("execute", "tool", one)]
                )
            case Boundary():
                return None

    def _model(self, request: ModelRequest) -> Performance:
        label = last_label(request.label)
        self.prompts.append((label, request.system + "\n" + "\n".join(one.content for one in request.messages)))
        said = self.model.get(label, f"reply of {label}")
        if isinstance(said, list) and not (said and isinstance(said[0], tuple)):
            number = self._used.get(label, 0)
            self._used[label] = number + 1
            said = said[min(number, len(said) - 1)]
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Performance):
            return said
        if isinstance(said, str):
            return Performance({"text": said, "model": "script"}, Meter(3, 2, 0.0, self.seconds))
        calls = cast("list[tuple[str, Any]]", said)
        uses: list[Value] = [[f"use-{number}", name, given] for number, (name, given) in enumerate(calls)]
        return Performance({"text": "", "uses": uses, "model": "script"}, Meter(3, 2, 0.0, self.seconds))

    def _tool(self, request: ToolRequest) -> Performance:
        if request.grants is not None and not Grants.of(request.grants).allows("execute", "tool", request.tool):
            self.refused.append(request.tool)
            raise Denied(f"permission denied: {request.tool}")
        self.calls.append((request.tool, request.arguments))
        result = self.tools.get(request.tool, {"did": request.tool})
        if isinstance(result, Exception):
            raise result
        return Performance(result, Meter(elapsed=self.seconds))


def walked(start: PinnedRun, answers: Scripted, limits: WalkLimits | None = None) -> WalkEnd:
    return run_pure(start.walk, answers, limits=limits or WalkLimits())


def down(message: str = "no route") -> StepFailed:
    return StepFailed(message, kind="server")
