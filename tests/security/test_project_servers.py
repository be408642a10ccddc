"""Security N2: a server that builds or runs the workspace. The files that it may run cannot be listed, so tools write
none of them, and the request says so."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.security.stage import Stage
from tests.security.test_planted_code import call, gain, gate, serve, server, write
from tests.tools.test_builtin_shell import needs_sandbox

from quire.errors import Denied
from quire.tools.builtin.paths import Protection
from quire.tools.builtin.protected_places import ProtectedPlaces
from quire.tools.builtin.shell import Shell
from quire.workspace.consent import is_trusted, requests
from quire.workspace.server_code import loaded_files

pytest.importorskip("mcp")

UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
PROJECT = """\
[project]
name = "srv"
version = "1"
requires-python = ">=3.11"
[project.scripts]
srv = "srv:main"
[build-system]
requires = ["uv_build"]
build-backend = "uv_build"
"""


@pytest.mark.skipif(UV is None, reason="needs uv")
@pytest.mark.parametrize("planted", ["src/srv/__init__.py", "src/srv/late.py", "src/json.py", "src/srv/x.pth"])
async def test_uv_runs_no_text_of_a_model(stage: Stage, planted: str) -> None:
    """`uv run NAME` names no file. A run with default grants wrote the package, and the next run executed it."""
    marker, source = gain(stage)
    lines = "".join(f"    {line}\n" for line in server("", "'hello'").splitlines())
    stage.write("pyproject.toml", PROJECT)
    stage.write("src/srv/__init__.py", f"def main():\n{lines}")
    serve(stage, str(UV), "run", "--offline", "--no-python-downloads", "--python", sys.executable, "srv", cwd=".")
    stage.confirm()
    async with gate(stage) as opened:
        with pytest.raises(
            Denied, match=r"may build or run any file.*no grant opens it: give the server a \"cwd\" else"
        ):
            await write(opened, planted, source)
        await write(opened, "src/notes.md", "data stay writable")
        assert await call(opened) == "hello"
    assert is_trusted(stage.settings) and not marker.exists()


KINDS: dict[str, tuple[dict[str, object], str]] = {
    "uv": ({"command": "uv", "args": ["run", "srv"], "cwd": "."}, "src/srv/__init__.py"),
    "uv, no cwd": ({"command": "uv", "args": ["run", "srv"]}, "src/srv/__init__.py"),
    "uv project": ({"command": "uv", "args": ["run", "--project", "./pkg", "srv"]}, "pkg/src/srv.py"),
    "uv directory": ({"command": "uv", "args": ["--directory=./pkg", "run", "srv"]}, "pkg/src/srv.py"),
    "uvx": ({"command": "uvx", "args": ["--from", "./pkg", "srv"]}, "pkg/src/m.py"),
    "uvx reader": ({"command": "uvx", "args": ["--from", "./pkg", "mcp-server-git"]}, "pkg/src/m.py"),
    "cargo": ({"command": "cargo", "args": ["run"], "cwd": "."}, "src/main.rs"),
    "cargo manifest": ({"command": "cargo", "args": ["run", "--manifest-path", "pkg/Cargo.toml"]}, "pkg/src/main.rs"),
    "go": ({"command": "go", "args": ["run", "./cmd/srv"], "cwd": "."}, "cmd/srv/main.go"),
    "go, no cwd": ({"command": "go", "args": ["run", "./cmd"]}, "cmd/main.go"),
    "shell": ({"command": "bash", "args": ["-lc", "cd lib && ./go.sh"], "cwd": "."}, "lib/x2.sh"),
    "shell, no cwd": ({"command": "bash", "args": ["-lc", "cd ~/site/lib && ./go.sh"]}, "lib/go.sh"),
    "npm": ({"command": "npm", "args": ["run", "start"], "cwd": "."}, "dist/index.js"),
    "npm prefix": ({"command": "npm", "args": ["--prefix", "./pkg", "start"]}, "pkg/index.js"),
    "pnpm": ({"command": "pnpm", "args": ["-C", "./pkg", "start"]}, "pkg/index.mjs"),
    "yarn": ({"command": "yarn", "args": ["start"]}, "index.js"),
    "deno": ({"command": "deno", "args": ["task", "mcp"], "cwd": "."}, "main.ts"),
    "bun": ({"command": "bun", "args": ["run", "mcp"], "cwd": "."}, "main.tsx"),
    "make": ({"command": "make", "args": ["-C", "./pkg", "serve"]}, "pkg/run"),
    "make by env": ({"command": "env", "args": ["A=b", "make", "serve"]}, "run.sh"),
    "make file": ({"command": "make", "args": ["-f", "build/x.txt"]}, "build/x.txt"),
    "beside make file": ({"command": "make", "args": ["-f", "build/x.txt"]}, "build/y.sh"),
    "maven": ({"command": "mvn", "args": ["-f", "pkg/pom.xml", "exec:java"]}, "pkg/src/Main.java"),
    "gradle": ({"command": "./gradlew", "args": ["run"]}, "src/Main.kt"),
    "dotnet": ({"command": "dotnet", "args": ["run", "--project", "pkg/srv.csproj"]}, "pkg/Program.cs"),
    "unknown": ({"command": "own-program", "args": ["serve"], "cwd": "pkg"}, "pkg/plugin.lua"),
    "unknown folder": ({"command": "own-program", "args": ["serve", "./pkg"]}, "pkg/plugin.lua"),
    "tsx": ({"command": "npx", "args": ["-y", "tsx", "./pkg"]}, "pkg/late.ts"),
    "container": ({"command": "docker", "args": ["run", "-v", "{work}/pkg:/app", "node"]}, "pkg/late.js"),
    "code in a word": ({"command": "node", "args": ["-e", "require('{work}/pkg')"]}, "pkg/late.js"),
    "variable": ({"command": "node", "args": ["-e", "1"], "env": {"NODE_OPTIONS": "--require={work}/pkg"}}, "pkg/a.js"),
    "path": ({"command": "srv", "env": {"PATH": "/usr/bin:{work}/pkg"}}, "pkg/node"),
    "link": ({"command": "own-program", "cwd": "linked"}, "pkg/plugin.lua"),
    "above": ({"command": "cargo", "args": ["run"], "cwd": ".."}, "src/main.rs"),
    "script": ({"command": "sh", "args": ["pkg/start.sh"]}, "src/main.rs"),
    "data ending": ({"command": "sh", "args": ["pkg/start.log"]}, "pkg/start.log"),
}
"""An entry of `.mcp.json`, and a file that the server runs."""


def project(stage: Stage, entry: dict[str, object]) -> None:
    for path in ("pkg/Cargo.toml", "pkg/pom.xml", "pkg/srv.csproj", "pkg/start.log", "cmd/x.go", "gradlew"):
        stage.write(path, "")
    stage.write("pkg/start.sh", '#!/bin/sh\ncd "$(dirname "$0")/.." && A=b exec cargo run\n')
    stage.write("build/x.txt", "serve:\n\ttrue\n")
    (stage.work / "linked").symlink_to("pkg")
    text = json.dumps({"mcpServers": {"s": entry}}).replace("{work}", str(stage.work))
    stage.write(".mcp.json", text)
    stage.confirm()


@pytest.mark.parametrize("kind", KINDS)
async def test_no_tool_writes_what_a_server_may_run(stage: Stage, kind: str) -> None:
    entry, path = KINDS[kind]
    project(stage, entry)
    async with gate(stage) as opened:
        with pytest.raises(Denied, match="no grant opens it"):
            await write(opened, path, "evil")
        await write(opened, f"{path.rpartition('/')[0] or '.'}/report.md", "data")
    (line,) = requests(stage.settings)
    assert "AND WHATEVER" in line or kind == "data ending"


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@1.0", "."]}, "src/app.py"),
        ({"command": "uvx", "args": ["mcp-server-git", "--repository", "."]}, "src/app.py"),
        ({"command": "uvx", "args": ["mcp-server-time"]}, "src/app.py"),
        ({"command": "pnpm", "args": ["dlx", "server-everything"]}, "src/app.py"),
        ({"command": "go", "args": ["run", "example.org/srv@latest"]}, "src/app.py"),
        ({"command": "own-program", "args": ["serve"]}, "src/app.py"),
        ({"command": "own-program", "cwd": "pkg"}, "src/app.py"),
        ({"command": "cargo", "args": ["run"], "cwd": "/elsewhere"}, "src/main.rs"),
        ({"command": "node", "args": ["./pkg/srv.js"]}, "src/app.js"),
        ({"command": "sh", "args": ["./pkg/plain.sh"]}, "src/app.js"),
        ({"command": sys.executable, "args": ["pkg"]}, "src/app.py"),
        ({"command": sys.executable, "args": ["-I", "/elsewhere/server.py", "{work}"]}, "src/app.py"),
    ],
)
async def test_a_server_that_runs_nothing_else_leaves_the_rest_open(
    stage: Stage, entry: dict[str, object], path: str
) -> None:
    stage.write("pkg/srv.js", "1")
    stage.write("pkg/plain.sh", "#!/bin/sh\n# make it go\nexec node srv.js\n")
    stage.write("pkg/__main__.py", "1")
    project(stage, entry)
    async with gate(stage) as opened:
        await write(opened, path, "open")
    assert ("AND WHATEVER" in requests(stage.settings)[0]) == ("cwd" in entry and entry["cwd"] == "pkg")


def test_the_request_looks_more_dangerous_and_asks_those_who_agreed_before(stage: Stage) -> None:
    project(stage, {"command": "uv", "args": ["run", "srv"], "cwd": "."})
    assert requests(stage.settings) == (
        "start uv run srv in . as the MCP server s, AND WHATEVER THIS FOLDER CONTAINS: any program there may run as "
        "you, and its changes do not ask again",
    )
    stage.write("src/new.py", "edited by the user")
    assert is_trusted(stage.settings)


async def test_a_link_of_the_project_closes_what_it_leads_to(stage: Stage) -> None:
    stage.write("shared/lib/a.py", "old")
    stage.write("pkg/x.py", "old")
    (stage.work / "pkg" / "lib").symlink_to("../shared/lib")
    (stage.work / "pkg" / "one.py").symlink_to("../notes.txt")
    serve(stage, "uv", "run", "srv", cwd="pkg")
    stage.confirm()
    async with gate(stage) as opened:
        for path in ("shared/lib/a.py", "shared/lib/new.py", "notes.txt", "pkg/lib/b.py"):
            with pytest.raises(Denied, match="no grant opens it"):
                await write(opened, path, "evil")
        for path in ("shared/lib/a.csv", "shared/other.py"):
            await write(opened, path, "open")


def protection_of(stage: Stage) -> Protection:
    return Protection(closed=loaded_files(stage.settings))


@needs_sandbox
@pytest.mark.parametrize("many", [False, True])
async def test_a_command_in_the_sandbox_changes_no_source_file(
    stage: Stage, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if many:
        monkeypatch.setattr("quire.tools.builtin.shell.MAX_PLACES", 3)
    files = [stage.write(f"pkg/{name}", "old") for name in ("a.py", "deep/b.rs", "run", "c.so", "d.js")]
    serve(stage, "uv", "run", "srv", cwd="pkg")
    shell = Shell(stage.work, protection_of(stage), stage.environ, seconds=20)
    command = "for f in $(find pkg -type f); do echo evil > $f; rm -f $f; mv data.txt $f; done; true"
    stage.write("data.txt", "evil")
    await shell.run({"command": command})
    assert [file.read_text() for file in files] == ["old"] * len(files)
    if many:
        return
    await shell.run({"command": "echo fine > pkg/report.md; echo fine > other.py"})
    for made in ("pkg/new.py", "pkg/deep/new", "pkg/new/__init__.py"):
        with pytest.raises(Denied, match=r"put aside as .*; no grant opens the place"):
            await shell.run({"command": f"mkdir -p pkg/new; echo evil > {made}"})
        assert not (stage.work / made).exists()
    with pytest.raises(Denied, match="put aside"):
        await shell.run({"command": "mv pkg old; mkdir pkg; echo evil > pkg/a.py"})


def test_an_environment_in_the_project_still_asks(stage: Stage) -> None:
    stage.write("env311/pyvenv.cfg", "")
    stage.write("env311/data.txt", "")
    serve(stage, "uv", "run", "srv", cwd=".")
    places = ProtectedPlaces.of(stage.work, protection_of(stage))
    assert "env311" in places.places
    with pytest.raises(Denied, match="needs a grant"):
        places.protection.require(("env311", "data.txt"))
