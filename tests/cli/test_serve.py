"""`quire serve` as a process: its options, its address and token, how it ends, and what the next server continues."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx2
import pytest
from click.testing import Result
from tests.processes import wait_until
from tests.server.serve_process import server
from tests.stores.postgres_server import shared_server
from tests.warm import run_quire

from quire.cli.serve import serve_command

Invoke = Callable[..., Result]

SLOW = """# Slow

## STEP 1: First

Write one line.

## STEP 2: Second

Write another line.

## STEP 3: Decide

@elicit(confirm, "Publish?")
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "x"], "invalid value for '--port'"),
        (["--port", "70000"], "70000"),
        (["--host", "0.0.0.0"], "--host 0.0.0.0 is reached by other names: say which, with --allow-host NAME"),
        (["--host", "192.0.2.1"], "--allow-host NAME"),
        (["--host", "nonsense"], "an address such as 127.0.0.1"),
        (["--allow-host", ""], "--allow-host is empty"),
        (["--allow-host", "http://x/"], "write a name such as quire.example.org"),
        (["--base-path", "quire"], "write a path such as /quire"),
        (["--base-path", "/a/../b"], "write a path such as /quire"),
        (["--proxy", "example.org/quire"], "write the address of the page, such as https://example.org/quire"),
        (["--proxy", "https://a@example.org/"], "write the address of the page"),
        (["--proxy", "https://example.org/a", "--base-path", "/b"], "differ"),
        (["--uds", "/nonexistent/x.sock"], "No such file or directory"),
        (["--uds", "x.sock", "--port", "1"], "--uds and --port exclude each other"),
        (["--uds", ""], "--uds is empty"),
        (["--allow", "shel"], "did you mean shell?"),
        (["--allow", ""], "--allow is empty"),
        (["--url"], "no server of this workspace runs"),
        (["--budget", "-1"], "--budget"),
        (["--model", ""], "--model is empty"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_wrong_options_are_one_line_and_exit_2(workspace: Path, arguments: list[str], said: str) -> None:
    done = run_quire(["serve", "--no-open", *arguments], cwd=workspace, env=dict(os.environ))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_token_of_the_environment_that_is_too_short(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_SERVE_TOKEN", "short")
    result = invoke(serve_command, "--no-open", "--port", "0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "at least 16 characters" in result.stderr


def test_a_workspace_that_nobody_confirmed_is_not_served(invoke: Invoke, workspace: Path) -> None:
    (workspace / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "some-program"}}}')
    result = invoke(serve_command, "--no-open")
    assert (result.exit_code, result.stdout) == (6, "")
    assert "quire trust workspace" in result.stderr


def test_the_address_the_token_and_the_end(workspace: Path) -> None:
    with server(workspace, "--port", "0", "--debug") as one, one.client() as client:
        assert client.get("/").json()["workspace"] == "work"
        token = client.headers["authorization"].removeprefix("Bearer ")
        kept = [path for path in (workspace.parent / "home" / "serve").iterdir() if path.is_file()]
        assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
        client.get("/runs", params={"limit": "7"})
        client.get("/runs", headers={"authorization": "Bearer wrong-token"})
        port = one.url.rpartition(":")[2].strip("/")
        taken = run_quire(["serve", "--port", port], cwd=workspace, env=dict(os.environ))
        assert taken.returncode == 2 and "Address already in use" in taken.stderr
        # A second server of the workspace ends without taking the address of the first along.
        with server(workspace, "--port", "0") as second:
            assert second.url != one.url
            assert second.end(signal.SIGTERM) == 0
        assert one.end(signal.SIGINT) == 0
        assert "GET /api/v1/runs 200" in one.said and "GET /api/v1/runs 401" in one.said
        assert token not in one.said and "limit" not in one.said and "wrong-token" not in one.said
        assert "Traceback" not in one.said
    gone = run_quire(["serve", "--url"], cwd=workspace, env=dict(os.environ))
    assert (gone.returncode, gone.stdout) == (2, "")


@pytest.mark.parametrize("option", [[], ["--new-token"]])
def test_each_start_makes_a_new_token(workspace: Path, option: list[str]) -> None:
    """security N1: the token of a server ends with it."""
    with server(workspace, "--port", "0") as one, one.client() as client:
        old = client.headers["authorization"]
        one.end(signal.SIGTERM)
    with server(workspace, "--port", "0", *option) as one, one.client() as client:
        assert client.headers["authorization"] != old
        assert client.get("/").status_code == 200
        assert client.get("/", headers={"authorization": old}).status_code == 401
        one.end(signal.SIGTERM)
    assert not [path for path in (workspace.parent / "home" / "serve").iterdir() if path.suffix in (".json", ".html")]


def test_a_token_of_the_environment_is_not_printed(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """security N1: a fixed token is for a server whose place no other account can take."""
    headers = {"authorization": "Bearer a-token-of-the-user-0123"}
    monkeypatch.setenv("QUIRE_SERVE_TOKEN", "a-token-of-the-user-0123")
    refused = run_quire(["serve", "--no-open", "--port", "0"], cwd=workspace, env=dict(os.environ))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "QUIRE_SERVE_TOKEN needs --uds or --proxy" in refused.stderr
    path = workspace.parent / "t.sock"
    with server(workspace, "--uds", str(path)) as one:
        with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path))) as client:
            assert client.get(f"{one.url}api/v1/", headers=headers).status_code == 200
        monkeypatch.delenv("QUIRE_SERVE_TOKEN")
        other = run_quire(["serve", "--url"], cwd=workspace, env=dict(os.environ))
        assert other.returncode == 2 and "has another token" in other.stderr
        assert "a-token-of-the-user" not in one.said + other.stderr


