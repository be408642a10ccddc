"""A model that runs in this process, from a GGUF file: no key, no network, no price.

Where a reply has to close with a JSON object the prose is generated freely first; only when it does not
already end with an object that fits is the object generated after it, begun by the prose and bound by the schema.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from quire.engine.json_objects import json_objects
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.errors import ModelFailed, QuireError
from quire.models.runtime import Runtime, runtime_for
from quire.values import Value, clean

PROSE_TOKENS = 1024
OBJECT_TOKENS = 256

SAMPLING: Mapping[str, object] = {"temperature": 0.4, "dry_multiplier": 0.5, "dry_allowed_length": 8}
"""Calm, and with a penalty on repeating long passages word by word."""

_LOOP_WINDOW, _LOOP_TAIL, _LOOP_TIMES = 1200, 60, 6


class LocalModel:
    """`name` is what stands after `local:`; calls from anywhere in the process wait for each other."""

    def __init__(self, path: Path, *, name: str) -> None:
        self._runtime = runtime_for(path)
        self._name = f"local:{name}"

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        messages = [{"role": message.role, "content": message.content} for message in call.messages]
        if call.system:
            messages.insert(0, {"role": "system", "content": call.system})
        limit = call.max_tokens or PROSE_TOKENS
        prose = await self._say({"messages": messages, "max_tokens": limit, **SAMPLING}, on_delta)
        if call.closing is not None and not closes(prose.text, call.closing):
            prose = await self._close(call.closing, messages, prose, on_delta)
        if not prose.text.strip():
            raise ModelFailed(f"{self._name} answered nothing", kind="empty")
        return ModelReply(prose.text, self._name, Usage(prose.read, prose.written, 0.0), prose.finish)

    async def _close(
        self, schema: Mapping[str, Value], messages: list[dict[str, str]], prose: _Said, on_delta: Callable[[str], None]
    ) -> _Said:
        """The prose and the object after it; the prose alone where the schema is beyond the runtime's grammars."""
        gap = "\n" if prose.text.strip() else ""
        begun = [*messages, {"role": "assistant", "content": prose.text + gap}] if gap else messages
        pending = gap

        def object_delta(piece: str) -> None:
            nonlocal pending
            on_delta(pending + piece)
            pending = ""

        try:
            grammar = self._runtime.grammar(_bounded(schema))
            said = await self._say(
                {"messages": begun, "max_tokens": OBJECT_TOKENS, "grammar": grammar, "temperature": 0}, object_delta
            )
        except (ModelFailed, RuntimeError):
            return prose
        return _Said(
            prose.text + (gap if said.text else "") + said.text,
            prose.finish if said.finish == "stop" else said.finish,
            prose.read + said.read,
            prose.written + said.written,
        )

    async def _say(self, request: dict[str, object], on_delta: Callable[[str], None]) -> _Said:
        said = _Said()
        async with aclosing(_chunks(self._runtime, request)) as chunks:
            async for chunk in chunks:
                piece = said.take(chunk, self._name)
                if piece:
                    on_delta(piece)
                if _loops(said.text):
                    said.finish = "repetition"
                    break
        return said


@dataclass(slots=True)
class _Said:
    """What one generation has given so far."""

    text: str = ""
    finish: str = "stop"
    read: int = 0
    written: int = 0
    _counted: bool = field(default=False, repr=False)

    def take(self, chunk: Mapping[str, object], model: str) -> str:
        error = chunk.get("error")
        if isinstance(error, dict):
            raise _failure(error, model)
        usage, choices = chunk.get("usage"), chunk.get("choices")
        if isinstance(usage, dict):
            self.read, self.written = int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))
            self._counted = True
        if not isinstance(choices, list) or not choices:
            return ""
        self.finish = choices[0].get("finish_reason") or self.finish
        piece = clean((choices[0].get("delta") or {}).get("content") or "")
        self.text += piece
        if piece and not self._counted:
            self.written += 1
        progress = chunk.get("prompt_progress")
        if isinstance(progress, dict):
            self.read = int(progress.get("total", 0))
        return piece


def closes(text: str, schema: Mapping[str, Value]) -> bool:
    """Whether the text ends (but for a code fence) with an object that fits the schema."""
    import jsonschema_rs

    objects = list(json_objects(text))
    if not objects or text[objects[-1].end :].strip().strip("`").strip():
        return False
    return bool(jsonschema_rs.is_valid(dict(schema), objects[-1].value))


async def _chunks(runtime: Runtime, request: dict[str, object]) -> AsyncGenerator[Mapping[str, object]]:
    """The chunks of one generation, made in the runtime's thread. Closing the iterator stops the generation."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Mapping[str, object] | QuireError | None] = asyncio.Queue()
    stop = threading.Event()

    def arrive(item: Mapping[str, object] | QuireError | None) -> None:
        try:
            loop.call_soon_threadsafe(arrived.put_nowait, item)
        except RuntimeError:  # the loop is closed: nobody waits any more
            stop.set()

    def take(chunk: Mapping[str, object] | list[Mapping[str, object]]) -> bool:
        for one in chunk if isinstance(chunk, list) else [chunk]:
            arrive(one)
        return stop.is_set()

    def work() -> None:
        if stop.is_set():
            return
        try:
            runtime.generate(
                {**request, "stream": True, "stream_options": {"include_usage": True}, "return_progress": True}, take
            )
        except QuireError as error:
            arrive(error)
        except Exception as error:
            arrive(ModelFailed(f"the local model broke down: {error}", kind="bad_reply"))
        else:
            arrive(None)

    job = runtime.worker.submit(work)
    try:
        while (item := await arrived.get()) is not None:
            if isinstance(item, QuireError):
                raise item
            yield item
    finally:
        stop.set()
        job.cancel()


def _failure(error: Mapping[str, object], model: str) -> ModelFailed:
    if error.get("type") == "exceed_context_size_error":
        had, room = error.get("n_prompt_tokens", "?"), error.get("n_ctx", "?")
        return ModelFailed(f"the prompt has {had} tokens, {model} takes {room}", kind="too_long")
    return ModelFailed(f"{model}: {str(error.get('message', 'refused the request'))[:300]}", kind="bad_reply")


def _loops(text: str) -> bool:
    """Small models fall into saying one thing for ever."""
    if len(text) < _LOOP_WINDOW:
        return False
    window = text[-_LOOP_WINDOW:]
    return window.count(window[-_LOOP_TAIL:]) >= _LOOP_TIMES


def _bounded(schema: Mapping[str, Value]) -> dict[str, Value]:
    """The schema with an end to every text and list: a grammar alone does not keep a model from going on."""
    bounded: dict[str, Value] = dict(schema)
    if bounded.get("type") == "string" and "enum" not in bounded:
        bounded.setdefault("maxLength", 300)
    if bounded.get("type") == "array":
        bounded.setdefault("maxItems", 20)
    items, properties = bounded.get("items"), bounded.get("properties")
    if isinstance(items, Mapping):
        bounded["items"] = _bounded(items)
    if isinstance(properties, Mapping):
        bounded["properties"] = {
            key: _bounded(part) if isinstance(part, Mapping) else part for key, part in properties.items()
        }
    return bounded
