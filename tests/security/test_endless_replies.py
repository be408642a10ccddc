"""Model services that never end: a line, a body, a reply, a silence without an end is broken off, and says so."""

from __future__ import annotations

import gzip
import json
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.security.stage import Stage

from quire.engine.conversation import Message, ToolUse
from quire.engine.driver import perform
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Status, Usage
from quire.errors import ModelFailed
from quire.library.document import load
from quire.models import providers
from quire.models.choose import ModelSettings
from quire.models.http_limits import Limits
from quire.models.open import open_model
from quire.models.retry import Retrying
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.stores import open_store

pytest.importorskip("pydantic_ai")

CALL = ModelCall("", (Message("user", "hello"),))
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
JSON = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nConnection: close\r\n%s\r\n"
Behaviour = Callable[[socket.socket], None]


def chunk(**delta: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    data = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def for_ever(opening: bytes, piece: bytes, pause: float = 0.0) -> Behaviour:
    def behave(connection: socket.socket) -> None:
        connection.sendall(opening)
        while True:
            connection.sendall(piece)
            time.sleep(pause)

    return behave


def arguments(number: int) -> bytes:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "t", "arguments": "x" * 5000}}
    return chunk(tool_calls=[call])


LINE = for_ever(EVENTS + b"data: ", b"x" * 65536)
ENDLESS = {
    "line": (LINE, "it sent a line of more than 1,000,000 bytes"),
    "comments": (for_ever(EVENTS, b": keep-alive\n\n", 0.01), "no piece of the reply for 1.5 s"),
    "empty-pieces": (for_ever(EVENTS + chunk(content="a"), chunk(content=""), 0.01), "no piece of the reply for 1.5 s"),
    "tokens": (for_ever(EVENTS, chunk(content="x" * 5000)), "is longer than 4000000 characters"),
    "arguments": (for_ever(EVENTS, arguments(0)), "is longer than 4000000 characters"),
    "drops": (for_ever(EVENTS, chunk(content="x"), 0.05), "the reply took longer than 2 s"),
    "bytes": (for_ever(EVENTS, b": " + b"x" * 6000 + b"\n"), "it sent more than 20,000,000 bytes"),
    "body": (for_ever(JSON % (b"500 No", b""), b"x" * 65536), "it sent more than 1,000,000 bytes"),
    "headers": (for_ever(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 100), ""),
    "header-drops": (for_ever(b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.05), "no piece of the reply for 1.5 s"),
    "packed": (
        for_ever(JSON % (b"200 OK", b"Content-Encoding: gzip\r\n") + gzip.compress(b"0" * 50_000_000, 1), b""),
        "it sent its answer compressed (gzip)",
    ),
}


@pytest.fixture
def served() -> Iterator[Callable[[Behaviour], str]]:
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def start(behaviour: Behaviour) -> str:
        def answer(connection: socket.socket) -> None:
            try:
                connection.recv(65536)
                behaviour(connection)
            except OSError:
                connection.close()

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                held.append(connection)
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    listener.close()
    for connection in held:
        connection.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(providers, "REPLY_LIMITS", Limits(line=1_000_000, body=1_000_000, stream=20_000_000))
    monkeypatch.setattr(providers, "REPLY_SECONDS", 20.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 400_000_000


@pytest.fixture(autouse=True)
def tried_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try has the same end; five of them with their waits would be half a minute."""
    defaults = Retrying.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "backoff", (0.01,))


async def failure(spec: str, environ: dict[str, str], seconds: float = 0.3) -> ModelFailed:
    model = open_model(spec, ModelSettings(timeout=seconds), environ)
    with pytest.raises(ModelFailed) as failed:
        await model.complete(CALL, lambda piece: None)
    assert len(failed.value.message) < 1000
    return failed.value


@pytest.mark.parametrize("name", ENDLESS)
async def test_what_has_no_end_is_broken_off(
    served: Callable[[Behaviour], str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    behaviour, says = ENDLESS[name]
    if name == "drops":
        monkeypatch.setattr(providers, "REPLY_SECONDS", 2.0)
    slow = "no piece" in says
    failed = await failure(f"{served(behaviour)}/v1#m", {}, 0.3 if slow else 10.0)
    assert says in failed.message


@pytest.mark.parametrize("provider", ["ollama", "openai", "anthropic", "openrouter"])
async def test_whatever_the_provider(
    served: Callable[[Behaviour], str], provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = served(LINE)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(name, "not-a-key-at-all")
    if provider == "openrouter":
        monkeypatch.setattr("pydantic_ai.providers.openrouter.OpenRouterProvider.base_url", f"{url}/v1")
    name = "openai/m" if provider == "openrouter" else "m"
    failed = await failure(f"{provider}:{name}", {"OLLAMA_HOST": url}, 10.0)
    assert "it sent a line of more than 1,000,000 bytes" in failed.message and failed.kind == "bad_reply"


async def test_a_prompt_beyond_measure_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perform, "MAX_PROMPT_CHARACTERS", 5_000)
    stage = Stage(tmp_path)
    stage.write("p.yaml", "pipeline: p\ninput: {text: string}\nsteps:\n- agent: {prompt: 'Read: ${input.text}'}\n")
    stage.write("p.playbook.md", "# P\n\n## INPUTS\n\n- `text` (string): t\n\n## STEP 1: A\n\nRead {{text}}\n")
    counting = Counting()
    runtime = Runtime(stage.settings, open_store(tmp_path / "q.db", durability="process"), environ={}, model=counting)
    try:
        run = await runtime.start(load(stage.work / "p.playbook.md"), {"text": "x" * 6_000}, RunOptions())
        ended = await runtime.drive(run)
    finally:
        await runtime.close()
    assert ended.status is Status.FAILED and ended.failure is not None and counting.asked == 0
    assert "characters; no more than 5,000 are sent to a model" in ended.failure.message


class Counting:
    """A model that calls a tool so many times in one turn."""

    name = "counting"

    def __init__(self, calls: int = 0) -> None:
        self.calls = calls
        self.asked = 0
        self.told: list[str] = []

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.asked += 1
        self.told = [message.content for message in call.messages if message.role == "tool"]
        uses = tuple(
            ToolUse(f"c{number}", "file__write", {"path": f"f{number}", "content": "x"}) for number in range(self.calls)
        )
        return ModelReply("done", self.name, Usage(), uses=uses if self.asked == 1 else ())


async def test_an_agent_makes_so_many_calls_in_a_turn(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.write("quire.toml", '[agents.default]\ntools = ["file__write"]\n')
    stage.write("p.yaml", "pipeline: p\nsteps:\n- agent: {prompt: Write.}\n")
    stage.confirm()
    model = Counting(5_000)
    runtime = Runtime(stage.settings, open_store(tmp_path / "q.db", durability="process"), environ={}, model=model)
    try:
        run = await runtime.start(load(stage.work / "p.yaml"), {}, RunOptions())
        ended = await runtime.drive(run)
    finally:
        await runtime.close()
    assert ended.status is Status.COMPLETED, ended
    assert len(list(stage.work.glob("f*"))) == 200
    assert len(model.told) == 201 and "only the first 200 were made" in model.told[-1]
