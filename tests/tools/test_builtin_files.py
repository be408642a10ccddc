from __future__ import annotations

import asyncio
import os
import stat

import pytest
from tests.tools.built_in import House

from quire.errors import ToolFailed
from quire.values import Value


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "eins\nzwei\r\ndrei"),
        ({"offset": 2}, "zwei\r\ndrei"),
        ({"offset": 2, "limit": 1}, "zwei\r\n"),
        ({"limit": 2}, "eins\nzwei\r\n"),
        ({"offset": 9}, ""),
    ],
)
async def test_read(house: House, arguments: dict[str, Value], text: str) -> None:
    house.write("a/b.txt", "eins\nzwei\r\ndrei")
    assert await house.call("file__read", path="a/b.txt", **arguments) == text
    assert await house.call("file__read", path=str(house.folder / "a" / "b.txt"), **arguments) == text


async def test_large_files_are_read_in_parts(house: House) -> None:
    house.write("big.txt", "x" * 999 + "\n" + ("line\n" * 400_000))
    with pytest.raises(ToolFailed, match="larger than 1,000,000 bytes; read a part of it"):
        await house.call("file__read", path="big.txt")
    assert await house.call("file__read", path="big.txt", offset=300_000, limit=2) == "line\nline\n"
    with pytest.raises(ToolFailed, match="these lines have more than"):
        await house.call("file__read", path="big.txt", offset=2)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none.txt", "none.txt: no such file"),
        ("folder", "folder is a folder"),
        (".", "is a folder"),
        ("pipe", "pipe is not a regular file"),
        ("binary", "not text: it holds zero bytes"),
        ("latin", "latin is not UTF-8 text"),
        ("latin/x", "a part of the path is not a folder"),
        ("n" * 300, "file name too long"),
        ("loop", "too many links"),
    ],
)
async def test_what_cannot_be_read(house: House, path: str, message: str) -> None:
    house.write("folder/x")
    house.write("binary", b"a\0b")
    house.write("latin", "ä".encode("latin-1"))
    os.mkfifo(house.folder / "pipe")
    (house.folder / "loop").symlink_to("loop")
    with pytest.raises(ToolFailed, match=message):
        await house.call("file__read", path=path)


async def test_write_makes_folders_and_keeps_the_mode(house: House) -> None:
    assert await house.call("file__write", path="a/b/c.sh", content="ü") == {
        "path": "a/b/c.sh",
        "bytes": 2,
        "created": True,
    }
    file = house.folder / "a" / "b" / "c.sh"
    file.chmod(0o750)
    written = await house.call("file__write", path="a/b/c.sh", content="new")
    assert written == {"path": "a/b/c.sh", "bytes": 3, "created": False}
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert [entry.name for entry in file.parent.iterdir()] == ["c.sh"], "nothing is left beside it"


async def test_writing_over_what_is_no_file(house: House) -> None:
    house.write("folder/x")
    os.mkfifo(house.folder / "pipe")
    house.write("fixed", "old").chmod(0o444)
    for path, message in [("folder", "is a folder"), ("pipe", "not a regular file"), ("fixed", "is read-only")]:
        with pytest.raises(ToolFailed, match=message):
            await house.call("file__write", path=path, content="x")
    with pytest.raises(ToolFailed, match="1,000,001 bytes are too many"):
        await house.call("file__write", path="big", content="x" * 1_000_001)
    assert sorted(entry.name for entry in house.folder.iterdir()) == ["fixed", "folder", "pipe"]


async def test_a_hard_link_is_replaced_not_written_through(house: House) -> None:
    kept = house.write("kept", "old")
    os.link(kept, house.folder / "other")
    await house.call("file__write", path="other", content="new")
    assert kept.read_text() == "old"


@pytest.mark.parametrize(
    ("old", "all_", "after", "problem"),
    [
        ("b", False, "aXa", ""),
        ("a", True, "XbX", ""),
        ("a", False, "aba", "contains the old text 2 times"),
        ("z", False, "aba", "does not contain the old text"),
        ("", False, "aba", "shorter than"),
    ],
)
async def test_edit(house: House, old: str, all_: bool, after: str, problem: str) -> None:
    file = house.write("x.txt", "aba")
    if problem:
        with pytest.raises(ToolFailed, match=problem):
            await house.call("file__edit", path="x.txt", old=old, new="X", all=all_)
    else:
        result = await house.call("file__edit", path="x.txt", old=old, new="X", all=all_)
        assert result == {"path": "x.txt", "replaced": 2 if all_ else 1}
    assert file.read_text() == after


