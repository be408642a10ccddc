"""Arize Phoenix, a program that people look at traces with, takes ours and knows what they are.

It is looked for on the path: `pip install arize-phoenix` in an environment of its own.
"""

from __future__ import annotations

import os
import shutil
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.cli.directive_project import write_directives
from tests.processes import started, wait_until
from tests.telemetry.conftest import RUN

from quire.cli import main

QUERY = "{projects{edges{node{traceCount spans(first:100){edges{node{name spanKind tokenCountTotal}}}}}}}"


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Any:
    program = shutil.which("phoenix")
    if program is None:
        pytest.skip("phoenix is not on the path: pip install arize-phoenix")
    ports = []
    for _ in range(2):
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            ports.append(free.getsockname()[1])
    folder = tmp_path_factory.mktemp("phoenix")
    environ = {
        **os.environ,
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(ports[0]),
        "PHOENIX_GRPC_PORT": str(ports[1]),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    address = f"http://127.0.0.1:{ports[0]}"
    log = (folder / "log").open("w")
    with log, started([program, "serve"], env=environ, cwd=folder, stdout=log, stderr=log) as process:
        wait_until(lambda: answers(address) or process.poll() is not None, lambda: (folder / "log").read_text())
        yield address


def answers(address: str) -> bool:
    try:
        return httpx2.get(f"{address}/healthz", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


def shown(address: str) -> tuple[int, list[tuple[str, str, int]]]:
    """The number of traces, and of each span its name, its kind and its tokens."""
    answer = httpx2.post(f"{address}/graphql", json={"query": QUERY}, timeout=30).json()
    (project,) = (edge["node"] for edge in answer["data"]["projects"]["edges"])
    spans = [edge["node"] for edge in project["spans"]["edges"]]
    return project["traceCount"], sorted((each["name"], each["spanKind"], each["tokenCountTotal"]) for each in spans)


def test_phoenix_shows_runs(phoenix: str, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", phoenix)
    assert main(RUN) == 4
    assert main(["answer", "last", "yes", "--quiet"]) == 0
    assert main(["runs", "export", "--otlp", "last"]) == 0
    wait_until(lambda: len(shown(phoenix)[1]) >= 9)
    chat = f"chat {report / 'replies.json'}"
    kinds = [
        ("ask 3", "unknown", 0),
        (chat, "llm", 13),
        (chat, "llm", 13),
        ("execute_tool file__read", "tool", 0),
        ("invoke_workflow Weekly report", "unknown", 0),
        *((f"step {number}", "unknown", 0) for number in (1, 2, 3, 4)),
    ]
    assert shown(phoenix) == (1, kinds)
    write_directives(report)
    assert main(["run", "deploy_staging", "-i", "target=eu", "--script", "replies.json"]) == 0
    wait_until(lambda: len(shown(phoenix)[1]) >= 9 + 17)
    traces, spans = shown(phoenix)
    assert traces == 2
    assert ("invoke_agent project/deploy/deploy_staging", "agent", 0) in spans
