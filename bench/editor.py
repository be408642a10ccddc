"""The language server as an editor sees it: start, findings after a change, hover and completion, memory.

    python -m bench.editor

A real process is asked over its pipes. Times are wall time, as a user feels them; the best of several rounds, so that
other work on the machine counts little. Letters are typed above the steps, and in a text, an expression and a key of a
step in the middle; the worst of these places counts. The first findings after a change may be those that need no proof:
a second row has the time until all of them are there, as an editor sees it that asks for them.
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
from typing import Any, NamedTuple

from bench.proofs import document as pipeline
from bench.rows import Row, show

ROUNDS = 8
STARTS = 4
PAUSE = 0.35
CLOSED = 500
SMALL, LARGE = 2_000, 20_000


class Server:
    """A language server and the time that it takes."""

    def __init__(self, folder: Path, *, pulls: bool = False) -> None:
        command = [str(Path(sys.executable).with_name("quire")), "lsp"]
        environment = {**os.environ, "QUIRE_HOME": str(folder / "home")}
        self._next = 0
        self._version = 1
        began = time.perf_counter()
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        uri = folder.as_uri()
        capabilities: dict[str, Any] = {"textDocument": {"diagnostic": {}}} if pulls else {}
        self.ask("initialize", {"capabilities": capabilities, "workspaceFolders": [{"uri": uri, "name": "bench"}]})
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

    def open(self, uri: str, text: str, *, pulls: bool = False) -> float:
        """Return the seconds from opening a document to its findings."""
        began = time.perf_counter()
        item = {"uri": uri, "languageId": "", "version": 1, "text": text}
        self.send("textDocument/didOpen", {"textDocument": item})
        if pulls:
            self.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        else:
            self.until_findings(uri, 1)
        return time.perf_counter() - began

    def change(self, uri: str, place: Place, *, pulls: bool = False) -> float:
        """Return the seconds from a typed letter to the findings; to all of them for an editor that asks."""
        at = {"line": place.line, "character": place.column}
        change = {"range": {"start": at, "end": at}, "text": "x"}
        self._version += 1
        began = time.perf_counter()
        document = {"uri": uri, "version": self._version}
        self.send("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        if pulls:
            self.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        else:
            self.until_findings(uri, self._version)
        return time.perf_counter() - began

    def take_back(self, uri: str, place: Place, letters: int) -> None:
        """Take out the letters that were typed at a place."""
        start = {"line": place.line, "character": place.column}
        end = {"line": place.line, "character": place.column + letters}
        self._version += 1
        document = {"uri": uri, "version": self._version}
        changes = [{"range": {"start": start, "end": end}, "text": ""}]
        self.send("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    @property
    def megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1000

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class Place(NamedTuple):
    """A place at which a letter is typed."""

    what: str
    line: int
    column: int


class Document(NamedTuple):
    file: str
    text: str
    places: list[Place]


def documents(size: int) -> dict[str, Document]:
    """Return a document of each format with about so many bytes, and places in it to edit."""
    step = "## STEP {n}: Look\n\nLook at {{{{topic}}}} once more, and say what is new about it.\n\n"
    steps = "".join(step.format(n=number) for number in range(1, max(2, size // 90)))
    playbook = f"# Look\n\n## INPUTS\n\n- `topic`: the thing\n\n{steps}"
    # The part in XML has at most 100,000 characters.
    count = min(size, 95_000) // 70
    about = "".join(f"  <step name='s{number}'>Look again and say what is new.</step>\n" for number in range(count))
    head = "<directive name='look' version='1.0.0'>\n<metadata><description>Looks</description></metadata>\n"
    directive = f"# Look\n\nProse.\n\n```xml\n{head}<process>\n{about}</process>\n</directive>\n```\n"
    return {
        "playbook": _with_places("look.playbook.md", playbook, "- `", "Look at ", "{{top", "## STEP"),
        "pipeline": _with_places(
            "look.yaml", f"# about\n{pipeline(max(4, size // 104), 's')}", "# ", "'Look ", "'ctx.ro", "tool: {na"
        ),
        "directive": _with_places(".ai/directives/look.md", directive, "Prose", "Look ag", "name='s", "<step na"),
    }


def _with_places(file: str, text: str, top: str, prose: str, expression: str, key: str) -> Document:
    """Return a document with a place above its steps, and three in the middle, each behind a text."""
    places = []
    for what, behind, start in (
        ("above", top, 0),
        ("text", prose, len(text) // 2),
        ("expression", expression, len(text) // 2),
        ("key", key, len(text) // 2),
    ):
        at = text.index(behind, start) + len(behind)
        line = text.count("\n", 0, at)
        places.append(Place(what, line, at - text.rfind("\n", 0, at) - 1))
    return Document(file, text, places)


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "quire.toml").touch()
        starts = [_started(folder) for _ in range(ROUNDS)]
        rows = [Row("start to initialize", min(starts) * 1e3, "ms", "at most 60", min(starts) <= 0.060)]
        for format, document in documents(SMALL).items():
            after, all_after = (0.008, 0.012) if format == "pipeline" else (0.005, 0.005)
            rows += _edited(folder, format, document, 0.150, after, all_after)
        for format, document in documents(LARGE).items():
            rows += _edited(folder, format, document, None, 0.060, 0.300)
        rows.append(_survey(folder))
        return rows


def _started(folder: Path) -> float:
    server = Server(folder)
    server.end()
    return server.start


def _edited(
    folder: Path, format: str, document: Document, first: float | None, after: float, all_after: float
) -> list[Row]:
    file, text, places = document
    uri = (folder / file).as_uri()
    size = f"{format} of {len(text) / 1e3:.0f} KB"
    rows = []
    if first is not None:
        opened = min(_opened(folder, uri, text) for _ in range(STARTS))
        rows.append(Row(f"{size}: first findings", opened * 1e3, "ms", f"at most {first * 1e3:.0f}", opened <= first))
    server = Server(folder)
    server.open(uri, text)
    told, what = max((_typed(server, uri, place), place.what) for place in places)
    name = f"{size}: change to findings ({what})"
    rows.append(Row(name, told * 1e3, "ms", f"at most {after * 1e3:.0f}", told <= after))
    asked = _asked(server, uri, text)
    rows.append(Row(f"{size}: hover and completion, 95 of 100", asked * 1e3, "ms", "at most 10", asked <= 0.010))
    rows.append(Row(f"{size}: memory", server.megabytes, "MB", "at most 40", server.megabytes <= 40))
    server.end()
    server = Server(folder, pulls=True)
    server.open(uri, text, pulls=True)
    whole, what = max((_typed(server, uri, place, pulls=True), place.what) for place in places)
    name = f"{size}: change to all findings ({what})"
    rows.append(Row(name, whole * 1e3, "ms", f"at most {all_after * 1e3:.0f}", whole <= all_after))
    server.end()
    return rows


def _opened(folder: Path, uri: str, text: str) -> float:
    server = Server(folder)
    seconds = server.open(uri, text)
    server.end()
    return seconds


def _typed(server: Server, uri: str, place: Place, *, pulls: bool = False) -> float:
    """Return the least time until findings of several letters that are typed at one place."""
    times = []
    for _ in range(ROUNDS):
        time.sleep(PAUSE)  # a user who pauses
        times.append(server.change(uri, place, pulls=pulls))
    server.take_back(uri, place, ROUNDS)
    return min(times)


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
    text = documents(SMALL)["playbook"].text
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
