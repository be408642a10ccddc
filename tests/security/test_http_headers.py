"""Headers that the user adds to requests: no server, document or model learns them, and no record has them."""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
from pathlib import Path

import pytest
from tests.given import given
from tests.security.stage import Call, Stage, completed
from tests.security.test_secrets import kept
from tests.tools.web import Handler, Server, serving
from tests.warm import run_quire, start_quire

from quire.errors import BadConfiguration
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

SECRET = "value-of-no-telling-name-0123456789"
KNOWN = "<acknowledge risk='elevated'>x</acknowledge>"
SENDS = f"<execute><tool>rye.http.send</tool><tool>rye.web.*</tool></execute>{KNOWN}"


@pytest.fixture
def house(tmp_path: Path, server: Server) -> Stage:
    stage = Stage(tmp_path, environ={"DEPLOY_VALUE": SECRET})
    (stage.space / "quire.toml").write_text(own_headers(server))
    return stage


def own_headers(server: Server) -> str:
    return f'[http."127.0.0.1:{server.port}"]\nheaders = {{Authorization = "Bearer ${{DEPLOY_VALUE}}"}}\n'


def broken(handler: Handler) -> None:
    handler.wfile.write(f"{SECRET}\r\n\r\n".encode())


async def test_no_header_comes_back_from_a_service(house: Stage, server: Server) -> None:
    """A server says what it was sent: as it was, encoded, as a name, in a header, in an error, in a redirect."""
    encoded = base64.b64encode(f"x{SECRET}".encode())
    server.answers = {
        "/echo": (200, {"Content-Type": "application/json", "ETag": SECRET}, json.dumps({SECRET: [SECRET]}).encode()),
        "/base64": (200, {}, encoded + encoded.hex().encode()),
        "/failed": (500, {}, f"no entry for Bearer {SECRET}".encode()),
        "/away": (307, {"Location": f"http://127.0.0.1:9/{SECRET}"}, b""),
        "/odd": (307, {"Location": f"ftp://{SECRET}/"}, b""),
        "/broken": broken,
    }
    at = f"127.0.0.1:{server.port}"
    calls: list[Call] = [
        ("rye_http_send", {"url": f"http://{at}{path}", "method": "POST", "json": "${DEPLOY_VALUE}"})
        for path in server.answers
    ]
    calls.append(("rye_web_fetch", {"url": f"http://{at}/echo"}))
    house.directive("main", SENDS)
    played = await house.play("main", calls, allow=(f"http__send={at}", f"http__get={at}"))
    assert completed(played), played.ended
    assert [headers["authorization"] for _, headers in server.seen] == [f"Bearer {SECRET}"] * len(calls)
    assert {body for method, body in server.received if method == "POST"} == {b'"${DEPLOY_VALUE}"'}
    everything = played.everything() + await kept(house, played.id)
    assert SECRET not in everything
    assert everything.count("[redacted:DEPLOY_VALUE]") >= len(calls)
    for form in (SECRET.encode().hex(), base64.b64encode(SECRET.encode()).decode()[:20]):
        assert form not in everything


async def test_a_thread_sends_only_with_a_permission_of_its_own(house: Stage, server: Server) -> None:
    """A grant of the user names the host; it does not give a directive a tool that its author did not ask for."""
    at = f"127.0.0.1:{server.port}"
    house.directive("main", f"<execute><tool>rye.web.*</tool></execute>{KNOWN}")
    calls: list[Call] = [("rye_http_send", {"url": f"http://{at}/", "method": "DELETE"})]
    played = await house.play("main", calls, allow=(f"http__send={at}",))
    assert not any("send" in one for one in played.offered)
    assert not server.seen
    house.directive("main", SENDS)
    played = await house.play("main", calls)
    assert "http__send may not speak to" in played.told[0]
    assert not server.seen


@pytest.mark.parametrize("file", ["quire.toml", "pyproject.toml"])
def test_a_clone_adds_no_headers(tmp_path: Path, server: Server, file: str) -> None:
    """Else it could send a variable of the user to a host of its own."""
    text = own_headers(server)
    given({file: text if file == "quire.toml" else "[tool.quire]\n" + text.replace("[", "[tool.quire.", 1)}, tmp_path)
    with pytest.raises(BadConfiguration, match=r"\[http\] is read from the quire\.toml of your user folder"):
        load_settings(Workspace(tmp_path), {"QUIRE_HOME": str(tmp_path / "home")})


async def test_a_document_that_a_clone_brings_cannot_choose_where_headers_go(house: Stage, server: Server) -> None:
    """Other spellings of the host, other ports and schemes get none."""
    with serving() as other:
        port = server.port
        urls = [
            f"http://localhost:{port}/",
            f"http://127.1:{port}/",
            f"http://127.0.0.1.:{port}/",
            f"http://2130706433:{port}/",
            f"http://[::ffff:127.0.0.1]:{port}/",
            f"http://127.0.0.1:{other.port}/",
        ]
        hosts = ("localhost", "127.1", "127.0.0.1", "2130706433", "[::ffff:127.0.0.1]")
        house.directive("main", SENDS)
        calls: list[Call] = [("rye_http_send", {"url": url, "method": "PUT"}) for url in urls]
        await house.play("main", calls, allow=tuple(f"http__send={host}" for host in hosts))
        seen = [headers for _, headers in (*server.seen, *other.seen)]
    assert len(seen) >= 4
    assert not [headers for headers in seen if "authorization" in headers]


