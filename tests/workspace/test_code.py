from __future__ import annotations

import os
from pathlib import Path

import pytest

from quire.errors import BadConfiguration
from quire.workspace import code
from quire.workspace.code import Code, imported_names, read_hashed
from quire.workspace.mcp_config import McpServer
from quire.workspace.server_code import server_code


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (b"import a.b, c as d\nfrom e.f import g\nfrom . import h\nfrom .i import j", {"a", "c", "e"}),
        (b"def f():\n    import late\ntry:\n    import fast\nexcept ImportError:\n    pass", {"late", "fast"}),
        (b"import_module('x.y')\nimportlib.import_module('z')\n__import__('w')\nimport_module('.r', 'p')", set("xzw")),
        (b"not python at all", set()),
        (b"\0", set()),
        (b"(" * 100_000, set()),
    ],
)
def test_imports_that_a_source_states(source: bytes, names: set[str]) -> None:
    assert imported_names(source) == names


def test_what_cannot_be_loaded_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "MAX_SOURCE_BYTES", 10)
    (tmp_path / "large.py").write_text("x" * 11)
    os.mkfifo(tmp_path / "pipe.py")
    assert read_hashed(tmp_path / "large.py") == ("larger than 10 bytes", b"")
    assert read_hashed(tmp_path / "pipe.py") == ("not a regular file", b"")
    assert read_hashed(tmp_path / "gone.py")[0].startswith("not readable: ")


def test_too_much_code_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "MAX_FILES", 3)
    (tmp_path / "many").mkdir()
    for number in range(4):
        (tmp_path / "many" / f"m{number}.py").touch()
    with pytest.raises(BadConfiguration, match="more than 3 files of code"):
        Code(tmp_path).add_import("many", [tmp_path])


@pytest.mark.parametrize(
    ("given", "started"),
    [
        (["node", "server.js", "--data", "docs"], ["node", "{}/server.js", "--data", "docs"]),
        (["./run.sh", "--file=conf.json", "--to=./new.db"], ["{}/run.sh", "--file={}/conf.json", "--to={}/new.db"]),
        (["serve", ".", "../other"], ["serve", "{}", "{}/../other"]),
        (["server.js"], ["server.js"]),
        (["docker", "-v", "./docs:/docs", "i", "server.js"], ["docker", "-v", "{}/docs:/docs", "i", "server.js"]),
        (["npx", "-y", "@scope/server", "https://h/server.js"], ["npx", "-y", "@scope/server", "https://h/server.js"]),
    ],
)  # fmt: skip
def test_paths_of_the_workspace_go_on_working(tmp_path: Path, given: list[str], started: list[str]) -> None:
    for name in ("server.js", "run.sh", "conf.json"):
        (tmp_path / name).touch()
    (tmp_path / "docs").mkdir()
    command, *args = given
    found = server_code(McpServer("s", command, tuple(args)), tmp_path)
    assert list(found.argv) == [
        os.path.normpath(word.format(tmp_path)) if "{}" in word and "=" not in word else word.format(tmp_path)
        for word in started
    ]
    assert found.folder is None and found.env == {"PYTHONSAFEPATH": "1"}
    there = server_code(McpServer("s", command, tuple(args), cwd="."), tmp_path)
    assert list(there.argv) == given and there.folder == tmp_path
