from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from tests.tools.built_in import House

from quire.engine.requests import ToolRequest
from quire.errors import Denied, ToolFailed
from quire.tools import sandbox
from quire.tools.builtin.paths import Protection
from quire.tools.builtin.shell import Shell
from quire.values import Value


def why_no_sandbox() -> str:
    try:
        sandbox._probe(shutil.which("bwrap"))
    except OSError as error:
        return str(error)
    return ""


needs_sandbox = pytest.mark.skipif(bool(why_no_sandbox()), reason=why_no_sandbox() or "there is one")
both = pytest.mark.parametrize("allow", [pytest.param("shell", marks=needs_sandbox), "shell=unsandboxed"])


@both
@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ({"command": "echo hello; echo there"}, "hello\nthere"),
        ({"command": "printf 'x\\n\\n'"}, "x\n"),
        ({"command": "echo '{\"a\": [1, 2]}'"}, {"a": [1, 2]}),
        ({"command": "echo 12"}, 12),
        ({"command": "echo 1.10"}, "1.10"),
        ({"command": ":"}, ""),
        ({"command": ["echo", "$HOME", "; ls"]}, "$HOME ; ls"),
        ({"command": "cat", "stdin": {"a": "ü"}}, {"a": "ü"}),
        ({"command": "cat", "stdin": "plain text"}, "plain text"),
        ({"command": "exit 0", "stdin": "nobody reads this" * 100_000}, ""),
        ({"command": "pwd > where; echo done"}, "done"),
    ],
)
async def test_results(house: House, allow: str, arguments: dict[str, Value], result: Value) -> None:
    assert await house.call("shell", allow, **arguments) == result
    if "where" in str(arguments):
        assert (house.folder / "where").read_text().strip() == str(house.folder)


@both
@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("echo out; echo because >&2; exit 3", {"code": 3, "out": "out", "err": "because"}),
        ("echo '[1, 2]'", {"code": 0, "out": [1, 2], "err": ""}),
        ("kill -9 $$", {"code": 137, "out": "", "err": ""}),
        ("printf 'a\\n\\n'; printf 'b\\n\\n' >&2; false", {"code": 1, "out": "a\n", "err": "b\n"}),
        (["grep", "-q", "x", "/dev/null"], {"code": 1, "out": "", "err": ""}),
    ],
)
async def test_a_status_is_a_result_if_it_is_not_checked(
    house: House, allow: str, command: Value, result: Value
) -> None:
    assert await house.call("shell", allow, command=command, check=False) == result


@both
async def test_a_program_that_is_missing_has_no_status(house: House, allow: str) -> None:
    """Bubblewrap ends with 1 then, which is what `grep` says if nothing fits."""
    with pytest.raises(ToolFailed, match="no-such-program-here"):
        await house.call("shell", allow, command=["no-such-program-here"], check=False)


@both
async def test_a_status_that_is_not_checked_has_the_same_limits(house: House, allow: str) -> None:
    with pytest.raises(ToolFailed, match="took longer than 1 s"):
        await house.call("shell", allow, command="exec sleep 60", check=False, timeout=1)
    with pytest.raises(ToolFailed, match="wrote more than"):
        await house.call("shell", allow, command="yes", check=False)
    long = await house.call("shell", allow, command="yes warning | head -c 900000 >&2; exit 1", check=False)
    assert isinstance(long, dict)
    assert len(str(long["err"])) in range(19_990, 20_001)


@both
@pytest.mark.parametrize("text", ["1.10", "12", '{"a": 1.10}', "null"])
async def test_output_stays_text_on_request(house: House, allow: str, text: str) -> None:
    assert await house.call("shell", allow, command=["echo", text], text=True) == text
    unchecked = await house.call("shell", allow, command=["echo", text], text=True, check=False)
    assert unchecked == {"code": 0, "out": text, "err": ""}


@pytest.mark.parametrize("text", ["1.10", "12", '{"a": 1.10}', "12e4"])
async def test_a_playbook_gets_the_text_that_a_command_wrote(house: House, text: str) -> None:
    """G17."""
    request = ToolRequest("1/tool", "1", "quire", "shell", {"command": ["echo", text]}, form="text")
    assert await house.gate("shell=unsandboxed").call(request, "effect") == text


@both
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo out; echo because >&2; exit 3", "ended with status 3:\nbecause"),
        ("echo only out; exit 1", "ended with status 1:\nonly out"),
        (["no-such-program-here"], "no-such-program-here"),
        (["ls", "a\0b"], "cannot be started"),
        ([], "is not valid under any"),
        ([1], "is not valid under any"),
    ],
)
async def test_failures(house: House, allow: str, command: Value, message: str) -> None:
    with pytest.raises(ToolFailed, match=message):
        await house.call("shell", allow, command=command)


async def test_off_until_granted(house: House) -> None:
    with pytest.raises(Denied, match=r"rye\.execute\.tool\.rye\.bash"):
        await house.call("shell", command="touch x")
    with pytest.raises(Denied):
        await house.call("rye/bash", "http__get", command="touch x")
    assert list(house.folder.iterdir()) == []


