from __future__ import annotations

from pathlib import Path

import pytest
from tests.library.item_tools.shelf import Shelf, directive, knowledge

from quire.errors import Denied, ToolFailed
from quire.library.item_tools import sign
from quire.trust.trusted_keys import own_key
from quire.values import Value

BASH = "<execute><tool>rye.bash</tool></execute>"


@pytest.mark.parametrize(
    ("item_type", "path", "text"),
    [
        ("directive", ".ai/directives/demo/d.md", directive("d")),
        ("knowledge", ".ai/knowledge/demo/d.md", knowledge("d")),
        ("knowledge", ".ai/knowledge/demo/d.yaml", "name: d\ntitle: T\nentry_type: note\nversion: 1.0.0\nbody: B\n"),
        ("directive", "user:.ai/directives/demo/d.md", directive("d")),
    ],
)
async def test_signing(shelf: Shelf, item_type: str, path: str, text: str) -> None:
    file = shelf.put(path, text, sign=False)
    file.chmod(0o640)
    answer = await shelf.call("sign", item_type=item_type, item_id="d")
    assert answer == {
        "status": "signed",
        "item_type": item_type,
        "item_id": "demo/d",
        "source": "user" if path.startswith("user:") else "project",
        "path": path,
        "key_id": shelf.key.key_id,
        "run": "run-1",
        "effect": "effect-1",
    }
    assert file.read_text().partition("\n")[2] == text and file.stat().st_mode & 0o777 == 0o640
    read = await shelf.call("fetch", item_type=item_type, item_id="demo/d")
    assert read["signature"] == "ok"
    assert (await shelf.call("sign", item_type=item_type, item_id="demo/d"))["status"] == "signed", "again"
    assert file.read_text().count("rye:signed") == 1


async def test_what_is_not_valid_is_not_signed(shelf: Shelf) -> None:
    file = shelf.put(".ai/directives/demo/d.md", directive("other", category="elsewhere"), sign=False)
    before = file.read_bytes()
    answer = await shelf.call("sign", item_type="directive", item_id="demo/d")
    assert (answer["status"], answer["error"]) == ("error", "validation failed")
    assert len(answer["issues"]) == 2 and file.read_bytes() == before  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"item_type": "directive", "item_id": "rye/core/create_directive"}, "built-in items are never signed"),
        ({"item_type": "directive", "item_id": "demo/d", "source": "system"}, "built-in items"),
        ({"item_type": "directive", "item_id": "demo/none"}, "directive not found: demo/none"),
        ({"item_type": "pipeline", "item_id": "p"}, "sign it by hand: quire sign PATH"),
        ({"item_type": "tool", "item_id": "rye/bash"}, "sign it by hand"),
        ({"item_type": "directive", "item_id": "none/*"}, "no directives fit none/*"),
        ({"item_type": "directive", "item_id": "../x"}, "is not an item's id"),
    ],
)
async def test_what_is_wrong_is_answered(shelf: Shelf, arguments: dict[str, Value], words: str) -> None:
    shelf.put(".ai/directives/demo/d.md", directive("d"), sign=False)
    answer = await shelf.call("sign", **arguments)
    assert answer["status"] == "error" and words in str(answer["error"])


async def test_a_pattern_does_not_lead_out(shelf: Shelf) -> None:
    for pattern in ("../*", "/etc/*", "demo/../../*"):
        with pytest.raises(ToolFailed, match="must be relative"):
            await shelf.call("sign", item_type="directive", item_id=pattern)


async def test_no_key_is_made(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, key=False)
    shelf.put(".ai/directives/demo/d.md", directive("d"), sign=False)
    answer = await shelf.call("sign", item_type="directive", item_id="demo/d")
    assert answer["status"] == "error" and "quire trust keys new" in str(answer["error"])
    assert not (shelf.user / "keys").exists()


@pytest.mark.parametrize("grants", ["", "rye.fetch.*", "rye.sign.knowledge.*", "rye.sign.directive.d", "rye.execute.*"])
async def test_signing_needs_its_own_capability(shelf: Shelf, grants: str) -> None:
    file = shelf.put(".ai/directives/demo/d.md", directive("d"), sign=False)
    for item_id in ("d", "demo/d", "demo/*"):
        with pytest.raises(Denied, match=r"rye.sign.directive.demo.d"):
            await shelf.call("sign", grants, item_type="directive", item_id=item_id)
    assert "rye:signed" not in file.read_text()


