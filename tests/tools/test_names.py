"""What a name means, with connections that say when they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from quire.engine.requests import ToolRequest
from quire.errors import Denied, ToolFailed
from quire.tools.builtin.connection import BuiltInConnection
from quire.tools.gate import Gate
from quire.tools.registry import Connection, Connections, ToolSpec
from quire.tools.tool_names import Names
from quire.trust.capabilities import Grants, mcp_tool, python_tool
from quire.trust.secrets import Redactor
from quire.values import Value

EVERYTHING = Grants.of(["*"])


class Known:
    """A connection with these tools, all of which read and return where they were called."""

    def __init__(self, name: str, *tools: str) -> None:
        self.name = name
        self.asked = 0
        self._specs = {tool: ToolSpec(self.tool_id(tool), tool, f"{tool} of {name}", {}, "read") for tool in tools}

    def tool_id(self, tool: str) -> str:
        return python_tool(tool) if self.name == "python" else mcp_tool(self.name, tool)

    def known(self, tool: str) -> ToolSpec | None:
        return self._specs.get(tool) if self.asked else None

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        self.asked += 1
        return self._specs

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        return tool.id

    async def prompt(self, name: str) -> str:
        return ""

    async def close(self) -> None: ...


def places() -> dict[str, Known]:
    return {
        "web": Known("web", "search", "fetch", "shell"),
        "docs": Known("docs", "search", "look__up", "odd/name"),
        "docs__look": Known("docs__look", "up", "only_here"),
        "file": Known("file", "read"),
        "python": Known("python", "count", "fetch", "shell"),
    }


def registry(found: dict[str, Known]) -> Connections:
    connections: dict[str, Connection] = dict(found)
    connections["quire"] = BuiltInConnection(Path(), EVERYTHING, {})
    return Connections(connections)


def gate(grants: Grants, found: dict[str, Known] | None = None) -> Gate:
    return Gate(registry(found or places()), grants, Redactor({}))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("file__read", ("quire", "file__read")),
        ("rye/file-system/read", ("quire", "file__read")),
        ("rye/file-system/fs_write", ("quire", "file__write")),
        ("shell", ("quire", "shell")),
        ("rye/bash", ("quire", "shell")),
        ("http__get", ("quire", "http__get")),
        ("ask", ("quire", "ask")),
        ("mcp/file/read", ("file", "read")),
        ("mcp/docs/odd%2Fname", ("docs", "odd/name")),
        ("file/read", ("file", "read")),
        ("web__search", ("web", "search")),
        ("web__nothing", ("web", "nothing")),
        ("docs__look__only_here", ("docs__look", "only_here")),
        ("python/shell", ("python", "shell")),
        ("python__shell", ("python", "shell")),
        ("count", ("python", "count")),
        ("fetch", ("python", "fetch")),
        ("only_here", ("docs__look", "only_here")),
    ],
)
async def test_names(name: str, target: tuple[str, str]) -> None:
    assert await Names(registry(places()), EVERYTHING).resolve(name) == target


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("search", "ambiguous_tool", '"search" means several tools: web/search, docs/search; say which'),
        ("docs__look__up", "ambiguous_tool", "docs/look__up, docs__look/up"),
        ("serch", "unknown_tool", 'unknown tool "serch"; did you mean "search"?'),
        ("fil__read", "unknown_tool", 'did you mean "file__read"?'),
        ("nowhere__x", "unknown_tool", "unknown tool"),
        ("mcp/nowhere/x", "unknown_tool", "unknown tool"),
    ],
)
async def test_names_that_mean_no_one_tool(name: str, kind: str, message: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        await gate(EVERYTHING).call(ToolRequest("1", "1", "", name, {}), "e")
    assert message in failed.value.message
    assert failed.value.kind == kind


async def test_only_what_is_granted_is_asked() -> None:
    found = places()
    names = Names(registry(found), Grants.of(["rye.execute.tool.mcp.docs.*"]))
    assert await names.resolve("search") == ("docs", "search")
    assert {name for name, place in found.items() if place.asked} == {"docs"}
    with pytest.raises(ToolFailed, match=r"not asked, because it is not granted there: web, docs__look, file, python"):
        await names.resolve("count")
    assert {name for name, place in found.items() if place.asked} == {"docs"}


async def test_a_thread_is_told_of_what_it_may_use() -> None:
    grants = Grants(frozenset({"rye.execute.tool.rye.file-system.read", "rye.execute.tool.mcp.docs.*"}), "d.md:9")
    names = Names(registry(places()), grants)
    with pytest.raises(ToolFailed, match="unknown tool") as failed:
        await names.resolve("zzzzzz")
    assert failed.value.message.startswith('unknown tool "zzzzzz"; there are: mcp/docs/')
    assert failed.value.message.endswith("rye/file-system/read")


async def test_what_is_checked_is_what_is_dispatched() -> None:
    for name, identity in [("only_here", "mcp/docs__look/only_here"), ("web__search", "mcp/web/search")]:
        granted = Grants.of([f"rye.execute.tool.{identity.replace('/', '.')}"])
        assert await gate(granted).call(ToolRequest("1", "1", "", name, {}), "e") == identity
        assert await gate(granted).preflight([("", name)]) == []
    with pytest.raises(Denied, match=r"rye\.execute\.tool\.mcp\.web\.search"):
        await gate(Grants.of(["rye.execute.tool.mcp.docs.*"])).call(ToolRequest("1", "1", "", "web__search", {}), "e")
    assert len(await gate(Grants()).preflight([("", "web__search"), ("", "shell")])) == 2


async def test_effect_classes_of_names() -> None:
    built = gate(EVERYTHING)

    def effect(name: str) -> str:
        return built.effect_class(ToolRequest("", "", "", name, {}))

    assert [effect(name) for name in ("file__read", "file__write", "file__edit", "shell", "http__get")] == [
        "read",
        "idempotent",
        "write",
        "write",
        "read",
    ]
    assert effect("only_here") == "write", "nobody has been asked yet"
    await built.call(ToolRequest("1", "1", "", "only_here", {}), "e")
    assert effect("only_here") == "read"
    assert effect("search") == "write", "two servers have it"
    assert effect("no_such_tool") == "write"


async def test_offers() -> None:
    granted = Grants.of(
        ["rye.execute.tool.mcp.web.search", "rye.execute.tool.rye.file-system.*", "rye.execute.tool.ask"]
    )
    offers = await gate(granted).offers(["web__search", "shell", "file__read", "rye/file-system/read", "ask"])
    assert [one.name for one in offers] == ["web__search", "file__read", "rye/file-system/read", "ask"]
    assert offers[0].description == "search of web"
    assert offers[1].schema == offers[2].schema
    with pytest.raises(ToolFailed, match="unknown tool"):
        await gate(granted).offers(["file__read", "no_such"])


@pytest.mark.parametrize(
    ("pattern", "offered"),
    [
        (
            "file__*",
            ["file__edit", "file__edit_lines", "file__glob", "file__grep", "file__list", "file__read", "file__write"],
        ),
        (
            "rye/file-system/*",
            ["file__edit", "file__edit_lines", "file__glob", "file__grep", "file__list", "file__read", "file__write"],
        ),
        ("web__*", ["web__search"]),
        ("rye/bash*", []),
    ],
)
async def test_offers_by_pattern(pattern: str, offered: list[str]) -> None:
    found = places()
    granted = Grants.of(["rye.execute.tool.mcp.web.search", "rye.execute.tool.rye.file-system.*"])
    assert [one.name for one in await gate(granted, found).offers([pattern])] == offered
    assert {name for name, place in found.items() if place.asked} <= {"web"}


async def test_a_question_is_not_called(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="a question to a person"):
        await gate(EVERYTHING).call(ToolRequest("1", "1", "", "ask", {"prompt": "?"}), "e")
