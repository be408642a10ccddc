"""The documents that are offered as tools: registered pipelines, playbooks that have a name, signed directives, and
documents that the user named.

The list is read again for every request. A file that cannot be read is reported and left out; the others are still
offered.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.inputs import converted, kind_of
from quire.errors import QuireError
from quire.formats import format_of
from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs
from quire.library.document import Document, read
from quire.library.library import Library
from quire.library.registered import (
    PIPELINES_FOLDER,
    SUFFIX,
    Registered,
    RegisteredPipelines,
    files_below,
    read_pipelines,
)
from quire.plan.thread import Parameter, Thread
from quire.source import Source, read_source

if TYPE_CHECKING:
    from quire.plan.nodes import Input, Plan
    from quire.values import Value
    from quire.workspace.settings import Settings

LONGEST_NAME = 64
"""Longest tool name. Clients pass tool names to models, which accept only this many letters, digits, `_` and `-`."""

_ODD = re.compile(r"[^A-Za-z0-9_-]")


class Offered(Struct, frozen=True):
    """One document under the name of its tool."""

    tool: str
    title: str
    description: str
    document: Document
    schema: Mapping[str, Value]
    required: tuple[str, ...]
    """The inputs that the document cannot run without."""


class Listing(Struct, frozen=True):
    """The offered tools."""

    tools: Mapping[str, Offered]
    problems: tuple[str, ...]
    """A line for each document that is left out."""


class Catalogue:
    """Reads the offered documents. `named` are documents that the user named at the start of the server; `report` gets
    each problem once."""

    def __init__(self, settings: Settings, named: Sequence[Path] = (), report: Callable[[str], None] = print) -> None:
        self._library = Library(settings)
        self._named = tuple(named)
        self._report = report
        self._reported: tuple[str, ...] = ()

    def load(self) -> Listing:
        listing = self._read()
        if listing.problems != self._reported:
            for problem in listing.problems:
                if problem not in self._reported:
                    self._report(f"left out: {problem}")
            self._reported = listing.problems
        return listing

    def stamp(self) -> tuple[tuple[str, int, int], ...]:
        """Return a value that changes when a file is added, removed or written. Costs one `stat` per file."""
        found = []
        for path in sorted({*self._files(), *self._named}):
            try:
                seen = path.stat()
            except OSError:
                continue
            found.append((str(path), seen.st_mtime_ns, seen.st_size))
        return tuple(found)

    def _read(self) -> Listing:
        registry = self._library.registry()
        problems = list(registry.problems)
        tools: dict[str, Offered] = {}
        offers = (*self._pipelines(registry), *self._documents(registry, problems), *self._directives(problems))
        for offered in offers:
            other = tools.get(offered.tool)
            if other is None:
                tools[offered.tool] = offered
            elif other.document.name != offered.document.name or other.title != offered.title:
                problems.append(f"{offered.document.name}: {offered.tool} is the tool of {other.document.name} already")
        return Listing(tools, tuple(problems))

    def _pipelines(self, registry: RegisteredPipelines) -> Iterator[Offered]:
        return (_pipeline(one) for one in registry.pipelines.values())

    def _documents(self, registry: RegisteredPipelines, problems: list[str]) -> Iterator[Offered]:
        taken = {Path(one.source.name).resolve() for one in registry.pipelines.values()}
        playbooks = self._library.playbooks()
        problems += playbooks.problems
        for name, path in (*playbooks.paths.items(), *((_stem(path), path) for path in self._named)):
            if path.resolve() in taken:
                continue
            taken.add(path.resolve())
            try:
                source = read_source(path)
                if format_of(source) == "pipeline":
                    found, wrong = read_pipelines(path.stem, source)
                    problems += wrong
                    yield from (_pipeline(one) for one in found)
                else:
                    yield _playbook(name, source)
            except QuireError as error:
                problems.append(str(error))

    def _directives(self, problems: list[str]) -> Iterator[Offered]:
        """Yield the directives of the project and of the user that are signed by a trusted key, with everything they
        are composed from.

        A signature is required whatever the workspace says, because no user is present at a tool call who could be
        warned.
        """
        from quire.library.directives import BundleBuilder
        from quire.library.verify import VerifiedItems

        settings, spaces = self._library.settings, self._library.spaces
        try:
            entries = [one for one in spaces.entries("directive") if one.space != "system"]
            items = replace(VerifiedItems.of(settings), mode="require")
        except QuireError as error:
            problems.append(str(error))
            return
        names = [entry.name for entry in entries]
        for entry in entries:
            try:
                item = spaces.read(entry)
                BundleBuilder(settings, items, {}, model=False).gather("", item)
                name = entry.name if names.count(entry.name) == 1 else entry.id
                yield _directive(name, read(Source.of(item.text, str(entry.path))))
            except QuireError as error:
                problems.append(str(error))

    def _files(self) -> Iterator[Path]:
        settings = self._library.settings
        folder = settings.workspace.folder
        yield from (folder / entry.path for entry in settings.pipelines.values())
        yield from files_below(folder / PIPELINES_FOLDER)
        yield from self._library.playbooks().paths.values()
        yield from (folder / ".ai" / "directives").rglob("*.md")
        yield from (settings.user / ".ai" / "directives").rglob("*.md")


def tool_name(kind: str, name: str) -> str:
    """Return the name of a tool. A dot, which occurs only between a file's key and a pipeline's name, becomes two
    underscores."""
    text = f"{kind}__{_ODD.sub('_', name.replace('.', '__'))}"
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[: LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _pipeline(one: Registered) -> Offered:
    """Return the tool of a pipeline. A pipeline declares no inputs: they are inferred from what it reads before it
    writes, take any JSON, and additional ones are accepted."""
    required, optional = inferred_inputs(one.tree), optional_inputs(one.tree)
    properties: dict[str, Value] = {name: {"description": f"Read as ctx.{name}; any JSON."} for name in required}
    properties |= {name: {"description": f"Read as ctx.{name} if it is given; any JSON."} for name in optional}
    schema: dict[str, Value] = {"type": "object", "properties": properties, "additionalProperties": True}
    if required:
        schema["required"] = list(required)
    description = one.description or f"Runs the pipeline {one.name}."
    return Offered(tool_name("pipeline", one.name), one.name, description, one.document, schema, required)


def _stem(path: Path) -> str:
    return path.name.removesuffix(SUFFIX) if path.name.endswith(SUFFIX) else path.stem


def _playbook(name: str, source: Source) -> Offered:
    """Return the tool of a playbook, under its whole name: the last part alone could mean another playbook after a
    file is added."""
    document = read(source)
    plan = document.runnable()
    description = plan.description or f"Runs the playbook {plan.title}."
    tool = tool_name("playbook", name)
    return Offered(tool, plan.title, description, document, _declared(plan), _required(plan))


def _directive(name: str, document: Document) -> Offered:
    plan = document.runnable()
    (thread,) = [step.work for step in plan.body.steps if isinstance(step.work, Thread)]
    required = tuple(one.name for one in thread.inputs if one.required and one.default is None)
    schema: dict[str, Value] = {
        "type": "object",
        "properties": {one.name: _parameter(one) for one in thread.inputs},
        # A directive that declares no inputs takes any.
        "additionalProperties": not thread.inputs,
    }
    if required:
        schema["required"] = list(required)
    description = thread.description or f"Runs the directive {thread.name}."
    return Offered(tool_name("directive", name), thread.name, description, document, schema, required)


def _parameter(one: Parameter) -> dict[str, Value]:
    kind = kind_of(one.type)
    found: dict[str, Value] = {"type": kind} if kind else {}
    if one.description:
        found["description"] = one.description
    if one.default is not None:
        try:
            found["default"] = converted(one.type, one.default)
        except ValueError:
            found["default"] = one.default
    return found


def _declared(plan: Plan) -> dict[str, Value]:
    schema: dict[str, Value] = {
        "type": "object",
        "properties": {wanted.name: _property(wanted) for wanted in plan.inputs},
        "additionalProperties": False,
    }
    if required := _required(plan):
        schema["required"] = list(required)
    return schema


def _required(plan: Plan) -> tuple[str, ...]:
    return tuple(wanted.name for wanted in plan.inputs if wanted.required and wanted.default is None)


def _property(wanted: Input) -> dict[str, Value]:
    kind = wanted.type if wanted.type in ("number", "boolean") else "string"
    found: dict[str, Value] = {"type": kind}
    if wanted.type == "enum" and wanted.options:
        found["enum"] = list(wanted.options)
    if wanted.description:
        found["description"] = wanted.description
    if wanted.default is not None:
        found["default"] = _default(kind, wanted.default)
    return found


def _default(kind: str, text: str) -> Value:
    """Convert the default to its type; a default that does not fit its type stays a text."""
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "number":
        try:
            return float(text) if "." in text or "e" in text.lower() else int(text)
        except ValueError:
            return text
    return text
