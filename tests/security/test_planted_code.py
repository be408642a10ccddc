"""In a workspace that the user agreed to, a file that a tool writes never becomes code of a server or of a tool."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from tests.security.stage import Stage

from quire.engine.requests import ToolRequest
from quire.errors import Denied, ToolFailed, Untrusted
from quire.runs.workspace_gate import open_gate
from quire.tools.gate import Gate
from quire.values import Value
from quire.workspace.consent import is_trusted, requests, require_trusted
from quire.workspace.grants import default_grants
from quire.workspace.server_code import loaded_files

pytest.importorskip("mcp")

SERVER = """\
import json, os, sys
{imports}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {{"jsonrpc": "2.0", "id": asked["id"]}}
    if asked["method"] == "initialize":
        info = {{"name": "s", "version": "1"}}
        version = asked["params"]["protocolVersion"]
        answer["result"] = {{"protocolVersion": version, "capabilities": {{"tools": {{}}}}, "serverInfo": info}}
    elif asked["method"] == "tools/list":
        answer["result"] = {{"tools": [{{"name": "say", "inputSchema": {{"type": "object"}}}}]}}
    elif asked["method"] == "tools/call":
        answer["result"] = {{"content": [{{"type": "text", "text": str({says})}}]}}
    else:
        answer["error"] = {{"code": -32601, "message": "no"}}
    print(json.dumps(answer), flush=True)
"""
HELPERS = "WORD = 'helped'\n"


def server(imports: str = "from helpers import WORD", says: str = "WORD") -> str:
    return SERVER.format(imports=imports, says=says)


def gain(stage: Stage) -> tuple[Path, str]:
    """A file that appears where a planted source is executed, and that source."""
    marker = stage.base / "gained"
    return marker, f"open({str(marker)!r}, 'w').write('x')\nWORD = 'gained'\n"


def serve(stage: Stage, command: str, *args: str, **more: object) -> None:
    entry = {"command": command, "args": list(args), **more}
    stage.write(".mcp.json", json.dumps({"mcpServers": {"s": entry}}))


def gate(stage: Stage) -> Gate:
    return open_gate(stage.settings, default_grants(stage.settings), {**os.environ, **stage.environ})


async def call(opened: Gate, connection: str = "s", tool: str = "say", **arguments: Value) -> Value:
    return await opened.call(ToolRequest("1/tool", "1", connection, tool, arguments), "e")


async def write(opened: Gate, path: str, content: str) -> None:
    """By the tool that every document has."""
    await call(opened, "quire", "file__write", path=path, content=content)


async def test_an_installed_server_is_not_replaced_by_a_written_file(stage: Stage) -> None:
    marker, source = gain(stage)
    (stage.base / "installed").mkdir()
    (stage.base / "installed" / "clock_server.py").write_text(server("", "'twelve'"))
    serve(stage, sys.executable, "-m", "clock_server", env={"PYTHONPATH": str(stage.base / "installed")})
    stage.confirm()
    async with gate(stage) as opened:
        await write(opened, "clock_server.py", source)
        with pytest.raises(ToolFailed, match=r"clock_server\.py changed since you agreed"):
            await call(opened)
    with pytest.raises(Untrusted, match=r"loading 1 file of this folder"):
        gate(stage)
    (stage.work / "clock_server.py").unlink()
    for name in ("sitecustomize", "json", "os", "runpy"):
        stage.write(f"{name}.py", source)
    async with gate(stage) as opened:
        assert await call(opened) == "twelve"
    assert not marker.exists()


@pytest.mark.parametrize("cwd", [{}, {"cwd": "."}])
@pytest.mark.parametrize(
    ("files", "command"),
    [
        (("tools/server.py", "tools/helpers.py"), (sys.executable, "tools/server.py")),
        (("server.py", "helpers.py"), (sys.executable, "-u", "./server.py")),
        (("server.py", "helpers.py"), ("./server.py",)),
        (("deep/served/server.py", "deep/helpers.py"), (sys.executable, "deep/served/server.py")),
        (("served/server.py", "helpers.py"), (sys.executable, "-m", "served.server")),
        (("src/served/server.py", "src/helpers.py"), (sys.executable, "-m", "served.server")),
        (("served/__main__.py", "served/helpers.py"), (sys.executable, "served")),
    ],
)
async def test_a_server_of_the_workspace_works_and_loads_what_was_confirmed(
    stage: Stage, files: tuple[str, str], command: tuple[str, ...], cwd: dict[str, str]
) -> None:
    """Its own files may be imported; a file that stands in for one of Python's does not load."""
    marker, source = gain(stage)
    script, helpers = files
    stage.write(script, f"#!{sys.executable}\n" + server()).chmod(stat.S_IRWXU)
    stage.write(helpers, HELPERS)
    serve(stage, *command, **cwd)
    stage.confirm()
    async with gate(stage) as opened:
        # In a package of the server any file is one of its own.
        for folder in {Path(helpers).parent, Path(), *([] if "-m" in command else [Path(script).parent])}:
            for name in ("json", "encodings/__init__", "sitecustomize", "re"):
                stage.write(f"{folder}/{name}.py", source)
        assert await call(opened) == "helped"
    assert not marker.exists()
    assert {script, helpers} <= loaded_files(stage.settings)
    stage.write(helpers, source)
    assert not is_trusted(stage.settings)
    with pytest.raises(Untrusted):
        gate(stage)
    assert not marker.exists()


