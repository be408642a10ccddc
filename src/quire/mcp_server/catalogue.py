"""The catalogue that is offered to clients: documents as tools, their grammars as resources, and prompts that ask for a
document.

The documents are registered pipelines, playbooks that have a name, signed directives, and documents that the user
named. The list is read again for every request. A file that cannot be read is reported and left out; the others are
still offered.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import mcp_types as types
from mcp.shared.exceptions import MCPError
from msgspec import Struct
from msgspec.structs import replace

from quire.errors import QuireError
from quire.formats import format_of
from quire.formats.grammars import GRAMMARS, Grammar
from quire.library.document import Document, read
from quire.library.input_schema import declared_schema, pipeline_schema
from quire.library.library import Library
from quire.library.registered import (
    PIPELINES_FOLDER,
    SUFFIX,
    Registered,
    RegisteredPipelines,
    files_below,
    read_pipelines,
)
from quire.source import Source, read_source
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
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
    description = one.description or f"Runs the pipeline {one.name}."
    schema = pipeline_schema(one.plan, one.tree)
    return _offered(tool_name("pipeline", one.name), one.name, description, one.document, schema)


def _stem(path: Path) -> str:
    return path.name.removesuffix(SUFFIX) if path.name.endswith(SUFFIX) else path.stem


def _playbook(name: str, source: Source) -> Offered:
    """Return the tool of a playbook, under its whole name: the last part alone could mean another playbook after a
    file is added."""
    document = read(source)
    plan = document.runnable()
    description = plan.description or f"Runs the playbook {plan.title}."
    return _offered(tool_name("playbook", name), plan.title, description, document, declared_schema(plan))


def _directive(name: str, document: Document) -> Offered:
    plan = document.runnable()
    description = plan.description or f"Runs the directive {plan.title}."
    return _offered(tool_name("directive", name), plan.title, description, document, declared_schema(plan))


def _offered(tool: str, title: str, description: str, document: Document, schema: Mapping[str, Value]) -> Offered:
    required = schema.get("required", [])
    assert isinstance(required, list)  # noqa: S101  # as `input_schema` writes it
    return Offered(tool, title, description, document, schema, tuple(map(str, required)))


GRAMMAR_SCHEME = "quire://grammar/"
MARKDOWN = "text/markdown"
_VERB = "write_"
_TASK = "task"
_BY_URI = {f"{GRAMMAR_SCHEME}{one.key}": one for one in GRAMMARS}
_BY_PROMPT = {f"{_VERB}{one.key.replace('/', '_')}": one for one in GRAMMARS}

RESOURCES = tuple(
    types.Resource(uri=uri, name=f"{one.key} grammar", description=one.about, mime_type=MARKDOWN)
    for uri, one in _BY_URI.items()
)
PROMPTS = tuple(
    types.Prompt(
        name=name,
        title=f"Write a {one.name}",
        description=f"Asks for a {one.name} that does a task, and says how one is written.",
        arguments=[types.PromptArgument(name=_TASK, description=f"What the {one.name} is to do.", required=True)],
    )
    for name, one in _BY_PROMPT.items()
)


def grammar_resource(uri: str) -> types.ReadResourceResult | None:
    """Return the text of a grammar, or None if the address is not one of a grammar. Raises `MCPError` for an unknown
    grammar."""
    if not uri.startswith(GRAMMAR_SCHEME):
        return None
    found = _BY_URI.get(uri)
    if found is None:
        raise MCPError(types.INVALID_PARAMS, _unknown("grammar", uri, _BY_URI))
    text = types.TextResourceContents(uri=uri, text=found.text, mime_type=MARKDOWN)
    return types.ReadResourceResult(contents=[text])


def written_prompt(name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Return the messages of a prompt. Raises `MCPError` for an unknown one, and for wrong arguments."""
    found = _BY_PROMPT.get(name)
    if found is None:
        raise MCPError(types.INVALID_PARAMS, _unknown("prompt", name, _BY_PROMPT))
    if unknown := next((one for one in arguments if one != _TASK), ""):
        hint = did_you_mean(nearest(unknown, [_TASK]), f"it takes {_TASK}")
        raise MCPError(types.INVALID_PARAMS, f"{name} has no argument {unknown!r}: {hint}")
    task = arguments.get(_TASK, "").strip()
    if not task:
        raise MCPError(types.INVALID_PARAMS, f"{name} needs {_TASK}: what the {found.name} is to do")
    text = types.TextContent(text=request(found, task))
    return types.GetPromptResult(description=found.about, messages=[types.PromptMessage(role="user", content=text)])


def request(grammar: Grammar, task: str) -> str:
    """Return the message that asks a model for a document."""
    asked = f"Write a {grammar.name} that does this:\n\n{task}\n\nReply with it and nothing else."
    return f"{grammar.text}\n## Task\n\n{asked}\n"


def _unknown(what: str, name: str, known: Mapping[str, Grammar]) -> str:
    hint = did_you_mean(nearest(name, known), f"there are {', '.join(known)}")
    return f"there is no {what} {name}: {hint}"