@pytest.mark.parametrize(
    ("permissions", "grants", "excess"),
    [
        (BASH, "rye.sign.*", "rye.execute.tool.rye.bash"),
        (BASH, "rye.sign.* rye.execute.tool.rye.file-system.*", "rye.execute.tool.rye.bash"),
        ("*", "rye.sign.* rye.execute.* rye.fetch.*", r"rye.\*"),
        ("<execute>*</execute>", "rye.sign.* rye.execute.tool.*", r"rye.execute.\*"),
        ("<sign><directive>*</directive></sign>", "rye.sign.directive.demo.*", r"rye.sign.directive.\*"),
        ("<execute><tool>rye.*</tool></execute>", "rye.sign.* rye.execute.tool.rye.bash", r"rye.execute.tool.rye.\*"),
        (BASH, "rye.sign.* rye.execute.tool.rye.bash", ""),
        (BASH, "rye.sign.* rye.execute.tool.rye.bash.*", ""),
        (BASH, "rye.*", ""),
        (
            "<execute><tool>rye/file-system/fs_write</tool></execute>",
            "rye.sign.* rye.execute.tool.rye.file-system.*",
            "",
        ),
    ],
)
async def test_nothing_is_signed_that_may_do_more(shelf: Shelf, permissions: str, grants: str, excess: str) -> None:
    file = shelf.put(".ai/directives/demo/d.md", directive("d", permissions), sign=False)
    if not excess:
        assert (await shelf.call("sign", grants, item_type="directive", item_id="demo/d"))["status"] == "signed"
        return
    with pytest.raises(Denied, match=f"run may not: {excess}; .*: quire sign .ai/directives/demo/d.md$"):
        await shelf.call("sign", grants, item_type="directive", item_id="demo/d")
    assert "rye:signed" not in file.read_text()


@pytest.mark.parametrize("inherited", [""])
async def test_inherited_permissions_count(shelf: Shelf, inherited: str) -> None:
    shelf.put(".ai/directives/demo/strong.md", directive("strong", BASH))
    shelf.put(".ai/directives/demo/middle.md", directive("middle", "", extends="demo/strong"))
    file = shelf.put(".ai/directives/demo/d.md", directive("d", inherited, extends="demo/middle"), sign=False)
    with pytest.raises(Denied, match=r"rye.execute.tool.rye.bash \(from demo/strong, which it extends\)"):
        await shelf.call("sign", "rye.sign.* rye.fetch.*", item_type="directive", item_id="demo/d")
    assert "rye:signed" not in file.read_text()
    answer = await shelf.call("sign", "rye.sign.* rye.execute.tool.rye.bash", item_type="directive", item_id="demo/d")
    assert answer["status"] == "signed"


@pytest.mark.parametrize("linked", [".ai", ".ai/directives"])
async def test_an_item_outside_of_the_users_folder_is_left_to_the_user(
    shelf: Shelf, tmp_path: Path, linked: str
) -> None:
    elsewhere = tmp_path / "dotfiles"
    file = elsewhere / ("directives/demo/d.md" if linked == ".ai" else "demo/d.md")
    file.parent.mkdir(parents=True)
    file.write_text(directive("d"))
    place = shelf.user / linked
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(elsewhere)
    answer = await shelf.call("sign", item_type="directive", item_id="demo/d")
    assert answer["status"] == "error" and "sign it by hand" in str(answer["error"])
    assert "rye:signed" not in file.read_text()


async def test_a_parent_that_nobody_knows_is_no_way_around(shelf: Shelf) -> None:
    file = shelf.put(".ai/directives/demo/d.md", directive("d", "", extends="demo/later"), sign=False)
    answer = await shelf.call("sign", "rye.sign.*", item_type="directive", item_id="demo/d")
    assert answer["status"] == "error" and "demo/later not found" in str(answer["error"])
    assert "rye:signed" not in file.read_text()


async def test_batch(shelf: Shelf) -> None:
    shelf.put(".ai/directives/demo/a.md", directive("a"), sign=False)
    shelf.put(".ai/directives/demo/b.md", directive("wrong"), sign=False)
    shelf.put(".ai/directives/demo/c.md", directive("c", BASH), sign=False)
    shelf.put(".ai/directives/demo/deep/e.md", directive("e", category="demo/deep"), sign=False)
    shelf.put("user:.ai/directives/demo/u.md", directive("u"), sign=False)
    answer = await shelf.call("sign", "rye.sign.* rye.fetch.*", item_type="directive", item_id="demo/*")
    failed = {one["item_id"]: one["error"] for one in answer["failed"]}  # type: ignore[union-attr,index,call-overload]
    assert (answer["status"], answer["signed"], answer["total"]) == ("completed", ["demo/a"], 3)
    assert failed["demo/b"] == "validation failed" and "rye.execute.tool.rye.bash" in str(failed["demo/c"])
    assert answer["summary"] == "signed 1 of 3, 2 failed" and answer["run"] == "run-1"
    everywhere = await shelf.call("sign", item_type="directive", item_id="e*")
    assert everywhere["signed"] == ["demo/deep/e"]
    below = await shelf.call("sign", item_type="directive", item_id="demo/**", source="user")
    assert below["signed"] == ["demo/u"]


async def test_a_file_changed_in_between_is_left_alone(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    file = shelf.put(".ai/directives/demo/d.md", directive("d"), sign=False)

    def changed(settings: object) -> object:
        file.write_text(directive("d", BASH))
        return own_key(settings)  # type: ignore[arg-type]

    monkeypatch.setattr(sign, "own_key", changed)
    with pytest.raises(ToolFailed, match="changed by another program"):
        await shelf.call("sign", "rye.sign.* rye.fetch.*", item_type="directive", item_id="demo/d")
    assert file.read_text() == directive("d", BASH)
