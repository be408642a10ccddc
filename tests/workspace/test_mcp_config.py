from __future__ import annotations

import json
from pathlib import Path

import pytest

from quire.workspace.mcp_config import McpServer, read_servers


def read(tmp_path: Path, entry: object, name: str = "s") -> tuple[McpServer | None, list[str], list[str]]:
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {name: entry}}))
    problems: list[str] = []
    warnings: list[str] = []
    return read_servers(file, file.read_bytes(), problems, warnings).get(name), problems, warnings


@pytest.mark.parametrize(
    ("entry", "server"),
    [
        ({"command": "x"}, McpServer("s", command="x")),
        (
            {"type": "stdio", "command": "x", "args": ["-a"], "env": {"A": "${A}"}, "cwd": "sub", "timeout": 3},
            McpServer("s", command="x", args=("-a",), env={"A": "${A}"}, cwd="sub", timeout=3.0),
        ),
        ({"type": "http", "url": "https://h/mcp"}, McpServer("s", url="https://h/mcp")),
        ({"url": "${BASE}/mcp", "headers": {"X": "y"}}, McpServer("s", url="${BASE}/mcp", headers={"X": "y"})),
        ({"command": "x", "disabled": True}, None),
        ({"command": "x", "disabled": False}, McpServer("s", command="x")),
    ],
)
def test_shapes(tmp_path: Path, entry: object, server: McpServer | None) -> None:
    assert read(tmp_path, entry) == (server, [], [])


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ([], "must be an object"),
        ({}, 'needs either "command" or "url"'),
        ({"command": "x", "url": "http://h"}, 'needs either "command" or "url"'),
        ({"type": "sse", "url": "http://h"}, 'type "sse" is not supported'),
        ({"type": ["x"], "url": "http://h"}, 'type ["x"] is not supported'),
        ({"type": "http", "command": "x"}, 'is of type http and needs a "url"'),
        ({"type": "stdio", "url": "http://h"}, 'needs a "command" for stdio'),
        ({"url": "file:///etc"}, "begins with http://"),
        ({"command": 1}, '"command" must be text'),
        ({"command": "x", "args": "a"}, '"args" must be a list of texts'),
        ({"command": "x", "args": [1]}, '"args" must be a list of texts'),
        ({"command": "x", "env": {"A": 1}}, '"env" must be an object of texts'),
        ({"command": "x", "timeout": 0}, '"timeout" must be a number of seconds'),
        ({"command": "x", "timeout": True}, '"timeout" must be a number of seconds'),
    ],
)
def test_problems(tmp_path: Path, entry: object, problem: str) -> None:
    server, problems, _ = read(tmp_path, entry)
    assert server is None
    assert problem in "\n".join(problems)
    assert problems[0].startswith(f'{tmp_path / ".mcp.json"}: server "s": ')


def test_the_name_python_is_reserved(tmp_path: Path) -> None:
    assert "stands for Python functions" in read(tmp_path, {"command": "x"}, "python")[1][0]


def test_unknown_keys_are_warned_about(tmp_path: Path) -> None:
    server, problems, warnings = read(tmp_path, {"command": "x", "header": {}, "autoApprove": []})
    assert server == McpServer("s", command="x")
    assert problems == []
    assert ['did you mean "headers"' in warning for warning in warnings] == [True, False]


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', "[" * 100_000])
def test_what_is_no_list_of_servers(tmp_path: Path, text: str) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(text)
    problems: list[str] = []
    assert read_servers(file, file.read_bytes(), problems, []) == {}
    assert len(problems) == 1


def test_no_file_is_no_servers(tmp_path: Path) -> None:
    problems: list[str] = []
    assert read_servers(tmp_path / ".mcp.json", None, problems, []) == {}
    assert problems == []


@pytest.mark.parametrize(
    ("text", "environ", "filled"),
    [
        ("${A}", {"A": "1"}, "1"),
        ("x${A}y${B:-z}", {"A": "1"}, "x1yz"),
        ("${A:-}", {}, ""),
        ("${B:-z}", {"B": ""}, "z"),
        ("${A}", {"A": "${B}", "B": "never twice"}, "${B}"),
        ("$A ${1} ${ A }", {"A": "1"}, "$A ${1} ${ A }"),
    ],
)
def test_expanded(text: str, environ: dict[str, str], filled: str) -> None:
    server = McpServer("s", command=text, args=(text,), env={"E": text}, url=text, headers={"H": text}, cwd=text)
    assert set(server.expanded(environ).texts()) == {filled}


def test_missing_variables() -> None:
    server = McpServer("s", args=("${A} ${B:-x} ${C:-}",), env={"X": "${B} ${D}"})
    assert server.missing({"D": "here"}) == ["A", "B"]
    assert server.missing({"A": "", "B": "1", "D": ""}) == []


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"servers": {"a": {"command": "x"}}}, '"servers" is not known: the servers stand under "mcpServers"'),
        ({"servers": {}}, '"servers" is not known: the servers stand under "mcpServers"'),
        ({"mcp_servers": {}}, '"mcp_servers" is not known: the servers stand under "mcpServers"'),
        ({"inputs": []}, None),
        ({"mcpServers": {}, "servers": {}}, None),
        ({}, None),
    ],
)
def test_servers_under_another_name(tmp_path: Path, data: object, problem: str | None) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps(data))
    problems: list[str] = []
    assert read_servers(file, file.read_bytes(), problems, []) == {}
    assert problems == ([f"{file}: {problem}"] if problem else [])


def test_disabled_servers_are_known_by_name(tmp_path: Path) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "disabled": True}, "b": {"command": "x"}}}))
    disabled: list[str] = []
    assert list(read_servers(file, file.read_bytes(), [], [], disabled)) == ["b"]
    assert disabled == ["a"]