async def test_what_changes_after_the_gate_was_opened_is_not_started(stage: Stage) -> None:
    marker, source = gain(stage)
    stage.write("server.py", server())
    stage.write("helpers.py", HELPERS)
    serve(stage, sys.executable, "server.py")
    stage.confirm()
    async with gate(stage) as opened:
        stage.write("helpers.py", source)
        with pytest.raises(ToolFailed, match=r"helpers\.py changed since you agreed to it"):
            await call(opened)
    assert not marker.exists()


async def test_what_is_imported_late_is_what_was_confirmed(stage: Stage) -> None:
    """The server runs already when the file is written."""
    marker, source = gain(stage)
    stage.write("server.py", server("", "__import__('helpers').WORD"))
    stage.write("helpers.py", HELPERS)
    stage.write("other.py", server("import sys", "__import__('late_' + 'x').WORD"))
    serve(stage, sys.executable, "server.py")
    stage.confirm()
    async with gate(stage) as opened:
        await opened.preflight([("s", "say")])
        stage.write("helpers.py", source)
        with pytest.raises(ToolFailed):
            await call(opened)
    assert not marker.exists()
    serve(stage, sys.executable, "other.py")
    stage.confirm()
    async with gate(stage) as opened:
        await opened.preflight([("s", "say")])
        stage.write("late_x.py", source)
        with pytest.raises(ToolFailed):
            await call(opened)
    assert not marker.exists()


def test_files_that_other_programs_load_are_confirmed(stage: Stage) -> None:
    stage.write("start.sh", "exec node lib/server.js --config conf.json\n")
    stage.write("lib/server.js", "require('./routes'); import x from \"../shared/x.mjs\"\n")
    stage.write("lib/routes.js", "1")
    stage.write("shared/x.mjs", "1")
    stage.write("conf.json", "{}")
    stage.write("data.db", "rows")
    serve(stage, "sh", "start.sh", "--data", "data.db", "--config=conf.json")
    found = loaded_files(stage.settings)
    assert found >= {"start.sh", "lib/server.js", "lib/routes.js", "shared/x.mjs", "conf.json", "node_modules"}
    assert "data.db" in found, "no tool writes what a command names, whatever its ending"
    stage.confirm()
    stage.write("data.db", "more rows")
    stage.write("readme.py", "not loaded by anything")
    assert is_trusted(stage.settings)
    stage.write("lib/routes.js", "2")
    assert not is_trusted(stage.settings)


TOOLS = "import quire\nimport helpers\nfrom package import part\n@quire.tool\ndef {name}() -> str:\n    return {body}\n"


@pytest.fixture
def tools(stage: Stage) -> Stage:
    name = f"said_{stage.base.name.replace('-', '_')}"
    stage.write("quire.toml", f'[tools]\nmodules = ["{name}"]\n')
    stage.write(f"{name}.py", TOOLS.format(name=name, body="helpers.WORD + part.WORD"))
    stage.write("helpers.py", "try:\n    import speedups\nexcept ImportError:\n    pass\nWORD = 'helped'\n")
    stage.write("package/__init__.py", "")
    stage.write("package/part.py", "WORD = ' twice'\n")
    stage.confirm()
    stage.environ["TOOL"] = name
    return stage


async def test_a_tool_loads_what_was_confirmed(tools: Stage) -> None:
    name = tools.environ["TOOL"]
    assert requests(tools.settings) == (f"import the Python module {name} (4 files)",)
    assert loaded_files(tools.settings) == {
        f"{name}.py", "helpers.py", "package/__init__.py", "package/part.py", "speedups", "speedups.py",
    }  # fmt: skip
    async with gate(tools) as opened:
        assert await call(opened, "python", name) == "helped twice"
    assert not list(tools.work.rglob("__pycache__")) and str(tools.work) not in sys.path


@pytest.mark.parametrize(
    "planted", ["helpers.py", "package/part.py", "speedups.py", "speedups/__init__.py", "package/json.py"]
)
async def test_a_planted_module_asks_again_and_never_loads(tools: Stage, planted: str) -> None:
    """No tool writes it. What others write while a run is under way does not load, and the next run asks."""
    marker, source = gain(tools)
    async with gate(tools) as opened:
        with pytest.raises(Denied, match="protected"):
            await write(opened, planted, source)
        tools.write(planted, source)
        try:
            await call(opened, "python", tools.environ["TOOL"])
        except ToolFailed as failed:
            assert "confirmed" in failed.message
    assert not marker.exists()
    with pytest.raises(Untrusted):
        require_trusted(tools.settings)


async def test_a_module_that_extends_the_path_loads_nothing_more(tools: Stage) -> None:
    marker, source = gain(tools)
    name = tools.environ["TOOL"]
    tools.write("lib/planted_later.py", "")
    text = (tools.work / f"{name}.py").read_text()
    late = "import importlib, sys\nsys.path.insert(0, __file__.rpartition('/')[0] + '/lib')\n"
    tools.write(f"{name}.py", f"{late}importlib.import_module('planted' + '_later')\n{text}")
    tools.confirm()
    tools.write("lib/planted_later.py", source)
    assert is_trusted(tools.settings), "no import statement says that it is loaded"
    async with gate(tools) as opened:
        with pytest.raises(ToolFailed, match="planted_later' was confirmed"):
            await call(opened, "python", name)
    assert not marker.exists()


async def test_a_huge_module_is_not_read(tools: Stage) -> None:
    with (tools.work / "helpers.py").open("wb") as file:
        file.truncate(20 << 30)
    assert "helpers.py is larger than 5,000,000 bytes and does not load" in requests(tools.settings)[0]
    tools.confirm()
    async with gate(tools) as opened:
        with pytest.raises(ToolFailed, match="larger than"):
            await call(opened, "python", tools.environ["TOOL"])
