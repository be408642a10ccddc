"""The document of a test as its editor features need it: inputs, steps, tools and values, without running anything."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from quire.errors import QuireError
from quire.formats.test.syntax import TestFile, Text
from quire.library.tested_document import callee_plans, find_tested
from quire.plan.built_in_tools import ASK, BUILT_IN_TOOLS, RETURN, built_in_tool
from quire.plan.nodes import UseTool
from quire.plan.pipeline_work import Invoke, Literal
from quire.plan.uses import OWN
from quire.plan.vocabulary import typed_way
from quire.source import NOWHERE, real_path
from quire.trust.capabilities import flat_name, from_flat_name

if TYPE_CHECKING:
    from quire.formats.test.check import DocumentSteps
    from quire.library.document import Document
    from quire.lsp.document_view import View
    from quire.plan.nodes import Plan, Step

_DOCUMENT = re.compile(
    r"""^document:[ \t]*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s#"'][^#\n]*?))[ \t]*(?:#.*)?$""", re.MULTILINE
)

_KEPT = "tested document"


_ITEM_TOOLS = ("rye_fetch", "rye_execute", "rye_sign")
"""The tools with which a directive reaches items, as its model sees them."""


class ToolFacts(Struct, frozen=True):
    """A tool as far as it is known here."""

    description: str
    effect: str
    """The meaning of a repeated call; empty if that is not asked."""
    schema: Mapping[str, Any]
    """The schema of its arguments."""


class TestedDocument:
    """The document of one test file, as far as it can be read."""

    __test__ = False

    def __init__(self, view: View) -> None:
        self._view = view

    @cached_property
    def document(self) -> Document | None:
        """The document as a run would read it; None if there is none."""
        library = self._view.folder.library
        if library is None:
            return None
        match = _DOCUMENT.search(self._view.source.text)
        name = next((part for part in match.groups() if part), "") if match else ""
        file = TestFile(Text(name, NOWHERE) if name else None, ())
        try:
            return find_tested(self._view.source, file, library)
        except QuireError:
            return None

    @cached_property
    def path(self) -> str:
        """The absolute path of the document as the editor writes it; empty if there is none."""
        return editor_path(self._view, self.document.source.name) if self.document else ""

    @property
    def view(self) -> View | None:
        """The document as an editor would open it."""
        return self._view.folder.view(self.path) if self.path else None

    @cached_property
    def plan(self) -> Plan | None:
        return self.document.plan if self.document else None

    @property
    def format(self) -> str:
        return self.document.format if self.document else ""

    @cached_property
    def steps(self) -> DocumentSteps | None:
        """The steps of the document and of those that it calls; None if it cannot run."""
        from quire.formats.test.check import DocumentSteps

        library = self._view.folder.library
        if self.plan is None or library is None:
            return None
        return DocumentSteps(self.plan, callee_plans(self.plan, library))

    def labels(self, kind: str) -> list[str]:
        """Return the labels of steps: of all, of those that ask a model, or of those that ask a person."""
        if self.steps is None:
            return []
        if self.steps.plan.thread:
            return ["turn 1", "turn 2", "turn 3"]
        match kind:
            case "model step":
                return self.steps.model_steps()
            case "person step":
                return self.steps.person_steps()
        return self.steps.names

    def asks(self, label: str) -> bool:
        """Tell whether a step asks a person itself, for any reply of a model."""
        step = self.step(label)
        if step is None or step.ask is not None:
            return step is not None
        match step.work:
            case Invoke(tool=tool):
                return tool == ASK
            case UseTool(connection=place, tool=tool):
                return place == OWN and tool == ASK
        return False

    def step(self, label: str) -> Step | None:
        """Return the step with a label; None if it is not known before a run."""
        steps = self.steps.steps(typed_way(label)) if self.steps else []
        return steps[0] if steps else None

    @cached_property
    def inputs(self) -> Mapping[str, Mapping[str, Any]]:
        """The schemas of the inputs, by name."""
        schemas: Mapping[str, Mapping[str, Any]] = self._input_schema.get("properties", {})
        return schemas

    @property
    def required(self) -> list[str]:
        """The inputs without which a run does not start."""
        return list(self._input_schema.get("required", ()))

    @cached_property
    def _input_schema(self) -> Mapping[str, Any]:
        from quire.library.interface import input_schema

        if self.document is None or self.plan is None:
            return {}
        try:
            return input_schema(self.document)
        except QuireError:
            return {}

    @cached_property
    def values(self) -> dict[str, list[str]]:
        """The values that the document gives names to, each with the words that it can be."""
        plan = self.plan
        if plan is None:
            return {}
        if plan.thread is not None:
            return {
                output.name: ["true", "false"] if output.type == "boolean" else [] for output in plan.thread.outputs
            }
        values: dict[str, list[str]] = {}
        for _, step in plan.steps():
            if step.capture is not None:
                words = values.setdefault(step.capture.name, [])
                words += [word for word in _options(step) if word not in words]
        return values

    @cached_property
    def tools(self) -> list[str]:
        """The names of tools that the steps call; of a directive, those that its model sees."""
        called = self.steps.tools() if self.steps else []
        thread = self.plan.thread if self.plan else None
        if thread is None:
            return called
        own = [RETURN] if thread.outputs else []
        return [*own, *_ITEM_TOOLS, *called, *(flat_name(tool.id) for tool in BUILT_IN_TOOLS)]

    @cached_property
    def hooks(self) -> list[str]:
        thread = self.plan.thread if self.plan else None
        return [hook.id for hook in thread.hooks] if thread else []

    def tool(self, name: str) -> ToolFacts | None:
        """Return what is known about a tool without starting anything."""
        id = from_flat_name(name)
        thread = self.plan.thread if self.plan else None
        if id == RETURN and thread is not None:
            outputs = {
                output.name: {"type": output.type, "description": output.description} for output in thread.outputs
            }
            needed = [output.name for output in thread.outputs if output.required]
            schema = {"type": "object", "properties": outputs, "required": needed}
            return ToolFacts("Ends a directive with its outputs.", "", schema)
        if (tool := built_in_tool(id)) is not None:
            return ToolFacts(tool.description, tool.effect, tool.schema)
        if name not in _ITEM_TOOLS:
            return None
        from quire.library.item_tools.connection import ACTIONS

        spec = ACTIONS.get(id.removeprefix("rye/"))
        return ToolFacts(spec.description, spec.effect, spec.schema) if spec else None

    def answers(self, label: str) -> list[str]:
        """Return the answers that a question of a step offers."""
        step = self.step(label)
        if step is None or step.ask is None:
            return list(_offered(step)) if step is not None else []
        if step.ask.kind == "confirm":
            return ["yes", "no"]
        return [text for option in step.ask.options if (text := _plain_text(option.parts)) is not None]


