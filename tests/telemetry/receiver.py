"""A receiver of OpenTelemetry on loopback, which decodes what it gets with the messages of the protocol."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct, field
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Received(Struct, frozen=True):
    """A span as it came over the wire; ids are hexadecimal."""

    name: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    failed: bool
    attributes: dict[str, Any]


class Receiver(Struct, dict=True):
    status: int = 200
    address: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    """Set for a receiver that answers; clear it for one that hangs."""

    @property
    def spans(self) -> list[Received]:
        return [
            Received(
                span.name,
                span.trace_id.hex(),
                span.span_id.hex(),
                span.parent_span_id.hex(),
                span.start_time_unix_nano,
                span.end_time_unix_nano,
                span.status.code == 2,
                {entry.key: _value(entry.value) for entry in span.attributes},
            )
            for body in self.bodies
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def resource(self) -> dict[str, Any]:
        (resource, *_) = ExportTraceServiceRequest.FromString(self.bodies[0]).resource_spans
        return {entry.key: _value(entry.value) for entry in resource.resource.attributes}

    def by_path(self) -> dict[str, Received]:
        return {span.attributes["quire.path"]: span for span in self.spans}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@contextmanager
def receiving(status: int = 200, *, hangs: bool = False) -> Iterator[Receiver]:
    """Yield a receiver that listens; one that hangs takes requests and does not answer before the end."""
    receiver = Receiver(status)
    if not hangs:
        receiver.release.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
            body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
            receiver.bodies.append(body)
            receiver.release.wait()
            self.send_response(receiver.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
