"""Commands that try to leave the sandbox by root's way, to exhaust the machine, or to outlive their call."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.given import given
from tests.tools.built_in import House
from tests.tools.test_builtin_shell import begun, gone, needs_sandbox

from quire.errors import BadConfiguration, Denied, ToolFailed
from quire.tools import sandbox
from quire.tools.builtin.paths import Protection
from quire.tools.builtin.shell import Shell
from quire.tools.sandbox import ControlGroup
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace
from quire.workspace.settings import SandboxSettings

pytestmark = needs_sandbox
needs_python = pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="the sandbox has no Python here")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")


async def run(house: House, command: str, limits: SandboxSettings | None = None, seconds: float = 30) -> Value:
    shell = Shell(house.folder, Protection(), house.environ, seconds=seconds, limits=limits or SandboxSettings())
    return await shell.run({"command": command})


# The kernel's settings are written with what they hold: an attack that succeeds changes nothing here.
KERNEL = [
    'value=$(cat /proc/sys/kernel/core_pattern) && printf %s "$value" > /proc/sys/kernel/core_pattern && echo wrote',
    "value=$(cat /proc/sys/vm/swappiness) && echo $value > /proc/sys/vm/swappiness && echo wrote",
    "( : >> /proc/sysrq-trigger ) && echo wrote",
    "mount -o remount,rw /proc/sys && echo wrote",
    "umount /proc/sys && echo wrote",
    "cat /proc/keys && echo wrote",
    "cat /proc/kmsg && echo wrote",
    "head -c 1 /proc/kcore && echo wrote",
    "find /proc -maxdepth 1 -type f -writable -size +0 | grep . && echo wrote",
    "find /proc/sys /proc/irq /proc/bus /proc/fs /proc/acpi /proc/scsi -type f -writable | grep . && echo wrote",
    "ls /sys/kernel && echo wrote",
    "touch /dev/made && echo wrote",
]


@pytest.mark.parametrize("command", KERNEL)
async def test_the_kernel_is_not_written(house: House, command: str) -> None:
    assert await run(house, f"{{ {command}; }} 2>/dev/null; true") == ""


async def test_inside_it_is_not_root_and_new_files_are_the_users(house: House) -> None:
    house.write("kept.txt", "x")
    assert await run(house, "id -u; id -g; echo more >> kept.txt; mkdir d; touch d/made; chmod 700 d/made") not in (
        0,
        "",
    )
    uid = await run(house, "id -u")
    assert uid == str(os.geteuid() or 65534)
    made = (house.folder / "d" / "made").stat()
    assert (made.st_uid, made.st_gid) == (os.geteuid(), os.getegid())
    assert (house.folder / "kept.txt").read_text() == "xmore\n"


async def test_a_fork_bomb_is_stopped(house: House) -> None:
    bomb = "b() { b 987.61 | b 987.61 & }; b 987.61; while :; do sleep 1; done"
    with pytest.raises(ToolFailed):
        await run(house, f"({bomb}) 2>/dev/null", SandboxSettings(processes=100), seconds=1)
    await gone("987.61")


async def test_the_number_of_processes_is_limited(house: House) -> None:
    many = "for i in $(seq 200); do sleep 987.62 & done 2>/dev/null; wait"
    try:
        await run(house, many, SandboxSettings(processes=100))
    except ToolFailed as failed:
        # The kernel refuses the next one, and dash gives up; or, for root, all of them are ended.
        assert "had more than 100 processes and was ended" in failed.message or "status" in failed.message
    else:
        pytest.fail("200 processes were started")
    await gone("sleep\x00987.62")


@needs_root
async def test_without_a_control_group_the_processes_of_root_are_counted(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group allows more than the watch, so that a mistake here does not take the machine down."""
    made = ControlGroup.make(400)
    if made is None:
        pytest.skip("there is no control group to make the attempt safe")
    monkeypatch.setattr(ControlGroup, "make", lambda processes: made)
    with pytest.raises(ToolFailed, match="had more than 50 processes and was ended") as failed:
        await run(house, "for i in $(seq 200); do sleep 987.63 & done; wait", SandboxSettings(processes=50))
    assert failed.value.kind == "limit"
    await gone("sleep\x00987.63")


@needs_python
async def test_memory_is_limited_for_one_process(house: House) -> None:
    hog = "python3 -c 'x = bytearray(900_000_000); print(len(x))'"
    with pytest.raises(ToolFailed, match=r"MemoryError|more than 200 MB of memory and was ended"):
        await run(house, hog, SandboxSettings(memory=200))
    assert await run(house, hog.replace("900", "90"), SandboxSettings(memory=200)) == "90000000"


@needs_python
async def test_memory_is_limited_for_all_processes_together(house: House) -> None:
    house.write("hog.py", "import os, time\nos.fork(); os.fork()\nx = b'x' * 80_000_000\ntime.sleep(20)\n")
    with pytest.raises(ToolFailed, match="used more than 200 MB of memory and was ended") as failed:
        await run(house, "python3 hog.py", SandboxSettings(memory=200))
    assert failed.value.kind == "limit"


