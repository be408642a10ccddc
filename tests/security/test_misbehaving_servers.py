"""MCP servers that misbehave: each gets a clear error soon, holds no memory, and leaves no process behind."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from tests.growth import within
from tests.processes import wait_until
from tests.security import misbehaving
from tests.warm import running_quire

from quire.engine.requests import ToolRequest
from quire.errors import StepFailed, ToolFailed
from quire.runs.workspace_gate import open_gate
from quire.schema_limits import problem_of
from quire.tools import mcp, mcp_session, server_process
from quire.tools.gate import Gate
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.grants import default_grants
from quire.workspace.locate import Workspace

pytest.importorskip("mcp")

SCRIPT = str(misbehaving.__file__)
PROCESSES = Path("/proc")
MOST_MEMORY = 400_000_000
Open = Callable[..., AbstractAsyncContextManager[Gate]]

pytestmark = pytest.mark.skipif(not PROCESSES.is_dir(), reason="looks for what is left in /proc")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr("mcp.shared.jsonrpc_dispatcher._ABANDON_WRITE_TIMEOUT", 0.2)
    monkeypatch.setattr(mcp_session, "CLOSE_SECONDS", 3.0)
    monkeypatch.setattr(server_process, "ENDING_SECONDS", 0.2)


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    @asynccontextmanager
    async def start(mode: str, seconds: float = 30.0, **more: object) -> AsyncIterator[Gate]:
        entry = {"command": sys.executable, "args": ["-I", SCRIPT, mode, str(tmp_path)], "timeout": seconds, **more}
        (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"bad": entry}}))
        environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home")}
        settings = load_settings(Workspace(tmp_path), environ)
        confirm(settings)
        async with open_gate(settings, default_grants(settings), environ) as gate:
            yield gate

    return start


@pytest.fixture(autouse=True)
def bounded(tmp_path: Path) -> Iterator[None]:
    """Every attempt in here: not long, not much memory, and no process that is left."""
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    yield
    assert time.monotonic() - started < 60
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_MEMORY
    assert left_running(str(tmp_path)) == []


def left_running(marker: str) -> list[str]:
    found = []
    for process in PROCESSES.glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode("utf-8", "replace")
            dead = (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if marker in command and not dead:
            found.append(f"{process.name} {command}")
    return found


async def call(gate: Gate, tool: str = "work", arguments: dict[str, Value] | None = None) -> Value:
    return await gate.call(ToolRequest("1/tool", "1", "bad", tool, arguments or {}), "e")


async def failure(gate: Gate, tool: str = "work", arguments: dict[str, Value] | None = None) -> str:
    with pytest.raises(ToolFailed) as failed:
        await call(gate, tool, arguments)
    assert len(failed.value.message) < 9_000
    return failed.value.message


FAILING = {
    "silent:initialize": "no answer within 1.5 s",
    "silent:tools/list": "took longer than 0.5 s",
    "silent:tools/call": "took longer than 0.5 s",
    "endless-line-at-once": "sent a message of more than 10,000,000 bytes",
    "endless-line": "sent a message of more than 10,000,000 bytes",
    "huge-line": "sent a message of more than 10,000,000 bytes",
    "dripping": "took longer than 0.5 s",
    "same-cursor": "lists its tools in a circle",
    "huge-schema": "sent a message of more than 10,000,000 bytes",
    "too-deep": "its answer cannot be read",
    "tools-are-text": "ValidationError",
    "cursor-is-a-list": "ValidationError",
    "wrong-ids": "took longer than 0.5 s",
    "progress-flood": "took longer than 0.5 s",
    "log-flood": "took longer than 0.5 s",
    "changed-flood": "took longer than 0.5 s",
    "cancelled-flood": "took longer than 0.5 s",
    "sampling-flood": "asks for more than 100 things at once",
    "roots-flood": "asks for more than 100 things at once",
    "elicitation-flood": "asks for more than 100 things at once",
    "garbage-for-ever": "sends what is not a message of the protocol",
    "wrong-types": "ValidationError",
    "result-is-null": "its answer cannot be read",
    "error-is-text": "its answer cannot be read",
    "deep": "its answer cannot be read",
    "huge-number": "",
    "nan": "returned no JSON value",
    "closes-stdout": "stopped; it may still have done the call",
    "exits": "its last words:\nlast words",
    "grandchild": "stopped; it may still have done the call",
    "complains-for-ever": "[cut: ",
    "output-lies": "does not fit its own schema: n:",
    "no-version": "cannot be started: ValidationError: the server broke the protocol: ",
    "answers-before-asked": "cannot be started: ValidationError: the server broke the protocol: ",
}


@pytest.mark.parametrize("mode", FAILING)
async def test_it_fails_soon_and_says_why(opened: Open, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = FAILING[mode]
    if mode == "silent:initialize":
        monkeypatch.setattr(mcp_session, "MCP_START_SECONDS", 1.5)
    async with opened(mode, 0.5 if "took longer" in expected else 30.0) as gate:
        assert expected in await failure(gate)


async def test_pages_without_end_are_cut_off(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp, "MAX_TOOLS", 500)
    async with opened("endless-pages") as gate:
        assert "lists more than 500 tools" in await failure(gate)


async def test_pages_without_end_have_one_time_limit(opened: Open) -> None:
    async with opened("endless-pages", 0.5) as gate:
        assert "took longer than 0.5 s" in await failure(gate)


ONE_BAD = {
    "exponential": "with its references written out it has more than 100,000 parts",
    "exponential-any": "with its references written out it has more than 100,000 parts",
    "nested": "nested deeper than 64 levels",
    "itself": "refers to itself without end",
    "not-an-object": "its schema is not an object",
    "another-type": "its schema does not describe an object",
    "remote": "'http://127.0.0.1:9/s.json', which is not in it; nothing is looked up elsewhere",
    "wide": "more than 20,000 parts",
    "choices": "more than 20,000 parts",
    "patterns": "more than 100 patterns",
    "number": "a number beyond all measure",
    "output": "its output schema cannot be used: with its references",
    "twice-listed": "its name is listed twice",
}


@pytest.mark.parametrize("mode", ONE_BAD)
async def test_a_bad_tool_is_unusable_alone(opened: Open, mode: str) -> None:
    async with opened(mode) as gate:
        message = await failure(gate, "bad", {"x": "a"})
        assert "mcp/bad/bad cannot be used: its " in message and ONE_BAD[mode] in message
        assert await call(gate) == "done", "the others work"
        if mode != "output":
            assert [one.name for one in await gate.offers(["bad__*"])] == ["bad__work"], "and no model is offered it"
            assert ONE_BAD[mode] in (await gate.preflight([("bad", "bad")]))[0], "said before a run"


async def test_a_schema_that_takes_long_for_some_values(opened: Open) -> None:
    async with opened("recursive") as gate:
        deep: Value = "x"
        for _ in range(5):
            deep = {"l": deep}
        assert "does not take these arguments" in await failure(gate, "bad", {"x": deep})
        for _ in range(100):
            deep = {"l": deep}
        assert "takes too many steps" in await failure(gate, "bad", {"x": deep})


BOMBS = [one for tools in misbehaving.BAD_TOOLS.values() for one in tools]


@pytest.mark.parametrize("bomb", BOMBS, ids=[f"{number}" for number in range(len(BOMBS))])
def test_the_measure_itself_takes_no_time(bomb: dict[str, object]) -> None:
    with within(0.1):
        for schema in (bomb["inputSchema"], bomb.get("outputSchema")):
            problem_of(schema)


async def test_names_that_nobody_can_say_are_left_out(opened: Open) -> None:
    async with opened("odd-names") as gate:
        assert [one.name for one in await gate.offers(["bad__*"])] == ["bad__work"]
        assert await call(gate) == "done"


async def test_no_name_of_a_server_stands_for_another_tool(opened: Open, tmp_path: Path) -> None:
    async with opened("underscores") as gate:
        names = [one.name for one in await gate.offers(["bad__*"])]
        assert names == ["bad____", "bad__file__write", "bad__odd__name__x", "bad__quire__shell", "bad__work"]
        request = ToolRequest("1/tool", "1", "", "file__write", {"path": "a", "content": "x"})
        assert await gate.call(request, "e") != "done" and (tmp_path / "a").read_text() == "x"


WORKING = ["twice", "garbage", "stderr-flood", "stubborn", "invalid-schema", "odd-annotations"]


@pytest.mark.parametrize("mode", WORKING)
async def test_harmless_oddities_do_no_harm(opened: Open, mode: str) -> None:
    async with opened(mode) as gate:
        assert await call(gate) == "done"
        assert gate.effect_class(ToolRequest("1/tool", "1", "bad", "work", {})) == "write"


async def test_bytes_that_are_no_text(opened: Open) -> None:
    async with opened("not-utf-8") as gate:
        assert await call(gate) == "d\ufffd\ufffdne"


@pytest.mark.parametrize("mode", ["slow-pattern", "looking-pattern"])
async def test_patterns_run_in_linear_time(opened: Open, mode: str) -> None:
    async with opened(mode) as gate:
        value: dict[str, Value] = {"x": "a" * 100_000 + "b"}
        if mode == "slow-pattern":
            assert "does not match" in await failure(gate, "odd", value)
        else:
            assert await call(gate, "odd", value) == "done", "what the engine cannot do is left to the server"


async def test_twenty_thousand_tools(opened: Open) -> None:
    async with opened("many") as gate:
        with within(6):
            assert await call(gate, "t19999") == "done"
            under = await gate.offers_under(["rye.execute.tool.mcp.bad.*"])
            assert sum(one.id.startswith("mcp/bad/") for one in under) == 20_001


async def test_a_prompt_without_measure(opened: Open) -> None:
    async with opened("huge-prompt") as gate:
        with pytest.raises(StepFailed, match="sent a message of more than 10,000,000 bytes"):
            await gate.prompt("bad", "p")


async def test_a_prompt_that_is_large(opened: Open) -> None:
    async with opened("large-prompt") as gate:
        with pytest.raises(StepFailed, match="has 2,000,000 characters; 1,000,000 are allowed"):
            await gate.prompt("bad", "p")


async def test_what_a_tool_is_said_to_do_quotes_no_secret(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKED_TOKEN", "sk-0123456789abcdef")
    async with opened("quoting", env={"LEAKED": "${LEAKED_TOKEN}"}) as gate:
        for offers in (await gate.offers(["bad__*"]), await gate.offers_under(["rye.execute.tool.mcp.bad.*"])):
            assert "[redacted:LEAKED_TOKEN]" in str(offers) and "sk-0123" not in str(offers)


@pytest.mark.parametrize("kept", [12, 18])
async def test_its_last_words_quote_no_part_of_a_secret(
    opened: Open, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key stands where the words are cut: so much of it would be left."""
    monkeypatch.setenv("LEAKED_TOKEN", "sk-0123456789abcdef")
    async with opened("quoting-last-words", env={"LEAKED": "${LEAKED_TOKEN}", "KEPT": str(kept)}) as gate:
        message = await failure(gate)
        assert "89abcdef" not in message and "its last words" in message, message[:200]


