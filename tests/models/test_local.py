"""The embedded model, on the real runtime and a real (very small) model: what it says does not matter, how does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import jsonschema_rs
import pytest
from tests.depth import depth

pytest.importorskip("xllamacpp", reason='needs the extra "local", and libgomp', exc_type=ImportError)

from quire.engine.capture import json_objects
from quire.engine.conversation import Message, Offered, ToolUse
from quire.engine.ports import ModelCall
from quire.errors import CannotStart, ModelFailed
from quire.models.choose import ModelSettings
from quire.models.llama import Callback, LlamaRuntime, runtime_for
from quire.models.local import LocalModel, _loops, closes
from quire.models.open import open_model
from quire.values import Value, decode

SCHEMA: dict[str, Value] = {
    "type": "object",
    "properties": {"mood": {"enum": ["good", "bad"]}, "note": {"type": "string"}},
    "required": ["mood", "note"],
    "additionalProperties": False,
}


def user(text: str, **more: object) -> ModelCall:
    return ModelCall("You are brief.", (Message("user", text),), **more)  # type: ignore[arg-type]


async def test_plain_and_streamed(smollm2: Path) -> None:
    model = open_model(f"local:{smollm2}", ModelSettings())
    pieces: list[str] = []
    reply = await model.complete(user("Say hello.", max_tokens=24), pieces.append)
    assert reply.text.strip()
    assert "".join(pieces) == reply.text
    assert len(pieces) > 1
    assert reply.model == "local:smollm2.gguf"
    assert reply.finish_reason in ("stop", "length")
    assert reply.usage.cost == 0.0
    assert 10 < reply.usage.input_tokens < 60
    assert 0 < reply.usage.output_tokens <= 24


async def test_a_long_prompt_is_reported_while_it_is_read(smollm2: Path) -> None:
    reports: list[tuple[int, int]] = []
    pieces: list[str] = []
    text = " ".join(f"Boat {number} is red." for number in range(120))
    call = user(f"{text} Which boat is blue?", max_tokens=4, on_reading=lambda *now: reports.append((*now,)))
    reply = await LocalModel(smollm2, name="x").complete(call, lambda piece: pieces.append(f"{len(reports)}"))
    total = reply.usage.input_tokens
    assert total > 512
    assert [total for _, total in reports] == [total] * len(reports)
    assert len(reports) >= 3
    assert reports == sorted(reports)
    assert reports[-1] == (total, total)
    assert {*pieces} == {str(len(reports))}, "all of it is read before the reply begins"


async def test_length_is_said(smollm2: Path) -> None:
    reply = await LocalModel(smollm2, name="x").complete(user("Tell a long story.", max_tokens=4), lambda piece: None)
    assert (reply.finish_reason, reply.usage.output_tokens) == ("length", 4)


async def test_at_temperature_0_the_same_is_said_twice(smollm2: Path) -> None:
    model = LocalModel(smollm2, name="x")

    async def said(temperature: float | None) -> str:
        call = user("Invent a name for a ship.", max_tokens=12, temperature=temperature)
        return (await model.complete(call, lambda piece: None)).text

    assert await said(0.0) == await said(0.0)
    first = await said(2.0)
    assert await said(2.0) != first or await said(2.0) != first


async def test_only_the_closing_object_is_forced(smollm2: Path) -> None:
    pieces: list[str] = []
    call = user("How is the weather today? One sentence.", closing=SCHEMA, max_tokens=300, temperature=0.0)
    reply = await LocalModel(smollm2, name="x").complete(call, pieces.append)
    assert "".join(pieces) == reply.text
    assert closes(reply.text, SCHEMA)
    last = list(json_objects(reply.text))[-1]
    prose = reply.text[: last.start]
    assert prose.strip()
    assert prose.endswith("\n")
    assert last.value["mood"] in ("good", "bad")


IMPOSSIBLE: dict[str, Value] = {
    "type": "object",
    "properties": {"a": {"type": "string", "pattern": "(?=x)y"}},
    "required": ["a"],
}
"""Beyond the runtime's grammars, which it does not say: it just generates freely."""


async def test_a_schema_beyond_the_runtime_leaves_the_prose(smollm2: Path) -> None:
    pieces: list[str] = []
    call = user("Say hello.", closing=IMPOSSIBLE, max_tokens=8)
    reply = await LocalModel(smollm2, name="x").complete(call, pieces.append)
    assert reply.text.strip()
    assert "".join(pieces) == reply.text
    assert reply.usage.output_tokens <= 8 + 4, "what was not forced was not stopped at once"