def test_a_unix_socket(workspace: Path) -> None:
    path = workspace.parent / "q.sock"
    with server(workspace, "--uds", str(path)) as one:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with one.client(transport=httpx2.HTTPTransport(uds=str(path))) as client:
            assert client.get("/").status_code == 200
        second = run_quire(["serve", "--uds", str(path)], cwd=workspace, env=dict(os.environ))
        assert second.returncode == 2 and "another server listens there" in second.stderr
        one.process.kill()
        one.process.wait()
    with server(workspace, "--uds", str(path)) as one:
        assert one.end(signal.SIGTERM) == 0
    assert not path.exists()


def test_a_proxy_is_believed_about_the_host_only_if_it_was_named(workspace: Path) -> None:
    forwarded = {"x-forwarded-host": "example.org"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with server(workspace, "--port", str(port), "--proxy", "https://example.org/quire") as one:
        assert one.url == "https://example.org/quire/"
        frame = httpx2.get(f"http://127.0.0.1:{port}/quire/frames/html", headers=forwarded)
        assert "example.org/quire/static/" in frame.headers["content-security-policy"]
        other = httpx2.get(f"http://127.0.0.1:{port}/", headers={"x-forwarded-host": "evil.example"})
        assert other.status_code == 421
    with server(workspace, "--port", "0") as one:
        frame = httpx2.get(f"{one.url}frames/html", headers=forwarded)
        assert "example.org" not in frame.headers["content-security-policy"]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, workspace: Path) -> None:
    """A store of each kind, named in the user's own settings."""
    if request.param == "postgresql":
        database = shared_server()
        home = workspace.parent / "home"
        home.mkdir(exist_ok=True)
        (home / "quire.toml").write_text(f'[store]\nurl = "{database.url(schema=database.new_schema())}"\n')


def _slow(workspace: Path, *delays: float) -> str:
    (workspace / "slow.playbook.md").write_text(SLOW)
    (workspace / "s.json").write_text(
        json.dumps([{"reply": f"line {at}", "delay_ms": ms} for at, ms in enumerate(delays)])
    )
    return f"script:{workspace / 's.json'}"


def _status(client: httpx2.Client, run: str) -> str:
    return str(client.get(f"/runs/{run}").json()["status"])


def test_the_model_of_the_server_is_that_of_a_run_that_is_named_without_one(workspace: Path) -> None:
    """real-work M7."""
    model = _slow(workspace, 0, 0)
    with server(workspace, "--port", "0", "--model", model, "--budget", "1") as one, one.client() as client:
        answer = client.post("/runs", json={"document": "slow"}, headers={"prefer": "wait=30"}).json()
        assert answer["status"] == "awaiting_input", answer


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_next_server_goes_on_with_what_the_last_one_left(workspace: Path, end: signal.Signals) -> None:
    with server(workspace, "--port", "0") as one, one.client() as client:
        body = {"document": "slow.playbook.md", "model": _slow(workspace, 0, 0), "breakpoints": ["2"]}
        paused = client.post("/runs", json=body, headers={"prefer": "wait=30"}).json()["id"]
        body = {"document": "slow.playbook.md", "model": _slow(workspace, 500, 0)}
        run = client.post("/runs", json=body).json()["id"]
        one.end(end)
        assert "Traceback" not in one.said
    listed = run_quire(["runs", run, "--json"], cwd=workspace, env=dict(os.environ))
    assert json.loads(listed.stdout)["status"] in ("paused", "interrupted")
    with server(workspace, "--port", "0") as two, two.client() as client:
        wait_until(lambda: _status(client, run) == "awaiting_input")
        # A breakpoint of the user stays.
        assert _status(client, paused) == "paused"
        assert two.end(signal.SIGINT) == 0


