"""Values that a workspace keeps: over runs, apart from other workspaces, and never lost to a broken file."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.tools.built_in import House

from quire.errors import Denied, ToolFailed
from quire.source import try_lock
from quire.tools.arguments import PlannedCall
from quire.tools.builtin import state
from quire.tools.builtin.state import State
from quire.values import Value


def file_of(house: House) -> Path:
    return State.of(Path(house.environ["QUIRE_HOME"]), house.folder).file


@pytest.mark.parametrize("value", [0, "", False, [], "v1.10", {"a": [1, None, 12345678901234567890]}, "é\u2028"])
async def test_a_value_is_kept(house: House, value: Value) -> None:
    assert await house.call("state__get", name="last release") is None
    assert await house.call("state__get", name="last release", default="none yet") == "none yet"
    assert await house.call("state__set", name="last release", value=value) == value
    assert await house.call("state__get", name="last release", default="none yet") == value
    assert await house.call("rye/state/get", name="other") is None


async def test_null_removes_a_value(house: House) -> None:
    await house.call("state__set", name="a", value=1)
    await house.call("state__set", name="b", value=2)
    assert await house.call("state__set", name="a", value=None) is None
    assert await house.call("state__set", name="never there", value=None) is None
    assert await house.call("state__get", name="a", default="gone") == "gone"
    assert json.loads(file_of(house).read_text())["values"] == {"b": 2}


async def test_workspaces_do_not_share(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    one, two = House(tmp_path / "1"), House(tmp_path / "2")
    two.environ = one.environ
    await one.call("state__set", name="a", value="of one")
    assert await two.call("state__get", name="a") is None
    link = tmp_path / "link"
    link.symlink_to(one.folder)
    two.folder = link
    assert await two.call("state__get", name="a") == "of one"


async def test_only_the_user_can_read_it_and_no_file_tool_can(house: House) -> None:
    await house.call("state__set", name="a", value=1)
    file = file_of(house)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    house.environ["QUIRE_HOME"] = str(house.folder / "space")
    await house.call("state__set", name="a", value=1)
    inside = file_of(house).relative_to(house.folder).as_posix()
    with pytest.raises((ToolFailed, Denied)):
        await house.call("file__write", "file__write=.", path=inside, content="{}")
    with pytest.raises((ToolFailed, Denied)):
        await house.call("file__read", path=inside)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not JSON"),
        (b'{"version": 1, "values": {"a": 1', "is not JSON"),
        (b'{"version": 1, "values": {"a": NaN}}', "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is not a state that this version of Quire wrote"),
        (b'{"version": 1, "values": []}', "is not a state that this version of Quire wrote"),
        (b'{"version": 2, "values": {}}', "is not a state that this version of Quire wrote"),
        (b" " * 2_000_001, "is too large"),
    ],
)
async def test_a_broken_file_is_never_replaced(house: House, content: bytes, reason: str) -> None:
    file = file_of(house)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    for tool, arguments in (("state__get", {"default": 1}), ("state__set", {"value": 1})):
        with pytest.raises(ToolFailed, match=reason) as failed:
            await house.call(tool, name="a", **arguments)
        assert failed.value.path == "1/tool"
        assert str(file) in failed.value.message and "it was not changed" in failed.value.message
        assert len(failed.value.message.splitlines()) == 1
        call = PlannedCall("", tool, ("name", *arguments), {"name": "a", **arguments}, complete=True)
        assert reason in str(await house.gate().problem_with(call))
    assert file.read_bytes() == content


async def test_a_place_that_is_not_a_file(house: House) -> None:
    file = file_of(house)
    file.mkdir(parents=True)
    with pytest.raises(ToolFailed, match="broken"):
        await house.call("state__set", name="a", value=1)
    file.rmdir()
    os.mkfifo(file)
    with pytest.raises(ToolFailed, match="it is not a regular file"):
        await house.call("state__get", name="a")
    for one in file.parent.iterdir():
        one.unlink()
    file.parent.rmdir()
    file.parent.write_text("")
    with pytest.raises(ToolFailed, match="cannot be written"):
        await house.call("state__set", name="a", value=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "a", "value": "x" * 65_535}, "the value has 65,537 bytes; 65,536 are allowed"),
        ({"name": "", "value": 1}, "does not take these arguments"),
        ({"name": "x" * 201, "value": 1}, "does not take these arguments"),
        ({"name": " a", "value": 1}, "is not a name of a value"),
        ({"name": "a\nb", "value": 1}, "is not a name of a value"),
        ({"name": "a\u200bb", "value": 1}, "is not a name of a value"),
        ({"name": "a"}, "does not take these arguments"),
    ],
)
async def test_limits(house: House, arguments: dict[str, Value], message: str) -> None:
    with pytest.raises(ToolFailed, match=message):
        await house.call("state__set", **arguments)
    assert not file_of(house).exists()


async def test_a_workspace_keeps_only_so_much(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MOST_VALUES", 3)
    for name in "abc":
        await house.call("state__set", name=name, value=name)
    before = file_of(house).read_bytes()
    with pytest.raises(ToolFailed, match=r"at most 3 values.*null removes one"):
        await house.call("state__set", name="d", value=1)
    assert file_of(house).read_bytes() == before
    await house.call("state__set", name="a", value="another")
    monkeypatch.setattr(state, "MAX_STATE", 500)
    with pytest.raises(ToolFailed, match="500 bytes"):
        await house.call("state__set", name="b", value="x" * 500)
    await house.call("state__set", name="a", value=None)


CODE = """
import sys
from pathlib import Path
from quire.tools.builtin.state import State
state = State.of(Path(sys.argv[1]), Path(sys.argv[2]))
for number in range(25):
    state.set({"name": f"{sys.argv[3]}-{number}", "value": number})
"""


def test_processes_and_threads_lose_nothing_of_each_other(house: House) -> None:
    space = house.environ["QUIRE_HOME"]
    started = [
        subprocess.Popen([sys.executable, "-c", CODE, space, str(house.folder), f"process{one}"]) for one in range(3)
    ]
    kept = State.of(Path(space), house.folder)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: kept.set({"name": f"thread-{one}", "value": one}), range(25)))
    assert [process.wait(60) for process in started] == [0, 0, 0]
    assert len(kept.values()) == 4 * 25
    assert {one.name for one in kept.file.parent.iterdir()} == {kept.file.name, kept.file.with_suffix(".lock").name}


def test_a_lock_that_is_not_given_back(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_PATIENCE", 0.05)
    kept = State.of(Path(house.environ["QUIRE_HOME"]), house.folder)
    kept.set({"name": "a", "value": 1})
    held = os.open(kept.file.with_suffix(".lock"), os.O_RDWR)
    try:
        assert try_lock(held)
        with pytest.raises(ToolFailed, match="another process holds the state"):
            kept.set({"name": "a", "value": 2})
        assert kept.get({"name": "a"}) == 1
    finally:
        os.close(held)
    kept.set({"name": "a", "value": 2})
