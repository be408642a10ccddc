"""A model that tries to leave the workspace: through every tool that takes a path, an id, a pattern or a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.security.stage import SECRET, Call, Stage, completed, execute
from tests.tools.test_builtin_shell import needs_sandbox

from quire.errors import QuireError

EVERYTHING = (
    "<execute><tool>*</tool><directive>*</directive><knowledge>*</knowledge><playbook>*</playbook></execute>"
    "<fetch>*</fetch><sign>*</sign><acknowledge risk='elevated'>x</acknowledge>"
)
OUTSIDE = [
    "../outside/secret.txt",
    "a/../../outside/secret.txt",
    "./../outside/secret.txt",
    "out/secret.txt",
    "deep/out/secret.txt",
    "secret",
    "dangling",
    "loop",
    "/etc/passwd",
    "//etc/passwd",
    "~/.ssh/id_rsa",
    "a\0/../../outside/secret.txt",
    "file:///etc/passwd",
    "..%2Foutside%2Fsecret.txt",
    "‥/outside/secret.txt",
    "．．/outside/secret.txt",
    "..\\outside\\secret.txt",
]


@pytest.fixture
def tempting(stage: Stage) -> Stage:
    """Links of every kind that lead out."""
    stage.write("a/x.txt", "inside")
    (stage.work / "out").symlink_to("../outside")
    (stage.work / "secret").symlink_to(stage.outside / "secret.txt")
    (stage.work / "dangling").symlink_to("../outside/new.txt")
    (stage.work / "loop").symlink_to("loop")
    (stage.work / "deep").mkdir()
    (stage.work / "deep" / "out").symlink_to("../../outside")
    stage.directive("main", EVERYTHING)
    return stage


@pytest.mark.parametrize("path", OUTSIDE)
async def test_no_file_tool_leaves_the_workspace(tempting: Stage, path: str) -> None:
    before = tempting.print()
    calls: list[Call] = [
        ("rye_file_system_read", {"path": path}),
        ("rye_file_system_edit", {"path": path, "old": "what", "new": "changed"}),
        ("rye_file_system_edit_lines", {"path": path, "changes": [{"line_id": "x", "new_content": "changed"}]}),
        ("rye_file_system_ls", {"path": path}),
        ("rye_file_system_grep", {"path": path, "pattern": "outside"}),
        ("rye_file_system_glob", {"path": path, "pattern": "*"}),
        execute("rye/file-system/read", {"path": path}),
        execute("rye/file-system/fs_read", {"path": path}),
    ]
    played = await tempting.play("main", calls)
    assert completed(played)
    assert all(kind in ("file", "outside", "denied") for kind in played.kinds), played.told
    assert SECRET not in played.everything()
    assert tempting.print() == before


@pytest.mark.parametrize(
    "path", [one for one in OUTSIDE if not one.startswith(("~", "file:", "..%", "‥", "．", "..\\"))]
)
async def test_nothing_is_written_outside(tempting: Stage, path: str) -> None:
    before = tempting.print()
    calls: list[Call] = [
        ("rye_file_system_write", {"path": path, "content": "changed"}),
        ("rye_file_system_write", {"files": [{"path": path, "content": "changed"}]}),
        execute("rye/file-system/fs_write", {"path": path, "content": "changed"}),
    ]
    played = await tempting.play("main", calls)
    assert completed(played)
    assert all(kind in ("file", "outside", "denied") for kind in played.kinds), played.told
    assert tempting.print() == before


async def test_odd_names_are_names_and_no_way_out(tempting: Stage) -> None:
    """What only looks like `..` to somebody else is the name of a file in the workspace."""
    calls: list[Call] = [
        ("rye_file_system_write", {"path": path, "content": "x"})
        for path in ("..%2Fx.txt", "‥/x.txt", "．．/x.txt", "..\\x.txt", "~/x.txt")
    ]
    played = await tempting.play("main", calls)
    assert set(played.kinds) == {""}
    assert sorted(file.name for file in tempting.outside.iterdir()) == ["secret.txt"]
    assert not (tempting.base / "x.txt").exists() and not (Path.home() / "x.txt").exists()


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../outside/*", "**/../../*", "..", "[.][.]/outside/*"])
async def test_patterns_do_not_lead_out(tempting: Stage, pattern: str) -> None:
    calls: list[Call] = [
        ("rye_file_system_glob", {"pattern": pattern}),
        ("rye_file_system_grep", {"pattern": "outside", "glob": pattern}),
        ("rye_sign", {"item_type": "directive", "item_id": pattern}),
    ]
    played = await tempting.play("main", calls)
    assert completed(played)
    assert "secret.txt" not in "".join(played.told) and SECRET not in played.everything()


@needs_sandbox
@pytest.mark.parametrize("folder", ["..", "../outside", "out", "deep/out", "/etc", "a/../..", "\0", "loop", "dangling"])
async def test_a_command_does_not_start_outside(tempting: Stage, folder: str) -> None:
    command = "pwd; cat secret.txt passwd 2>&1; echo x > left-behind"
    before = tempting.print()
    played = await tempting.play("main", [("rye_bash", {"command": command, "working_dir": folder})])
    assert played.kinds[0] in ("file", "outside"), played.told
    assert tempting.print() == before


IDS = [
    "../../outside/secret",
    "..",
    "../directives/main",
    "/etc/passwd",
    "C:/x",
    "a//b",
    "a/",
    "/a",
    "",
    ".hidden",
    "a/.git/x",
    "a\\..\\b",
    "a\0b",
    "a\nb",
    "x" * 501,
    "%2E%2E/main",
    "..%2Fmain",
    "ｍain",
    "MAIN",
    "main.",
    "main.md",
    "main ",
    "ma*",
    "m?in",
    "[m]ain",
]


@pytest.mark.parametrize("item_id", IDS)
async def test_no_odd_id_finds_an_item(tempting: Stage, item_id: str) -> None:
    (tempting.work / ".ai" / "knowledge").mkdir()
    (tempting.outside / "secret.md").write_text(SECRET)
    before = tempting.print()
    calls: list[Call] = []
    for item_type in ("directive", "knowledge"):
        calls.append(("rye_fetch", {"item_type": item_type, "item_id": item_id}))
        calls.append(("rye_fetch", {"item_type": item_type, "item_id": item_id, "destination": "project"}))
        calls.append(("rye_execute", {"item_type": item_type, "item_id": item_id}))
        calls.append(("rye_execute", {"item_type": item_type, "item_id": item_id, "dry_run": True}))
    calls.append(("rye_execute", {"item_type": "directive", "item_id": item_id, "thread": "fork"}))
    calls.append(("rye_agent_threads_thread_directive", {"directive_id": item_id}))
    calls.append(("rye_execute", {"item_type": "playbook", "item_id": item_id}))
    played = await tempting.play("main", calls)
    assert completed(played)
    assert all('"status":"success"' not in one and '"validation_passed"' not in one for one in played.told), played.told
    assert all("error" in one for one in played.told)
    assert SECRET not in played.everything()
    assert tempting.print() == before


@pytest.mark.parametrize("linked", ["a file", "a folder", "the space"])
async def test_items_that_are_links_out(tempting: Stage, linked: str) -> None:
    (tempting.outside / "leak.md").write_text(SECRET)
    knowledge = tempting.work / ".ai" / "knowledge"
    if linked == "the space":
        knowledge.symlink_to(tempting.outside)
    else:
        knowledge.mkdir()
        name, target = ("leak.md", tempting.outside / "leak.md") if linked == "a file" else ("d", tempting.outside)
        (knowledge / name).symlink_to(target)
    item_id = "d/leak" if linked == "a folder" else "leak"
    calls: list[Call] = [
        ("rye_fetch", {"item_type": "knowledge", "item_id": item_id}),
        ("rye_execute", {"item_type": "knowledge", "item_id": item_id}),
        ("rye_sign", {"item_type": "knowledge", "item_id": item_id}),
        ("rye_fetch", {"query": "outside", "scope": "knowledge"}),
    ]
    played = await tempting.play("main", calls)
    assert SECRET not in played.everything()
    assert (tempting.outside / "leak.md").read_text() == SECRET
    assert [one for one in played.told[:3] if "leads out" not in one] == []


async def test_copying_an_item_needs_what_writing_it_needs(tempting: Stage) -> None:
    before = tempting.print()
    copy = {"item_type": "directive", "item_id": "rye/core/create_directive"}
    calls: list[Call] = [
        ("rye_fetch", {**copy, "destination": "user"}),
        ("rye_fetch", {**copy, "destination": "../outside"}),
        ("rye_fetch", {**copy, "destination": "/tmp"}),
        ("rye_fetch", {"item_type": "knowledge", "item_id": "rye/agent/core/Identity", "destination": "project"}),
    ]
    played = await tempting.play("main", calls)
    assert played.kinds == ["denied", "arguments", "arguments", "denied"], played.told
    assert tempting.print() == before


async def test_a_copy_does_not_go_through_a_link(tempting: Stage) -> None:
    """The folder that the copy would go to is a link to a folder outside."""
    (tempting.work / ".ai" / "directives" / "rye").symlink_to(tempting.outside)
    before = tempting.print()
    played = await tempting.play(
        "main",
        [("rye_fetch", {"item_type": "directive", "item_id": "rye/core/create_directive", "destination": "project"})],
    )
    assert "error" in played.told[0], played.told
    assert tempting.print() == before


@pytest.mark.parametrize("where", ["../outside/secret.txt", "/etc/passwd", "out/secret.txt", "secret", "..", "~/x"])
async def test_a_prompt_file_stays_beside_its_playbook(tempting: Stage, where: str) -> None:
    tempting.write("p.playbook.md", f"# P\n\n## STEP 1: Look\n\n@prompt(file:{where})\n\nLook at it.\n")
    played = await tempting.play("main", [("rye_execute", {"item_type": "playbook", "item_id": "p"})])
    assert played.kinds == ["prompt"], played.told
    assert SECRET not in played.everything() and "root:" not in played.everything()
    try:
        alone = await tempting.play("p", "ok", path="p.playbook.md")
    except QuireError:
        return
    assert not completed(alone) and SECRET not in alone.everything()