async def test_a_prompt_that_never_comes(opened: Open) -> None:
    async with opened("silent:prompts/get", 0.5) as gate:
        with pytest.raises(StepFailed, match=r"took longer than 0\.5 s"):
            await gate.prompt("bad", "p")


async def test_a_server_that_reads_nothing(opened: Open) -> None:
    async with opened("reads-nothing", 0.5) as gate:
        assert "took longer than 0.5 s" in await failure(gate, "work", {"x": "y" * 900_000})


async def test_a_session_that_is_over_starts_again(opened: Open) -> None:
    async with opened("endless-line") as gate:
        for _ in range(2):
            assert "sent a message of more than" in await failure(gate)


async def test_nothing_is_remembered_of_what_has_ended(opened: Open) -> None:
    async with opened("grandchild") as gate:
        await failure(gate)
    assert server_process._groups == set()


PIPELINE = "pipeline: p\nsteps:\n- tool: {name: bad__work, args: {}}\n"


@pytest.mark.parametrize("mode", ["log-flood", "dripping", "silent:initialize"])
def test_ctrl_c_ends_the_command(tmp_path: Path, mode: str) -> None:
    """The real command, interrupted as a terminal does it."""
    entry = {"command": sys.executable, "args": ["-I", SCRIPT, mode, str(tmp_path)]}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"bad": entry}}))
    (tmp_path / "p.yaml").write_text(PIPELINE)
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    confirm(load_settings(Workspace(tmp_path), environ))
    command = ["run", "p.yaml", "--allow", "mcp/bad/work"]
    with (
        (tmp_path / "said").open("wb") as file,
        running_quire(command, cwd=tmp_path, env=environ, stderr=file.fileno(), stdout=file.fileno()) as run,
    ):
        wait_until(lambda: left_running(str(tmp_path)) or run.poll() is not None)
        # The first lets the step finish, the second does not.
        run.send_signal(signal.SIGINT)
        wait_until(lambda: "Ctrl-C again" in (tmp_path / "said").read_text() or run.poll() is not None)
        run.send_signal(signal.SIGINT)
        run.wait()
    text = (tmp_path / "said").read_text()
    assert run.returncode == 130, text
    assert "Traceback" not in text


async def test_many_at_once_end_together(opened: Open) -> None:
    async with opened("silent:tools/call", 0.5) as gate:
        found = await asyncio.gather(*(failure(gate) for _ in range(50)))
    assert {one for one in found if "took longer than 0.5 s" not in one} == set()
