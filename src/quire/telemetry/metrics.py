"""Metrics in the text format of Prometheus: gauges from the store, and totals and times of what this process has done.
They name documents, models, sources and lanes, and hold no content."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from functools import partial
from itertools import accumulate, pairwise
from time import monotonic, time
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from quire.engine.records import Status
from quire.errors import StoreError
from quire.loopback import is_loopback_name
from quire.runs.ticker import is_recent
from quire.stores.run_pages import RunFilters

if TYPE_CHECKING:
    from quire.engine.ports import Store
    from quire.engine.records import Batch, Lease
    from quire.stores.occurrences import Process

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
READ_SECONDS, PATIENCE_SECONDS = 15.0, 5.0
MOST_NAMES = 200
"""Values of one label; the rest is `other`."""
BOUNDS = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
_FAMILIES = {
    "quire_store_up": ("gauge", "1 if the store can be read; else all that is read from it is missing."),
    "quire_runs": ("gauge", "Stored runs by status, each counted up to 10001."),
    "quire_lane_runs": ("gauge", "Pending and running runs that may not overlap."),
    "quire_oldest_pending_run_seconds": ("gauge", "Age of the oldest run that has not begun."),
    "quire_open_questions": ("gauge", "Questions that wait for people, counted up to 1001."),
    "quire_oldest_question_seconds": ("gauge", "Age of the oldest open question."),
    "quire_processes": ("gauge", "Servers and workers that were seen just now."),
    "quire_fires_total": ("counter", "Occurrences that this process has settled, by their source."),
    "quire_drives_total": ("counter", "Drives of runs by the status at their end."),
    "quire_tokens_total": ("counter", "Tokens of model calls."),
    "quire_cost_dollars_total": ("counter", "Cost of model calls, as far as prices are known."),
    "quire_model_call_seconds": ("histogram", "Time of model calls with their waits."),
    "quire_tool_call_seconds": ("histogram", "Time of tool calls."),
    "quire_step_seconds": ("histogram", "Time of steps that begin and end in one drive."),
    "quire_store_write_seconds": ("histogram", "Time of the writes of drives."),
}
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
Amounts: TypeAlias = dict[tuple[str, tuple[tuple[str, str], ...]], list[float]]
"""By family and labels: the number of amounts up to each bound and beyond the last, then their sum."""


def _zeros() -> Amounts:
    return defaultdict(lambda: [0] * (len(BOUNDS) + 2))


class Metrics:
    """The metrics of this process, which counts from now on."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock, self._read_at = store, asyncio.Lock(), -READ_SECONDS
        self._gauges, self._amounts = _zeros(), _zeros()
        self._names: dict[str, set[str]] = defaultdict(set)
        self._started: dict[str, dict[str, float]] = {}
        store.observers.append(self._observe)

    async def text(self) -> str:
        """Return all metrics. Calls within some seconds share a reading of the store."""
        async with self._lock:
            if monotonic() >= self._read_at + READ_SECONDS:
                self._gauges = {("quire_store_up", ()): [0]}
                with suppress(StoreError, TimeoutError):
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        self._gauges = await self._read()
                self._read_at = monotonic()
        lines = {name: [f"# HELP {name} {help}", f"# TYPE {name} {kind}"] for name, (kind, help) in _FAMILIES.items()}
        for (name, labels), (*counts, total) in [*self._gauges.items(), *self._amounts.items()]:
            if _FAMILIES[name][0] != "histogram":
                lines[name].append(f"{name}{_text(labels)} {total}")
                continue
            for bound, count in zip((*BOUNDS, "+Inf"), accumulate(counts), strict=True):
                lines[name].append(f"{name}_bucket{_text((*labels, ('le', str(bound))))} {count}")
            lines[name] += [f"{name}_sum{_text(labels)} {total}", f"{name}_count{_text(labels)} {sum(counts)}"]
        return "".join(f"{line}\n" for family in lines.values() for line in family)

    async def _read(self) -> Amounts:
        store, now, gauges = self._store, time(), _zeros()
        add = partial(self._add, gauges)
        questions, count = await store.oldest_questions(1)
        pending = (await store.marks()).oldest_pending
        add("quire_store_up", 1)
        add("quire_open_questions", count)
        add("quire_oldest_question_seconds", now - questions[0].asked_at if questions else 0)
        add("quire_oldest_pending_run_seconds", now - pending if pending else 0)
        for state, runs in (await store.counts(RunFilters(tries=True))).items():
            add("quire_runs", runs, status=state)
        for lane, _, state in await store.under_way():
            add("quire_lane_runs", 1, lane=lane, status=state)
        for process in await store.processes():
            if is_recent(process, now):
                add("quire_processes", 1, kind=process.kind, state=process.state)
        for (source, outcome), fires in store.claims.items():
            add("quire_fires_total", fires, source=source, state=outcome)
        return gauges

    def _observe(self, lease: Lease, batch: Batch, seconds: float) -> None:
        add = partial(self._add, self._amounts)
        document, pinned = (lease.row.document, lease.row.pins.get("model")) if lease.row else ("", "")
        add("quire_store_write_seconds", seconds)
        for record in batch.effects:
            value, usage = record.value, record.usage
            model = str((value.get("model") if isinstance(value, Mapping) else "") or pinned)
            if record.kind == "tool" and record.state != "intent":
                add("quire_tool_call_seconds", record.elapsed, state=record.state)
            if record.is_model_call and record.state != "intent":
                add("quire_model_call_seconds", record.elapsed, model=model, state=record.state)
            if record.kind == "model" and usage is not None:
                add("quire_tokens_total", usage.input_tokens, document=document, model=model, direction="input")
                add("quire_tokens_total", usage.output_tokens, document=document, model=model, direction="output")
                add("quire_cost_dollars_total", usage.cost or 0, document=document, model=model)
        started = self._started.setdefault(lease.run, {})
        for event in batch.events:
            if event.type == "step_started":
                started[event.path] = event.at
            elif event.type in ("step_completed", "step_failed") and event.path in started:
                add("quire_step_seconds", event.at - started.pop(event.path), document=document)
        if batch.update is not None and batch.update.status not in (None, Status.RUNNING):
            del self._started[lease.run]
            add("quire_drives_total", 1, document=document, status=batch.update.status)

    def _add(self, to: Amounts, family: str, amount: float, **labels: str) -> None:
        for label, value in labels.items():
            names = self._names[label]
            if len(names) < MOST_NAMES:
                names.add(value)
            labels[label] = value if value in names else "other"
        amounts = to[family, tuple(labels.items())]
        amounts[bisect_left(BOUNDS, amount)] += 1
        amounts[-1] += amount


