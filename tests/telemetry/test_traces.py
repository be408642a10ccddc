"""Traces: what a receiver of OpenTelemetry gets of runs, decoded from the bytes on the wire."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.cli.directive_project import write_directives
from tests.given import given
from tests.processes import started, wait_until
from tests.runs.test_across_formats import use
from tests.runs.test_launched_runs import DONE, Place
from tests.telemetry.conftest import RUN, Said
from tests.telemetry.receiver import Received, Receiver, receiving

from quire.cli import main
from quire.engine.records import RunRow
from quire.runs.runtime import Runtime
from quire.telemetry.exporter import exporter_to
from quire.telemetry.spans import Span

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TEXTS = (b"INPUT-TEXT", b"TOOL-TEXT", b"REPLY-TEXT", b"PROMPT-ASKED", b"Say yes again")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "quire", *arguments]


def last_run(workspace: Path) -> RunRow:
    async def read() -> RunRow:
        runtime = Runtime.open(workspace)
        try:
            return await runtime.row(await runtime.find("last"))
        finally:
            await runtime.close()

    return asyncio.run(read())


def test_a_run_is_one_trace_also_when_it_is_sent_again(report: Path, receiver: Receiver, said: Said) -> None:
    assert main(RUN) == 4
    assert main(["answer", "last", "yes", "--quiet"]) == 0
    spans = receiver.by_path()
    assert len(spans) == len(receiver.spans) == 9
    root = spans[""]
    assert {span.trace for span in spans.values()} == {root.trace}
    assert {path: (span.name, span.parent) for path, span in spans.items()} == {
        "": ("invoke_workflow Weekly report", ""),
        "1": ("step 1", root.id),
        "1/tool": ("execute_tool file__read", spans["1"].id),
        "2": ("step 2", root.id),
        "2/model": (f"chat {report / 'replies.json'}", spans["2"].id),
        "3": ("step 3", root.id),
        "3/ask": ("ask 3", spans["3"].id),
        "4": ("step 4", root.id),
        "4/model": (f"chat {report / 'replies.json'}", spans["4"].id),
    }
    assert all(root.start <= span.start <= span.end <= root.end for span in spans.values())
    assert receiver.resource["service.name"] == "quire"
    chat = spans["2/model"].attributes
    assert (chat["gen_ai.operation.name"], chat["gen_ai.provider.name"]) == ("chat", "script")
    assert (chat["gen_ai.usage.input_tokens"], chat["gen_ai.usage.output_tokens"], chat["quire.cost"]) == (10, 3, 0.01)
    assert spans["1/tool"].attributes["gen_ai.tool.name"] == "file__read"
    assert len({span.attributes["quire.run"] for span in spans.values()}) == 1

    said()
    assert main(["runs", "export", "--otlp", "last"]) == 0
    assert said()[1] == "sent 9 spans of 1 run\n"
    again = receiver.spans[9:]
    assert {span.id: span for span in again} == {span.id: span for span in spans.values()}
    assert main(["runs", "export", "--otlp", "--since", "1d"]) == 0
    assert len(receiver.spans) == 27


def test_texts_are_sent_only_on_request(report: Path, receiver: Receiver, home: Path) -> None:
    assert main([*RUN, "--unattended"]) == 0
    given({"replies.json": [{"error": "the model said REPLY-TEXT"}]}, report)
    assert main([*RUN, "--unattended"]) == 3
    assert main(["runs", "export", "--otlp", "--since", "1d"]) == 0
    assert len(receiver.spans) == 9 * 2 + 5 * 2
    body = b"".join(receiver.bodies)
    assert b"execute_tool" in body
    assert [text for text in TEXTS if text in body] == []

    given({"quire.toml": "[telemetry]\ncontent = true\n"}, home)
    given({"replies.json": [{"default": "REPLY-TEXT"}]}, report)
    receiver.bodies.clear()
    assert main([*RUN, "--unattended"]) == 0
    body = b"".join(receiver.bodies)
    assert [text for text in TEXTS if text not in body] == []
    chat = receiver.by_path()["4/model"].attributes
    assert json.loads(chat["gen_ai.input.messages"])[-1]["parts"][0]["content"] == "Say yes again."
    assert json.loads(chat["gen_ai.output.messages"])[0]["finish_reason"] == "stop"


def test_texts_are_sent_without_secrets(report: Path, receiver: Receiver, home: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdefghij")
    given({"quire.toml": "[telemetry]\ncontent = true\n"}, home)
    assert main([*RUN, "-i", "topic=sk-0123456789abcdefghij", "--unattended"]) == 0
    body = b"".join(receiver.bodies)
    assert b"sk-0123456789abcdefghij" not in body
    assert b"[redacted:OPENAI_API_KEY]" in body


def test_threads_are_agents_and_those_that_they_start_stand_below_their_call(
    workspace: Path, receiver: Receiver
) -> None:
    write_directives(workspace)
    assert main(["run", "deploy_staging", "-i", "target=eu", "--script", "replies.json"]) == 0
    spans = receiver.by_path()
    assert len(spans) == len(receiver.spans)
    outer, call = spans["thread"], spans["thread/turn[2]/tool[0]"]
    inner = spans["thread/turn[2]/tool[0]/thread"]
    assert (outer.name, outer.parent) == ("invoke_agent project/deploy/deploy_staging", spans[""].id)
    assert (call.name, call.parent) == ("execute_tool rye/agent/threads/thread_directive", spans["thread/turn[2]"].id)
    assert (inner.name, inner.parent) == ("invoke_agent project/notes/take_note", call.id)
    assert spans["thread/turn[2]"].parent == outer.id
    refused = spans["thread/turn[1]/tool[1]/tool"]
    assert refused.failed and refused.attributes["error.type"] == "denied"
    assert refused.parent == spans["thread/turn[1]"].id


def test_a_run_that_failed_goes_on_in_the_same_trace(report: Path, receiver: Receiver) -> None:
    replies = [{"step": "2", "reply": "good"}, {"step": "4", "error": "no"}]
    given({"replies.json": replies}, report)
    assert main([*RUN, "--unattended"]) == 3
    given({"replies.json": [{"default": "good"}]}, report)
    assert main(["resume", "last", "--quiet", "--script", "replies.json"]) == 0
    assert len({span.trace for span in receiver.spans}) == 1
    assert len({span.id for span in receiver.spans}) == len(receiver.spans)
    first, second = (span for span in receiver.spans if span.attributes["quire.path"] == "")
    assert first.failed and first.attributes["error.type"] == "model" and not second.failed
    assert (first.parent, second.parent) == ("", first.id)
    calls = [span for span in receiver.spans if span.attributes["quire.path"] == "4/model"]
    assert [span.failed for span in calls] == [True, False]
    live = {span.id: span for span in receiver.spans}
    receiver.bodies.clear()
    assert main(["runs", "export", "--otlp", "last"]) == 0
    assert {span.id: span for span in receiver.spans} == live


def test_a_run_that_was_cancelled_while_it_waited_is_whole_once_it_goes_on(report: Path, receiver: Receiver) -> None:
    assert main(RUN) == 4
    assert main(["runs", "cancel", "last"]) == 0
    assert main(["resume", "last", "--quiet"]) == 4
    assert main(["answer", "last", "yes", "--quiet"]) == 0
    by_id = {span.id: span for span in receiver.spans}
    assert all(by_id[span.id] == span for span in receiver.spans)
    assert [span.name for span in by_id.values() if span.parent not in by_id] == ["invoke_workflow Weekly report"]


def test_a_run_that_expires_is_whole_once_it_is_sent_again(report: Path, receiver: Receiver) -> None:
    given({"quire.toml": '[runs]\nexpiry = "1s"\n'}, report)
    assert main(RUN) == 4
    sent = len(receiver.spans)
    wait_until(lambda: last_run(report).status == "expired")
    for _ in range(2):
        assert main(["runs", "export", "--otlp", "last"]) == 0
    by_id = {span.id: span for span in receiver.spans}
    assert (len(by_id), len(receiver.spans)) == (sent + 3, sent + 2 * (sent + 3))
    assert all(by_id[span.id] == span for span in receiver.spans)
    assert [span.name for span in by_id.values() if span.parent not in by_id] == ["invoke_workflow Weekly report"]


@pytest.mark.parametrize("was_heard", [True, False])
def test_a_run_that_is_killed_and_resumed_is_one_trace(
    report: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, was_heard: bool
) -> None:
    """The first process sends what it has written while it still works; or nobody hears it."""
    address = receiver.address
    given({"replies.json": [{"step": "2", "reply": "good"}, {"step": "4", "reply": "x", "delay_ms": 600_000}]}, report)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address if was_heard else "http://127.0.0.1:9")
    with started(command(*RUN, "--unattended"), cwd=report) as process:
        if was_heard:
            wait_until(lambda: "3/ask" in receiver.by_path())
        else:
            wait_until(lambda: stands_at(report, "3/ask"))
        process.send_signal(signal.SIGKILL)
        process.wait()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    exporter_to.cache_clear()
    given({"replies.json": [{"default": "good"}]}, report)
    assert main(["resume", "last", "--quiet", "--script", "replies.json"]) == 0
    by_id: dict[str, Received] = {}
    for span in receiver.spans:
        assert by_id.setdefault(span.id, span) == span, "a span that is sent twice is the same both times"
    assert {span.trace for span in by_id.values()} == {receiver.spans[0].trace}
    paths = Counter(span.attributes["quire.path"] for span in by_id.values())
    assert paths == Counter(["", "1", "1/tool", "2", "2/model", "3", "3/ask", "4", "4/model"])
    assert all(not span.parent or span.parent in by_id for span in by_id.values())


def stands_at(workspace: Path, path: str) -> bool:
    async def look() -> bool:
        runtime = Runtime.open(workspace)
        try:
            rows = await runtime.store.list()
            return bool(rows) and any(record.path == path for record in await runtime.store.effects(rows[0].id))
        finally:
            await runtime.close()

    return asyncio.run(look())


@pytest.mark.parametrize("fault", ["hangs", "500", "refuses"])
def test_no_receiver_makes_a_run_wait(report: Path, said: Said, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    with receiving(500 if fault == "500" else 200, hangs=fault == "hangs") as receiver, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # it does not listen
        refusing = f"http://127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refusing if fault == "refuses" else receiver.address)
        before = time.monotonic()
        assert main([*RUN[:-1], "--unattended"]) == 0
        assert time.monotonic() - before < 8
    out, err = said()
    assert out == "REPLY-TEXT\n"
    assert "warning: traces: 9 spans lost: the receiver has not taken them\n" in err


def test_a_detached_run_is_sent_by_its_own_process(report: Path, receiver: Receiver) -> None:
    assert main([*RUN, "--unattended", "--detach"]) == 0
    wait_until(lambda: "" in receiver.by_path())
    assert len(receiver.spans) == 9


def test_a_missing_library_is_told_and_the_run_goes_on(report: Path, receiver: Receiver) -> None:
    code = (
        f"import sys; sys.modules['opentelemetry.sdk'] = None; from quire.cli import main; sys.exit(main({RUN[:-1]!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=report, timeout=60)
    assert done.returncode == 4
    assert done.stderr.count("warning: traces are not sent: ") == 1
    assert "they need the extra otel: " in done.stderr
    assert receiver.bodies == []


@pytest.mark.parametrize("disabled", [True, False])
def test_nothing_is_imported_without_a_receiver(report: Path, monkeypatch: pytest.MonkeyPatch, disabled: bool) -> None:
    if disabled:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    code = (
        f"import sys; from quire.cli import main; code = main({[*RUN, '--unattended']!r}); "
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'quire.telemetry.', 'google'))]); "
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=report, timeout=60)
    assert (done.returncode, done.stdout) == (0, "REPLY-TEXT\n[]\n")


@pytest.mark.parametrize(
    ("traceparent", "kept"),
    [
        (PARENT, True),
        (PARENT.replace("-01", "-00"), True),
        ("", False),
        (PARENT.upper(), False),
        (PARENT[:-1], False),
        (f"{PARENT}-x", False),
        (PARENT.replace("00-", "ff-", 1), False),
        ("00-" + "0" * 32 + PARENT[35:], False),
        (PARENT[:36] + "0" * 16 + "-01", False),
    ],
)
def test_the_work_that_starts_a_run_is_its_parent(
    report: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, traceparent: str, kept: bool
) -> None:
    monkeypatch.setenv("TRACEPARENT", traceparent)
    assert main([*RUN, "--unattended"]) == 0
    assert last_run(report).pins.get("trace") == (traceparent if kept else None)
    root = receiver.by_path()[""]
    assert root.parent == ("b7ad6b7169203331" if kept else "")
    assert {span.trace for span in receiver.spans} == {root.trace}
    assert (root.trace == "0af7651916cd43dd8448eb211c80319c") is kept


async def test_a_launched_run_stands_below_the_call_that_launches_it(tmp_path: Path, receiver: Receiver) -> None:
    place = Place(tmp_path / "launches")
    place.environ = {**place.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.address}
    await place.go([use("run_pipeline", name="two", input={}), DONE])
    launching, launched = place.rows
    spans = {(span.attributes["quire.run"], span.attributes["quire.path"]): span for span in receiver.spans}
    call = spans[launching.id, "thread/turn[1]/tool[0]/tool"]
    assert spans[launched.id, ""].parent == call.id
    assert len({span.trace for span in spans.values()}) == 1
    assert spans[launched.id, "1/model"].parent == spans[launched.id, "1"].id


def test_the_address_may_stand_in_the_users_own_file_only(report: Path, home: Path, said: Said) -> None:
    with receiving() as receiver:
        given({"quire.toml": f'[telemetry]\nendpoint = "{receiver.address}/"\n'}, home)
        assert main([*RUN, "--unattended"]) == 0
        assert len(receiver.spans) == 9
        given({"quire.toml": f'[telemetry]\nendpoint = "{receiver.address}"\n'}, report)
        assert main([*RUN, "--unattended"]) == 2
        assert "[telemetry] is read from the quire.toml of your user folder, not from a workspace" in said()[1]
        assert len(receiver.spans) == 9


def test_variables_of_opentelemetry_hold(report: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=seven")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "reports")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    assert main([*RUN, "--unattended"]) == 0
    assert receiver.resource == {"service.name": "reports", "deployment.environment": "test"}
    assert receiver.headers[0]["x-team"] == "seven"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--otlp", "last"], "no receiver of traces: set OTEL_EXPORTER_OTLP_ENDPOINT, or [telemetry] endpoint"),
        (["--otlp"], "--otlp takes RUNs or --since AGE, and no other option"),
        (["--otlp", "last", "--since", "1d"], "--otlp takes RUNs or --since AGE, and no other option"),
        (["--otlp", "last", "--html", "run.html"], "--otlp takes RUNs or --since AGE, and no other option"),
        (["--otlp", "--since", "soon"], "--since soon: write a number and s, m, h or d: 1d"),
        (["a", "b"], "name one RUN; several, or --since AGE, need --otlp"),
        ([], "name one RUN; several, or --since AGE, need --otlp"),
    ],
)
def test_wrong_exports(report: Path, said: Said, arguments: list[str], words: str) -> None:
    assert main(["runs", "export", *arguments]) == 2
    err = said()[1]
    assert words in err and err.count("\n") == 1


def test_runs_of_a_version_before_traces_are_sent_as_well(report: Path, receiver: Receiver) -> None:
    """They have no requests at hand but those of a replay."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT")
        assert main([*RUN, "--unattended"]) == 0
    assert receiver.bodies == []
    assert main(["runs", "export", "--otlp", "last"]) == 0
    assert receiver.by_path()["1/tool"].name == "execute_tool file__read"
    assert len(receiver.spans) == 9


def test_spans_that_do_not_fit_are_counted_and_told_once() -> None:
    span = Span("step 1", "1" * 32, "2" * 16, "", 1.0, 2.0, {})
    told: list[str] = []
    with receiving(hangs=True) as receiver:
        exporter = exporter_to(receiver.address)
        exporter.add([span] * 5_000)
        exporter.tell(told.append)
        assert told == [], "none is refused yet"
        exporter.flush(told.append, 0.2)
        exporter.flush(told.append, 0.2)
    assert told == ["warning: traces: 5000 spans lost: the receiver has not taken them"]


def test_a_server_tells_at_the_end_of_a_drive() -> None:
    span = Span("step 1", "1" * 32, "2" * 16, "", 1.0, 2.0, {})
    told: list[str] = []
    with receiving(500) as receiver:
        exporter = exporter_to(receiver.address)
        exporter.add([span] * 600)
        wait_until(lambda: (exporter.tell(told.append), told)[1])  # type: ignore[func-returns-value]
        exporter.tell(told.append)
    assert len(told) == 1
