"""Requests that do not get in, for every endpoint of the route table, and the headers of every response."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import httpx2
import pytest
import pytest_asyncio
from tests.server.served import TOKEN, Served, served

from quire.loopback import listening
from quire.runs.pins import PinnedState
from quire.server import app as app_module
from quire.server import guard, serving
from quire.server.app import application
from quire.server.assets import page_headers
from quire.server.endpoints import MAX_BODY, Endpoint
from quire.server.routes import ENDPOINTS
from quire.server.site import SiteOptions

pytestmark = pytest.mark.asyncio(loop_scope="session")

BEARER = {"authorization": f"Bearer {TOKEN}"}
ASKS = '# Ask\n\n## STEP 1: Decide\n\n@elicit(confirm, "Go on?")\n'


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("guarded") / "team"
    async with served(folder, {"ask.playbook.md": ASKS}) as one:
        yield one


def _inside(server: Served) -> httpx2.AsyncClient:
    """A client of the same application without a socket, for the many requests of a matrix."""
    hosts = [server.place, f"localhost:{server.place.rpartition(':')[2]}"]
    app = application(server.site, token=TOKEN, hosts=hosts, origins=[f"http://{host}" for host in hosts])
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=f"http://{server.place}")


def _path(endpoint: Endpoint) -> str:
    return "/api/v1" + re.sub(r"\{\w+\}", "x", endpoint.template)


REFUSED: list[tuple[str, dict[str, str], int, str]] = [
    ("no token", {"authorization": ""}, 401, "wrong-token"),
    ("a wrong token", {"authorization": "Bearer wrong"}, 401, "wrong-token"),
    ("another scheme", {"authorization": f"Basic {TOKEN}"}, 401, "wrong-token"),
    ("a token that is not ASCII", {"authorization": "Bearer \xe9\xff"}, 401, "wrong-token"),
    (
        "the token as a cookie",
        {"authorization": "", "cookie": f"token={TOKEN}; quire-token={TOKEN}"},
        401,
        "wrong-token",
    ),
    ("another host", {"host": "evil.example"}, 421, "wrong-host"),
    ("the host without its port", {"host": "127.0.0.1"}, 421, "wrong-host"),
    ("another port", {"host": "127.0.0.1:1"}, 421, "wrong-host"),
    ("a host that ends like ours", {"host": "evil.localhost"}, 421, "wrong-host"),
    ("no host", {"host": ""}, 421, "wrong-host"),
    ("another origin", {"origin": "https://evil.example"}, 403, "foreign-origin"),
    ("the origin of a sandbox", {"origin": "null"}, 403, "foreign-origin"),
    ("the origin of another port", {"origin": "http://127.0.0.1:1"}, 403, "foreign-origin"),
    ("another site", {"sec-fetch-site": "cross-site"}, 403, "foreign-origin"),
]


@pytest.mark.parametrize(("headers", "status", "code"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_no_endpoint_answers_a_request_that_may_not_get_in(
    server: Served, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], status: int, code: str
) -> None:
    monkeypatch.setattr(guard, "DELAY_SECONDS", 0.0)
    asked = {**BEARER, "content-type": "application/json", **headers}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in asked.items()]
    async with _inside(server) as client:
        for endpoint in ENDPOINTS:
            answer = await client.request(
                endpoint.method, _path(endpoint), params={"token": TOKEN}, headers=raw, content=b"{}"
            )
            assert (answer.status_code, answer.json()["code"]) == (status, code), endpoint.name
            assert answer.headers["content-type"] == "application/problem+json"
            assert _is_closed(answer)
            if status == 401:
                assert answer.headers["www-authenticate"] == "Bearer"


CHANGING = [endpoint for endpoint in ENDPOINTS if endpoint.method not in guard.SAFE]


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_a_request_that_changes_something_is_json(server: Served, media: str) -> None:
    headers = {**BEARER, **({"content-type": media} if media else {})}
    async with _inside(server) as client:
        for endpoint in CHANGING:
            answer = await client.request(endpoint.method, _path(endpoint), content=b"{}", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (415, "wrong-media-type"), endpoint.name


async def test_two_hosts_or_two_tokens_are_not_taken_apart(server: Served) -> None:
    async with _inside(server) as client:
        for headers, status in (
            ([("host", server.place), ("host", "evil.example"), *BEARER.items()], 421),
            ([("host", server.place), *BEARER.items(), ("authorization", "Bearer x")], 401),
            ([("host", server.place), *BEARER.items()], 200),
        ):
            assert (await client.get("/api/v1/", headers=headers)).status_code == status


async def test_the_token_is_compared_in_constant_time_and_as_bytes(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[type, type]] = []
    constant_time = hmac.compare_digest

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((type(a), type(b)))
        return constant_time(a, b)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    async with server.client() as client:
        assert (await client.get("/")).status_code == 200
    assert compared == [(bytes, bytes)]


async def test_answers_are_delayed_after_many_wrong_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(guard, "asyncio", SimpleNamespace(sleep=sleep))
    async with (
        served(tmp_path / "team", {}) as one,
        httpx2.AsyncClient(base_url=f"http://{one.place}/api/v1") as client,
    ):
        for at in range(guard.WRONG_TOKENS + 2):
            assert (await client.get("/runs", headers={"authorization": f"Bearer {at}"})).status_code == 401
        assert waited == [guard.DELAY_SECONDS] * 2
        assert (await client.get("/runs", headers=BEARER)).status_code == 200
        assert len(waited) == 2


def _is_closed(answer: httpx2.Response) -> bool:
    """No cookie, nothing shared with other origins, nothing that a browser would run or guess."""
    headers = answer.headers
    assert not [name for name in headers if name in ("set-cookie", "server") or name.startswith("access-control-")]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-dns-prefetch-control"] == "off"
    assert "camera=()" in headers["permissions-policy"]
    assert headers["content-security-policy"].startswith(("default-src 'none'", "sandbox"))
    return True


async def test_every_answer_has_the_headers(server: Served) -> None:
    async with httpx2.AsyncClient(base_url=f"http://{server.place}") as client:
        page = await client.get("/")
        assert _is_closed(page)
        assert page.headers["content-security-policy"] == page_headers(page.text)["Content-Security-Policy"]
        assert page.headers["cache-control"] == "no-store"
        assert TOKEN not in page.text and "ask.playbook" not in page.text and "team" not in page.text
        for path in ("/runs/x", "/problems/run-busy", "/problems/nothing", "/static/x/y", "/favicon.ico"):
            assert _is_closed(await client.get(path)), path
        for path in ("/", "/runs", "/nothing", "/runs/x", "/openapi.json"):
            answer = await client.get(f"/api/v1{path}", headers=BEARER)
            assert _is_closed(answer), path
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'; sandbox"
        preflight = {**BEARER, "origin": f"http://{server.place}", "access-control-request-method": "POST"}
        assert _is_closed(await client.options("/api/v1/runs", headers=preflight))
        static = re.search(r"/static/\w+", page.text)
        assert static
        shared = {
            path: "access-control-allow-origin" in (await client.get(f"{static.group()}/{path}")).headers
            for path in ("app/main.js", "style.css", "vendor/htm.js", "frames/html.js", "vendor-lazy/chart.umd.min.js")
        }
        assert [path for path, is_shared in shared.items() if is_shared] == [
            "frames/html.js",
            "vendor-lazy/chart.umd.min.js",
        ]


async def test_other_sites_may_open_the_page_and_load_frames_and_nothing_else(server: Served) -> None:
    foreign = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}
    async with httpx2.AsyncClient(base_url=f"http://{server.place}", headers=foreign) as client:
        statuses = {
            path: (await client.get(path)).status_code
            for path in ("/", "/frames/html", "/static/x/y.js", "/runs", "/problems/bug", "/documents/a")
        }
    assert statuses == {
        "/": 200,
        "/frames/html": 200,
        "/static/x/y.js": 404,
        "/runs": 403,
        "/problems/bug": 403,
        "/documents/a": 403,
    }


async def test_bodies_over_the_limit_are_refused_with_and_without_a_declared_length(server: Served) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY // 500_000 + 1):
            yield b" " * 500_000

    headers = {"content-type": "application/json"}
    async with server.client() as client:
        declared = await client.post("/documents/check", content=b" " * (MAX_BODY + 1), headers=headers)
        assert (declared.status_code, declared.json()["code"]) == (413, "too-large")
        streamed = await client.post("/documents/check", content=chunks(), headers=headers)
        assert (streamed.status_code, streamed.json()["code"]) == (413, "too-large")
        assert (await client.get("/")).status_code == 200


async def test_headers_over_the_limit_are_refused(server: Served) -> None:
    async with server.client() as client:
        for request in ({"headers": {"x-large": "x" * 1_000_000}}, {"headers": {"cookie": "x=" + "y" * 1_000_000}}):
            # The connection may be closed while the client is still sending.
            with contextlib.suppress(httpx2.TransportError):
                assert (await client.get("/runs", **request)).status_code in (400, 414, 431)  # type: ignore[arg-type]


async def test_streams_over_the_limit_are_refused_before_they_begin(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}, settings="[serve]\nlisteners = 2\n") as server, server.client() as client:
        async with client.stream("GET", "/events") as one, client.stream("GET", "/events") as two:
            for stream in (one, two):
                assert stream.status_code == 200
                await anext(stream.aiter_lines())
            while server.site.hub.listeners < 2:
                await asyncio.sleep(0.01)
            third = await client.get("/events")
            assert (third.status_code, third.json()["code"]) == (429, "too-many")
        while server.site.hub.listeners:
            await asyncio.sleep(0.01)
        async with client.stream("GET", "/events") as again:
            assert again.status_code == 200


async def test_listeners_that_come_together_are_counted_before_their_responses(tmp_path: Path) -> None:
    """reliability M7: all clients come at once after a restart; none gets a 200 and a dropped connection."""
    most, settings = 20, "[serve]\nlisteners = 20\n"
    async with (
        served(tmp_path / "team", {}, settings=settings) as server,
        server.client() as client,
        contextlib.AsyncExitStack() as stack,
    ):

        async def listen() -> int:
            stream = await stack.enter_async_context(client.stream("GET", "/events"))
            if stream.status_code == 200:
                assert await anext(stream.aiter_lines())
            else:
                assert (await stream.aread(), stream.json()["code"])[1] == "too-many"
                assert stream.headers["content-type"] == "application/problem+json"
            return stream.status_code

        codes = await asyncio.gather(*(listen() for _ in range(3 * most)))
        assert (codes.count(200), codes.count(429)) == (most, 2 * most)
        assert server.reports == []


async def test_requests_beyond_the_most_are_answered_with_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """reliability M7: problem+json, not uvicorn's text."""
    monkeypatch.setattr(app_module, "MOST_REQUESTS", 1)
    settings = "[serve]\nlisteners = 1\n"
    async with (
        served(tmp_path / "team", {}, settings=settings) as server,
        server.client() as client,
        client.stream("GET", "/events") as stream,
    ):
        await anext(stream.aiter_lines())

        def slowly() -> list[object]:
            time.sleep(1)
            return []

        monkeypatch.setattr(server.site.shelf, "all", slowly)
        answers = await asyncio.gather(*(client.get("/trust") for _ in range(3)))
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) == 2 and {answer.json()["code"] for answer in refused} == {"too-many"}
        assert {answer.headers["x-content-type-options"] for answer in refused} == {"nosniff"}


