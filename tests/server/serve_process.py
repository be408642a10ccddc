"""`quire serve` in a process of its own, for tests of how it starts, ends and dies."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from tests.processes import wait_until
from tests.warm import run_quire, start_quire


class Server:
    """A server in a process of its own."""

    def __init__(self, folder: Path, process: Any, output: Path) -> None:
        self.folder = folder
        self.process = process
        self.output = output

    @property
    def said(self) -> str:
        return self.output.read_text()

    @property
    def url(self) -> str:
        return next(line for line in self.said.splitlines() if line.startswith("http"))

    def client(self, **options: Any) -> httpx2.Client:
        done = run_quire(["serve", "--url"], cwd=self.folder, env=dict(os.environ))
        assert done.returncode == 0, done.stderr
        url, _, token = done.stdout.strip().partition("#token=")
        headers = {"Authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=f"{url}api/v1", headers=headers, timeout=30, **options)

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return int(self.process.wait(30))


@contextmanager
def server(folder: Path, *arguments: str) -> Iterator[Server]:
    with tempfile.NamedTemporaryFile(dir=folder.parent) as file:
        process = start_quire(
            ["serve", "--no-open", *arguments],
            cwd=folder,
            env=dict(os.environ),
            stdout=file.fileno(),
            stderr=file.fileno(),
        )
        try:
            one = Server(folder, process, Path(file.name))
            wait_until(lambda: "Ctrl-C ends" in one.said or process.poll() is not None, lambda: one.said)
            yield one
        finally:
            process.kill()
            process.wait()
