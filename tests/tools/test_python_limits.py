"""Python functions that never return, and those that packages bring."""

from __future__ import annotations

import asyncio
import json
import sysconfig
import threading
from pathlib import Path

import pytest

from quire.cli import main
from quire.engine.premises import LONGEST_PYTHON
from quire.engine.requests import ToolRequest
from quire.errors import ToolFailed
from quire.tools import python
from quire.tools.gate import Gate
from quire.tools.python import PythonConnection, PythonTool, tool
from quire.tools.registry import Connections
from quire.trust.capabilities import Grants
from quire.trust.secrets import Redactor
from quire.values import Value

never = threading.Event()


@tool(name="l_hangs", timeout=0.05)
def hangs() -> None:
    never.wait()


@tool(name="l_hangs_async", timeout=0.05)
async def hangs_async() -> None:
    await asyncio.Event().wait()


@tool(name="l_own_timeout", timeout=30)
def own_timeout() -> None:
    raise TimeoutError("of its own")


@tool(name="l_stops", timeout=None)
def stops() -> None:
    raise StopIteration("odd")


async def call(name: str, connection: PythonConnection | None = None) -> Value:
    registry = Connections({"python": connection or PythonConnection([], Path())})
    gate = Gate(registry, Grants.of(["*"]), Redactor({}))
    return await gate.call(ToolRequest("1", "1", "", name, {}), "e")


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("l_hangs", "timeout", "python/l_hangs took longer than 0.05 s"),
        ("l_hangs_async", "timeout", "python/l_hangs_async took longer than 0.05 s"),
        ("l_own_timeout", "tool", "raised TimeoutError: of its own"),
        ("l_stops", "tool", "raised StopIteration"),
    ],
)
async def test_out_of_time(name: str, kind: str, message: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        await call(name)
    assert (failed.value.kind, message in failed.value.message) == (kind, True)


@pytest.mark.parametrize(
    ("asked", "seconds"), [(20.0, 20.0), (None, LONGEST_PYTHON), (10 * LONGEST_PYTHON, LONGEST_PYTHON)]
)
def test_no_function_takes_longer_than_a_day(asked: float | None, seconds: float) -> None:
    assert PythonTool("one", print, "read", asked).seconds == seconds


def test_an_abandoned_thread_does_not_hold_the_program() -> None:
    import subprocess
    import sys

    code = (
        "import asyncio, threading\n"
        "from quire.tools.blocking import OutOfTime, in_thread\n"
        "async def main():\n"
        "    try:\n"
        "        await in_thread(threading.Event().wait, seconds=0.05)\n"
        "    except OutOfTime:\n"
        "        print('left behind')\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "left behind\n"


def package(folder: Path, name: str, code: str, points: str) -> None:
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[quire.tools]\n{points}\n")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that packages are installed into, and nothing declared by them left behind."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sysconfig, "get_path", lambda kind: str(folder))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(python, "_declared", dict(python._declared))
    return folder


DECORATED = "from quire.tools.python import tool\n@tool(name='{0}', effect='read')\ndef f() -> str:\n    return '{0}'\n"


async def test_tools_of_packages(installed: Path) -> None:
    package(installed, "ep_plain", "def g() -> str:\n    return 'plain'\n", "ep_g = ep_plain:g")
    package(installed, "ep_module", DECORATED.format("ep_m"), "anything = ep_module")
    package(installed, "ep_function", DECORATED.format("ep_f"), "other_name = ep_function:f")
    connection = PythonConnection([], Path(), installed=True)
    assert {"ep_g", "ep_m", "ep_f"} <= set(await connection.tools())
    assert "other_name" not in await connection.tools(), "what has declared its name keeps it"
    assert [await call(name, connection) for name in ("ep_g", "ep_m", "ep_f")] == ["plain", "ep_m", "ep_f"]


async def test_a_package_that_does_not_load(installed: Path) -> None:
    package(installed, "ep_broken", "1 / 0\n", "ep_b = ep_broken:g")
    with pytest.raises(ToolFailed, match="the tool ep_b of the package ep_broken cannot be loaded: ZeroDivisionError"):
        await PythonConnection([], Path(), installed=True).tools()
    assert "ep_b" not in await PythonConnection([], Path()).tools()


async def test_a_folder_on_the_path_is_not_an_installation(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    package(workspace, "ep_planted", DECORATED.format("ep_p"), "ep_p = ep_planted:f")
    monkeypatch.syspath_prepend(str(workspace))
    assert "ep_p" not in await PythonConnection([], workspace, installed=True).tools()


def test_the_doctor_lists_tools_of_packages(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found() -> list[tuple[str, str]]:
        main(["doctor", "--json"])
        findings = json.loads(capsys.readouterr().out)
        return [(one["state"], one["detail"]) for one in findings if one["what"] == "python tools"]

    monkeypatch.chdir(tmp_path)
    package(installed, "ep_seen", "def g() -> str:\n    return 'seen'\n", "ep_seen_tool = ep_seen:g")
    ((state, detail),) = found()
    assert state == "ok" and "ep_seen_tool" in detail
    package(installed, "ep_bad", "1 / 0\n", "ep_c = ep_bad:g")
    assert [state for state, detail in found() if "the package ep_bad cannot be loaded" in detail] == ["problem"]
