"""Traces, metrics and logs, for operators. Here: the address of traces, and the ids by which other programs continue
them."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING

from quire.patterns import late_pattern
from quire.values import sha256

if TYPE_CHECKING:
    from quire.workspace.settings import Settings

TRACE: ContextVar[str] = ContextVar("TRACE", default="")
"""The id of the trace of the run that is driven; empty if nothing is exported."""
_TRACEPARENT = late_pattern(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")


def endpoint_of(settings: Settings, environ: Mapping[str, str]) -> str | None:
    """Return the address that spans go to: empty if the variables of OpenTelemetry name it, None for no address."""
    if settings.rehearsal or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    variables = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    return "" if variables else settings.telemetry.endpoint


def trace_of(run: str, traceparent: object) -> tuple[str, str]:
    """Return the id of the trace of a run, and of the span above the run, which may be empty."""
    if isinstance(traceparent, str) and (parent := _TRACEPARENT.fullmatch(traceparent)):
        return parent[1], parent[2]
    return sha256(run.encode())[:32], ""


def traceparent_of(effect_id: str) -> str:
    """Return the `traceparent` of the span of a tool call; empty if nothing is exported."""
    return f"00-{TRACE.get()}-{effect_id[:16]}-01" if TRACE.get() else ""