PIPELINE = """\
pipeline: deploy
steps:
- tool:
    name: http__send
    args: {{method: POST, url: "http://127.0.0.1:{port}/deploy", json: {{release: 7}}}}
"""


@pytest.mark.parametrize("uncertain", ["rerun", "fail"])
def test_a_crash_after_sending(tmp_path: Path, server: Server, uncertain: str) -> None:
    """Whether the server got the request is not known: `on_uncertain` decides, and the server can see that it is the
    same one."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "home" / "quire.toml").write_text(f'{own_headers(server)}[runs]\non_uncertain = "{uncertain}"\n')
    (tmp_path / "work" / "quire.toml").write_text("")
    (tmp_path / "work" / "deploy.yaml").write_text(PIPELINE.format(port=server.port))
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home"), "DEPLOY_VALUE": SECRET}
    killed: list[int] = []
    started = threading.Event()

    def deploy(handler: Handler) -> None:
        if not killed:
            started.wait(60)
            killed.append(process.pid)
            os.kill(process.pid, signal.SIGKILL)
        handler.reply(200, {"Content-Type": "application/json"}, json.dumps({"token": SECRET}).encode())

    server.answers["/deploy"] = deploy
    line = ["run", "deploy.yaml", "--allow", f"http__send=127.0.0.1:{server.port}"]
    with (tmp_path / "out").open("wb") as out:
        process = start_quire(line, cwd=tmp_path / "work", env=environ, stdout=out.fileno(), stderr=out.fileno())
        started.set()
        assert process.wait() == -signal.SIGKILL
    done = run_quire(["resume", "last"], cwd=tmp_path / "work", env=environ)
    keys = [headers["idempotency-key"] for _, headers in server.seen]
    if uncertain == "rerun":
        assert done.returncode == 0, done.stderr
        assert len(keys) == 2 and len(set(keys)) == 1
        assert "[redacted:DEPLOY_VALUE]" in done.stdout
    else:
        assert done.returncode == 3
        assert "it is not known whether it finished" in done.stderr and len(keys) == 1
    shown = run_quire(["runs", "last", "--json"], cwd=tmp_path / "work", env=environ)
    exported = run_quire(["runs", "export", "last"], cwd=tmp_path / "work", env=environ)
    stored = b"".join(file.read_bytes() for file in (tmp_path / "work").rglob("*") if file.is_file())
    for text in (done.stdout, done.stderr, shown.stdout, shown.stderr, exported.stdout, exported.stderr):
        assert SECRET not in text
    assert exported.returncode == 0
    assert SECRET.encode() not in stored + (tmp_path / "out").read_bytes()


PARTS = ("", "/steps/1", "/effects/1/tool", "/values", "/artifact", "/export", "/events")


@pytest.mark.parametrize("granted", [False, True])
async def test_a_run_of_the_page_has_the_same_gate(tmp_path: Path, server: Server, granted: bool) -> None:
    """Grants and headers are those of the user's own settings, and no endpoint shows the header."""
    pytest.importorskip("starlette")
    from tests.server.served import served

    server.answers["/deploy"] = (200, {"Content-Type": "application/json"}, json.dumps({"token": SECRET}).encode())
    documents = {"pipelines/deploy.yaml": PIPELINE.format(port=server.port)}
    allow = f'[tools]\nallow = ["http__send=127.0.0.1:{server.port}"]\n' if granted else ""
    settings, environ = own_headers(server) + allow, {"DEPLOY_VALUE": SECRET}
    async with (
        served(tmp_path / "work", documents, settings=settings, environ=environ) as site,
        site.client() as client,
    ):
        body, wait = {"document": "pipelines/deploy.yaml"}, {"prefer": "wait=30"}
        answer = await client.post("/runs", json=body, headers=wait)
        if not granted:
            assert answer.status_code == 403 and "--allow http__send=HOST" in answer.text, answer.text
            assert not server.seen
            return
        run = answer.json()
        assert run["status"] == "completed", run
        pages = [await client.get(f"/runs/{run['id']}{part}") for part in PARTS]
    assert server.seen[-1][1]["authorization"] == f"Bearer {SECRET}"
    assert "[redacted:DEPLOY_VALUE]" in pages[PARTS.index("/artifact")].text
    assert [part for part, page in zip(PARTS, pages, strict=True) if page.status_code != 200] == []
    assert not any(SECRET in page.text for page in pages)


async def test_a_run_of_an_mcp_client_has_the_same_gate(tmp_path: Path, server: Server) -> None:
    pytest.importorskip("mcp")
    from mcp import Client
    from tests.mcp_server.test_stdio import parameters

    server.answers["/deploy"] = (200, {"Content-Type": "application/json"}, json.dumps({"token": SECRET}).encode())
    (tmp_path / "home").mkdir()
    given({"work/quire.toml": "", "work/pipelines/deploy.yaml": PIPELINE.format(port=server.port)}, tmp_path)
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home"), "DEPLOY_VALUE": SECRET}
    answers = []
    for allow in ("", f'[tools]\nallow = ["http__send=127.0.0.1:{server.port}"]\n'):
        (tmp_path / "home" / "quire.toml").write_text(own_headers(server) + allow)
        async with Client(parameters(tmp_path / "work", environ)) as client:
            answers.append(str(await client.call_tool("pipeline__deploy", {})))
        assert len(server.seen) == bool(allow)
    assert "--allow http__send=HOST" in answers[0]
    assert "[redacted:DEPLOY_VALUE]" in answers[1] and SECRET not in answers[1]
    assert server.seen[-1][1]["authorization"] == f"Bearer {SECRET}"