async def test_without_a_sandbox_it_is_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Denied, match=r"bubblewrap is not installed.*--allow shell=unsandboxed"):
        await house.call("shell", "shell", command="touch x")
    assert not (house.folder / "x").exists()
    assert await house.call("shell", "shell=unsandboxed", command="echo x") == "x"


async def test_a_sandbox_that_does_not_work_is_none(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = house.write("bwrap", "#!/bin/sh\necho no namespaces for you >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(fake))
    with pytest.raises(Denied, match="does not work: no namespaces for you"):
        await house.call("shell", "shell", command="touch x")
    assert not (house.folder / "x").exists()


async def test_a_workspace_cannot_ask_to_be_unsandboxed(house: House) -> None:
    from quire.workspace.configuration import load_settings
    from quire.workspace.consent import confirm
    from quire.workspace.grants import default_grants, reach_of
    from quire.workspace.locate import Workspace

    house.write("quire.toml", '[tools]\nallow = ["shell=unsandboxed"]\n')
    settings = load_settings(Workspace(house.folder), house.environ)
    confirm(settings)
    grants = default_grants(settings)
    assert grants.covers("rye.execute.tool.rye.bash")
    assert not reach_of(grants).unsandboxed
    assert reach_of(default_grants(settings, ["shell=unsandboxed"])).unsandboxed


def shell(house: House, *, sandboxed: bool, seconds: float) -> Shell:
    return Shell(house.folder, Protection(), house.environ, sandbox=sandboxed, seconds=seconds)


def alive(marker: str) -> bool:
    return any(marker.encode() in _command(line) for line in Path("/proc").glob("[0-9]*/cmdline"))


def _command(line: Path) -> bytes:
    """Empty for a process that has ended since its folder was listed."""
    try:
        return line.read_bytes()
    except OSError:
        return b""


async def begun(marker: str) -> None:
    """A shell goes on before its child in the background has become the command."""
    async with asyncio.timeout(30):
        while not alive(marker):
            await asyncio.sleep(0.01)


async def gone(marker: str) -> None:
    """All are killed at once, but only our own child is one that can be waited for: the others take a moment."""
    async with asyncio.timeout(30):
        while alive(marker):
            await asyncio.sleep(0.01)


modes = pytest.mark.parametrize("sandboxed", [pytest.param(True, marks=needs_sandbox), False])
needs_proc = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc to look at")


@modes
@needs_proc
async def test_out_of_time_ends_the_children_too(house: House, sandboxed: bool) -> None:
    running = shell(house, sandboxed=sandboxed, seconds=0.5)
    with pytest.raises(ToolFailed, match=r"longer than 0\.5 s") as failed:
        await running.run({"command": f"sleep 987.1{sandboxed:d} & sleep 987.2{sandboxed:d}"})
    assert failed.value.kind == "timeout"
    await gone(f"sleep\x00987.1{sandboxed:d}")
    await gone(f"sleep\x00987.2{sandboxed:d}")


@modes
@needs_proc
async def test_what_is_left_in_the_background_ends_with_the_call(house: House, sandboxed: bool) -> None:
    running = shell(house, sandboxed=sandboxed, seconds=30)
    assert await running.run({"command": f"sleep 987.3{sandboxed:d} & echo started"}) == "started"
    await gone(f"sleep\x00987.3{sandboxed:d}")


async def test_one_that_left_the_group_is_not_waited_for(house: House) -> None:
    if shutil.which("setsid") is None:
        pytest.skip("there is no setsid here")
    running = shell(house, sandboxed=False, seconds=30)
    wait = "while [ ! -s pid ]; do :; done"
    said = await running.run({"command": f"setsid sh -c 'echo $$ > pid; exec sleep 987.5' & {wait}; echo over"})
    assert said == "over"
    os.kill(int((house.folder / "pid").read_text()), 9)


@modes
@needs_proc
async def test_cancelling_ends_it(house: House, sandboxed: bool) -> None:
    os.mkfifo(house.folder / "ready")
    # Open for reading and writing: neither side ever waits for the other.
    ready = os.open(house.folder / "ready", os.O_RDWR)
    running = shell(house, sandboxed=sandboxed, seconds=30)
    task = asyncio.create_task(running.run({"command": f"echo > ready; sleep 987.4{sandboxed:d}; :"}))
    try:
        started = asyncio.Event()
        asyncio.get_running_loop().add_reader(ready, started.set)
        await asyncio.wait_for(started.wait(), 30)
        asyncio.get_running_loop().remove_reader(ready)
    finally:
        os.close(ready)
    assert alive(f"sleep 987.4{sandboxed:d}")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(f"sleep 987.4{sandboxed:d}")
    await gone(f"sleep\x00987.4{sandboxed:d}")


@modes
async def test_a_flood_is_cut_off(house: House, sandboxed: bool) -> None:
    running = shell(house, sandboxed=sandboxed, seconds=30)
    with pytest.raises(ToolFailed, match="more than 1,000,000 bytes and was ended"):
        await running.run({"command": "yes"})
    with pytest.raises(ToolFailed, match="status 7") as failed:
        await running.run({"command": "yes | head -c 3000000 >&2; exit 7"})
    assert len(failed.value.message) < 3000