def test_a_client_that_waits_for_a_run_does_not_hold_up_the_end(workspace: Path) -> None:
    model = _slow(workspace, 2_000, 0)
    with server(workspace, "--port", "0", "--debug") as one, one.client() as client, ThreadPoolExecutor(1) as other:
        body = {"document": "slow.playbook.md", "model": model}
        waiting = other.submit(client.post, "/runs", json=body, headers={"prefer": "wait=60"})
        with one.client() as second:
            wait_until(lambda: second.get("/runs").json()["items"])
        assert one.end(signal.SIGTERM) == 0
        assert waiting.result(30).status_code == 201
        assert "Traceback" not in one.said


def test_a_signal_that_comes_twice_is_one_and_a_later_one_ends_at_once(workspace: Path) -> None:
    with server(workspace, "--port", "0") as one:
        one.process.send_signal(signal.SIGTERM)
        assert one.end(signal.SIGTERM) == 0
        assert "Traceback" not in one.said
    model = _slow(workspace, 300_000, 0)
    with server(workspace, "--port", "0") as one, one.client() as client:
        client.post("/runs", json={"document": "slow.playbook.md", "model": model})
        began = time.monotonic()
        one.process.send_signal(signal.SIGINT)
        Event().wait(0.6)
        one.end(signal.SIGINT)
        assert time.monotonic() - began < 120  # the reply would take 300
        assert "Traceback" not in one.said


def test_a_run_that_is_to_go_on_continues_in_a_process_of_its_own(workspace: Path) -> None:
    model = _slow(workspace, 300, 0, 0)
    with server(workspace, "--port", "0") as one, one.client() as client:
        body = {"document": "slow.playbook.md", "model": model, "goes_on": True}
        run = client.post("/runs", json=body).json()["id"]
        assert one.end(signal.SIGTERM) == 0

    def status() -> str:
        shown = run_quire(["runs", run, "--json"], cwd=workspace, env=dict(os.environ))
        return str(json.loads(shown.stdout)["status"])

    wait_until(lambda: status() == "awaiting_input", status)


@pytest.mark.usefixtures("store")
def test_terminals_and_the_server_share_a_store(workspace: Path) -> None:
    model = _slow(workspace, 0, 0, 0)
    env = dict(os.environ)
    with server(workspace, "--port", "0") as one, one.client() as client:
        started = run_quire(["run", "slow.playbook.md", "--model", model, "--json"], cwd=workspace, env=env)
        assert started.returncode == 4, started.stderr
        question = client.get("/questions").json()["items"][0]
        run = question["run"]
        with client.stream("GET", "/events", params={"run": f"{run}:0"}) as stream:
            lines = stream.iter_lines()
            _until(lines, "event: hello")
            answered = run_quire(["answer", run, "yes"], cwd=workspace, env=env)
            assert answered.returncode == 0, answered.stderr
            _until(lines, "event: run_completed")
        assert _status(client, run) == "completed"
        assert one.end(signal.SIGINT) == 0


@pytest.mark.parametrize("fence", [100_000, 4_000])
def test_a_slow_text_holds_up_no_other_request_and_not_the_end(workspace: Path, fence: int) -> None:
    """security N5: a question with Java that takes quadratic time to colour."""
    java = "```java\n" + "a\n" * (fence // 2) + "```\n\n"
    text = f"Really *delete*?\n\n{java * max(1, 16_000 // fence)}"
    (workspace / "ask.yaml").write_text(
        "pipeline: ask\nsteps:\n  - tool: {name: ask, args: {prompt: !expr ctx.text, type: confirm}}\n"
    )
    with server(workspace, "--port", "0") as one, one.client() as client, ThreadPoolExecutor(2) as other:
        started = client.post(
            "/runs", json={"document": "ask.yaml", "inputs": {"text": text}}, headers={"prefer": "wait=30"}
        )
        assert started.json()["status"] == "awaiting_input", started.text
        slow = [other.submit(client.get, path) for path in ("/questions", "/now")]
        times = []
        while not all(one.done() for one in slow):
            began = time.monotonic()
            assert client.get("/").status_code == 200
            times.append(time.monotonic() - began)
        assert max(times) < 0.5, times
        assert slow[0].result().json()["items"][0]["prompt"]
        assert slow[0].result().elapsed.total_seconds() < 8
        run, path = (slow[0].result().json()["items"][0][name] for name in ("run", "path"))
        other.submit(client.get, f"/questions/{run}/{path}")
        began = time.monotonic()
        assert one.end(signal.SIGINT) == 0
        assert time.monotonic() - began < 5


def _until(lines: Iterator[str], wanted: str) -> None:
    deadline = time.monotonic() + 30
    for line in lines:
        if line == wanted:
            return
        assert time.monotonic() < deadline
    raise AssertionError(f"the stream ended before {wanted}")
