"""The language server as a process: it speaks only the protocol, starts nothing, and ends with its editor."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.given import given
from tests.lsp.language_server import COMMAND, LanguageServer, language_server
from tests.processes import started

from quire.lsp import transport
from quire.lsp.protocol import framed
from quire.lsp.session import Session
from quire.lsp.transport import Connection

BAD = "# Note\n\n## STEP 1: Say\n\nSay {{name}}.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    return given({"quire.toml": ""}, folder)


def test_a_whole_session(folder: Path) -> None:
    with language_server(folder) as server:
        server.begin(folder)
        server.open(folder / "note.playbook.md", BAD)
        assert server.findings(folder / "note.playbook.md") == ["PB201"]
        assert server.ask("shutdown", {}) is None
        server.send({"method": "exit"})
        rest, errors = server.process.communicate(timeout=30)
        assert (server.process.returncode, rest, errors) == (0, b"", b"")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has pipes of other sizes")
def test_the_pipe_to_the_editor_holds_the_findings_about_a_large_document(folder: Path) -> None:
    import fcntl

    most = int(Path("/proc/sys/fs/pipe-max-size").read_text())
    with language_server(folder) as server:
        server.begin(folder)
        assert server.process.stdout is not None
        size = fcntl.fcntl(server.process.stdout, fcntl.F_GETPIPE_SZ)
        assert size == 1 << 20 or most < 1 << 20


LARGE = {
    "large.playbook.md": "# Note\n\n"
    + "".join(f"## STEP {number}: Say\n\nSay {{{{name}}}} {'x' * 150}.\n\n" for number in range(1, 900)),
    "large.yaml": "schema: Unused\nfields: {a: {type: bool}}\n---\npipeline: large\nsteps:\n"
    + "".join(f"  - transform: {{value: 'ctx.rows + [s{n}]', output: s{n + 1}}}\n" for n in range(2_500)),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_document_is_checked_in_another_process_and_requests_are_answered(folder: Path, name: str) -> None:
    path, text = folder / name, LARGE[name]
    with language_server(folder) as server:
        server.begin(folder)
        server.open(path, text)
        assert server.findings(path)
        for version in range(2, 6):
            server.send(
                {
                    "method": "textDocument/didChange",
                    "params": {
                        "textDocument": {"uri": path.as_uri(), "version": version},
                        "contentChanges": [{"text": text + "\n" * version}],
                    },
                }
            )
            if version < 4:
                assert server.findings(path), "only a document that took long twice is known to be slow"
        assert server.ask("textDocument/documentHighlight", _start(path)) is None
        assert server.findings(path)
        server.ask("shutdown", {})
        server.send({"method": "exit"})
        assert server.process.wait(30) == 0


def test_requests_are_answered_while_a_large_workspace_is_searched(folder: Path) -> None:
    for number in range(3_000):
        (folder / f"note{number}.md").write_text("# Note\n\n## STEP 1: Say\n\nSay it.\n")
    path = folder / "note.playbook.md"
    with language_server(folder) as server:
        server.begin(folder)
        server.open(path, BAD)
        server.send({"id": "search", "method": "workspace/symbol", "params": {"query": "Say"}})
        server.ask("textDocument/hover", _start(path))
        assert all(one.get("id") != "search" for one in server.told), "the search was answered first"
        while (found := server.receive()).get("id") != "search":
            pass
        assert found["result"]


def test_garbage_is_collected_once_after_the_editor_was_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[bool] = []
    monkeypatch.setattr(transport, "_collect", lambda: collected.append(True))
    monkeypatch.setattr(transport, "SECONDS_BEFORE_COLLECTING", 0.0)
    monkeypatch.setattr(transport, "SECONDS_BETWEEN_LOOKS", 0.0)
    reads, asks = os.pipe()
    answers, writes = os.pipe()
    served = Connection(Session(), reads, writes, collects=True)
    for turns in (1, 2):
        os.write(asks, framed({"jsonrpc": "2.0", "method": "unknown"}))
        for _ in range(4):
            assert served._turn(None)
        assert len(collected) == turns
    for one in (reads, asks, answers, writes):
        os.close(one)


def test_an_editor_that_reads_late_never_keeps_the_server_waiting() -> None:
    reads, asks = os.pipe()
    answers, writes = os.pipe()
    connection = Connection(Session(), reads, writes)
    said = b"".join(b"%08d" % number for number in range(100_000))
    connection._out += said
    received = b""
    while len(received) < len(said):
        for _ in range(50):  # much more often than it takes to fill the pipe
            assert connection._turn(0.0)
        assert os.get_blocking(writes), "others may write to the same pipe"
        received += os.read(answers, 1_000_000)
    assert received == said
    assert not connection._out
    for one in (reads, asks, answers, writes):
        os.close(one)


def _start(path: Path) -> dict[str, object]:
    return {"textDocument": {"uri": path.as_uri()}, "position": {"line": 0, "character": 0}}


def test_it_ends_when_the_editor_closes_the_connection(folder: Path) -> None:
    with language_server(folder) as server:
        server.begin(folder)
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.wait(30) == 1


def test_it_ends_when_the_process_of_the_editor_is_gone(folder: Path) -> None:
    waiting = started([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with waiting as editor, language_server(folder) as server:
        server.begin(folder, process=editor.pid)
        editor.kill()
        editor.wait()
        assert server.process.wait(30) == 1


def test_bytes_that_are_not_the_protocol_are_refused_in_one_line(folder: Path) -> None:
    with language_server(folder) as server:
        server.send_bytes(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        _, errors = server.process.communicate(timeout=30)
        assert server.process.returncode == 2
        assert errors.startswith(b"quire: the header of a message has no length")


def test_a_message_that_is_not_json_is_answered_with_an_error(folder: Path) -> None:
    with language_server(folder) as server:
        server.send_bytes(b"Content-Length: 1\r\n\r\n{")
        assert server.receive()["error"]["code"] == -32700
        server.begin(folder)


def test_a_socket_of_this_machine(folder: Path) -> None:
    environment = {**os.environ, "QUIRE_HOME": str(folder.parent / "home")}
    with started([*COMMAND, "--tcp", "0"], cwd=folder, env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        port = int(process.stderr.readline().rpartition(b":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client, client.makefile("rwb") as stream:
            server = LanguageServer(_Streams(stream))  # type: ignore[arg-type]
            server.begin(folder)
            server.open(folder / "note.playbook.md", BAD)
            assert server.findings(folder / "note.playbook.md") == ["PB201"]
        assert process.wait(30) == 1


class _Streams:
    """A connection in the place of a process."""

    def __init__(self, stream: object) -> None:
        self.stdin = self.stdout = stream


def test_modules_of_the_workspace_are_not_imported(folder: Path) -> None:
    (folder / "quire.toml").write_text('[tools]\nmodules = ["evil"]\n')
    (folder / "evil.py").write_text("open('ran', 'w').close()\n")
    (folder / "json.py").write_text("open('ran', 'w').close()\n")
    path = folder / "p.yaml"
    with language_server(folder) as server:
        server.begin(folder)
        server.open(path, "pipeline: p\nsteps:\n  - tool: {name: evil__x, args: {}}\n")
        server.findings(path)
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("arguments", [("--stdio", "--tcp", "0"), ("--tcp", "x"), ("--nonsense",)])
def test_wrong_flags_are_refused_in_one_line(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
