"""Read items: one by its id, or several by words; copy one to another space; and execute those that are texts: the
directions of a directive, the body of a knowledge item; and dry runs.

Tools, pipelines, playbooks and directives in their own threads are run by the engine, which calls `impossible` first.
The same words searched in the same files always give the same list in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.inputs import resolve_inputs
from quire.errors import BadInputs, CannotStart, QuireError, ToolFailed
from quire.library.item_tools import error, item_type_of, missing, shown_path, space_of, unknown_type
from quire.library.items import FOLDERS, ITEM_TYPES, Entry, Item, ItemType, SpaceName
from quire.library.verify import VerifiedItems, read_body, read_thread
from quire.plan.built_in_tools import WRITE
from quire.tools.arguments import Arguments, Unusable
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.library.items import Spaces
    from quire.plan.thread import Thread
    from quire.tools.builtin.files import Files
    from quire.tools.registry import ToolSpec
    from quire.trust.capabilities import Grants


class Fetch(Struct, frozen=True):
    """The action `fetch`.

    `tools` finds a tool that can be described without starting anything; `writer` returns the files of a space for
    writing. `Denied`, and errors of `Spaces.find` and `VerifiedItems`, are passed on to the caller.
    """

    items: VerifiedItems
    grants: Grants
    tools: Callable[[str], ToolSpec | None]
    all_tools: Callable[[], list[ToolSpec]]
    writer: Callable[[SpaceName], Files]

    def run(self, arguments: Mapping[str, Value]) -> dict[str, Value]:
        item_id, query = str(arguments.get("item_id") or ""), arguments.get("query")
        if item_id and query is not None:
            return error("give item_id or query, not both: item_id reads one item, query searches for some")
        if item_id:
            return self._by_id(item_id, arguments)
        if query is None:
            return error("give the item_id of one item, or a query and the scope to search")
        if not arguments.get("scope"):
            return error("a query needs a scope: the item_type to search, such as directive or knowledge")
        return self._by_query(str(query), arguments)

    def _by_id(self, item_id: str, arguments: Mapping[str, Value]) -> dict[str, Value]:
        source = space_of(arguments.get("source"))
        item_type = item_type_of(arguments.get("item_type"))
        if item_type is None and arguments.get("item_type") is not None:
            return unknown_type(arguments["item_type"])
        if item_type is None:
            types = self._types(item_id, source)
            if len(types) > 1:
                return error(
                    f"{item_id} is ambiguous, there are several types: {', '.join(types)}; say which item_type"
                )
            if not types:
                return error(f"item not found: unknown id {item_id}", item_id=item_id)
            item_type = types[0]
        if item_type == "tool":
            return self._tool(item_id, arguments)
        item = self.items.spaces.find(item_type, item_id, source)
        if item is None:
            return missing(self.grants, "fetch", item_type, item_id, arguments.get("source"))
        self.grants.require("fetch", item_type, item.id)
        verified = self.items.require(item)
        destination = space_of(arguments.get("destination"))
        copied = self._copy(item, destination) if destination else {}
        if copied.get("status") == "error":
            return copied
        return {
            "status": "success",
            "mode": "id",
            "item_type": item_type,
            "item_id": item.id,
            "source": item.space,
            "path": shown_path(item, self.items.spaces.settings),
            "signature": str(verified.verdict.outcome),
            "content": item.text,
            **copied,
        }

    def _types(self, item_id: str, source: SpaceName | None) -> list[ItemType]:
        """Return the types that have this id and that the caller may fetch. Raises `Denied` if it may fetch none of
        them."""
        ids: dict[ItemType, str] = {}
        for item_type in ITEM_TYPES:
            if item_type != "tool":
                item = self.items.spaces.find(item_type, item_id, source)
                if item is not None:
                    ids[item_type] = item.id
            elif source in (None, "system") and (spec := self.tools(item_id)):
                ids[item_type] = spec.id
        readable = [item_type for item_type, real in ids.items() if self.grants.allows("fetch", item_type, real)]
        if ids and not readable:
            self.grants.require("fetch", *next(iter(ids.items())))
        return readable

    def _tool(self, item_id: str, arguments: Mapping[str, Value]) -> dict[str, Value]:
        spec = self.tools(item_id)
        if spec is None or space_of(arguments.get("source")) not in (None, "system"):
            return missing(self.grants, "fetch", "tool", item_id, arguments.get("source"))
        self.grants.require("fetch", "tool", spec.id)
        if arguments.get("destination"):
            return error("a tool is not a file and cannot be copied", item_id=spec.id)
        described: Value = {"id": spec.id, "description": spec.description, "parameters": spec.schema}
        return {
            "status": "success",
            "mode": "id",
            "item_type": "tool",
            "item_id": spec.id,
            "source": "system",
            "content": encode(described),
        }

    def _by_query(self, query: str, arguments: Mapping[str, Value]) -> dict[str, Value]:
        scope = SearchScope.of(str(arguments["scope"]))
        item_type = item_type_of(arguments.get("item_type"))
        if item_type is not None and item_type != scope.type:
            return error(f"the scope is {scope.type} and item_type is {item_type}; leave item_type out of a query")
        self.grants.require("fetch", scope.type, "")
        source = space_of(arguments.get("source"))
        hits = self._search(query, scope, source)
        limit = arguments.get("limit")
        shown = hits[: limit if isinstance(limit, int) else LIMIT]
        return {
            "status": "success",
            "mode": "query",
            "query": query,
            "scope": scope.type,
            "results": [self._shown(hit) for hit in shown],
            "total": len(hits),
        }

    def _search(self, query: str, scope: SearchScope, source: SpaceName | None) -> list[Hit]:
        def may(entry: Entry) -> bool:
            return self.grants.allows("fetch", entry.type, entry.id)

        if scope.type != "tool":
            return search(self.items.spaces, query, scope, source, None, may)
        words, hits = words_of(query), []
        for spec in self.all_tools() if source in (None, "system") else ():
            item = Item(spec.id, "tool", "system", Path(), spec.description, "")
            score = score_of(item, words)
            if (score or not words) and self.grants.allows("fetch", "tool", spec.id):
                hits.append(Hit(item, score))
        return sorted(hits, key=lambda hit: (-hit.score, hit.item.id))

    def _shown(self, hit: Hit) -> Value:
        """Describe a search hit. The item's own description is shown only if its signature holds: otherwise anyone may
        have written it."""
        item = hit.item
        shown: dict[str, Value] = {"id": item.id, "item_type": item.type, "source": item.space, "score": hit.score}
        if item.type == "tool":
            return {**shown, "description": item.text}
        verdict = self.items.verdict(item)
        return {**shown, "description": summary(item)} if verdict.ok else {**shown, "signature": str(verdict.outcome)}

    def _copy(self, item: Item, destination: SpaceName) -> dict[str, Value]:
        """Copy an item to another space with the rules of the file tools: the same protected paths, the same grants."""
        if item.type not in FOLDERS:
            return error(f"a {item.type} is part of its project and cannot be copied", item_id=item.id)
        self.grants.require("execute", "tool", WRITE)
        path = f".ai/{FOLDERS[item.type][0]}/{item.id}{item.path.suffix}"
        files = self.writer(destination)
        shown = path if destination == "project" else f"user:{path}"
        try:
            there = files.read({"path": path})
        except ToolFailed as failure:
            if "no such file" not in failure.message:
                raise
        else:
            if there != item.stored:
                return error(f"{shown} exists already with another content; look at it first", item_id=item.id)
            return {"copied_to": shown}
        files.write({"path": path, "content": item.stored})
        return {"copied_to": shown}


MODES = ("inline", "fork")
FOR_THREADS = ("model", "limit_overrides")
"""Parameters that control how a directive is run, and are not its inputs."""


def impossible(arguments: Mapping[str, Value]) -> str | None:
    """Return the reason why no item at all can be executed with these arguments, or None."""
    item_type, mode = item_type_of(arguments.get("item_type")), mode_of(arguments)
    if item_type is None:
        return f"unknown item type {arguments.get('item_type')!r}; it is one of {', '.join(ITEM_TYPES)}"
    if mode.startswith("remote"):
        return "remote threads are not supported; leave thread out, or use fork"
    if mode not in MODES:
        return f'unknown thread mode "{mode[:40]}"; it is inline or fork'
    if mode == "fork" and item_type != "directive":
        return f"thread: fork is for directives; a {item_type} has no thread of its own, so leave it out"
    if arguments.get("async") is not True:
        return None
    if arguments.get("dry_run") is True:
        return "async and dry_run do not go together: a check is over at once"
    if item_type == "knowledge":
        return "async is not for knowledge: its text is returned at once"
    if item_type == "directive" and mode == "inline":
        return "async is not for a directive inline: its directions are returned at once; use thread: fork"
    return None


def mode_of(arguments: Mapping[str, Value]) -> str:
    mode = arguments.get("thread")
    return "inline" if mode is None else str(mode)


def is_text(arguments: Mapping[str, Value]) -> bool:
    """Tell whether `Execute` handles these arguments; otherwise the engine does."""
    item_type, dry_run = arguments.get("item_type"), arguments.get("dry_run") is True
    if item_type == "directive":
        return dry_run or mode_of(arguments) == "inline"
    return item_type == "knowledge" or (item_type == "tool" and dry_run)


class Execute(Struct, frozen=True):
    """The action `execute`. `tools` finds a tool that can be described without starting anything."""

    items: VerifiedItems
    grants: Grants
    tools: Callable[[str], ToolSpec | None]

    def run(self, arguments: Mapping[str, Value]) -> dict[str, Value]:
        item_id = str(arguments["item_id"])
        if problem := impossible(arguments):
            return error(problem, item_id=item_id)
        if arguments["item_type"] == "tool" and is_text(arguments):
            return self._check_tool(item_id, arguments)
        if not is_text(arguments):
            raise ToolFailed(f"a {arguments['item_type']} is executed by a thread, not from here", kind="dispatch")
        item_type: ItemType = "directive" if arguments["item_type"] == "directive" else "knowledge"
        item = self.items.spaces.find(item_type, item_id)
        if item is None:
            return missing(self.grants, "execute", item_type, item_id, None)
        self.grants.require("execute", item_type, item.id)
        self.items.require(item)
        head: dict[str, Value] = {"item_type": item_type, "item_id": item.id, "source": item.space}
        if item_type == "knowledge":
            body = read_body(item)
            if arguments.get("dry_run") is True:
                return {"status": "validation_passed", **head, "inputs": {}}
            return {"status": "success", **head, "content": body}
        thread = read_thread(item)
        declared = {parameter.name for parameter in thread.inputs}
        parameters = _parameters(arguments)
        inputs = {name: value for name, value in parameters.items() if name in declared or name not in FOR_THREADS}
        try:
            inputs = resolve_inputs(thread.inputs, inputs)
        except BadInputs as problems:
            return error(str(problems), **head, issues=list(problems.problems))
        if arguments.get("dry_run") is True:
            return {"status": "validation_passed", **head, "inputs": inputs}
        return {"status": "success", **head, "your_directions": directions(thread, inputs), "inputs": inputs}

    def _check_tool(self, item_id: str, arguments: Mapping[str, Value]) -> dict[str, Value]:
        spec = self.tools(item_id)
        if spec is None:
            return missing(self.grants, "execute", "tool", item_id, None)
        self.grants.require("execute", "tool", spec.id)
        inputs = _parameters(arguments)
        try:
            problems = Arguments().problems(spec, inputs)
        except Unusable as unusable:
            problems = [f"{spec.id} cannot be used: {unusable}"]
        if problems:
            return error("\n".join(problems), item_id=spec.id, issues=list(problems))
        return {"status": "validation_passed", "item_type": "tool", "item_id": spec.id, "inputs": inputs}


def directions(thread: Thread, inputs: Mapping[str, Value]) -> str:
    """Return the directions for following a directive inside an existing thread."""
    from quire.plan.templates import fill

    return "\n\n".join(fill(part, inputs) for part in (thread.body, thread.inside) if part)


def _parameters(arguments: Mapping[str, Value]) -> dict[str, Value]:
    parameters = arguments.get("parameters")
    return dict(parameters) if isinstance(parameters, Mapping) else {}


MAX_WORDS = 20
MAX_READ = 50_000_000
MAX_LIMIT = 100
LIMIT = 10

_WORDS = re.compile(r"[^\W_]+")
_HEADING = re.compile(r"^# +(.+)$", re.MULTILINE)
_TITLE = re.compile(r"^title: *(.+)$", re.MULTILINE)
_DESCRIPTION = re.compile(r"<description>\s*([^<]{1,2000})</description>")


class Hit(Struct, frozen=True):
    """A search result. `score` is between 0 and 1."""

    item: Item
    score: float


class SearchScope(Struct, frozen=True):
    """The scope of a search: a type of item, optionally only ids that begin with a category."""

    type: ItemType
    category: str = ""

    @classmethod
    def of(cls, text: str) -> SearchScope:
        """Read a scope, written like `directive`, `directive.rye.core.*` or `directive/rye/core`. Raises
        `CannotStart`."""
        head, _, rest = text.strip().replace(".", "/").partition("/")
        fitting = next((item_type for item_type in ITEM_TYPES if head in (item_type, f"{item_type}s")), None)
        if fitting is None:
            raise CannotStart(f'scope must name an item_type ({", ".join(ITEM_TYPES)}), not "{text[:100]}"')
        return cls(fitting, rest.removesuffix("*").strip("/"))

    def covers(self, entry: Entry) -> bool:
        return not self.category or entry.id == self.category or entry.id.startswith(f"{self.category}/")


def search(
    spaces: Spaces,
    query: str,
    scope: SearchScope,
    source: SpaceName | None = None,
    limit: int | None = LIMIT,
    may: Callable[[Entry], bool] = lambda entry: True,
) -> list[Hit]:
    """Return the hits, best first; all of them if `limit` is None. A query without words finds everything.

    `may` leaves out items whose existence the caller must not learn.
    """
    words = words_of(query)
    hits: list[Hit] = []
    read = 0
    for entry in spaces.entries(scope.type, source):
        if not scope.covers(entry) or not may(entry):
            continue
        try:
            item = spaces.read(entry)
        except QuireError:
            continue  # A caller that asks for it by id gets the reason.
        read += len(item.text)
        if read > MAX_READ:
            raise CannotStart(f"there is too much to search in {scope.type}; narrow the scope to a category")
        if item.id != entry.id:
            continue  # A link: the item itself is in the list as well.
        score = score_of(item, words)
        if score or not words:
            hits.append(Hit(item, score))
    # Sorting is stable: hits with the same score stay in the order of spaces and ids.
    hits.sort(key=lambda hit: -hit.score)
    return hits if limit is None else hits[: max(1, min(limit, MAX_LIMIT))]


def summary(item: Item) -> str:
    """Return one line about an item, from its own description, title or heading."""
    for pattern in (_DESCRIPTION, _TITLE, _HEADING):
        match = pattern.search(item.text)
        if match:
            return " ".join(match[1].split()).strip("\"'")[:300]
    return ""


def words_of(query: str) -> list[str]:
    return list(dict.fromkeys(_WORDS.findall(query.casefold())))[:MAX_WORDS]


def score_of(item: Item, words: list[str]) -> float:
    if not words:
        return 0.0
    name, whole = item.id.rpartition("/")[2].casefold(), item.id.casefold()
    parts = set(_WORDS.findall(name))
    about, text = summary(item).casefold(), item.text.casefold()
    total = 0.0
    for word in words:
        if word in parts:
            total += 1.0
        elif word in name:
            total += 0.8
        elif word in whole:
            total += 0.6
        elif word in about:
            total += 0.5
        elif word in text:
            total += 0.2
    return round(total / len(words), 3)
