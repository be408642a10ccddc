"""Messages in bytes: cut anywhere, broken, too large."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.lsp import protocol
from quire.lsp.protocol import BadFraming, FrameReader, Malformed, framed

MESSAGES: list[dict[str, object]] = [
    {"jsonrpc": "2.0", "method": "a", "params": {"text": "ä𝄞\ud800\r\n"}},
    {"id": 1, "result": None},
]


@given(st.lists(st.integers(1, 40), max_size=60))
def test_messages_survive_any_cut(cuts: list[int]) -> None:
    data = b"".join(framed(message) for message in MESSAGES)
    reader, found = FrameReader(), []
    for cut in [*cuts, len(data)]:
        piece, data = data[:cut], data[cut:]
        found += list(reader.feed(piece))
    assert found == MESSAGES


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"id":NaN}'])
def test_a_body_that_is_not_a_message_is_reported_and_the_next_one_read(body: bytes) -> None:
    data = b"Content-Length: %d\r\n\r\n" % len(body) + body + framed({"method": "next"})
    first, second = FrameReader().feed(data)
    assert isinstance(first, Malformed)
    assert second == {"method": "next"}


def test_other_headers_are_passed_over() -> None:
    body = json.dumps({"method": "a"}).encode()
    head = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length:%d\r\n\r\n" % len(body)
    assert list(FrameReader().feed(head + body)) == [{"method": "a"}]


@pytest.mark.parametrize(
    "data", [b"hello\r\n\r\n", b"Content-Length: -4\r\n\r\n", b"Content-Length: 1e3\r\n\r\n", b"x" * 9000]
)
def test_bytes_without_a_length_end_the_conversation(data: bytes) -> None:
    with pytest.raises(BadFraming):
        list(FrameReader().feed(data))


def test_a_body_that_is_too_large_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MOST_BYTES", 100)
    reader = FrameReader()
    (large,) = reader.feed(b"Content-Length: 1000\r\n\r\n" + b"x" * 300)
    assert isinstance(large, Malformed)
    assert list(reader.feed(b"x" * 700 + framed({"method": "next"}))) == [{"method": "next"}]