async def test_the_whole_reply_is_forced(smollm2: Path) -> None:
    pieces: list[str] = []
    # So small a model may never end a text by itself.
    schema = {**SCHEMA, "properties": {"mood": {"enum": ["good", "bad"]}, "note": {"type": "string", "maxLength": 40}}}
    call = user("How are you?", schema=schema, temperature=0)  # else it may end in line breaks, now and then
    reply = await LocalModel(smollm2, name="x").complete(call, pieces.append)
    assert "".join(pieces) == reply.text
    assert len(pieces) > 1
    assert jsonschema_rs.is_valid(schema, decode(reply.text))
    assert reply.finish_reason == "stop"


async def test_a_forced_reply_that_is_cut_is_no_reply(smollm2: Path) -> None:
    with pytest.raises(ModelFailed, match="cut off by the token limit") as caught:
        call = user("How are you?", schema=SCHEMA, max_tokens=4)
        await LocalModel(smollm2, name="x").complete(call, lambda piece: None)
    assert caught.value.kind == "bad_reply"


@pytest.mark.parametrize("schema", [IMPOSSIBLE, {"type": "array"}, {}])
async def test_where_nothing_can_be_forced_the_model_just_answers(smollm2: Path, schema: dict[str, Value]) -> None:
    pieces: list[str] = []
    call = user("Say hello.", schema=schema, max_tokens=8)
    reply = await LocalModel(smollm2, name="x").complete(call, pieces.append)
    assert "".join(pieces) == reply.text
    assert reply.text.strip()


LOOK: dict[str, Value] = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = Offered("look", "Looks up a city.", LOOK)
ODD = Offered("odd", "Odd.", IMPOSSIBLE)


@pytest.mark.parametrize("tools", [(TOOL,), (TOOL, ODD)], ids=["exact", "loose"])
async def test_tools_are_called_or_an_answer_is_given(smollm2: Path, tools: tuple[Offered, ...]) -> None:
    model = LocalModel(smollm2, name="x")
    messages: tuple[Message, ...] = (Message("user", "Look up Rome."),)
    for turn in range(1, depth(2, 3)):
        pieces: list[str] = []
        call = ModelCall("You look up cities.", messages, tools=tools, max_tokens=depth(60, 120))
        try:
            reply = await model.complete(call, pieces.append)
        except ModelFailed as error:
            assert error.kind == "bad_reply"  # so small a model may go on for ever, but not unseen
            return
        assert "".join(pieces) == reply.text
        assert reply.usage.input_tokens > 100
        if not reply.uses:
            assert reply.text.strip()
            assert not reply.text.startswith("{")
            return
        [use] = reply.uses
        assert (reply.text, reply.finish_reason, use.id) == ("", "tool_call", f"call_{turn}")
        assert use.name in {tool.name for tool in tools}
        if tools == (TOOL,):
            assert jsonschema_rs.is_valid(LOOK, use.arguments)
        messages += (Message("assistant", "", (use,)), Message("tool", "It rains.", answers=use.id))


async def test_a_call_that_is_cut_is_none(smollm2: Path) -> None:
    call = ModelCall("", (Message("user", "Look up Rome."),), tools=(TOOL,), max_tokens=2)
    with pytest.raises(ModelFailed, match="cut off by the token limit") as caught:
        await LocalModel(smollm2, name="x").complete(call, lambda piece: None)
    assert caught.value.kind == "bad_reply"


@dataclass(frozen=True)
class Told:
    """What the runtime is made to say, and what comes of it."""

    said: str
    finish: str
    text: str
    uses: tuple[ToolUse, ...] = ()
    fails: str = ""


TOLD = {
    "call": Told(
        '{"tool": "look", "args": {"city": "Rome"}}', "stop", "", (ToolUse("call_1", "look", {"city": "Rome"}),)
    ),
    "answer": Told('{"answer": "It \\"rains\\" \\ud83d\\ude00."}', "stop", 'It "rains" 😀.'),
    "answer in the shape of a schema": Told('{"answer": {"mood": "good"}}', "stop", '{"mood":"good"}'),
    "a text that is cut is kept": Told('{"answer": "It is going to', "length", "It is going to"),
    "an object that is cut is not": Told('{"answer": {"mood": "go', "length", "", fails="cut off by the token limit"),
    "a call that is cut is not": Told(
        '{"tool": "look", "args": {"ci', "length", "", fails="cut off by the token limit"
    ),
    "another shape": Told('{"other": 1}', "stop", "", fails="neither a call of a tool nor an answer"),
    "nothing": Told('{"answer": " "}', "stop", "", fails="answered nothing"),
    "never forced": Told("Well, it rains.", "stop", "", fails="neither a call of a tool nor an answer"),
}


