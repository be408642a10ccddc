"""Send spans over HTTP to a receiver of OpenTelemetry. Its own classes do the work: a queue of 2,048 spans, a batch a
second from a thread, and all of its variables. A receiver that fails or hangs costs spans, which are counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from quire.wording import counted

if TYPE_CHECKING:
    from quire.telemetry.spans import Span

logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # else Python prints each failure on stderr


class Exporter(OTLPSpanExporter):
    """`endpoint` is empty if the variables of OpenTelemetry name it."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(f"{endpoint.rstrip('/')}/v1/traces" if endpoint else None)
        self._batches = BatchSpanProcessor(self, schedule_delay_millis=1000)
        self._resource = Resource({"service.name": "quire"}).merge(OTELResourceDetector().detect())
        self._added = self._sent = self._refused = 0
        self._told = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send one batch. Called by the thread of the queue."""
        result = super().export(spans)
        self._sent += len(spans) if result is SpanExportResult.SUCCESS else 0
        self._refused += len(spans) if result is SpanExportResult.FAILURE else 0
        return result

    def add(self, spans: Iterable[Span]) -> None:
        for span in spans:
            parts: dict[str, Any] = {
                "name": span.name,
                "context": SpanContext(int(span.trace, 16), int(span.id, 16), False, TraceFlags(1)),
                "parent": SpanContext(int(span.trace, 16), int(span.parent, 16), False) if span.parent else None,
                "attributes": span.attributes,
                "status": Status(StatusCode.ERROR if "error.type" in span.attributes else StatusCode.UNSET),
                "start_time": int(span.start * 1e9),
                "end_time": int(span.end * 1e9),
            }
            self._added += 1
            self._batches.on_end(ReadableSpan(resource=self._resource, **parts))

    def flush(self, notice: Callable[[str], None], seconds: float = 2.0) -> None:
        """Send the spans that wait, for some seconds at most, and tell how many are lost."""
        flushing = Thread(target=self._batches.force_flush, daemon=True)
        flushing.start()
        flushing.join(seconds)
        self.tell(notice, self._added - self._sent)

    def tell(self, notice: Callable[[str], None], unsent: int = 0) -> None:
        """Tell once how many spans are lost."""
        if (lost := unsent or self._refused) and not self._told:
            self._told = True
            notice(f"warning: traces: {counted(lost, 'span')} lost: the receiver has not taken them")


exporter_to = cache(Exporter)
"""Return the exporter of this process to an endpoint."""
