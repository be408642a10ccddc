"""The language server as an editor sees it: start, findings after a change, hover and completion, memory.

    python -m bench.editor

A real process is asked over its pipes. Times are wall time, as a user feels them; the best of several rounds, so that
other work on the machine counts little.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.proofs import document as pipeline
from bench.rows import Row, show

ROUNDS = 8
CLOSED = 500
SMALL, LARGE = 2_000, 190_000


class Server:
    """A language server and the time that it takes."""

    def __init__(self, folder: Path) -> None:
        command = [str(Path(sys.executable).with_name("quire")), "lsp"]
        environment = {**os.environ, "QUIRE_HOME": str(folder / "home")}
        self._next = 0
        self._version = 1
        began = time.perf_counter()
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        uri = folder.as_uri()
        self.ask("initialize", {"capabilities": {}, "workspaceFolders": [{"uri": uri, "name": "bench"}]})
        self.start = time.perf_counter() - began
        self.send("initialized", {})

    def send(self, method: str, params: dict[str, Any], request: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        body = json.dumps(message if request is None else {**message, "id": request}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while line := self.process.stdout.readline().strip():
            length = int(line.partition(b":")[2])
        message: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return message

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._next += 1
        self.send(method, params, self._next)
        while (message := self.receive()).get("id") != self._next:
            pass
        return message.get("result")

    def until_findings(self, uri: str, version: int) -> None:
        while (message := self.receive()).get("method") != "textDocument/publishDiagnostics" or (
            message["params"]["uri"],
            message["params"].get("version"),
        ) != (uri, version):
            pass

    def open(self, uri: str, text: str) -> float:
        """Return the seconds from opening a document to its findings."""
        began = time.perf_counter()
        item = {"uri": uri, "languageId": "", "version": 1, "text": text}
        self.send("textDocument/didOpen", {"textDocument": item})
        self.until_findings(uri, 1)
        return time.perf_counter() - began

    def change(self, uri: str, line: int, version: int) -> float:
        """Return the seconds from a typed letter to the findings."""
        place = {"line": line, "character": 2}
        change = {"range": {"start": place, "end": place}, "text": "x"}
        began = time.perf_counter()
        document = {"uri": uri, "version": version}
        self.send("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        self.until_findings(uri, version)
        return time.perf_counter() - began

    @property
    def megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1000

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def documents(size: int) -> dict[str, tuple[str, str, int]]:
    """Return a document of each format with about so many bytes: its file, its text, and a line of prose to edit."""
    step = "## STEP {n}: Look\n\nLook at {{{{topic}}}} once more, and say what is new about it.\n\n"
    steps = "".join(step.format(n=number) for number in range(1, max(2, size // 90)))
    playbook = f"# Look\n\n## INPUTS\n\n- `topic`: the thing\n\n{steps}"
    about = "".join(
        f"  <step name='s{number}'>Look again and say what is new.</step>\n" for number in range(size // 70)
    )
    head = "<directive name='look' version='1.0.0'>\n<metadata><description>Looks</description></metadata>\n"
    # The part in XML has at most 100,000 characters.
    directive = f"# Look\n\nProse.\n\n```xml\n{head}<process>\n{about[:95_000]}</process>\n</directive>\n```\n"
    count = max(4, size // 104)
    return {
        "playbook": ("look.playbook.md", playbook, 8),
        "pipeline": ("look.yaml", f"# about\n{pipeline(count)}", 0),
        "directive": (".ai/directives/look.md", directive, 2),
    }


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "quire.toml").touch()
        starts = [_started(folder) for _ in range(ROUNDS)]
        rows = [Row("start to initialize", min(starts) * 1e3, "ms", "at most 60", min(starts) <= 0.060)]
        for size, first, after in ((SMALL, 0.150, 0.005), (LARGE, None, 0.050)):
            for format, (file, text, line) in documents(size).items():
                rows += _edited(folder, format, file, text, line, first, after)
        rows.append(_survey(folder))
        return rows


def _started(folder: Path) -> float:
    server = Server(folder)
    server.end()
    return server.start


def _edited(folder: Path, format: str, file: str, text: str, line: int, first: float | None, after: float) -> list[Row]:
    server = Server(folder)
    uri = (folder / file).as_uri()
    size = f"{format} of {len(text) / 1e3:.0f} KB"
    opened = server.open(uri, text)
    changes = []
    for version in range(2, 2 + ROUNDS):
        time.sleep(0.5)  # a user who pauses
        changes.append(server.change(uri, line, version))
    asked = _asked(server, uri, text)
    rows = [
        Row(
            f"{size}: change to findings", min(changes) * 1e3, "ms", f"at most {after * 1e3:.0f}", min(changes) <= after
        )
    ]
    if first is not None:
        rows.append(Row(f"{size}: first findings", opened * 1e3, "ms", f"at most {first * 1e3:.0f}", opened <= first))
    rows.append(Row(f"{size}: hover and completion, 95 of 100", asked * 1e3, "ms", "at most 10", asked <= 0.010))
    rows.append(Row(f"{size}: memory", server.megabytes, "MB", "at most 40", server.megabytes <= 40))
    server.end()
    return rows


def _asked(server: Server, uri: str, text: str) -> float:
    lines = text.split("\n")
    times = []
    for at in range(0, len(lines), max(1, len(lines) // 50)):
        place = {"textDocument": {"uri": uri}, "position": {"line": at, "character": len(lines[at]) // 2}}
        for method in ("textDocument/hover", "textDocument/completion"):
            began = time.perf_counter()
            server.ask(method, place)
            times.append(time.perf_counter() - began)
    return statistics.quantiles(times, n=20)[-1]


def _survey(folder: Path) -> Row:
    """Return the time until all documents that are not open have been checked."""
    _, text, _ = documents(SMALL)["playbook"]
    for number in range(CLOSED):
        (folder / f"closed{number}.playbook.md").write_text(
            f"{text}\n## STEP 900: Say\n\nSay {{{{nothing{number}}}}}.\n"
        )
    server = Server(folder)
    began = time.perf_counter()
    waiting = {(folder / f"closed{number}.playbook.md").as_uri() for number in range(CLOSED)}
    while waiting:
        message = server.receive()
        if message.get("method") == "textDocument/publishDiagnostics":
            waiting.discard(message["params"]["uri"])
    seconds = time.perf_counter() - began
    server.end()
    return Row(f"{CLOSED} closed documents", seconds, "s", "at most 2", seconds <= 2)


if __name__ == "__main__":
    show("editor", measure())
