"""Ids of lines: they survive changes elsewhere, and are gone rather than wrong after a change of their own line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.built_in import House

from quire.errors import Denied, ToolFailed
from quire.tools.builtin.files import DIGITS, edited, line_ids, split
from quire.values import Value

TEXT = "one\ntwo\n\nthree\n\nlast"


def ids_of(text: str) -> dict[str, str]:
    """The id of each different line; of equal ones, that of the last."""
    lines = split(text)
    return dict(zip((line.rstrip("\r\n") for line in lines), line_ids(lines), strict=True))


@given(st.lists(st.sampled_from(["", "a", "b", "}", "x = 1", "\r", "ü"]), max_size=60), st.booleans())
def test_every_line_has_an_id_of_its_own(lines: list[str], ended: bool) -> None:
    text = "\n".join(lines) + ("\n" if ended else "")
    found = split(text)
    assert "".join(found) == text
    ids = line_ids(found)
    assert len(set(ids)) == len(ids) == len(found) and all(len(one) == DIGITS for one in ids)
    assert ids == line_ids(found)


def test_collisions_are_told_apart() -> None:
    ids = line_ids([f"line {number}\n" for number in range(20_000)])
    assert len(set(ids)) == 20_000


def test_ids_stay_while_other_lines_change() -> None:
    before, after = ids_of(TEXT), ids_of("new first\n" + TEXT.replace("three", "3"))
    assert all(before[line] == after[line] for line in ("one", "two", "last"))
    assert before["three"] not in after.values()
    fewer = ids_of(TEXT.replace("two\n\n", "two\n"))
    assert before[""] not in fewer.values(), "an empty line is gone, so no one can tell which the other was"


@pytest.mark.parametrize(
    ("changes", "result", "count"),
    [
        ([("two", "two", "2")], "one\n2\n\nthree\n\nlast", 1),
        ([("two", "two", "2\n2b\n")], "one\n2\n2b\n\nthree\n\nlast", 1),
        ([("two", "three", "")], "one\n\nlast", 3),
        ([("one", "one", "1"), ("last", "last", "end")], "1\ntwo\n\nthree\n\nend", 2),
        ([("last", "last", "end\n"), ("one", "two", "1")], "1\n\nthree\n\nend", 3),
    ],
)
def test_changes(changes: list[tuple[str, str, str]], result: str, count: int) -> None:
    ids = ids_of(TEXT)
    wanted: list[dict[str, Value]] = [
        {"start_line_id": ids[first], "end_line_id": f"[LID:{ids[last]}]", "new_content": new}
        for first, last, new in changes
    ]
    edit = edited(TEXT, wanted, "f")
    assert (edit.text, edit.replaced) == (result, count)


def test_the_line_ends_of_a_file_are_kept() -> None:
    text = "a\r\nb\r\n"
    assert edited(text, [{"line_id": ids_of(text)["a"], "new_content": "x\ny"}], "f").text == "x\r\ny\r\nb\r\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ([{"line_id": "zzzzzz", "new_content": ""}], "f has no line zzzzzz"),
        ([{"new_content": ""}], "a change needs line_id"),
        ([{"start_line_id": "one", "new_content": ""}], "a change needs line_id"),
        ([{"start_line_id": "two", "end_line_id": "one", "new_content": ""}], "from the last to the first"),
        ([{"line_id": "one", "new_content": "x"}, {"line_id": "one", "new_content": "y"}], "the same line"),
        (
            [
                {"start_line_id": "one", "end_line_id": "three", "new_content": ""},
                {"line_id": "two", "new_content": ""},
            ],
            "the same line",
        ),
    ],
)
def test_refusals(change: list[dict[str, Value]], message: str) -> None:
    ids = ids_of(TEXT)
    changes = [
        {key: ids.get(str(value), value) if "id" in key else value for key, value in one.items()} for one in change
    ]
    with pytest.raises(ToolFailed, match=message):
        edited(TEXT, changes, "f")


async def test_read_then_edit(house: House) -> None:
    file = house.write("a.py", "def f():\n    return 1\n\n\ndef g():\n    return 1\n")
    shown = str(await house.call("rye/file-system/read", path="a.py", line_ids=True))
    lines = shown.splitlines()
    assert lines[0].endswith("] def f():") and lines[0].startswith("[LID:")
    part = str(await house.call("rye/file-system/read", path="a.py", line_ids=True, offset=6, limit=1))
    assert part.splitlines() == lines[5:6], "an id does not depend on what part is read"
    assert "[LID" not in str(await house.call("file__read", path="a.py"))
    last = lines[5][5 : 5 + DIGITS]
    answer = await house.call(
        "rye/file-system/edit_lines", path="a.py", changes=[{"line_id": last, "new_content": "    return 2"}]
    )
    assert isinstance(answer, dict) and (answer["changes_applied"], answer["lines_changed"]) == (1, 1)
    assert "-    return 1\n+    return 2\n" in str(answer["output"])
    assert file.read_text() == "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    with pytest.raises(ToolFailed, match="read the file again"):
        await house.call("file__edit_lines", path="a.py", changes=[{"line_id": last, "new_content": "x"}])


async def test_editing_lines_is_writing(house: House) -> None:
    house.write("quire.toml", "")
    house.write("prompts/p.md", "x\n")
    changes: Value = [{"line_id": line_ids(["x\n"])[0], "new_content": "y"}]
    for path in ("quire.toml", "prompts/p.md"):
        with pytest.raises(Denied):
            await house.call("rye/file-system/edit_lines", path=path, changes=changes)
    await house.call("rye/file-system/edit_lines", "file__write=prompts", path="prompts/p.md", changes=changes)
    assert (house.folder / "prompts/p.md").read_text() == "y\n"
