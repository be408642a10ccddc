from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from tests.tools.built_in import House
from tests.tools.web import Server, get

from quire.errors import Denied, ToolFailed
from quire.values import Value


def headers_of(answer: dict[str, Value]) -> dict[str, Value]:
    found = answer["headers"]
    assert isinstance(found, dict)
    return found


def test_text_json_and_headers(server: Server) -> None:
    latin = {"Content-Type": "text/plain; charset=latin-1", "X-Other": "1"}
    server.answers = {
        "/a?b=%C3%BC": (200, latin, "ü".encode("latin-1")),
        "/json": (200, {"Content-Type": "application/problem+json", "ETag": "e"}, b'{"n": 123456789012345678901}'),
        "/broken": (200, {"Content-Type": "application/json"}, b"{"),
        "/odd": (200, {"Content-Type": "text/plain; charset=no-such"}, "ü".encode()),
    }
    answer = get(server, "http://example.com/a?b=ü#part")
    assert (answer["status"], answer["text"]) == (200, "ü")
    assert headers_of(answer)["content-type"] == "text/plain; charset=latin-1"
    assert "x-other" not in headers_of(answer)
    assert server.seen[0][1]["host"] == "example.com"
    assert server.seen[0][1]["user-agent"].startswith("quire/")
    assert get(server, "http://example.com/json")["json"] == {"n": 123456789012345678901}
    assert get(server, "http://example.com/broken")["text"] == "{"
    assert get(server, "http://example.com/odd")["text"] == "ü"
    missing = get(server, "http://example.com:8080/missing")
    assert (missing["status"], missing["text"]) == (404, "nothing here")
    assert server.seen[-1][1]["host"] == "example.com:8080"


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_packed_answers(server: Server, pack: object) -> None:
    assert callable(pack)
    packing = "gzip" if pack is gzip.compress else "deflate"
    server.answers["/"] = (200, {"Content-Encoding": packing}, pack(b"hello " * 1000))
    assert get(server, "http://example.com")["text"] == "hello " * 1000


def test_redirects_drop_what_was_meant_for_the_first_host(server: Server) -> None:
    server.answers = {
        "/one": (302, {"Location": "/two"}, b""),
        "/two": (307, {"Location": "http://elsewhere.org/three"}, b""),
        "/three": (200, {}, b"there"),
    }
    answer = get(server, "http://example.com/one", headers={"X-Mine": "1", "accept": "text/html"})
    assert (answer["url"], answer["text"]) == ("http://elsewhere.org/three", "there")
    assert ["x-mine" in headers for _, headers in server.seen] == [True, True, False]
    assert [headers["accept"] for _, headers in server.seen] == ["text/html"] * 3
    assert server.seen[-1][1]["host"] == "elsewhere.org"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://example.com/x", "not an http or https address"),
        ("file:///etc/passwd", "not an http or https address"),
        ("http://", "not an http or https address"),
        ("http://user:secret@example.com/", "must not hold a user"),
        ("http://example.com\\@127.0.0.1/", "must not hold a user"),
        ("http://example.com/a b", "spaces or control characters"),
        ("http://example.com/\r\nX: y", "spaces or control characters"),
        ("http://example.com:99999/", "cannot be read"),
        ("http://exa..mple.com/", "not a name of a host"),
        ("http://example.com/" + "x" * 9000, "too long"),
    ],
)
def test_addresses_that_are_none(server: Server, url: str, message: str) -> None:
    with pytest.raises(ToolFailed, match=message):
        get(server, url)
    assert server.seen == []


@pytest.mark.parametrize("name", ["Authorization", "cookie", "X-Api-Key", "Host", "Transfer-Encoding", "X-Auth-Token"])
def test_headers_that_cannot_be_set(server: Server, name: str) -> None:
    with pytest.raises(ToolFailed, match="cannot be set"):
        get(server, "http://example.com/", headers={name: "x"})
    assert server.seen == []


def test_a_header_cannot_smuggle_another(server: Server) -> None:
    with pytest.raises(ToolFailed, match="the header X-A cannot be set: it has a line break"):
        get(server, "http://example.com/", headers={"X-A": "1\r\nX-B: 2"})


async def test_through_the_gate(tmp_path: Path, server: Server) -> None:
    house = House(tmp_path)
    url = f"http://127.0.0.1:{server.port}/"
    with pytest.raises(Denied, match=r"rye\.execute\.tool\.rye\.web\.fetch"):
        await house.call("http__get", url=url)
    with pytest.raises(Denied, match=r"not a public address; grant it with --allow http__get=127\.0\.0\.1:"):
        await house.call("http__get", "http__get", url=url)
    for allow in (f"http__get=127.0.0.1:{server.port}", "http__get=127.0.0.1"):
        answer = await house.call("rye/web/fetch", allow, url=url)
        assert isinstance(answer, dict)
        assert answer["status"] == 404
    with pytest.raises(Denied, match=r"may not speak to 127\.0\.0\.1"):
        await house.call("http__get", "http__get=127.0.0.1:1", url=url)
    with pytest.raises(Denied, match=r"may not speak to example\.com"):
        await house.call("http__get", "http__get=127.0.0.1", url="http://example.com/")
