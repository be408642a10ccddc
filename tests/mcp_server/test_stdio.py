"""`quire mcp` as a process of its own: what stands on its stdout, and what a crash leaves behind."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext
from tests.given import given
from tests.mcp_server.serving import MODES, THINK, envelope, text, write
from tests.security.test_pure_work import FOLDS, ITEMS
from tests.warm import run_quire, running_quire

from quire.engine.records import Status
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime

INSPECTOR = "@modelcontextprotocol/inspector"
PRINTS = "import quire\n\n\n@quire.tool\ndef loud() -> str:\n    print('this is not the protocol')\n    return 'said'\n"
LOUD = "pipeline: loud\nsteps:\n  - tool: {name: loud}\n"


@pytest.fixture
def environ(folder: Path) -> dict[str, str]:
    return {**os.environ, "QUIRE_HOME": str(folder.parent / "home"), "QUIRE_MCP_TOKEN": ""}


def parameters(folder: Path, environ: dict[str, str], *arguments: str) -> StdioServerParameters:
    command = ["-m", "quire", "mcp", *arguments]
    return StdioServerParameters(command=sys.executable, args=command, cwd=str(folder), env=environ)


def quire(folder: Path, environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_quire(arguments, cwd=folder, env=environ, timeout=60)


@dataclass(slots=True)
class RawServer:
    """A process with the protocol on its pipes, without a client."""

    stdin: io.FileIO
    stdout: asyncio.StreamReader

    def write(self, *messages: object) -> None:
        self.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in messages))

    async def readline(self) -> bytes:
        return await asyncio.wait_for(self.stdout.readline(), 30)


@asynccontextmanager
async def raw_server(folder: Path, environ: dict[str, str], *arguments: str) -> AsyncIterator[RawServer]:
    """Run `quire mcp` until the block ends, which kills it."""
    (inside, stdin), (stdout, outside) = os.pipe(), os.pipe()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    with (
        os.fdopen(stdin, "wb", buffering=0) as writer,
        running_quire(["mcp", *arguments], cwd=folder, env=environ, stdin=inside, stdout=outside),
    ):
        os.close(inside)
        os.close(outside)
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(stdout, "rb"))
        try:
            yield RawServer(writer, reader)
        finally:
            pipe.close()


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_starts_it_and_calls_a_document(folder: Path, environ: dict[str, str], mode: str) -> None:
    async with Client(parameters(folder, environ), mode=mode) as client:
        assert "pipeline__greet" in {tool.name for tool in (await client.list_tools()).tools}
        assert text(await client.call_tool("pipeline__greet", {"name": "Ann"})) == "Hello, Ann!"


def requests() -> Iterator[dict[str, object]]:
    info = {"name": "raw", "version": "1"}
    first = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    yield {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first}
    yield {"jsonrpc": "2.0", "method": "notifications/initialized"}
    yield {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    yield {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "pipeline__loud", "arguments": {}}}


async def test_stdout_has_nothing_but_the_protocol(folder: Path, environ: dict[str, str]) -> None:
    write(folder, loud=LOUD, broken="pipeline: [")
    given({"loud_tools.py": PRINTS, "quire.toml": '[tools]\nmodules = ["loud_tools"]\n'}, folder)
    assert quire(folder, environ, "trust", "workspace", "--yes").returncode == 0
    pipe = asyncio.subprocess.PIPE
    # A cold one: what stands on its stdout is the point.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quire", "mcp"), cwd=folder, env=environ, stdin=pipe, stdout=pipe, stderr=pipe
    )
    assert process.stdin and process.stdout and process.stderr
    answers: dict[object, dict[str, object]] = {}
    for request in requests():
        process.stdin.write(json.dumps(request).encode() + b"\n")
        while "id" in request and request["id"] not in answers:
            message = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
            assert message["jsonrpc"] == "2.0"
            answers[message.get("id")] = message
    process.stdin.close()
    rest, said = await process.stdout.read(), (await process.stderr.read()).decode()
    assert await process.wait() == 0
    assert rest == b""
    assert "this is not the protocol" in said and "broken.yaml" in said
    assert answers[3]["result"]["structuredContent"]["data"]["output"] == "said"  # type: ignore[index]


async def test_a_crash_in_the_middle_loses_nothing(folder: Path, environ: dict[str, str]) -> None:
    write(folder, think=THINK)
    script, rest = folder / "script.yaml", folder / "rest.yaml"
    script.write_text('- {step: "1", reply: one}\n- {step: "2", reply: never, delay_ms: 600000}\n')
    rest.write_text('- {step: "1", reply: wrong}\n- {step: "2", reply: two}\n')
    *opening, call = requests()
    call["params"] = {"name": "pipeline__think", "arguments": {}, "_meta": {"progressToken": "p"}}
    async with raw_server(folder, environ, "--script", str(script)) as server:
        server.write(*opening, call)
        while b"step 2 (second) started" not in await server.readline():
            pass
    runtime = Runtime.open(folder, environ=environ)
    (row,) = await runtime.store.list()
    assert row.status is Status.INTERRUPTED
    resumed = await asyncio.to_thread(quire, folder, environ, "resume", row.id, "--script", str(rest))
    assert (resumed.returncode, resumed.stdout.strip()) == (0, "two")
    assert (await runtime.view(row.id)).stores == {"first": "one", "second": "two"}
    (letter,) = await runtime.store.letters("mcp:raw")
    await runtime.close()
    assert letter.run == row.id and '"two"' in letter.text


async def test_the_next_server_takes_over_what_a_killed_one_had_launched(folder: Path, environ: dict[str, str]) -> None:
    """G9: a launch that waits and one that does not, and a run that was told to pause, which stays as it is."""
    write(folder, think=THINK)
    script = folder / "script.yaml"
    script.write_text('- {step: "1", reply: one}\n- {step: "2", reply: never, delay_ms: 600000}\n')
    *opening, call = requests()
    waited = {**call, "params": {"name": "pipeline__think", "arguments": {}, "_meta": {"progressToken": "p"}}}
    left = {**call, "id": 4, "params": {"name": "run_pipeline_async", "arguments": {"name": "think"}}}
    runtime = Runtime.open(folder, environ=environ)
    async with raw_server(folder, environ, "--script", str(script)) as server:
        server.write(*opening, left, waited)
        while b"step 2 (second) started" not in await server.readline():
            pass
        launched = [row.id for row in await runtime.store.list()]
        while {len(await runtime.store.effects(run)) for run in launched} != {1}:
            await asyncio.sleep(0.01)
    paused = await runtime.start(load(folder / "pipelines" / "think.yaml"), {}, RunOptions(reply_to="mcp:raw"))
    assert (await asyncio.to_thread(quire, folder, environ, "cancel", paused)).returncode == 0
    script.write_text('- {step: "1", reply: wrong}\n- {step: "2", reply: two}\n')
    async with Client(parameters(folder, environ, "--script", str(script)), mode="auto") as client:
        for run in launched:
            told = envelope(await client.call_tool("pipeline_result", {"run_id": run}))
            assert told["status"] in ("started", "ok")
        while len(letters := await runtime.store.letters("mcp:raw")) < 2:
            await asyncio.sleep(0.01)
    stores = [(await runtime.view(letter.run)).stores for letter in letters]
    assert stores == [{"first": "one", "second": "two"}] * 2
    (row,) = [row for row in await runtime.store.list() if row.id == paused]
    await runtime.close()
    assert row.status is Status.CANCELLED


async def test_a_script_goes_on_where_it_was(folder: Path, environ: dict[str, str]) -> None:
    """Two replies in order, and a question between them: the call that is made again must not get the first again."""
    ask = "  - tool: {name: ask, args: {prompt: 'Go on?'}}\n"
    first, second = THINK.rstrip().rsplit("\n", 1)
    write(folder, think=f"{first}\n{ask}{second}\n")
    (folder / "script.yaml").write_text("- one\n- two\n")

    async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"answer": "yes"})

    started = parameters(folder, environ, "--script", "script.yaml")
    async with Client(started, mode="auto", elicitation_callback=answer) as client:
        result = await client.call_tool("pipeline__think", {})
    stores = envelope(result)["data"]["named_stores"]
    assert (stores["first"], stores["second"]) == ("one", "two")


def test_the_inspector_is_a_client_as_well(folder: Path, environ: dict[str, str]) -> None:
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("npx is not installed")
    # Only if it exists already: no test fetches anything.
    cached = [npx, "--offline", "--yes", INSPECTOR, "--cli"]
    call = ["--method", "tools/call", "--tool-name", "pipeline__greet", "--tool-arg", "name=Ann"]
    done = subprocess.run(
        [*cached, sys.executable, "-m", "quire", "mcp", *call],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "ENOTCACHED" in done.stderr or "npm error" in done.stderr or "npm ERR!" in done.stderr:
        pytest.skip("the MCP inspector is not in the cache of npx")
    assert json.loads(done.stdout)["content"] == [{"type": "text", "text": "Hello, Ann!"}], done.stderr


def allow_pure_work(environ: dict[str, str], units: int) -> None:
    home = Path(environ["QUIRE_HOME"])
    given({"quire.toml": f"[runs]\npure_work = {units}\n"}, home)


async def test_a_document_that_computes_for_ever_holds_up_no_other_call(folder: Path, environ: dict[str, str]) -> None:
    """M8, on a real server."""
    write(folder, nest=FOLDS)
    allow_pure_work(environ, 10**9)
    async with Client(parameters(folder, environ)) as client:
        started = envelope(await client.call_tool("run_pipeline_async", {"name": "nest", "input": ITEMS}))
        for name in ("Ann", "Bob"):
            greeted = await asyncio.wait_for(client.call_tool("pipeline__greet", {"name": name}), 30)
            assert text(greeted) == f"Hello, {name}!"
        runtime = Runtime.open(folder, environ=environ)
        run = started["data"]["run_id"]
        assert (await runtime.row(run)).status is Status.RUNNING
        await runtime.store.request_cancel(run)
        async with asyncio.timeout(30):
            while (await runtime.row(run)).status is not Status.CANCELLED:
                await client.call_tool("pipeline__greet", {"name": "Eve"})
        await runtime.close()


async def test_a_document_that_computes_beyond_the_budget_fails_its_call(folder: Path, environ: dict[str, str]) -> None:
    """M8: and the server answers the next one."""
    write(folder, nest=FOLDS)
    allow_pure_work(environ, 300_000)
    async with Client(parameters(folder, environ)) as client:
        failed = await asyncio.wait_for(client.call_tool("pipeline__nest", ITEMS), 30)
        assert failed.is_error and "300,000 units of pure work" in str(failed)
        assert text(await client.call_tool("pipeline__greet", {"name": "Ann"})) == "Hello, Ann!"