async def test_connections_over_the_limit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "MAX_CONNECTIONS", 2)
    async with served(tmp_path / "team", {}, settings="[serve]\nlisteners = 1\n") as one:
        host, port = one.place.split(":")
        idle = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        try:
            async with one.client() as client:
                assert (await client.get("/")).status_code == 503
            assert "concurrency" not in caplog.text
        finally:
            for _, writer in idle:
                writer.close()


@pytest.mark.parametrize("debug", [False, True])
async def test_a_mistake_of_ours_is_answered_without_a_traceback_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, debug: bool
) -> None:
    async with served(tmp_path / "team", {}, options=SiteOptions(debug=debug)) as one, one.client() as client:

        def documents() -> None:
            raise ZeroDivisionError("a value that nobody may see")

        monkeypatch.setattr(one.site.shelf, "all", documents)
        answer = await client.get("/documents")
        assert (answer.status_code, answer.json()["code"]) == (500, "bug")
        assert ("a value that nobody may see" in answer.text) is debug
        assert ("Traceback" in answer.text) is debug
        assert any("ZeroDivisionError" in line for line in one.reports)


async def test_the_page_grants_nothing(server: Served) -> None:
    granting = re.compile(r"trust|grant|key|consent|allow|setting|config|secret")
    assert [endpoint.name for endpoint in CHANGING if granting.search(f"{endpoint.name} {endpoint.path}")] == []
    with_tools = [one for one in CHANGING if one.body and "allow" in str(one.body.get("properties"))]
    # The first starts nothing: it says what is not granted.
    assert [one.name for one in with_tools] == ["preflight", "preview_fork", "fork_run", "start_run"]
    async with server.client() as client:
        run = (await server.start("ask.playbook.md"))["id"]
        await server.site.runs.ended(run, 30)
        for tools in (["shell"], ["file__write"], ["nothing"]):
            for path, body in (
                ("/runs", {"document": "ask.playbook.md"}),
                (f"/runs/{run}/fork", {"from": "1"}),
                (f"/runs/{run}/fork/preview", {"from": "1"}),
            ):
                answer = await client.post(path, json={**body, "allow": tools})
                assert (answer.status_code, answer.json()["code"]) == (422, "bad-inputs"), answer.text
                assert f"granted in a terminal only: quire serve --allow {tools[0]}" in answer.json()["detail"]
        assert [row["id"] for row in (await client.get("/runs")).json()["items"]] == [run]