def _text(labels: Iterable[tuple[str, str]]) -> str:
    pairs = [f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels]
    return f"{{{','.join(pairs)}}}" if pairs else ""


async def answer_probe(
    metrics: Metrics, process: Callable[[], Process], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer one request to a worker: `/metrics`, `/live`, and `/ready` while it is fit. On a loopback address a web
    page gets nothing by a name that was made to resolve to it."""
    with closing(writer), suppress(OSError, ValueError, IndexError, EOFError, asyncio.LimitOverrunError):
        async with asyncio.timeout(2 * PATIENCE_SECONDS):
            words = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split()
            host = next((f"//{host}" for name, host in pairwise(words) if name.lower() == "host:"), "")
            is_local = is_loopback_name(writer.get_extra_info("sockname")[0])
            path, now, status, text = words[1].partition("?")[0], process(), 404, "see /metrics, /live and /ready\n"
            if is_local and not is_loopback_name(urlsplit(host).hostname or ""):
                status, text = 421, "this worker is 127.0.0.1\n"
            elif path == "/metrics":
                status, text = 200, await metrics.text()
            elif path in ("/live", "/ready"):
                status, text = 200 if path == "/live" or now.state == "fit" else 503, f"{now.state} {now.reason}\n"
            body = text.encode(errors="replace")
            head = f"HTTP/1.1 {status} \r\nContent-Type: {MEDIA}\r\nContent-Length: {len(body)}\r\n"
            writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
            await writer.drain()
