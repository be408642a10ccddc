"""The gate in front of real MCP servers: over stdio (one from PyPI, one of ours) and over streamable HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from quire.engine.driver.perform import effect_id
from quire.engine.requests import ToolRequest
from quire.errors import Denied, StepFailed, ToolFailed
from quire.runs.workspace_gate import open_gate
from quire.telemetry import TRACE
from quire.tools import server_process
from quire.tools.gate import Gate
from quire.tools.mcp import McpConnection
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.grants import default_grants
from quire.workspace.locate import Workspace
from quire.workspace.mcp_config import McpServer

pytest.importorskip("mcp")

SERVED = str(Path(__file__).with_name("served.py"))
TOKEN = "token-of-the-environment"
OURS = {"command": sys.executable, "args": [SERVED], "env": {"SERVED_TOKEN": "${A_TOKEN}"}}
TIME = {"command": sys.executable, "args": ["-m", "mcp_server_time"]}

Open = Callable[..., AbstractAsyncContextManager[Gate]]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    @asynccontextmanager
    async def start(**servers: object) -> AsyncIterator[Gate]:
        (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
        environ = {**os.environ, "A_TOKEN": TOKEN, "QUIRE_HOME": str(tmp_path / "home")}
        settings = load_settings(Workspace(tmp_path), environ)
        confirm(settings)
        async with open_gate(settings, default_grants(settings), environ) as gate:
            yield gate

    return start


async def call(gate: Gate, connection: str, tool: str, **arguments: Value) -> Value:
    return await gate.call(ToolRequest("1/tool", "1", connection, tool, arguments), "effect-1")


async def failure(gate: Gate, connection: str, tool: str, **arguments: Value) -> ToolFailed:
    with pytest.raises(ToolFailed) as failed:
        await call(gate, connection, tool, **arguments)
    return failed.value


async def test_a_server_from_pypi(opened: Open) -> None:
    async with opened(time=TIME) as gate:
        request = ToolRequest("1/tool", "1", "time", "get_current_time", {"timezone": "Asia/Tokyo"})
        assert gate.effect_class(request) == "write", "nobody has asked the server yet"
        assert await gate.preflight([("time", "get_current_time"), ("time", "convert_times")]) == [
            'unknown tool "convert_times" at time; did you mean "convert_time"?'
        ]
        assert gate.effect_class(request) == "read"
        answer = await gate.call(request, "e")
        assert isinstance(answer, str)
        assert json.loads(answer)["timezone"] == "Asia/Tokyo"
        assert "is not of type" in (await failure(gate, "time", "get_current_time", timezone=1)).message
        assert "Nowhere" in (await failure(gate, "time", "get_current_time", timezone="Nowhere")).message


async def test_a_server_learns_the_trace_of_a_run_that_is_exported(opened: Open) -> None:
    async with opened(ours=OURS) as gate:
        assert await call(gate, "ours", "traceparent") == "None"
        token = TRACE.set("0af7651916cd43dd8448eb211c80319c")
        request = ToolRequest("1/tool", "1", "ours", "traceparent", {})
        told = await gate.call(request, effect_id("run", "1/tool"))
        TRACE.reset(token)
    assert told == f"00-0af7651916cd43dd8448eb211c80319c-{effect_id('run', '1/tool')[:16]}-01"


async def test_results_secrets_and_prompts(opened: Open) -> None:
    async with opened(ours=OURS) as gate:
        assert await call(gate, "ours", "environment", name="SERVED_TOKEN") == "[redacted:A_TOKEN]"
        assert await call(gate, "ours", "environment", name="A_TOKEN") == "not set"
        assert await call(gate, "ours", "effect_id") == "effect-1"
        assert await call(gate, "ours", "only_structured") == {"a": [1, 2]}
        assert await call(gate, "ours", "odd.name/*") == "odd"
        assert "Elicitation not supported" in (await failure(gate, "ours", "asks")).message
        failed = await failure(gate, "ours", "fail", key=TOKEN)
        assert "the key [redacted:A_TOKEN] is not good" in failed.message
        assert "returned 2,000,002 bytes" in (await failure(gate, "ours", "large")).message
        assert await gate.prompt("ours", "hello") == "Say hello to [redacted:A_TOKEN]."
        with pytest.raises(StepFailed):
            await gate.prompt("ours", "goodbye")
        with pytest.raises(StepFailed, match="unknown connection"):
            await gate.prompt("theirs", "hello")


async def test_a_dead_server_is_started_again_where_that_is_safe(opened: Open, tmp_path: Path) -> None:
    async with opened(ours=OURS) as gate:
        alive = await call(gate, "ours", "dies_unless", marker=str(tmp_path / "marker"))
        assert str(alive).startswith("alive ")
        failed = await failure(gate, "ours", "dies")
        assert failed.kind == "server_stopped"
        assert "it may still have done the call" in failed.message
        assert "my key is [redacted:A_TOKEN]" in failed.message
        # The next call gets a new server.
        again = await call(gate, "ours", "dies_unless", marker=str(tmp_path / "marker"))
        assert str(again).startswith("alive ")
        assert again != alive


async def test_time_outs_and_cancelling_leave_the_session_usable(opened: Open) -> None:
    async with opened(ours={**OURS, "timeout": 1.5}) as gate:
        assert (await gate.preflight([("ours", "slow")])) == []
        failed = await failure(gate, "ours", "slow")
        assert (failed.kind, "longer than 1.5 s" in failed.message) == ("timeout", True)
        task = asyncio.create_task(call(gate, "ours", "slow"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        many = await asyncio.gather(*(call(gate, "ours", "effect_id") for _ in range(20)))
        assert set(many) == {"effect-1"}


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (
            {"command": "no-such-command-here"},
            "MCP server x cannot be started: No such file or directory: no-such-command-here",
        ),
        (
            {
                "command": sys.executable,
                "args": ["-c", "import sys; print('the reason', file=sys.stderr); sys.exit(3)"],
            },
            "MCP server x stopped while starting; its last words:\nthe reason",
        ),
        ({"command": "run", "args": ["${NOT_SET_ANYWHERE}"]}, "needs the environment variable NOT_SET_ANYWHERE"),
        ({"command": sys.executable, "cwd": "nowhere"}, "MCP server x cannot be started"),
        ({"url": "http://127.0.0.1:1/mcp"}, "MCP server x cannot be reached: ConnectError"),
    ],
)
async def test_servers_that_do_not_start(opened: Open, server: object, message: str) -> None:
    async with opened(x=server) as gate:
        assert message in (await failure(gate, "x", "y")).message
        assert message in (await gate.preflight([("x", "y")]))[0]


@pytest.mark.parametrize(
    ("code", "hinted"),
    [
        ("import json; json.no_such_name", False),
        ("open('server.py')", True),
        ("import a_module_of_the_workspace", True),
        ("raise SystemExit(3)", True),
    ],
)
async def test_the_folder_is_blamed_only_for_what_is_missing(opened: Open, code: str, hinted: bool) -> None:
    """real-work 3: a server that crashed by itself got a hint about `cwd`."""
    async with opened(x={"command": sys.executable, "args": ["-c", code]}) as gate:
        assert ('"cwd": "."' in (await failure(gate, "x", "y")).message) is hinted


async def test_a_denied_call_starts_nothing(tmp_path: Path) -> None:
    touch = {"command": sys.executable, "args": ["-c", f"open({str(tmp_path / 'started')!r}, 'w')"]}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"x": touch}}))
    settings = load_settings(Workspace(tmp_path), {"QUIRE_HOME": str(tmp_path / "home")})
    nothing = default_grants(settings)
    confirm(settings)
    async with open_gate(settings, nothing, {}) as gate:
        with pytest.raises(Denied, match="mcp/x/y"):
            await call(gate, "x", "y")
        with pytest.raises(Denied, match=r"rye\.fetch\.prompt\.mcp\.x\.p"):
            await gate.prompt("x", "p")
        assert len(await gate.preflight([("x", "y")])) == 1
        assert not (tmp_path / "started").exists()
    # The counterpart: granted, the same call does start it.
    async with open_gate(settings, default_grants(settings), {}) as gate:
        await failure(gate, "x", "y")
        assert (tmp_path / "started").exists()


@asynccontextmanager
async def served_over_http() -> AsyncIterator[str]:
    """The socket listens before the server is up, so connections wait for it and nobody has to."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        number, port = listening.fileno(), listening.getsockname()[1]
        process = await asyncio.create_subprocess_exec(sys.executable, SERVED, str(number), pass_fds=[number])
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_streamable_http(opened: Open) -> None:
    async with served_over_http() as url:
        headers = {"X-Shown": "for all", "Authorization": "Bearer ${A_TOKEN}"}
        async with opened(web={"type": "http", "url": url, "headers": headers}) as gate:
            assert await call(gate, "web", "header", name="x-shown") == "for all"
            assert await call(gate, "web", "header", name="authorization") == "Bearer [redacted:A_TOKEN]"
            assert "Elicitation not supported" in (await failure(gate, "web", "asks")).message
            assert await call(gate, "web", "effect_id") == "effect-1"
            assert (await failure(gate, "web", "dies")).message.startswith("MCP server web")
            assert "cannot be reached" in (await failure(gate, "web", "dies_unless", marker="x")).message


