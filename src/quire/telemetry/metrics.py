"""Metrics in the text format of Prometheus: gauges from the store, and totals and times of what this process has done.
They name documents, models, sources and lanes, and hold no content."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from itertools import accumulate, pairwise
from time import monotonic, time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quire.engine.records import Status
from quire.errors import StoreError
from quire.loopback import is_loopback_name
from quire.stores.run_pages import RunFilters

if TYPE_CHECKING:
    from pathlib import Path

    from quire.engine.ports import Store
    from quire.engine.records import Batch, Lease
    from quire.stores.occurrences import Process

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
READ_SECONDS, PATIENCE_SECONDS = 15.0, 5.0
MOST_NAMES = 200
"""Values of one label; the rest is `other`."""
BOUNDS = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
_TABLE = {
    "quire_store_up": ("gauge", "", "1 if the store can be read; else all that is read from it is missing."),
    "quire_runs": ("gauge", "status", "Stored runs, each status counted up to 10001."),
    "quire_lane_runs": ("gauge", "lane status", "Pending and running runs that may not overlap."),
    "quire_oldest_pending_run_seconds": ("gauge", "", "Age of the oldest run that has not begun."),
    "quire_open_questions": ("gauge", "", "Questions that wait for people, counted up to 1001."),
    "quire_oldest_question_seconds": ("gauge", "", "Age of the oldest open question."),
    "quire_processes": ("gauge", "kind state", "Servers and workers that were seen just now."),
    "quire_fires_total": ("counter", "source state", "Occurrences that this process has settled."),
    "quire_drives_total": ("counter", "document status", "Drives of runs by the status at their end."),
    "quire_tokens_total": ("counter", "document model direction", "Tokens of model calls."),
    "quire_cost_dollars_total": ("counter", "document model", "Cost of model calls, as far as prices are known."),
    "quire_model_call_seconds": ("histogram", "model state", "Time of model calls with their waits."),
    "quire_tool_call_seconds": ("histogram", "state", "Time of tool calls."),
    "quire_step_seconds": ("histogram", "document", "Time of steps that begin and end in one drive."),
    "quire_store_write_seconds": ("histogram", "", "Time of the writes of drives."),
}
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
Amounts = dict[tuple[str, ...], list[float]]
"""By family and values of labels: the number of amounts up to each bound and beyond the last, then their sum."""


class Metrics:
    """The metrics of this process, which counts from now on. Documents are named from the `folder` on."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store, self._folder, self._lock, self._read_at = store, f"{folder}/", asyncio.Lock(), -READ_SECONDS
        self._gauges, self._amounts = Amounts(), Amounts()
        self._names: dict[str, set[str]] = defaultdict(set)
        self._started: dict[str, dict[str, float]] = {}
        store.observers.append(self._observe)

    async def text(self) -> str:
        """Return all metrics. Calls within some seconds share a reading of the store."""
        async with self._lock:
            if monotonic() >= self._read_at + READ_SECONDS:
                self._gauges = {("quire_store_up",): [0]}
                with suppress(StoreError, TimeoutError):
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        self._gauges = await self._read()
                self._read_at = monotonic()
        lines = {name: [f"# HELP {name} {text}", f"# TYPE {name} {kind}"] for name, (kind, _, text) in _TABLE.items()}
        for (name, *values), (*counts, total) in [*self._gauges.items(), *self._amounts.items()]:
            kind, labels, _ = _TABLE[name]
            named = zip(labels.split(), values, strict=True)
            pairs = [f'{label}="{value.translate(_ESCAPES)}"' for label, value in named]
            braces = f"{{{','.join(pairs)}}}" if pairs else ""
            if kind != "histogram":
                lines[name].append(f"{name}{braces} {total}")
                continue
            for bound, count in zip((*BOUNDS, "+Inf"), accumulate(counts), strict=True):
                bucket = ",".join([*pairs, f'le="{bound}"'])
                lines[name].append(f"{name}_bucket{{{bucket}}} {count}")
            lines[name] += [f"{name}_sum{braces} {total}", f"{name}_count{braces} {sum(counts)}"]
        return "".join(f"{line}\n" for family in lines.values() for line in family)

    async def _read(self) -> Amounts:
        store, now, gauges = self._store, time(), Amounts()
        (questions, count), pending = await store.oldest_questions(1), (await store.marks()).oldest_pending
        self._add(gauges, 1, "quire_store_up")
        self._add(gauges, count, "quire_open_questions")
        self._add(gauges, now - questions[0].asked_at if questions else 0, "quire_oldest_question_seconds")
        self._add(gauges, now - pending if pending else 0, "quire_oldest_pending_run_seconds")
        for status, runs in (await store.counts(RunFilters(tries=True))).items():
            self._add(gauges, runs, "quire_runs", status)
        for lane, _, state in await store.under_way():
            self._add(gauges, 1, "quire_lane_runs", lane, state)
        for process in await store.processes():
            if process.is_recent(now):
                self._add(gauges, 1, "quire_processes", process.kind, process.state)
        for (source, state), fires in store.claims.items():
            self._add(gauges, fires, "quire_fires_total", source, state)
        return gauges

    def _observe(self, lease: Lease, batch: Batch, seconds: float) -> None:
        add, amounts = self._add, self._amounts
        document, pinned = (lease.row.document, lease.row.pins.get("model")) if lease.row else ("", "")
        document = document.removeprefix(self._folder)
        add(amounts, seconds, "quire_store_write_seconds")
        for record in batch.effects:
            value, usage = record.value, record.usage
            model = str((value.get("model") if isinstance(value, Mapping) else "") or pinned)
            if record.kind == "tool" and record.state != "intent":
                add(amounts, record.elapsed, "quire_tool_call_seconds", record.state)
            if record.is_model_call and record.state != "intent":
                add(amounts, record.elapsed, "quire_model_call_seconds", model, record.state)
            if record.kind == "model" and usage is not None:
                add(amounts, usage.input_tokens, "quire_tokens_total", document, model, "input")
                add(amounts, usage.output_tokens, "quire_tokens_total", document, model, "output")
                add(amounts, usage.cost or 0, "quire_cost_dollars_total", document, model)
        started = self._started.setdefault(lease.run, {})
        for event in batch.events:
            if event.type == "step_started":
                started[event.path] = event.at
            elif event.type in ("step_completed", "step_failed") and event.path in started:
                add(amounts, event.at - started.pop(event.path), "quire_step_seconds", document)
        if (status := batch.update and batch.update.status) and status is not Status.RUNNING:
            del self._started[lease.run]
            add(amounts, 1, "quire_drives_total", document, status)

    def _add(self, to: Amounts, amount: float, *key: str) -> None:
        if (amounts := to.get(key)) is None:
            name, *values = key
            for number, (label, value) in enumerate(zip(_TABLE[name][1].split(), values, strict=True)):
                names = self._names[label]
                if len(names) < MOST_NAMES:
                    names.add(value)
                values[number] = value if value in names else "other"
            amounts = to.setdefault((name, *values), [0] * (len(BOUNDS) + 2))
        amounts[bisect_left(BOUNDS, amount)] += 1
        amounts[-1] += amount


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
