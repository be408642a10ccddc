"""The probes of a worker: `/live` while its loop turns, `/ready` while it is fit, and its metrics."""

from __future__ import annotations

import signal
import socket
from http.client import HTTPConnection

import pytest
from tests.cluster.town import Town, free_port, marks_pipeline, until

from quire.engine.records import Status
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import Workspace


def ask(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    client = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        client.request("GET", path, headers={"Host": host})
        answer = client.getresponse()
        return answer.status, answer.read().decode()
    finally:
        client.close()


async def test_a_worker_serves_its_metrics_and_probes(town: Town) -> None:
    port = free_port()
    worker = town.worker("--metrics", f"127.0.0.1:{port}", "--log", "json")
    town.drives(worker)
    cluster = await town.cluster()
    run = await town.create(marks_pipeline(3, 0.0))
    await cluster.look(run)
    await town.reach([run], Status.COMPLETED)
    status, text = ask(port, "/metrics?x=1")
    assert status == 200
    assert 'quire_tool_call_seconds_count{state="ok"} 3\n' in text
    assert 'quire_runs{status="completed"} 1\n' in text
    assert "quire_store_up 1\n" in text
    assert "/work/" not in text, "documents are named from the workspace on"
    assert ask(port, "/live") == (200, "fit \n")
    assert ask(port, "/ready") == (200, "fit \n")
    assert ask(port, "/")[0] == 404
    assert [ask(port, "/metrics", host)[0] for host in ("localhost", "[::1]:80", "rebound.example.org", "")] == [
        200,
        200,
        421,
        421,
    ]
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"nothing\r\n\r\n")
        assert client.recv(100) == b""


def test_a_worker_that_is_unfit_is_alive_and_not_ready(town: Town) -> None:
    second, port = town.second_workspace(), free_port()
    worker = town.worker("--metrics", f":{port}", folder=second)
    town.drives(worker)
    assert ask(port, "/ready") == (200, "fit \n")
    changed = (second / "counted.py").read_text()
    (second / "counted.py").write_text(f"{changed}\n# A comment.\n")
    until(lambda: "unfit: " in worker.said(), "the worker does not notice")
    status, reason = ask(port, "/ready")
    assert status == 503 and reason.startswith("unfit ") and "not confirmed" in reason
    assert ask(port, "/live")[0] == ask(port, "/metrics")[0] == 200
    confirm(load_settings(Workspace(second), town.environ))
    until(lambda: worker.said().count("driving runs") == 2, "the worker does not come back")
    assert ask(port, "/ready") == (200, "fit \n")


def test_a_worker_without_temporal_is_not_ready(town: Town) -> None:
    port = free_port()
    worker = town.worker("--metrics", str(port), "--temporal", "127.0.0.1:1")
    until(lambda: "trying again" in worker.said(), "the worker does not try")
    assert ask(port, "/ready") == (503, "unfit Temporal has not answered yet\n")
    assert ask(port, "/live")[0] == 200
    worker.send(signal.SIGTERM)
    assert worker.process.wait(30) == 0


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("here", "write HOST:PORT"),
        ("127.0.0.1:", "write HOST:PORT"),
        ("127.0.0.1:70000", "write HOST:PORT"),
        ("nowhere:9464", "--metrics nowhere: an address such as 127.0.0.1"),
        ("{taken}", "Address already in use"),
    ],
)
def test_a_place_that_is_wrong_or_taken(town: Town, place: str, problem: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = place.format(taken=f"127.0.0.1:{taken.getsockname()[1]}")
        done = town.quire("worker", "--metrics", place)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert problem in done.stderr
