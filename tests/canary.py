"""A server that counts whatever reaches it: connections, HTTP requests, WebSockets, and datagrams such as STUN.

Hostile texts name its address. A return value in a browser proves nothing (`sendBeacon` says true for what the policy
drops), so tests look here.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: 1\r\nAccess-Control-Allow-Origin: *\r\n"
    b"Connection: close\r\n\r\n "
)


class Canary:
    """Listens on one TCP and one UDP port of the same number. `hits` has a line for everything that arrived."""

    def __init__(self) -> None:
        self.hits: list[str] = []
        self.port = 0
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Canary:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        self._datagrams, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self.hits), ("127.0.0.1", self.port)
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._datagrams.close()
        self._server.close()
        for writer in self._open:
            writer.close()

    def paths(self) -> set[str]:
        """The paths of the requests that arrived, without their query; `(connected)` and `(datagram)` for the rest."""
        return {hit.split()[1].partition("?")[0].strip("/") if " " in hit else hit for hit in self.hits}

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place = len(self.hits)
        self.hits.append("(connected)")
        self._open.add(writer)
        try:
            line = (await reader.readline()).decode("latin-1").strip()
            if line:
                self.hits[place] = line
                writer.write(_ANSWER % _content_type(line))
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            self._open.discard(writer)
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, hits: list[str]) -> None:
        self._hits = hits

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._hits.append("(datagram)")


def _content_type(line: str) -> bytes:
    kinds = {"css": b"text/css", "js": b"text/javascript", "svg": b"image/svg+xml", "html": b"text/html"}
    return next((kind for name, kind in kinds.items() if f".{name}" in line), b"image/png")
