"""The built-in tools under the ids and with the parameters that directives know them by."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tools.built_in import House
from tests.tools.web import serving

from quire.errors import Denied, ToolFailed
from quire.tools.builtin import SPECS
from quire.tools.builtin.connection import to_text
from quire.tools.builtin.paths import Protection
from quire.tools.builtin.shell import Shell
from quire.tools.sandbox import sandboxed
from quire.trust.capabilities import Grants, canonical
from quire.values import Value


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("file__read", "rye/file-system/read"),
        ("rye/file-system/fs_read", "rye/file-system/read"),
        ("rye/file-system/fs_write", "rye/file-system/write"),
        ("file__list", "rye/file-system/ls"),
        ("rye/file-system/list", "rye/file-system/ls"),
        ("rye/file-system/ls", "rye/file-system/ls"),
        ("file__edit_lines", "rye/file-system/edit_lines"),
        ("rye/web/fetch/fetch", "rye/web/fetch"),
        ("http__get", "rye/web/fetch"),
        ("shell", "rye/bash"),
        ("rye_fetch", "rye/fetch"),
        ("rye_execute", "rye/execute"),
        ("rye_sign", "rye/sign"),
    ],
)
def test_ids(name: str, identity: str) -> None:
    assert canonical(name) == identity
    granted = Grants.of([f"rye.execute.tool.{name.replace('/', '.')}"])
    assert granted.allows("execute", "tool", identity) and granted.allows("execute", "tool", name)


def test_the_ids_of_the_tools() -> None:
    names = ("read", "write", "edit", "edit_lines", "ls", "glob", "grep")
    assert {spec.id for spec in SPECS.values()} == {
        *(f"rye/file-system/{name}" for name in names),
        "rye/bash",
        "rye/web/fetch",
        "rye/http/send",
        "rye/time/now",
        "rye/state/get",
        "rye/state/set",
        "ask",
    }


@pytest.mark.parametrize("name", ["file__list", "rye/file-system/ls", "rye/file-system/list"])
async def test_list_by_each_name(house: House, name: str) -> None:
    house.write("a.txt", "x")
    assert await house.call(name) == [{"name": "a.txt", "type": "file", "bytes": 1}]


async def test_several_files_at_once(house: House) -> None:
    files: Value = [{"path": "a/1.txt", "content": "one"}, {"path": "b/2.txt", "content": "zwö"}]
    assert await house.call("rye/file-system/write", files=files) == {
        "files_written": 2,
        "files_total": 2,
        "results": [
            {"path": "a/1.txt", "bytes": 3, "created": True},
            {"path": "b/2.txt", "bytes": 4, "created": True},
        ],
    }
    assert (house.folder / "b/2.txt").read_text() == "zwö"
    with pytest.raises(Denied):
        await house.call("rye/file-system/write", files=[{"path": ".git/hooks/x", "content": ""}])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "a"}, '"content" is a required property'),
        ({"content": "a"}, '"path" is a required property'),
        ({}, "required property"),
        ({"files": []}, "files"),
        ({"files": [{"path": "a"}]}, r'files\[0\]: "content" is a required property'),
        ({"files": [{"path": "a", "content": "b"}], "path": "c", "content": "d"}, "not both"),
    ],
)
async def test_what_write_does_not_take(house: House, arguments: dict[str, Value], message: str) -> None:
    with pytest.raises(ToolFailed, match=message):
        await house.call("file__write", **arguments)
    assert list(house.folder.iterdir()) == []


async def test_glob_in_a_folder(house: House, tmp_path: Path) -> None:
    for path in ("src/a.py", "src/deep/b.py", "other/c.py"):
        house.write(path)
    assert await house.call("rye/file-system/glob", pattern="**/*.py", path="src") == ["src/a.py", "src/deep/b.py"]
    assert await house.call("rye/file-system/glob", pattern="*.py", path="src") == ["src/a.py"]
    for path in ("..", str(tmp_path), "none", "src/a.py"):
        with pytest.raises(ToolFailed):
            await house.call("rye/file-system/glob", pattern="*", path=path)


async def test_grep_with_include(house: House) -> None:
    house.write("a.py", "needle\n")
    house.write("a.md", "needle\n")
    found = await house.call("rye/file-system/grep", pattern="needle", include="*.py")
    assert found == {"matches": [{"path": "a.py", "line": 1, "text": "needle"}], "truncated": False}


UNSANDBOXED = "shell=unsandboxed"


def why_no_sandbox() -> str:
    try:
        sandboxed(["true"], Path("/nowhere"))
    except Denied as reason:
        return str(reason)
    return ""


needs_sandbox = pytest.mark.skipif(bool(why_no_sandbox()), reason=why_no_sandbox() or "there is one")


@pytest.mark.parametrize("allow", [pytest.param("shell", marks=needs_sandbox), UNSANDBOXED])
async def test_bash_in_a_folder(house: House, tmp_path: Path, allow: str) -> None:
    house.write("sub dir/x.txt", "here")
    assert await house.call("rye/bash", allow, command="cat x.txt", working_dir="sub dir") == "here"
    assert await house.call("rye/bash", allow, command=["cat", "x.txt"], working_dir="./sub dir/") == "here"
    assert await house.call("rye/bash", allow, command="cat", stdin="in", working_dir="sub dir") == "in"
    assert await house.call("rye/bash", allow, command="pwd", working_dir=".") == str(house.folder)
    (house.folder / "out").symlink_to(tmp_path)
    for folder in ("..", "/", str(tmp_path), "none", "sub dir/x.txt", "out"):
        with pytest.raises(ToolFailed):
            await house.call("rye/bash", allow, command="echo ran > ran", working_dir=folder)
    assert not (house.folder / "ran").exists() and not (tmp_path / "ran").exists()


async def test_bash_with_a_timeout(house: House) -> None:
    shell = Shell(house.folder, Protection(), house.environ, sandbox=False)
    with pytest.raises(ToolFailed, match=r"took longer than 0.1 s"):
        await shell.run({"command": "exec sleep 60", "timeout": 0.1})
    for wrong in (0, 601):
        with pytest.raises(ToolFailed, match="timeout"):
            await house.call("rye/bash", UNSANDBOXED, command=":", timeout=wrong)


PAGE = b"""<!DOCTYPE html><html><head><title>T</title><style>p {}</style></head><body><script>evil()</script>
<h1>Head &amp; line</h1><p>Some <b>bold</b>
text with <a href="/x">a link</a>.</p><ul><li>one<ul><li>inner</li></ul></li><li>two</li></ul>
<ol><li>first</li><li>second</li></ol><pre>  kept\n    as is</pre></body></html>"""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, PAGE.decode()),
        ({"format": "html"}, PAGE.decode()),
        (
            {"format": "markdown", "timeout": 5},
            "# Head & line\n\nSome **bold** text with [a link](/x).\n\n- one\n  - inner\n- two\n\n1. first\n2. second"
            "\n\n```\n  kept\n    as is\n```",
        ),
        (
            {"format": "text"},
            "Head & line\n\nSome bold text with a link.\n\n- one\n  - inner\n- two\n\n1. first\n2. second\n\n"
            "  kept\n    as is",
        ),
    ],
)
async def test_a_page_in_each_format(house: House, arguments: dict[str, Value], text: str) -> None:
    with serving() as server:
        server.answers = {
            "/": (200, {"Content-Type": "text/html; charset=utf-8"}, PAGE),
            "/plain": (200, {"Content-Type": "text/plain"}, b"<b>no page</b>"),
            "/json": (200, {"Content-Type": "application/json"}, b"[1]"),
        }
        allow, at = f"http__get=127.0.0.1:{server.port}", f"http://127.0.0.1:{server.port}"
        page = await house.call("rye/web/fetch/fetch", allow, url=f"{at}/", **arguments)
        plain = await house.call("rye/web/fetch", allow, url=f"{at}/plain", **arguments)
        json = await house.call("rye/web/fetch", allow, url=f"{at}/json", **arguments)
    assert isinstance(page, dict) and page["text"] == text
    assert isinstance(plain, dict) and plain["text"] == "<b>no page</b>"
    assert isinstance(json, dict) and json["json"] == [1]


@pytest.mark.parametrize(
    "page", ["", "<", "&#0;", "<p>" * 50_000 + "deep", "<?xml version='1.0' encoding='latin-1'?><p>x</p>"]
)
def test_odd_pages_are_read_all_the_same(page: str) -> None:
    for markdown in (True, False):
        assert isinstance(to_text(page, markdown=markdown), str)