async def test_edits_side_by_side_lose_nothing(house: House) -> None:
    house.write("x.txt", "\n".join(f"<{number}>" for number in range(20)))
    gate = house.gate()
    from quire.engine.requests import ToolRequest

    await asyncio.gather(
        *(
            gate.call(ToolRequest("1", "1", "", "file__edit", {"path": "x.txt", "old": f"<{n}>", "new": f"({n})"}), "e")
            for n in range(20)
        )
    )
    assert (house.folder / "x.txt").read_text() == "\n".join(f"({number})" for number in range(20))


async def test_an_edit_cannot_grow_without_limit(house: House) -> None:
    house.write("x.txt", "a" * 10_000)
    with pytest.raises(ToolFailed, match="1,000,000,000 bytes are too many"):
        await house.call("file__edit", path="x.txt", old="a", new="b" * 100_000, all=True)


async def test_list(house: House) -> None:
    house.write("b.txt", "abc")
    house.write("a/x")
    os.mkfifo(house.folder / "pipe")
    (house.folder / "link").symlink_to("a")
    expected = [
        {"name": "a", "type": "folder"},
        {"name": "b.txt", "type": "file", "bytes": 3},
        {"name": "link", "type": "link"},
        {"name": "pipe", "type": "other"},
    ]
    assert await house.call("file__list") == expected
    assert await house.call("file__list", path="a") == await house.call("file__list", path="link")
    with pytest.raises(ToolFailed, match="not a folder"):
        await house.call("file__list", path="b.txt")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["top.py"]),
        ("**/*.py", ["src/a.py", "src/deep/er/b.py", "top.py"]),
        ("src/**", ["src/a.py", "src/deep/er/b.py", "src/deep/er/c.md"]),
        ("src/**/er/*.md", ["src/deep/er/c.md"]),
        ("**/er/**/c.md", ["src/deep/er/c.md"]),
        ("src/?.py", ["src/a.py"]),
        ("src/[!b].py", ["src/a.py"]),
        (".venv/*.py", [".venv/no.py"]),
        ("nothing/*", []),
        ("*a*a*a*a*a*a*a*a*a*a*a*b", []),
    ],
)
async def test_glob(house: House, pattern: str, found: list[str]) -> None:
    for name in ("top.py", "src/a.py", "src/deep/er/b.py", "src/deep/er/c.md", ".venv/no.py", "a" * 200):
        house.write(name)
    assert await house.call("file__glob", pattern=pattern) == found


async def test_grep(house: House) -> None:
    pytest.importorskip("re2")
    house.write("src/a.py", "import os\nx = 1\n\nIMPORT = 2\r\n")
    house.write("src/b.md", "import\n")
    house.write(".git/config", "import\n")
    house.write("binary", b"import\0")
    found = await house.call("file__grep", pattern="^import")
    assert found == {
        "matches": [
            {"path": "src/a.py", "line": 1, "text": "import os"},
            {"path": "src/b.md", "line": 1, "text": "import"},
        ],
        "truncated": False,
    }
    found = await house.call("file__grep", pattern="import", ignore_case=True, glob="*.py", path="src")
    assert found == {
        "matches": [
            {"path": "src/a.py", "line": 1, "text": "import os"},
            {"path": "src/a.py", "line": 4, "text": "IMPORT = 2"},
        ],
        "truncated": False,
    }
    assert await house.call("file__grep", pattern=".", limit=1, path="src/a.py") == {
        "matches": [{"path": "src/a.py", "line": 1, "text": "import os"}],
        "truncated": True,
    }
    for pattern in ("(", r"(a)\1", "x" * 1001):
        with pytest.raises(ToolFailed, match="pattern"):
            await house.call("file__grep", pattern=pattern)


async def test_a_pattern_that_would_take_for_ever_elsewhere(house: House) -> None:
    pytest.importorskip("re2")
    house.write("x.txt", "a" * 100_000)
    assert await house.call("file__grep", pattern="(a+)+$b") == {"matches": [], "truncated": False}