async def test_a_tool_that_the_server_was_started_with_may_be_named(tmp_path: Path) -> None:
    options = SiteOptions(allow=("shell",))
    async with served(tmp_path / "team", {"ask.playbook.md": ASKS}, options=options) as one:
        row = await one.start("ask.playbook.md", allow=["shell"])
        assert PinnedState.of((await one.site.runtime.row(row["id"])).pins).allow == ("shell",)


async def test_secrets_of_the_environment_are_in_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-of-the-environment")
    async with served(tmp_path / "team", {"ask.playbook.md": ASKS}) as one:
        run = (await one.start("ask.playbook.md"))["id"]
        async with one.client() as client:
            for endpoint in ENDPOINTS:
                if endpoint.method != "GET" or endpoint.media != "application/json":
                    continue
                path = endpoint.template.replace("{run}", run).replace("{path}", "1/ask")
                answer = await client.get(re.sub(r"\{\w+\}", "ask.playbook.md", path))
                assert "sk-secret-of-the-environment" not in answer.text, endpoint.name
                assert TOKEN not in answer.text, endpoint.name


async def test_answers_do_not_wait_for_acknowledgements() -> None:
    # asyncio sets TCP_NODELAY only on sockets with this protocol; without it a request takes 44 ms instead of one.
    with listening("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


async def _connect(server: Served, text: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address, _, port = server.place.rpartition(":")
    reader, writer = await asyncio.open_connection(address, int(port))
    writer.write(text)
    return reader, writer


async def _is_ended(reader: asyncio.StreamReader) -> bool:
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(20):
            await reader.read()
    return True


SILENT = {
    "no complete headers": b"GET / HTTP/1.1\r\nHost: x",
    "nothing at all": b"",
    "a page, then nothing": b"GET / HTTP/1.1\r\nHost: PLACE\r\n\r\n",
    "a body that does not come": b"POST /api/v1/runs HTTP/1.1\r\nHost: PLACE\r\nContent-Length: 100\r\n\r\n",
    "wrong tokens": b"GET /api/v1/ HTTP/1.1\r\nHost: PLACE\r\nAuthorization: Bearer wrong\r\n\r\n",
}


@pytest.mark.parametrize("sent", SILENT.values(), ids=list(SILENT))
async def test_400_silent_sockets_do_not_keep_an_honest_client_out(tmp_path: Path, sent: bytes) -> None:
    """security N6: without a token, 400 connections got 503 for everybody until they left."""
    async with served(tmp_path / "team", {}) as server:
        text = sent.replace(b"PLACE", server.place.encode())
        sockets = [await _connect(server, text) for _ in range(400)]
        async with server.client() as client:
            for _ in range(10):
                answer = await client.get("/", headers={"connection": "close"})
                assert answer.status_code == 200, answer.text
        for _, writer in sockets:
            writer.close()


async def test_headers_and_bodies_have_a_time_that_trickling_bytes_do_not_renew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """security N6: a byte now and then kept a connection for ever."""
    monkeypatch.setattr(serving, "HEADER_SECONDS", 0.6)
    monkeypatch.setattr(serving, "BODY_SECONDS", 0.6)
    async with served(tmp_path / "team", {}) as server:
        page = f"GET /problems/bug HTTP/1.1\r\nHost: {server.place}\r\n\r\n".encode()
        post = (
            f"POST /api/v1/runs HTTP/1.1\r\nHost: {server.place}\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
        ).encode()
        for begin in (b"GET / HTTP/1.1\r\nX: ", page + b"GET / HTTP/1.1\r\nX: ", post):
            reader, writer = await _connect(server, begin)
            ended = asyncio.create_task(_is_ended(reader))
            sent = 0
            while not ended.done() and sent < 100:
                writer.write(b" ")
                sent += 1
                await asyncio.sleep(0.1)
            assert await ended and sent < 60
            writer.close()
        # A stream is a request that is being answered: it has no such limit.
        async with server.client() as client, client.stream("GET", "/events") as stream:
            await asyncio.sleep(1)
            assert stream.status_code == 200
            assert (await client.get("/")).status_code == 200


async def test_a_request_with_two_lengths_is_refused(server: Served) -> None:
    """security L5: proxies and servers may take the end of such a body differently."""
    head = f"POST /api/v1/runs HTTP/1.1\r\nHost: {server.place}\r\nAuthorization: Bearer {TOKEN}\r\n"
    both = "Content-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    reader, writer = await _connect(server, (head + both).encode())
    async with asyncio.timeout(20):
        answer = (await reader.read()).decode()
    assert answer.startswith("HTTP/1.1 400 ") and '"code":"two-lengths"' in answer
    writer.close()


async def test_a_number_of_thousands_of_digits_is_a_number(server: Served) -> None:
    """security L1: `Prefer: wait=` with 5,000 digits was a 500 and a traceback."""
    model = server.script("none.json", [])
    async with server.client() as client:
        for digits in ("9" * 5000, "0" * 5000 + "1"):
            answer = await client.post(
                "/runs", json={"document": "ask.playbook.md", "model": model}, headers={"prefer": f"wait={digits}"}
            )
            assert answer.status_code == 201, answer.text
    assert not [line for line in server.reports if "Traceback" in line]