def _options(step: Step) -> Iterator[str]:
    if step.capture is not None:
        yield from step.capture.options
    if step.ask is not None and step.ask.kind != "confirm":
        for option in step.ask.options:
            if (text := _plain_text(option.parts)) is not None:
                yield text


def _offered(step: Step) -> Iterator[str]:
    """Yield the answers to the question of a pipeline, as far as they are written out."""
    arguments = dict(step.work.arguments) if isinstance(step.work, Invoke) and step.work.tool == ASK else {}
    kind, options = arguments.get("type"), arguments.get("options")
    if isinstance(kind, Literal) and kind.value == "confirm":
        yield from ("yes", "no")
    elif isinstance(options, Literal) and isinstance(options.value, list | tuple):
        yield from map(str, options.value)


def _plain_text(parts: tuple[Any, ...]) -> str | None:
    return "".join(parts) if all(isinstance(part, str) for part in parts) else None


def tested(view: View) -> TestedDocument:
    """Return the document of a test, kept with this version of the test."""
    document: TestedDocument | None = view.__dict__.get(_KEPT)
    if document is None:
        document = view.__dict__[_KEPT] = TestedDocument(view)
    return document


def editor_path(view: View, path: str) -> str:
    """Return a path as the editor writes it. The library follows links, editors do not."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100
    real = real_path(view.folder.path)
    if whole.is_relative_to(view.folder.path) or not whole.is_relative_to(real):
        return str(whole)
    return str(view.folder.path / whole.relative_to(real))