@pytest.fixture
def told_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LocalModel]]:
    """A model that says these things (text, finish) one after the other, three characters at a time."""
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF")
    model = LocalModel(path, name="x")

    def saying(*texts: tuple[str, str]) -> LocalModel:
        left = list(texts)

        def generate(runtime: LlamaRuntime, request: Mapping[str, object], callback: Callback) -> None:
            said, finish = left.pop(0)
            for at in range(0, len(said), 3):
                if callback({"choices": [{"delta": {"content": said[at : at + 3]}}]}):
                    return
            callback({"choices": [{"delta": {}, "finish_reason": finish}]})

        monkeypatch.setattr(LlamaRuntime, "generate", generate)
        return model

    yield saying
    model._runtime.worker.shutdown()


@pytest.mark.parametrize("name", TOLD)
async def test_what_a_forced_reply_means(name: str, told_model: Callable[..., LocalModel]) -> None:
    told, pieces = TOLD[name], list[str]()
    model = told_model(*[(told.said, told.finish)] * 2)
    call = user("Look.", tools=(TOOL,))
    if told.fails:
        with pytest.raises(ModelFailed, match=told.fails):
            await model.complete(call, pieces.append)
        return
    reply = await model.complete(call, pieces.append)
    assert (reply.text, reply.uses) == (told.text, told.uses)
    assert "".join(pieces) == reply.text
    assert reply.finish_reason == ("tool_call" if told.uses else told.finish)


@pytest.mark.parametrize(("ended", "finish"), [("stop", "stop"), ("length", "length")])
async def test_a_reply_is_as_whole_as_its_closing_object(
    told_model: Callable[..., LocalModel], ended: str, finish: str
) -> None:
    model = told_model(("It rains and rains and", "length"), ('{"mood": "bad"}', ended))
    reply = await model.complete(user("How is it?", closing=SCHEMA), lambda piece: None)
    assert (reply.text, reply.finish_reason) == ('It rains and rains and\n{"mood": "bad"}', finish)


async def test_what_cannot_be_forced_exactly_is_forced_loosely(told_model: Callable[..., LocalModel]) -> None:
    pieces: list[str] = []
    model = told_model((" \n Well, it rains.", "stop"), ('{"answer": "It rains."}', "stop"))
    reply = await model.complete(user("Look.", tools=(ODD,)), pieces.append)
    assert (reply.text, "".join(pieces)) == ("It rains.", "It rains.")
    assert reply.usage.output_tokens > len('{"answer": "It rains."}') / 3, "the first try is counted too"


async def test_a_prompt_that_is_too_long(smollm2: Path) -> None:
    with pytest.raises(ModelFailed, match=r"the prompt has \d+ tokens, local:x takes 8192") as caught:
        await LocalModel(smollm2, name="x").complete(user("word " * 9000), lambda piece: None)
    assert caught.value.kind == "too_long"


