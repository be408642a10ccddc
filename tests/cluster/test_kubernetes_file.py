"""The manifest for Kubernetes, without one: its command lines, names and numbers fit together and fit Quire, and its
commands run as real processes that pass its probes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.town import TemporalServer, free_port, until
from tests.stores.postgres_server import own_server

from quire.cli.app import group

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "deploy" / "kubernetes.yaml").read_text(encoding="utf-8")
SERVICE, *DEPLOYMENTS = yaml.safe_load(TEXT)["items"]
PODS: dict[str, Any] = {one["metadata"]["name"]: one["spec"]["template"] for one in DEPLOYMENTS}
CONTAINERS: dict[str, Any] = {name: pod["spec"]["containers"][0] for name, pod in PODS.items()}
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
BIN = Path(sys.executable).parent
SECRETS = {"seal_key": "a seal key for the tests, long enough", "serve_token": "a-token-for-the-tests-long-enough"}
COMMENT = [line[2:] for line in TEXT.partition("apiVersion")[0].splitlines()]


@pytest.mark.parametrize("name", CONTAINERS)
def test_quire_takes_the_command_line(name: str) -> None:
    verb, *rest = CONTAINERS[name]["args"]
    command = group.get_command(group.make_context("quire", [verb], resilient_parsing=True), verb)
    assert command is not None and f"quire-{verb}" == name
    command.make_context(verb, [*rest])


@pytest.mark.parametrize(("name", "option"), [("quire-serve", "--port"), ("quire-worker", "--metrics")])
def test_probes_ask_the_port_that_the_command_opens(name: str, option: str) -> None:
    container = CONTAINERS[name]
    (port,) = container["ports"]
    place = container["args"][container["args"].index(option) + 1]
    assert str(port["containerPort"]) == place.rpartition(":")[2]
    assert {container[probe]["httpGet"]["port"] for probe in PROBES} == {port["name"]}
    scraped = PODS[name]["metadata"].get("annotations", {}).get("prometheus.io/port")
    assert scraped == (str(port["containerPort"]) if name == "quire-worker" else None), "a server asks for a token"


def test_the_service_leads_to_the_page() -> None:
    (port,) = SERVICE["spec"]["ports"]
    assert port["targetPort"] == CONTAINERS["quire-serve"]["ports"][0]["name"]
    assert SERVICE["spec"]["selector"] == PODS["quire-serve"]["metadata"]["labels"]
    for one in DEPLOYMENTS:
        assert one["spec"]["selector"]["matchLabels"] == one["spec"]["template"]["metadata"]["labels"]
    assert len({str(pod["metadata"]["labels"]) for pod in PODS.values()}) == len(PODS)


@pytest.mark.parametrize("name", PODS)
def test_no_container_has_more_than_it_needs(name: str) -> None:
    from quire.cluster.worker import GRACE_SECONDS, REPORTING_SECONDS

    pod, container = PODS[name]["spec"], CONTAINERS[name]
    (user,) = re.findall(r"^USER (\d+)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == int(user)
    assert not pod["automountServiceAccountToken"] and not pod["enableServiceLinks"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    # Only folders that are empty at the start can be written to.
    assert all(
        "emptyDir" in volume or mount["readOnly"]
        for volume, mount in zip(pod["volumes"], container["volumeMounts"], strict=True)
    )
    assert pod["terminationGracePeriodSeconds"] > GRACE_SECONDS + REPORTING_SECONDS


def test_each_secret_is_one_that_the_comment_makes() -> None:
    (made,) = re.findall(r"for name in ([\w ]+);", TEXT)
    used = {
        entry["valueFrom"]["secretKeyRef"]["key"]
        for one in CONTAINERS.values()
        for entry in one["env"]
        if "valueFrom" in entry
    }
    items = {item["key"] for pod in PODS.values() for item in pod["spec"]["volumes"][0]["secret"]["items"]}
    assert used | items == set(made.split())
    assert [name for name, one in CONTAINERS.items() if "serve_token" in str(one["env"])] == ["quire-serve"]
    assert not re.search(r"password\s*[:=]\s*\S", TEXT.replace("postgres_password", ""))


class Pods:
    """The containers as processes, each with its command, its environment and its secrets."""

    def __init__(self, folder: Path, store: str, temporal: str) -> None:
        self.folder, self.workspace = folder, folder / "workspace"
        self.started: list[subprocess.Popen[bytes]] = []
        # Kubernetes mounts the files of a secret as links.
        (folder / "data").mkdir()
        (folder / "secrets").mkdir()
        for name, text in SECRETS.items():
            (folder / "data" / name).write_text(text)
        (folder / "secrets" / "seal_key").symlink_to(folder / "data" / "seal_key")
        self.workspace.mkdir()
        settings = "\n".join(line[2:] for line in COMMENT if line.startswith("  ") and ("[" in line or " = " in line))
        tomllib.loads(settings)
        for there, here in (
            ("postgresql://quire@db.example.org/quire", store),
            ("temporal.example.org:7233", temporal),
        ):
            assert settings.count(there) == 1
            settings = settings.replace(there, here)
        (self.workspace / "quire.toml").write_text(settings)

    def start(self, name: str) -> tuple[int, Path]:
        container, home, port = CONTAINERS[name], self.folder / f"home-{name}", free_port()
        home.mkdir()
        environ = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(home)}
        for entry in container["env"]:
            named = entry.get("valueFrom", {}).get("secretKeyRef", {}).get("key", "")
            environ[entry["name"]] = entry.get("value", SECRETS.get(named, ""))
        mount = container["volumeMounts"][0]["mountPath"]
        environ["QUIRE_SEAL_KEY_FILE"] = environ["QUIRE_SEAL_KEY_FILE"].replace(mount, str(self.folder / "secrets"))
        words = (*container["command"], *container["args"])
        command = [re.sub("8377|9464", str(port), word).replace("0.0.0.0", "127.0.0.1") for word in words]
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            self.started.append(
                subprocess.Popen(
                    command, cwd=self.workspace, env=environ, stdout=output, stderr=output, start_new_session=True
                )
            )
        return port, log


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Pods]:
    temporal, database = TemporalServer(tmp_path / "temporal"), own_server()
    made = Pods(tmp_path, database.url(schema=database.new_schema()), temporal.address)
    yield made
    for process in made.started:
        process.kill()
        process.wait()
    temporal.stop()
    database.remove()


def asked(port: int, probe: dict[str, Any], **headers: str) -> int:
    """The status with which a container answers a probe."""
    get = probe["httpGet"]
    named = {one["name"]: one["value"].replace("8377", str(port)) for one in get.get("httpHeaders", [])}
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", get["path"], headers=named | headers)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_the_containers_start_and_pass_their_probes(pods: Pods) -> None:
    (port, log), container = pods.start("quire-serve"), CONTAINERS["quire-serve"]
    for probe in [container[name] for name in PROBES]:
        until(lambda probe=probe: asked(port, probe) == 200, f"{probe}: {log.read_text()}")  # type: ignore[misc]
    assert asked(port, container["livenessProbe"], Host="10.0.0.7:8377") == 421, "the header is needed"
    (port, log), container = pods.start("quire-worker"), CONTAINERS["quire-worker"]
    until(lambda: "driving runs" in log.read_text(), "the worker does not start")
    assert [asked(port, container[name]) for name in PROBES] == [200, 200, 200]
