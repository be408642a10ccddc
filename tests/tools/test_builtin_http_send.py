"""`http__send`, and the headers that the user adds to requests, against real services on this machine."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tools.built_in import House
from tests.tools.web import Handler, Server, serving

from quire.errors import BadConfiguration, Denied, ToolFailed
from quire.tools.arguments import PlannedCall
from quire.values import Value
from quire.workspace.grants import default_grants, reach_of

SECRET = "gh-secret-value-1234567890"


@pytest.fixture
def service() -> Iterator[Server]:
    with serving() as running:
        running.answers["/echo"] = echo
        yield running


@pytest.fixture
def other() -> Iterator[Server]:
    with serving() as running:
        running.answers["/echo"] = echo
        yield running


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.environ["GH_PASS_IT"] = SECRET
    return house


def echo(handler: Handler) -> None:
    method, body = handler.server.received[-1]
    said = {"method": method, "body": body.decode(), "headers": handler.server.seen[-1][1]}
    handler.reply(200, {"Content-Type": "application/json"}, json.dumps(said).encode())


def origin(server: Server) -> str:
    return f"127.0.0.1:{server.port}"


def settings(house: House, text: str) -> None:
    file = Path(house.environ["QUIRE_HOME"]) / "quire.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


def authorize(house: House, *servers: Server, value: str = "Bearer ${GH_PASS_IT}", name: str = "Authorization") -> None:
    settings(house, "\n".join(f'[http."{origin(one)}"]\nheaders = {{{name} = {json.dumps(value)}}}' for one in servers))


async def send(house: House, *servers: Server, **arguments: Value) -> Value:
    """Call the tool at the first of some servers. It may speak to all of them."""
    allow = [f"http__send={origin(one)}" for one in servers]
    path = arguments.pop("path", "/echo")
    return await house.call(
        "http__send", *allow, **{"url": f"http://{origin(servers[0])}{path}", "method": "POST", **arguments}
    )


@pytest.mark.parametrize(
    ("arguments", "body", "kind"),
    [
        ({"json": {"a": [1, 12345678901234567890]}}, '{"a":[1,12345678901234567890]}', "application/json"),
        ({"json": None}, "null", "application/json"),
        ({"body": "h\u00e9"}, "h\u00e9", "text/plain; charset=utf-8"),
        ({"body": "<a/>", "headers": {"content-type": "text/xml"}}, "<a/>", "text/xml"),
        ({"body": ""}, "", "text/plain; charset=utf-8"),
        ({}, "", None),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_what_is_sent(
    house: House, service: Server, method: str, arguments: dict[str, Value], body: str, kind: str | None
) -> None:
    answer = await send(house, service, method=method, **arguments)
    assert isinstance(answer, dict)
    assert answer["status"] == 200
    said = answer["json"]
    assert isinstance(said, dict)
    assert (said["method"], said["body"]) == (method, body)
    headers = said["headers"]
    assert isinstance(headers, dict)
    assert headers.get("content-type") == kind
    assert headers["host"] == origin(service)
    # A service can recognize the request if a crash repeats it.
    assert headers.get("idempotency-key") == ("effect" if method in ("POST", "PATCH") else None)


async def test_a_status_is_a_result_and_says_where_the_new_thing_is(house: House, service: Server) -> None:
    service.answers["/made"] = (201, {"Location": "/things/7"}, b"")
    service.answers["/wrong"] = (422, {"Content-Type": "application/problem+json"}, b'{"title": "no"}')
    made = await send(house, service, path="/made", body="x")
    assert isinstance(made, dict)
    headers = made["headers"]
    assert isinstance(headers, dict)
    assert (made["status"], headers["location"]) == (201, "/things/7")
    wrong = await send(house, service, path="/wrong", body="x")
    assert isinstance(wrong, dict)
    assert (wrong["status"], wrong["json"]) == (422, {"title": "no"})


async def test_hosts_are_granted_for_sending_alone(house: House, service: Server, other: Server) -> None:
    arguments: dict[str, Value] = {"url": f"http://{origin(service)}/echo", "method": "POST"}
    for allow in ((), ("http__get",), (f"http__get={origin(service)}",), ("rye/web/*",)):
        with pytest.raises(Denied, match=r"http__send \(rye/http/send\) needs .* --allow http__send=HOST"):
            await house.call("http__send", *allow, **arguments)
    with pytest.raises(Denied, match=r"http__send may not speak to 127\.0\.0\.1; grant it with --allow http__send="):
        await house.call("http__send", f"http__send={origin(other)}", **arguments)
    with pytest.raises(Denied, match="http__send may not speak to"):
        await house.call("http__send", "rye/http/*", **arguments)
    with pytest.raises(Denied, match="http__get"):
        await house.call("http__get", f"http__send={origin(service)}", url=arguments["url"])
    assert service.seen == []


def test_the_tool_is_not_granted_for_all_hosts(house: House) -> None:
    for name in ("http__send", "rye/http/send"):
        with pytest.raises(BadConfiguration, match=rf"cannot allow {name} without a host: {name}=HOST"):
            house.gate(name)
    settings(house, '[tools]\ndeny = ["http__send"]\n')
    house.gate("shell")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"body": "a", "json": 1}, "body and json are both given"),
        ({"body": "x" * 1_000_001}, "the body has 1,000,001 bytes"),
        ({"headers": {"X-A": "1\r\nX-B: 2"}}, "the header X-A cannot be set: it has a line break"),
        ({"headers": {"X-A": "1\nX-B: 2"}}, "has a line break"),
        ({"headers": {"X-A": "\x00"}}, "has control characters"),
        ({"headers": {"X-A": "\u20ac"}}, "characters that a header cannot hold"),
        ({"headers": {"X-A": "x" * 8001}}, "longer than 8,000"),
        ({"headers": {"X A": "1"}}, "'X A' is not the name of a header"),
        ({"headers": {"X\nA": "1"}}, r"'X\\nA' is not the name of a header"),
        ({"headers": {"": "1"}}, "'' is not the name of a header"),
        ({"headers": {"Host": "evil.example"}}, "the header Host cannot be set: HTTP itself needs it"),
        ({"headers": {"Content-Length": "1"}}, "cannot be set"),
        (
            {"headers": {"Authorization": "Bearer x"}},
            r"put it under \[http.\"HOST\"\] headers in the quire.toml",
        ),
        ({"method": "GET"}, "does not take these arguments"),
        ({"method": "post"}, "does not take these arguments"),
    ],
)
async def test_it_fails_before_anything_is_sent(
    house: House, service: Server, arguments: dict[str, Value], message: str
) -> None:
    with pytest.raises(ToolFailed, match=message) as failed:
        await send(house, service, **arguments)
    assert "carried out" not in failed.value.message
    assert service.seen == []


async def test_headers_of_the_user_are_added_and_never_come_back(house: House, service: Server) -> None:
    authorize(house, service)
    answer = await send(house, service, json={})
    assert service.seen[-1][1]["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in json.dumps(answer)
    assert "[redacted:GH_PASS_IT]" in json.dumps(answer)
    answer = await house.call("http__get", f"http__get={origin(service)}", url=f"http://{origin(service)}/echo")
    assert service.seen[-1][1]["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in json.dumps(answer)


async def test_a_secret_that_is_written_out_does_not_come_back_either(house: House, service: Server) -> None:
    authorize(house, service, value="Basic dXNlcjpwYXNzd29yZA==")
    answer = await send(house, service, json={})
    assert service.seen[-1][1]["authorization"] == "Basic dXNlcjpwYXNzd29yZA=="
    assert "dXNlcjpwYXNzd29yZA" not in json.dumps(answer)


async def test_the_headers_of_the_user_win(house: House, service: Server) -> None:
    authorize(house, service, name="X-Version", value="2022-11-28")
    await send(house, service, headers={"x-version": "1", "X-Other": "2"})
    assert (service.seen[-1][1]["x-version"], service.seen[-1][1]["x-other"]) == ("2022-11-28", "2")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "the headers for HOST need GH_PASS_IT, which is not set; nothing was sent"),
        ("", "the headers for HOST need GH_PASS_IT, which is not set; nothing was sent"),
        ("two\nlines-of-a-secret", "the header Authorization for HOST has a line break; nothing was sent"),
        ("\u20ac-not-in-a-header", "the header Authorization for HOST has characters that a header cannot hold"),
    ],
)
async def test_a_variable_that_cannot_be_sent(house: House, service: Server, value: str | None, message: str) -> None:
    authorize(house, service)
    del house.environ["GH_PASS_IT"]
    if value is not None:
        house.environ["GH_PASS_IT"] = value
    with pytest.raises(ToolFailed) as failed:
        await send(house, service, json={})
    assert message.replace("HOST", origin(service)) in failed.value.message
    assert "secret" not in failed.value.message
    assert service.seen == []
    call = PlannedCall("", "http__send", ("url", "method"), {"url": f"http://{origin(service)}/", "method": "POST"})
    problem = await house.gate(f"http__send={origin(service)}").problem_with(call)
    assert message.replace("HOST", origin(service)) in str(problem)


@pytest.mark.parametrize(
    ("status", "method", "after"),
    [
        (301, "POST", ("GET", b"")),
        (302, "POST", ("GET", b"")),
        (303, "POST", ("GET", b"")),
        (303, "DELETE", ("GET", b"")),
        (301, "PUT", ("PUT", b"text")),
        (302, "PATCH", ("PATCH", b"text")),
        (307, "POST", ("POST", b"text")),
        (308, "DELETE", ("DELETE", b"text")),
    ],
)
async def test_redirects_of_one_origin(
    house: House, service: Server, status: int, method: str, after: tuple[str, bytes]
) -> None:
    authorize(house, service)
    service.answers["/old"] = (status, {"Location": "/echo"}, b"")
    answer = await send(house, service, path="/old", method=method, body="text", headers={"X-Mine": "1"})
    assert isinstance(answer, dict)
    assert answer["url"] == f"http://{origin(service)}/echo"
    assert service.received == [(method, b"text"), after]
    headers = service.seen[-1][1]
    assert headers["authorization"] == f"Bearer {SECRET}"
    assert headers["x-mine"] == "1"
    assert headers.get("content-type") == ("text/plain; charset=utf-8" if after[1] else None)


@pytest.mark.parametrize("status", [302, 307])
async def test_a_secret_does_not_follow_a_redirect_to_another_port(
    house: House, service: Server, other: Server, status: int
) -> None:
    """Not even where the user has headers for that one too, and not back either."""
    authorize(house, service, other)
    service.answers["/away"] = (status, {"Location": f"http://{origin(other)}/back"}, b"")
    other.answers["/back"] = (status, {"Location": f"http://{origin(service)}/echo"}, b"")
    await send(house, service, other, path="/away", body="text", headers={"X-Mine": "1"})
    assert [headers.get("authorization") for _, headers in service.seen] == [f"Bearer {SECRET}", None]
    ((_, headers),) = other.seen
    assert "authorization" not in headers and "x-mine" not in headers and "idempotency-key" not in headers
    assert other.received == [("POST", b"text") if status == 307 else ("GET", b"")]


async def test_a_redirect_to_a_host_that_is_not_granted(house: House, service: Server, other: Server) -> None:
    service.answers["/away"] = (307, {"Location": f"http://{origin(other)}/echo"}, b"")
    with pytest.raises(Denied, match=r"http__send may not speak to .*; the request may have been carried out"):
        await send(house, service, path="/away", body="data of the document")
    service.answers["/away"] = (307, {"Location": f"http://localhost:{service.port}/echo"}, b"")
    with pytest.raises(Denied, match="http__send may not speak to localhost"):
        await send(house, service, path="/away", body="data of the document")
    assert other.seen == []


async def test_a_grant_of_all_public_hosts_does_not_lend_the_name_of_the_user(house: House, service: Server) -> None:
    from quire.tools.builtin.http_request import Hosts, HttpFetch, OriginHeaders
    from quire.workspace.configuration import load_settings
    from quire.workspace.locate import Workspace

    settings(house, '[http."http://api.example.com"]\nheaders = {Authorization = "Bearer ${GH_PASS_IT}"}\n')
    own = OriginHeaders(load_settings(Workspace(house.folder), house.environ).http, house.environ)

    def dial(address: str, port: int, timeout: float) -> socket.socket:
        return socket.create_connection(("127.0.0.1", service.port), timeout)

    for granted, expected in ((frozenset(), None), (frozenset({"api.example.com"}), f"Bearer {SECRET}")):
        hosts = Hosts(granted, True, lambda host, port: ["93.184.216.34"])
        HttpFetch(hosts, dial, own).get({"url": "http://api.example.com/echo"})
        assert service.seen[-1][1].get("authorization") == expected


async def test_services_that_misbehave(house: House, service: Server) -> None:
    ended = threading.Event()

    def slow(handler: Handler) -> None:
        ended.wait(20)

    def half(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        handler.close_connection = True

    def garbage(handler: Handler) -> None:
        handler.wfile.write(b"\x00\xff nonsense\r\n\r\n")
        handler.close_connection = True

    service.answers |= {
        "/slow": slow,
        "/half": half,
        "/garbage": garbage,
        "/huge": (200, {}, b"x" * 1_000_001),
        "/binary": (200, {"Content-Type": "image/png"}, b"\x89PNG\x00"),
        "/round": (307, {"Location": "/round"}, b""),
        "/odd": (307, {"Location": "ftp://example.com/"}, b""),
    }
    perhaps = "; the request may have been carried out"
    for path, message in (
        ("/slow", r"http__send took longer than 1 s"),
        ("/half", r"the answer ended 96 bytes too early"),
        ("/garbage", r"BadStatusLine"),
        ("/huge", r"more than 1,000,000 bytes"),
        ("/binary", r"not text but image/png"),
        ("/round", r"more than 5 redirects"),
        ("/odd", r"not an http or https address"),
    ):
        with pytest.raises(ToolFailed, match=message + ".*" + perhaps):
            await send(house, service, path=path, json={}, timeout=1)
    ended.set()
    assert len(service.seen) == 6 + 6
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ToolFailed, match=r"Connection refused") as refused:
        await house.call("http__send", f"http__send=127.0.0.1:{port}", url=f"http://127.0.0.1:{port}/", method="PUT")
    assert perhaps not in refused.value.message


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('[http."a.example"]\nheaders = {"Bad Name" = "x"}', "'Bad Name' is not the name of a header"),
        ('[http."a.example"]\nheaders = {Host = "x"}', "the header Host cannot be set"),
        ('[http."a.example"]\nheaders = {A = "x\\ny-secret"}', "headers: A has a line break"),
        ('[http."a.example"]\nheaders = {A = ["x-secret"]}', "headers: A must be text"),
        ('[http."a.example"]\nheaders = {A = "Bearer ${GH-x}"}', "that does not begin a reference"),
        ('[http."a.example"]\nheader = {A = "x-secret"}', "did you mean"),
        ('[http.api.example]\nheaders = {A = "x-secret"}', "a host is quoted as in"),
        ('[http."a.example/path"]\nheaders = {A = "x"}', "is named after a HOST"),
        ('[http."me:pw@a.example"]\nheaders = {A = "x"}', "is named after a HOST"),
        ('[http."*.example"]\nheaders = {A = "x"}', "is named after a HOST"),
        ('[http."ftp://a.example"]\nheaders = {A = "x"}', "is named after a HOST"),
        ('[http."a.example:99999"]\nheaders = {A = "x"}', "is named after a HOST"),
        ('[http."a.example"]\nheaders = "x-secret"', "headers must be a table such as"),
    ],
)
def test_tables_that_are_wrong(house: House, table: str, message: str) -> None:
    settings(house, table)
    with pytest.raises(BadConfiguration) as wrong:
        house.gate()
    assert message in str(wrong.value)
    assert "secret" not in str(wrong.value)
    assert len(str(wrong.value).splitlines()) == 1


def test_a_workspace_cannot_set_headers(house: House) -> None:
    house.write("quire.toml", '[http."api.github.com"]\nheaders = {Authorization = "Bearer ${GH_PASS_IT}"}\n')
    with pytest.raises(
        BadConfiguration, match=r"\[http\] is read from the quire\.toml of your user folder, not from a"
    ) as one:
        house.gate()
    assert len(str(one.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "url", "is_for"),
    [
        ("api.example.com", ("https", "api.example.com", 443), True),
        ("API.Example.com", ("https", "api.example.com", 443), True),
        ("api.example.com", ("http", "api.example.com", 80), False),
        ("api.example.com", ("https", "api.example.com", 8443), False),
        ("api.example.com", ("https", "evil.api.example.com", 443), False),
        ("api.example.com", ("https", "example.com", 443), False),
        ("api.example.com:8443", ("https", "api.example.com", 8443), True),
        ("api.example.com:8443", ("http", "api.example.com", 8443), False),
        ("http://intern.example", ("http", "intern.example", 80), True),
        ("http://intern.example", ("https", "intern.example", 443), False),
        ("https://intern.example/", ("https", "intern.example", 443), True),
        ("localhost:8080", ("http", "localhost", 8080), True),
        ("[::1]:8080", ("http", "::1", 8080), True),
        ("127.0.0.1:8080", ("https", "127.0.0.1", 8080), True),
        ("b\u00fccher.example", ("https", "xn--bcher-kva.example", 443), True),
    ],
)
def test_the_origin_that_a_table_is_for(house: House, name: str, url: tuple[str, str, int], is_for: bool) -> None:
    from quire.workspace.configuration import load_settings
    from quire.workspace.locate import Workspace

    settings(house, f'[http."{name}"]\nheaders = {{A = "x"}}\n')
    (table,) = load_settings(Workspace(house.folder), house.environ).http
    assert table.is_for(*url) is is_for


async def test_a_host_that_is_not_granted_is_found_before_the_run(house: House) -> None:
    call = PlannedCall("", "http__send", ("url", "method"), {"url": "https://a.example/", "method": "POST"})
    problem = await house.gate("http__send=b.example").problem_with(call)
    assert "http__send may not speak to a.example" in str(problem)
    assert await house.gate("http__send=a.example").problem_with(call) is None
    both = PlannedCall("", "http__send", ("url", "method"), {**call.literal, "body": "", "json": 1}, complete=True)
    assert "both given" in str(await house.gate("http__send=a.example").problem_with(both))


def test_what_the_grant_means(house: House) -> None:
    from quire.workspace.configuration import load_settings
    from quire.workspace.locate import Workspace

    grants = default_grants(load_settings(Workspace(house.folder), house.environ), ("http__send=A.Example:8443",))
    assert reach_of(grants).receivers == {"a.example:8443"}
    assert reach_of(grants).hosts == frozenset()
