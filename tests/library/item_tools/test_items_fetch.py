from __future__ import annotations

import pytest
from tests.library.item_tools.shelf import Shelf, directive, knowledge

from quire.errors import Denied
from quire.values import Value


async def test_by_id(shelf: Shelf) -> None:
    file = shelf.put(".ai/knowledge/demo/k.md", knowledge("k"))
    assert await shelf.call("fetch", item_type="knowledge", item_id="k") == {
        "status": "success",
        "mode": "id",
        "item_type": "knowledge",
        "item_id": "demo/k",
        "source": "project",
        "path": ".ai/knowledge/demo/k.md",
        "signature": "ok",
        "content": file.read_text(),
    }


@pytest.mark.parametrize(
    ("item_id", "item_type", "source", "path"),
    [
        ("rye/agent/core/Identity", "knowledge", "system", "built-in:knowledge/rye/agent/core/Identity.md"),
        ("demo/mine", "knowledge", "user", "user:.ai/knowledge/demo/mine.md"),
        ("mine", "knowledge", "user", "user:.ai/knowledge/demo/mine.md"),
        ("create_directive", "directive", "system", "built-in:directives/rye/core/create_directive.md"),
        ("top", "playbook", "project", "top.playbook.md"),
    ],
)
async def test_the_type_need_not_be_said(shelf: Shelf, item_id: str, item_type: str, source: str, path: str) -> None:
    shelf.put("user:.ai/knowledge/demo/mine.md", knowledge("mine"))
    shelf.put("top.playbook.md", "# T\n\n## STEP 1: A\n\nDo it.\n", sign=False)
    answer = await shelf.call("fetch", item_id=item_id)
    assert (answer["item_type"], answer["source"], answer["path"]) == (item_type, source, path)


async def test_one_id_of_two_types_is_ambiguous(shelf: Shelf) -> None:
    shelf.put(".ai/knowledge/demo/x.md", knowledge("x"))
    shelf.put(".ai/directives/demo/x.md", directive("x"))
    answer = await shelf.call("fetch", item_id="demo/x")
    assert answer["status"] == "error" and "directive, knowledge" in str(answer["error"])
    one = await shelf.call("fetch", "rye.fetch.knowledge.*", item_id="demo/x")
    assert one["item_type"] == "knowledge", "what the caller may not read does not count"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"item_id": "a", "query": "b"}, "item_id or query, not both"),
        ({}, "item_id of one item, or a query"),
        ({"query": "b"}, "needs a scope"),
        ({"query": "b", "scope": "widget"}, "scope must name an item_type"),
        ({"query": "b", "scope": "tool", "item_type": "directive"}, "leave item_type out"),
        ({"item_type": "directive", "item_id": "demo/nope"}, "directive not found: demo/nope"),
        ({"item_type": "directive", "item_id": "demo/nope", "source": "user"}, "not in the user folder"),
        ({"item_id": "demo/nope"}, "not found: unknown id demo/nope"),
        ({"item_type": "tool", "item_id": "rye/nope"}, "tool not found: rye/nope"),
        ({"item_type": "knowledge", "item_id": "../../etc/passwd"}, "is not an item's id"),
        ({"item_type": "tool", "item_id": "rye/bash", "destination": "project"}, "a tool is not a file"),
    ],
)
async def test_what_is_wrong_is_answered(shelf: Shelf, arguments: dict[str, Value], words: str) -> None:
    answer = await shelf.call("fetch", **arguments)
    assert answer["status"] == "error" and words in str(answer["error"])


async def test_a_bare_name_of_several_names_them(shelf: Shelf) -> None:
    shelf.put(".ai/knowledge/a/k.md", knowledge("k", "a"))
    shelf.put("user:.ai/knowledge/b/k.md", knowledge("k", "b"))
    answer = await shelf.call("fetch", item_type="knowledge", item_id="k")
    assert answer["status"] == "error" and "a/k, b/k" in str(answer["error"])


@pytest.mark.parametrize(
    ("grants", "allowed"),
    [
        ("rye.fetch.knowledge.demo.k", True),
        ("rye.fetch.knowledge.demo.*", True),
        ("rye.fetch.*", True),
        ("rye.fetch.knowledge.k", False),
        ("rye.fetch.directive.*", False),
        ("rye.execute.*", False),
        ("", False),
    ],
)
async def test_the_capability_is_that_of_what_is_read(shelf: Shelf, grants: str, allowed: bool) -> None:
    shelf.put(".ai/knowledge/demo/k.md", knowledge("k"))
    secret = shelf.put(".ai/knowledge/secret/s.md", knowledge("s", "secret"))
    (shelf.project / ".ai/knowledge/demo/link.md").symlink_to(secret)
    for item_id in ("demo/k", "k"):
        if allowed:
            assert (await shelf.call("fetch", grants, item_type="knowledge", item_id=item_id))["status"] == "success"
        else:
            with pytest.raises(Denied, match=r"rye.fetch.knowledge.demo.k"):
                await shelf.call("fetch", grants, item_type="knowledge", item_id=item_id)
    if grants != "rye.fetch.*":
        with pytest.raises(Denied, match=r"rye.fetch.knowledge.secret.s"):
            await shelf.call("fetch", grants, item_type="knowledge", item_id="demo/link")


async def test_who_may_not_read_is_not_told_what_is_missing(shelf: Shelf) -> None:
    with pytest.raises(Denied):
        await shelf.call("fetch", "rye.fetch.knowledge.a.*", item_type="knowledge", item_id="b/none")