@needs_python
async def test_memory_that_processes_share_counts_once(house: House) -> None:
    forks = "for _ in range(3):\n    if not os.fork():\n        break\n"
    house.write("shared.py", f"import os, time\nx = b'x' * 80_000_000\n{forks}time.sleep(0.5)\n")
    assert await run(house, "python3 shared.py; echo done", SandboxSettings(memory=200)) == "done"


@pytest.mark.parametrize(
    "command", ["head -c 50000000 /dev/zero > big", "truncate -s 100G big", "fallocate -l 50M big"]
)
async def test_the_size_of_a_file_is_limited(house: House, command: str) -> None:
    with pytest.raises(ToolFailed):
        await run(house, f"{command}; exit $?", SandboxSettings(file=10))
    big = house.folder / "big"
    assert not big.exists() or big.stat().st_size <= 10 * 1024 * 1024


async def test_shared_memory_has_a_size_and_is_private(house: House) -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="of-others-") as theirs:
        listed = "ls -A /dev/shm | grep -c '^of-others-'; df -k /dev/shm | tail -1 | awk '{print $2}'"
        count, size = str(await run(house, listed)).split()
        assert Path(theirs.name).exists()
    assert (int(count), int(size) <= sandbox.TMP_BYTES // 1024) == (0, True)


@needs_python
async def test_a_crash_starts_nothing_outside(house: House) -> None:
    """With a limit of 1 the kernel starts no handler of core dumps, which would run outside of the sandbox."""
    code = "import resource; print(list(resource.getrlimit(resource.RLIMIT_CORE)))"
    assert await run(house, f"python3 -c '{code}'") == "[1, 1]"


CALL = "import ctypes; l = ctypes.CDLL(None, use_errno=True); print(l.syscall({}), ctypes.get_errno())"


@needs_python
async def test_keyrings_of_the_kernel_are_not_there(house: House) -> None:
    machine = sandbox._MACHINES[os.uname().machine]
    keyctl, io_uring = machine.refused[2], machine.refused[-1]
    assert await run(house, f"python3 -c '{CALL.format(f'{keyctl}, 0, -3, 0')}'") == "-1 38"
    assert await run(house, f"python3 -c '{CALL.format(f'{io_uring}, 8, 0')}'") == "-1 38"


TRACE = """
import ctypes, os, subprocess, sys
l = ctypes.CDLL(None, use_errno=True)
l.ptrace.argtypes = [ctypes.c_long] * 4
for request in (16, 0x4206):
    print(l.ptrace(request, 1, 0, 0), ctypes.get_errno(), end=" ")
child = subprocess.Popen(["sleep", "60"])
print(l.ptrace(0x4206, child.pid, 0, 0))
"""


@needs_python
async def test_the_first_process_of_a_sandbox_is_not_stopped(house: House) -> None:
    """Security L4: a command that attached to process 1 hung until its limit. Debuggers still work."""
    house.write("trace.py", TRACE)
    assert await run(house, "python3 trace.py") == "-1 1 -1 1 0"


SOCKET = """
import socket
try:
    socket.socket({}).{}
    print("reached")
except OSError as error:
    print(type(error).__name__)
"""


@needs_python
async def test_with_the_network_no_abstract_socket_is_reached(house: House) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0quire-test-987")
        server.listen()
        house.write("reach.py", SOCKET.format("socket.AF_UNIX", 'connect("\\0quire-test-987")'))
        house.write("pair.py", SOCKET.replace("socket.socket({}).{}", "socket.socketpair(type=socket.SOCK_DGRAM)"))
        for script in ("reach.py", "pair.py"):
            shown = await house.call("shell", "shell=network", command=f"python3 {script}")
            assert shown != "reached"
    # On their own network commands have them, and a pair of streams is always there.
    assert await run(house, "python3 pair.py") == "reached"
    stream = "python3 -c 'import socket; socket.socketpair(); socket.socket(); print(1)'"
    assert await house.call("shell", "shell=network", command=stream) == 1


@needs_python
async def test_the_host_of_a_virtual_machine_is_not_reached(house: House) -> None:
    house.write("vsock.py", SOCKET.format("40, socket.SOCK_STREAM", "close()"))
    assert await run(house, "python3 vsock.py") == "OSError"


LEFT = [
    "setsid sleep 987.71 & echo over",
    "nohup sleep 987.71 >/dev/null 2>&1 & echo over",
    "(setsid sh -c 'trap : TERM HUP; sleep 987.71 & wait' >/dev/null 2>&1 &) ; echo over",
]


@pytest.mark.parametrize("command", LEFT)
async def test_nothing_outlives_its_call(house: House, command: str) -> None:
    assert await run(house, command) == "over"
    await gone("987.71")


KILLED = """# Waits

## STEP 1: Wait

@tool(quire, shell, {"command": "(setsid nohup sleep 987.81 >/dev/null 2>&1 &); echo > ready; sleep 987.81"})
"""


def test_nothing_outlives_a_killed_quire(house: House) -> None:
    house.write("waits.playbook.md", KILLED)
    os.mkfifo(house.folder / "ready")
    # Open for reading and writing: neither side ever waits for the other.
    ready = os.open(house.folder / "ready", os.O_RDWR)
    line = [sys.executable, "-P", "-m", "quire", "run", "waits.playbook.md", "--allow", "shell"]
    quire = subprocess.Popen(line, cwd=house.folder, env={**os.environ, **house.environ}, stdin=subprocess.DEVNULL)
    try:
        assert select.select([ready], [], [], 60)[0], "the command has not begun"
        asyncio.run(begun("sleep\x00987.81"))
    finally:
        quire.send_signal(signal.SIGKILL)
        quire.wait()
        os.close(ready)
    asyncio.run(gone("sleep\x00987.81"))


async def test_killed_before_it_has_begun_nothing_is_started(house: House) -> None:
    """Cancelled at every early moment; the command must never run without its limits, nor wait for ever."""
    for moment in range(6):
        task = asyncio.create_task(run(house, "sleep 987.91"))
        await asyncio.sleep(moment * 0.004)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await gone("987.91")


def test_only_the_user_sets_limits(house: House) -> None:
    house.write("quire.toml", "[sandbox]\nmemory = 999999\n")
    with pytest.raises(BadConfiguration, match=r"\[sandbox\] is read from the quire.toml of your user folder"):
        load_settings(Workspace(house.folder), house.environ)
    (house.folder / "quire.toml").unlink()
    space = Path(house.environ["QUIRE_HOME"])
    given({"quire.toml": "[sandbox]\nmemory = 300\nprocesses = 50\nfile = 7\n"}, space)
    assert load_settings(Workspace(house.folder), house.environ).sandbox == SandboxSettings(300, 50, 7)


async def test_the_users_limits_hold(house: House) -> None:
    space = Path(house.environ["QUIRE_HOME"])
    given({"quire.toml": "[sandbox]\nfile = 1\n"}, space)
    with pytest.raises(ToolFailed):
        await house.call("shell", "shell", command="truncate -s 2M big")


async def test_a_machine_that_the_filter_does_not_know_is_refused(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_MACHINES", {})
    sandbox._probe.cache_clear()
    try:
        with pytest.raises(Denied, match="does not know the machine"):
            await house.call("shell", "shell", command="touch x")
    finally:
        sandbox._probe.cache_clear()
    assert not (house.folder / "x").exists()


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that another account can come to."""
    folder = Path(tempfile.mkdtemp(prefix="quire-"))
    yield folder
    shutil.rmtree(folder)


AS_ANOTHER = """
import asyncio, os, sys
from pathlib import Path
from quire.errors import ToolFailed
from quire.tools.builtin.paths import Protection
from quire.tools.builtin.shell import Shell
from quire.workspace.settings import SandboxSettings
shell = Shell(Path(sys.argv[1]), Protection(), dict(os.environ), limits=SandboxSettings(processes=50), seconds=30)
async def run(command):
    try:
        return await shell.run({"command": command})
    except ToolFailed as error:
        return error.message
print(asyncio.run(run("id -u; echo x > made; echo y > quire.toml; ls -A /home /root 2>/dev/null; true")))
print(asyncio.run(run("for i in $(seq 200); do sleep 987.95 & done; wait")))
"""


def interpreter(account: dict[str, Any]) -> str:
    """One that the account can start, with the packages of this one."""
    for program in (sys.executable, "/usr/bin/python3"):
        try:
            subprocess.run(
                [program, "-c", "import quire.tools.builtin.shell"], check=True, capture_output=True, **account
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        return program
    pytest.skip("the other account can start no Python that has these packages")


@needs_root
def test_as_another_account(elsewhere: Path) -> None:
    account = 64_123
    (elsewhere / "quire.toml").write_text("")
    for path in (elsewhere, elsewhere / "quire.toml"):
        os.chown(path, account, account)
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path)}
    asked: dict[str, Any] = {
        "user": account,
        "group": account,
        "extra_groups": [],
        "env": environ,
        "cwd": "/",
        "text": True,
    }
    line = [interpreter(asked), "-c", AS_ANOTHER, str(elsewhere)]
    shown = subprocess.run(line, capture_output=True, check=False, **asked)
    assert shown.stdout.splitlines()[0] == str(account), shown.stderr
    assert "Cannot fork" in shown.stdout or "more than 50 processes" in shown.stdout
    assert (elsewhere / "made").stat().st_uid == account
    assert (elsewhere / "quire.toml").read_text() == ""
    asyncio.run(gone("987.95"))