async def test_a_start_that_takes_long_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("quire.tools.mcp.LATE_SECONDS", 0.0)
    monkeypatch.setattr("quire.tools.mcp_session.MCP_START_SECONDS", 0.2)
    told: list[str] = []
    slow = McpConnection(McpServer("slow", "sh", ("-c", "exec sleep 1000")), tmp_path, {}, told.append)
    with pytest.raises(ToolFailed, match=r"MCP server slow cannot be started: no answer within 0\.2 s"):
        await slow.tools()
    assert told == ["starting MCP server slow …"]


async def test_a_server_does_not_outlive_an_end_that_cannot_wait(opened: Open) -> None:
    async with opened(ours=OURS) as gate:
        await call(gate, "ours", "environment", name="HOME")
        (group,) = server_process._groups
        os.killpg(group, signal.SIGSTOP)
        closing = asyncio.ensure_future(gate.close())
        for _ in range(3):
            await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(ProcessLookupError):
            os.killpg(group, 0)
        assert not server_process._groups


@pytest.mark.parametrize(("connection", "tool"), [("off", "look"), ("", "off__look"), ("", "mcp/off/look")])
async def test_a_disabled_server_is_not_called_unknown(opened: Open, connection: str, tool: str) -> None:
    async with opened(off={**OURS, "disabled": True}) as gate:
        assert 'the MCP server "off" is disabled in .mcp.json' in (await failure(gate, connection, tool)).message