async def test_signatures(shelf: Shelf) -> None:
    shelf.put(".ai/knowledge/demo/k.md", knowledge("k"), sign=False)
    answer = await shelf.call("fetch", item_type="knowledge", item_id="demo/k")
    assert answer["status"] == "error" and answer["error_type"] == "integrity"
    assert "unsigned" in str(answer["error"]) and "content" not in answer
    shelf.mode = "warn"
    warned = await shelf.call("fetch", item_type="knowledge", item_id="demo/k")
    assert (warned["status"], warned["signature"]) == ("success", "unsigned")


async def test_by_query(shelf: Shelf) -> None:
    shelf.put(".ai/directives/demo/make_tea.md", directive("make_tea"))
    shelf.put("user:.ai/directives/demo/make_coffee.md", directive("make_coffee"), sign=False)
    answer = await shelf.call("fetch", query="make tea", scope="directive")
    assert answer["results"] == [
        {
            "id": "demo/make_tea",
            "item_type": "directive",
            "source": "project",
            "score": 1.0,
            "description": "Does make_tea",
        },
        {"id": "demo/make_coffee", "item_type": "directive", "source": "user", "score": 0.5, "signature": "unsigned"},
    ]
    assert (answer["total"], answer["mode"], answer["scope"]) == (2, "query", "directive")
    first = await shelf.call("fetch", query="make", scope="directive", limit=1)
    assert (len(first["results"]), first["total"]) == (1, 2)  # type: ignore[arg-type]
    built_in = await shelf.call("fetch", query="create", scope="directive", source="system")
    assert built_in["total"] == 2


async def test_a_query_finds_only_what_may_be_read(shelf: Shelf) -> None:
    shelf.put(".ai/knowledge/open/tea.md", knowledge("tea", "open"))
    shelf.put(".ai/knowledge/closed/tea.md", knowledge("tea", "closed"))
    answer = await shelf.call("fetch", "rye.fetch.knowledge.open.*", query="tea", scope="knowledge")
    assert [one["id"] for one in answer["results"]] == ["open/tea"]  # type: ignore[union-attr,index,call-overload]
    with pytest.raises(Denied, match=r"rye.fetch.directive"):
        await shelf.call("fetch", "rye.fetch.knowledge.open.*", query="tea", scope="directive")


async def test_tools_can_be_looked_up(shelf: Shelf) -> None:
    one = await shelf.call("fetch", item_type="tool", item_id="rye/file-system/fs_write")
    assert one["item_id"] == "rye/file-system/write" and '"parameters":{' in str(one["content"])
    found = await shelf.call("fetch", "rye.fetch.tool.rye.file-system.*", query="lines of a file", scope="tool")
    ids = [hit["id"] for hit in found["results"]]  # type: ignore[union-attr,index,call-overload]
    assert "rye/file-system/edit_lines" in ids and "rye/bash" not in ids


OPEN = "rye.* rye.reach.folder.%2Eai"
"""What `--allow file__write=.ai` adds."""


async def test_copy_to_the_project(shelf: Shelf) -> None:
    arguments: dict[str, Value] = {"item_id": "rye/agent/core/Identity", "destination": "project"}
    with pytest.raises(Denied, match=r"needs a grant for the folder .ai"):
        await shelf.call("fetch", item_type="knowledge", **arguments)
    with pytest.raises(Denied, match=r"rye.file-system.write"):
        await shelf.call("fetch", "rye.fetch.* rye.reach.folder.%2Eai", item_type="knowledge", **arguments)
    copy = shelf.project / ".ai/knowledge/rye/agent/core/Identity.md"
    assert not copy.exists()
    for _ in range(2):
        answer = await shelf.call("fetch", OPEN, item_type="knowledge", **arguments)
        # The second time it is read from the copy, which nobody has signed.
        assert answer.get("copied_to", ".ai/knowledge/rye/agent/core/Identity.md") == (
            ".ai/knowledge/rye/agent/core/Identity.md"
        )
    again = await shelf.call("fetch", OPEN, item_type="knowledge", source="system", **arguments)
    assert again["status"] == "success", "the same text is there already"
    copy.write_text("mine")
    answer = await shelf.call("fetch", OPEN, item_type="knowledge", source="system", **arguments)
    assert answer["status"] == "error" and "exists already with another content" in str(answer["error"])
    assert copy.read_text() == "mine"


async def test_who_may_sign_a_directive_may_copy_it(shelf: Shelf) -> None:
    answer = await shelf.call("fetch", item_type="directive", item_id="create_directive", destination="project")
    assert answer["copied_to"] == ".ai/directives/rye/core/create_directive.md"


async def test_copy_to_the_users_space(shelf: Shelf) -> None:
    file = shelf.put(".ai/knowledge/demo/k.md", knowledge("k"))
    arguments: dict[str, Value] = {"item_type": "knowledge", "item_id": "demo/k", "destination": "user"}
    for grants in ("rye.*", OPEN):
        with pytest.raises(Denied, match=r"--allow file__write=user:\.ai"):
            await shelf.call("fetch", grants, **arguments)
    answer = await shelf.call("fetch", "rye.* rye.reach.folder.user%3A%2Eai", **arguments)
    assert answer["copied_to"] == "user:.ai/knowledge/demo/k.md"
    assert (shelf.user / ".ai/knowledge/demo/k.md").read_text() == file.read_text()
