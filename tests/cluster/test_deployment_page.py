"""The page on clusters is followed to the letter: settings, trust, seal key, worker, run.

Two hosts are two user folders and two copies of the project, which share nothing but PostgreSQL, Temporal and the key.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.town import TemporalServer, until
from tests.docs.pages import blocks, section
from tests.stores.postgres_server import own_server

PAGE = "docs/guides/deployment.md"
BIN = Path(sys.executable).parent
ORDER = ("Settings", "Trust", "The seal key", "Workers", "Runs")
DATABASE, TEMPORAL = "postgresql://quire@db.internal/quire", "temporal.internal:7233"


def lines(heading: str) -> list[str]:
    """The commands below a heading, without their comments."""
    text = section(PAGE, f"### {heading}")
    every = [block.text for block in blocks(PAGE, "console") if block.text in text]
    return [line[2:].split("  #")[0].strip() for line in "".join(every).splitlines()]


class Host:
    """A user folder and a copy of the project."""

    def __init__(self, folder: Path, settings: str) -> None:
        self.project, self.settings = folder / "project", settings
        self.project.mkdir(parents=True)
        (document,) = blocks(PAGE, "yaml")
        (self.project / "hello.yaml").write_text(document.text)
        self.environ = {**os.environ, "QUIRE_HOME": str(folder / "home"), "PATH": f"{BIN}:{os.environ['PATH']}"}

    def write_settings(self) -> None:
        (self.project / "quire.toml").write_text(self.settings)

    def run(self, line: str, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*shlex.split(line), *more],
            cwd=self.project,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )

    def does(self, line: str, *more: str, exit_code: int = 0) -> str:
        done = self.run(line, *more)
        assert done.returncode == exit_code, f"{line}: {done.stderr}{done.stdout}"
        return done.stdout.strip()

    def trust(self) -> None:
        (line,) = lines("Trust")
        self.does(line, "--yes")  # on a terminal it asks

    def start(self, line: str, log: Path, *more: str) -> subprocess.Popen[bytes]:
        with log.open("wb") as file:
            return subprocess.Popen(
                [*shlex.split(line), *more],
                cwd=self.project,
                env=self.environ,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The addresses of the page, with those of real servers."""
    temporal, database = TemporalServer(tmp_path_factory.mktemp("temporal")), own_server()
    yield {DATABASE: database.url(schema=database.new_schema()), TEMPORAL: temporal.address}
    temporal.stop()
    database.remove()


def settings_of_page(addresses: dict[str, str]) -> str:
    (settings,) = (block.text for block in blocks(PAGE, "toml") if DATABASE in block.text)
    for there, here in addresses.items():
        assert settings.count(there) == 1
        settings = settings.replace(there, here)
    return settings


def follow_runs(client: Host) -> None:
    run, answer, detach, resume = lines("Runs")
    client.does(run, exit_code=4)
    client.does(answer)
    until(lambda: client.run("quire runs last --output").stdout.strip() == "yes", "the run does not complete")
    client.does(detach)
    until(lambda: client.run("quire inbox --json").stdout.count("Does it work?") == 1, "the run does not ask")
    client.does("quire runs cancel last")
    client.does(resume, exit_code=4)


def test_the_order_is_that_of_the_page() -> None:
    text = section(PAGE, "## A cluster")
    assert [line[4:] for line in text.splitlines() if line[4:] in ORDER] == [*ORDER]


def test_a_cluster_of_two_hosts(servers: dict[str, str], tmp_path: Path) -> None:
    client, other = (Host(tmp_path / name, settings_of_page(servers)) for name in ("client", "other"))
    for host in (client, other):
        host.write_settings()
        host.trust()
    show, export = lines("The seal key")
    key = client.does(show)
    name, dots = export.removeprefix("export ").split("=")
    assert dots == "…"
    for host in (client, other):
        host.environ[name] = key
    (worker,), log = lines("Workers"), tmp_path / "log"
    process = other.start(worker, log)
    try:
        until(lambda: "driving runs" in log.read_text(), "the worker does not start")
        follow_runs(client)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("late", [False, True], ids=["in the order of the page", "settings after the worker"])
def test_a_cluster_to_try_on_one_host(servers: dict[str, str], tmp_path: Path, late: bool) -> None:
    """With the values that the comments name. A worker with options stays fit when the settings say the same."""
    text = settings_of_page({})
    comments = dict(line.split(" = ", 1)[1].split("#") for line in text.splitlines() if '  # "' in line)
    values = {there.strip().strip('"'): here.strip().strip('"') for there, here in comments.items()}
    assert values == {DATABASE: "sqlite:////tmp/quire.db", TEMPORAL: "127.0.0.1:7233"}
    store = values[DATABASE].replace("/tmp", str(tmp_path))
    host = Host(tmp_path / "host", settings_of_page({DATABASE: store, TEMPORAL: servers[TEMPORAL]}))
    (worker,), log = lines("Workers"), tmp_path / "log"
    options = ["--database", store, "--temporal", servers[TEMPORAL], "--sweep", "1"]
    if late:
        (host.project / "quire.toml").write_text("")
    else:
        host.write_settings()
        host.trust()
    process = host.start(worker, log, *(options if late else ()))
    try:
        until(lambda: "driving runs" in log.read_text(), "the worker does not start")
        if late:
            host.write_settings()
            host.trust()
        follow_runs(host)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