async def test_cancelling_stops_the_generation(smollm2: Path) -> None:
    model = LocalModel(smollm2, name="x")
    started, pieces = asyncio.Event(), list[str]()

    def on_delta(piece: str) -> None:
        pieces.append(piece)
        started.set()

    task = asyncio.ensure_future(model.complete(user("Tell a very long story.", max_tokens=1000), on_delta))
    await asyncio.wait_for(started.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    heard = len(pieces)
    assert heard < 500
    # The next call gets its turn only once the cancelled one has let go of the runtime.
    await asyncio.wait_for(model.complete(user("Hi.", max_tokens=2), lambda piece: None), 120)
    assert len(pieces) == heard


async def test_a_long_prompt_can_be_cancelled_too(smollm2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LocalModel(smollm2, name="x")
    await model.complete(user("Hi.", max_tokens=1), lambda piece: None)
    loop, reading, reports = asyncio.get_running_loop(), asyncio.Event(), list[object]()
    generate = LlamaRuntime.generate

    def watched(runtime: LlamaRuntime, request: Mapping[str, object], callback: Callback) -> None:
        def report(chunk: object) -> bool:
            reports.append(chunk)
            loop.call_soon_threadsafe(reading.set)
            return callback(chunk)

        generate(runtime, request, report)

    monkeypatch.setattr(LlamaRuntime, "generate", watched)
    task = asyncio.ensure_future(model.complete(user("word " * 7000, max_tokens=1), lambda piece: None))
    await asyncio.wait_for(reading.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    monkeypatch.undo()
    await asyncio.wait_for(model.complete(user("Hi.", max_tokens=1), lambda piece: None), 120)
    assert len(reports) < 7000 / 256, "the whole prompt was read although nobody waited"


async def test_calls_wait_for_each_other_and_the_loop_stays_free(smollm2: Path) -> None:
    model = LocalModel(smollm2, name="x")
    order: list[str] = []
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.ensure_future(tick())
    await asyncio.gather(
        *(model.complete(user(f"Count {name}.", max_tokens=12), lambda _, n=name: order.append(n)) for name in "ab")  # type: ignore[misc]
    )
    ticking.cancel()
    assert order == sorted(order)
    assert set(order) == {"a", "b"}
    assert ticks > 3


async def test_a_bug_in_a_display_is_a_traceback(smollm2: Path) -> None:
    def broken(piece: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await LocalModel(smollm2, name="x").complete(user("Hi.", max_tokens=5), broken)


def test_one_runtime_per_file(smollm2: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(smollm2)
    assert runtime_for(link) is runtime_for(smollm2)


async def test_the_listener_of_the_runtime_lets_nobody_in(smollm2: Path) -> None:
    await LocalModel(smollm2, name="x").complete(user("Hi.", max_tokens=1), lambda piece: None)
    address = runtime_for(smollm2)._server.listening_address  # type: ignore[union-attr]
    request = urllib.request.Request(f"{address}/v1/chat/completions", b'{"messages": []}')
    with pytest.raises(urllib.error.HTTPError, match="401"):
        await asyncio.to_thread(urllib.request.urlopen, request, timeout=10)


@pytest.mark.parametrize(("content", "says"), [(None, "no model file at"), (b"hello", "is not a GGUF model file")])
def test_what_is_no_model(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "x.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CannotStart, match=says):
        LocalModel(path, name="x")


async def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 200)
    with pytest.raises(ModelFailed, match="cannot be loaded") as caught:
        await LocalModel(path, name="x").complete(user("Hi."), lambda piece: None)
    assert caught.value.kind == "bad_model"


def test_nothing_is_printed_and_the_process_ends(smollm2: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from quire.models.open import open_model\n"
        "from quire.models.choose import ModelSettings\n"
        "from quire.engine.ports import ModelCall\n"
        "from quire.engine.conversation import Message\n"
        "async def main():\n"
        f"    model = open_model('local:{smollm2}', ModelSettings())\n"
        "    call = ModelCall('', (Message('user', 'Tell a long story.'),))\n"
        "    try: await asyncio.wait_for(model.complete(call, lambda piece: None), 1)\n"
        "    except TimeoutError: print('left')\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in ("left\n", "")


def test_threads_do_not_pile_up(smollm2: Path) -> None:
    for _ in range(3):
        asyncio.run(LocalModel(smollm2, name="x").complete(user("Hi.", max_tokens=1), lambda piece: None))
    assert sum(thread.name.startswith("quire-model") for thread in threading.enumerate()) <= 2


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ('Fine. {"mood": "good", "note": "x"}', True),
        ('Fine.\n```json\n{"mood": "good", "note": "{"}\n```\n', True),
        ('{"mood": "good", "note": "x"} and more', False),
        ('{"mood": "odd", "note": "x"}', False),
        ('{"mood": "good"}', False),
        ('{"mood": "good", "note": "x"', False),
        ("no object", False),
        ("", False),
    ],
)
def test_closes(text: str, fits: bool) -> None:
    assert closes(text, SCHEMA) is fits


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("A longer answer would be a longer answer, but that would take you further. " * 20, True),
        (" ".join(f"word{n}" for n in range(400)), False),
        ("the same " * 20, False),
        ("Tea for you.\n" * 8, True),
        ("Tea for you.\n\n" * 8, True),
        ("Tea for you.\n" * 7, False),
        ("---\n" * 20, False),
    ],
)
def test_loops(text: str, loops: bool) -> None:
    assert _loops(text) is loops
