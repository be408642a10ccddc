"""Read items: one by its id, or several by words; and copy one to another space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import ToolFailed
from quire.library.item_tools import error, item_type_of, missing, shown_path, space_of, unknown_type
from quire.library.items import FOLDERS, ITEM_TYPES, Entry, Item, ItemType, SpaceName
from quire.library.search import LIMIT, Hit, SearchScope, score_of, search, summary, words_of
from quire.plan.built_in_tools import WRITE
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.library.verify import VerifiedItems
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
                return error(f"item not found: there is nothing of the id {item_id}", item_id=item_id)
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
        found: dict[ItemType, str] = {}
        for one in ITEM_TYPES:
            if one != "tool":
                item = self.items.spaces.find(one, item_id, source)
                if item is not None:
                    found[one] = item.id
            elif source in (None, "system") and (spec := self.tools(item_id)):
                found[one] = spec.id
        readable = [one for one, real in found.items() if self.grants.allows("fetch", one, real)]
        if found and not readable:
            self.grants.require("fetch", *next(iter(found.items())))
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
        asked = item_type_of(arguments.get("item_type"))
        if asked is not None and asked != scope.type:
            return error(f"the scope is {scope.type} and item_type is {asked}; leave item_type out of a query")
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
                return error(f"{shown} is there already and says something else; look at it first", item_id=item.id)
            return {"copied_to": shown}
        files.write({"path": path, "content": item.stored})
        return {"copied_to": shown}
