"""A model that runs in this process, from a GGUF file: no key, no network, no price.

If a reply has to close with a JSON object, the prose is generated freely first. Only if it does not already end with an
object that fits is the object generated after it, with the prose as its beginning and bound by the schema. With tools,
or a schema for the whole reply, all of it is bound from the first token on.

Such models have no tool calling of their own: the prompt describes the tools, and the reply is forced to be
`{"tool": NAME, "args": {…}}`, a call, or `{"answer": …}`, the end. Earlier turns are written in the same shape, results
as messages of the user: a small model continues in the style in which the conversation began.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from quire.engine.capture import json_objects
from quire.engine.conversation import Message, Offered, ToolUse
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.errors import ModelFailed, QuireError
from quire.models.llama import LlamaRuntime, choice, forcible, runtime_for, shaped
from quire.values import InvalidValue, Value, clean, decode, encode, text_or_json

PROSE_TOKENS = 1024
OBJECT_TOKENS = 256
FORCED_TOKENS = 1536
CLOSING_TEXT, REPLY_TEXT = 300, 2000

SAMPLING: Mapping[str, object] = {"temperature": 0.4, "dry_multiplier": 0.5, "dry_allowed_length": 8}
"""Low temperature, with a penalty on repeating long passages word by word."""

FORCED_SAMPLING: Mapping[str, object] = {"temperature": 0.2}
"""Lower temperature. Not 0: a retry would fail in the same way."""

_LOOP_WINDOW, _LOOP_TAIL, _LOOP_TIMES = 1200, 60, 6
_LOOP_LINES = 8
"""This many equal lines of words in a row are a loop, however short they are."""

OnDelta = Callable[[str], None]


class LocalModel:
    """A model from a file.

    `name` is the text after `local:`; calls from anywhere in the process wait for each other.
    """

    def __init__(self, path: Path, *, name: str) -> None:
        self._runtime = runtime_for(path)
        self._name = f"local:{name}"

    @property
    def name(self) -> str:
        return self._name

    def estimate(self, call: ModelCall) -> float | None:
        return 0.0

    async def complete(self, call: ModelCall, on_delta: OnDelta) -> ModelReply:
        if call.tools:
            return await self._choose(call, on_delta)
        messages = turns(call)
        draft = _Draft()
        if call.schema is not None and forcible(call.schema):
            shape = shaped(call.schema, texts=REPLY_TEXT)
            sampling = _sampling(FORCED_SAMPLING, call)
            draft = await self._force(call, messages, shape, _limit(call, FORCED_TOKENS), sampling, on_delta)
            self._check_whole(draft)
        if not draft.text:
            closing = _closing_tokens(call)
            limit = _left(_limit(call, PROSE_TOKENS + closing), draft) - closing
            request = {"messages": messages, "max_tokens": max(1, limit), **_sampling(SAMPLING, call)}
            draft = draft.then(await self._say(call, request, on_delta))
        if call.closing is not None and not closes(draft.text, call.closing):
            draft = await self._close(call, call.closing, messages, draft, on_delta)
        if not draft.text.strip():
            raise ModelFailed(f"{self._name} answered nothing", kind="empty")
        return self._reply(draft, draft.text)

    async def _choose(self, call: ModelCall, on_delta: OnDelta) -> ModelReply:
        """Generate a tool call or the answer, by a forced choice between them."""
        messages, limit = turns(call), _limit(call, FORCED_TOKENS)
        answer = call.schema if forcible(call.schema) else None
        raw = shown = ""

        def show(piece: str) -> None:
            nonlocal raw, shown
            raw += piece
            if len(new := answer_so_far(raw)) > len(shown):
                on_delta(new[len(shown) :])
                shown = new

        draft = _Draft()
        for loose in (False, True):
            shape = choice(call.tools, answer, texts=REPLY_TEXT, loose=loose)
            sampling = _sampling(FORCED_SAMPLING, call)
            tried = await self._force(call, messages, shape, _left(limit, draft), sampling, show)
            draft = draft.then(tried)
            if draft.text:
                break
        if shown and draft.finish != "stop":
            # A cut text, not an object: return it as without tools.
            return self._reply(draft, shown)
        self._check_whole(draft)
        try:
            decision = decided(draft.text, call)
        except InvalidValue as error:
            raise ModelFailed(
                f"{self._name}: the reply is neither a call of a tool nor an answer: {error}", kind="bad_reply"
            ) from None
        if isinstance(decision, ToolUse):
            return self._reply(draft, "", decision)
        text = clean(text_or_json(decision))
        if not text.strip():
            raise ModelFailed(f"{self._name} answered nothing", kind="empty")
        if len(text) > len(shown):
            on_delta(text[len(shown) :])
        return self._reply(draft, text)

    async def _close(
        self, call: ModelCall, schema: Mapping[str, Value], messages: list[Turn], prose: _Draft, on_delta: OnDelta
    ) -> _Draft:
        """Return the prose and the object after it; the prose alone if a grammar cannot express the schema.

        A reply that ends with its whole object is complete, even if a limit ended its prose.
        """
        gap = "\n" if prose.text.strip() else ""
        begun = [*messages, {"role": "assistant", "content": prose.text + gap}] if gap else messages
        pending = gap

        def object_delta(piece: str) -> None:
            nonlocal pending
            on_delta(pending + piece)
            pending = ""

        try:
            shape = shaped(schema, texts=CLOSING_TEXT)
            draft = await self._force(call, begun, shape, _closing_tokens(call), {"temperature": 0}, object_delta)
        except ModelFailed:
            return prose
        if not draft.text:
            return prose.then(draft)
        draft.text = gap + draft.text
        return replace(prose.then(draft), finish=draft.finish)

    async def _force(
        self,
        call: ModelCall,
        messages: list[Turn],
        shape: Mapping[str, Value],
        limit: int,
        sampling: Mapping[str, object],
        on_delta: OnDelta,
    ) -> _Draft:
        """Generate an object of that shape.

        The text is empty if the runtime could not force it, which it does not report.
        """
        try:
            grammar = self._runtime.grammar(shape)
        except RuntimeError:
            return _Draft()
        request = {"messages": messages, "max_tokens": limit, "grammar": grammar, **sampling}
        return await self._say(call, request, on_delta, begins="{")

    async def _say(self, call: ModelCall, request: dict[str, object], on_delta: OnDelta, *, begins: str = "") -> _Draft:
        """Generate a text.

        With `begins`, the text is empty unless it begins so, and nothing is passed on before that is known.
        """
        draft, held = _Draft(), ""
        async with aclosing(_chunks(self._runtime, request)) as chunks:
            async for chunk in chunks:
                held += draft.take(chunk, self._name)
                if call.on_reading is not None and isinstance(progress := chunk.get("prompt_progress"), dict):
                    call.on_reading(int(progress.get("processed", 0)), int(progress.get("total", 0)))
                start = draft.text.lstrip()[: len(begins)]
                if start != begins[: len(start)]:
                    return _Draft(read=draft.read, written=draft.written)
                if held and start == begins:
                    on_delta(held)
                    held = ""
                if _loops(draft.text):
                    draft.finish = "repetition"
                    break
        return draft if not held else _Draft(read=draft.read, written=draft.written)

    def _check_whole(self, draft: _Draft) -> None:
        if draft.text and draft.finish != "stop":
            why = "cut off by the token limit" if draft.finish == "length" else "a loop"
            raise ModelFailed(f"{self._name}: the JSON object of the reply is {why}", kind="bad_reply")

    def _reply(self, draft: _Draft, text: str, use: ToolUse | None = None) -> ModelReply:
        usage = Usage(draft.read, draft.written, 0.0)
        if use is not None:
            return ModelReply(text, self._name, usage, "tool_call", uses=(use,))
        return ModelReply(text, self._name, usage, draft.finish)


def _limit(call: ModelCall, usual: int) -> int:
    """Return the longest reply. The usual length of all models is more than these write well."""
    if call.max_tokens is None:
        return usual
    return min(call.max_tokens, usual) if call.usual_tokens and call.left_tokens is None else call.max_tokens


def _closing_tokens(call: ModelCall) -> int:
    """Return the tokens that are kept for the closing object: part of the longest reply, never in addition to it."""
    if call.closing is None:
        return 0
    return OBJECT_TOKENS if call.max_tokens is None else min(OBJECT_TOKENS, max(1, call.max_tokens // 2))


def _left(limit: int, draft: _Draft) -> int:
    """Return the tokens that are left of a limit after a text that was dropped."""
    return max(1, limit - draft.written)


def _sampling(usual: Mapping[str, object], call: ModelCall) -> Mapping[str, object]:
    return usual if call.temperature is None else {**usual, "temperature": call.temperature}


@dataclass(slots=True)
class _Draft:
    """The text and token counts of one generation so far."""

    text: str = ""
    finish: str = "stop"
    read: int = 0
    written: int = 0
    _counted: bool = field(default=False, repr=False)

    def then(self, next_: _Draft) -> _Draft:
        """Return both generations as one reply."""
        finish = self.finish if next_.finish == "stop" else next_.finish
        return _Draft(self.text + next_.text, finish, self.read + next_.read, self.written + next_.written)

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
    """Tell whether the text ends (except for a code fence) with an object that fits the schema."""
    import jsonschema_rs

    objects = list(json_objects(text))
    if not objects or text[objects[-1].end :].strip().strip("`").strip():
        return False
    # Quire built the schema from captures: it has no references.
    return bool(jsonschema_rs.is_valid(dict(schema), objects[-1].value))


async def _chunks(runtime: LlamaRuntime, request: dict[str, object]) -> AsyncGenerator[Mapping[str, object]]:
    """Yield the chunks of one generation, which runs in the runtime's thread.

    Closing the iterator stops the generation.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Mapping[str, object] | QuireError | None] = asyncio.Queue()
    stop = threading.Event()

    def arrive(item: Mapping[str, object] | QuireError | None) -> None:
        try:
            loop.call_soon_threadsafe(arrived.put_nowait, item)
        except RuntimeError:  # the loop is closed: no task waits any more
            stop.set()

    def take(chunk: Mapping[str, object] | list[Mapping[str, object]]) -> bool:
        for part in chunk if isinstance(chunk, list) else [chunk]:
            arrive(part)
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
    """Detect a repetition without end, as small models produce it."""
    if text.endswith("\n"):
        last = [line for line in text[-_LOOP_WINDOW:].split("\n") if line.strip()][-_LOOP_LINES:]
        if len(last) == _LOOP_LINES and len(set(last)) == 1 and any(sign.isalpha() for sign in last[0]):
            return True
    if len(text) < _LOOP_WINDOW:
        return False
    window = text[-_LOOP_WINDOW:]
    return window.count(window[-_LOOP_TAIL:]) >= _LOOP_TIMES


Turn = dict[str, str]

_ANSWER = re.compile(r'\s*\{\s*"answer"\s*:\s*"')
_CHARACTERS = re.compile(r'(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')


def turns(call: ModelCall) -> list[Turn]:
    """Return the messages in the three roles that every chat template knows."""
    turns_so_far: list[Turn] = []
    system = "\n\n".join(part for part in (call.system, _instruction(call)) if part)
    if system:
        turns_so_far.append({"role": "system", "content": system})
    names: dict[str, str] = {}
    result_before = False
    for message in call.messages:
        names.update((use.id, use.name) for use in message.uses)
        role = "assistant" if message.role == "assistant" else "user"
        content = _content(message, names, in_shape=bool(call.tools))
        result = message.role == "tool"
        if result_before and role == "user":
            turns_so_far[-1]["content"] += f"\n\n{content}"
        else:
            turns_so_far.append({"role": role, "content": content})
        result_before = role == "user" and (result or result_before)
    return turns_so_far


def _content(message: Message, names: Mapping[str, str], *, in_shape: bool) -> str:
    if message.role == "tool":
        return f"Result of {names.get(message.answers, 'the tool')}:\n{message.content}"
    if message.role == "user":
        return message.content
    if not message.uses:
        return encode({"answer": message.content}) if in_shape else message.content
    calls = [encode({"tool": use.name, "args": use.arguments}) for use in message.uses]
    return "\n".join(([message.content] if message.content.strip() else []) + calls)


def _instruction(call: ModelCall) -> str:
    if not call.tools:
        return ""
    answer = "the answer as text" if call.schema is None else f"the answer, fitting {encode(call.schema)}"
    lines = [
        "You have tools. Every reply is one JSON object, in one of two forms:",
        '{"tool": "NAME", "args": {…}} calls a tool; the next message brings its result.',
        f'{{"answer": …}} ends the work with {answer}.',
        "Call a tool only for what you do not know yet. When the results hold what was asked for, answer.",
        "",
        "The tools, each with the JSON Schema of its args:",
    ]
    return "\n".join([*lines, *(_offer(tool) for tool in call.tools)])


def _offer(tool: Offered) -> str:
    # A description of several paragraphs keeps its lines: run_pipeline_inline has a grammar and examples there.
    about = tool.description.strip() if "\n\n" in tool.description else " ".join(tool.description.split())
    return f"- {tool.name}{': ' if about else ''}{about}\n  args: {encode(tool.schema)}"


def decided(text: str, call: ModelCall) -> ToolUse | Value:
    """Return the tool call of a forced reply, or its answer. Raises `InvalidValue` for any other text."""
    reply = decode(text)
    match reply:
        case {"tool": str(name), "args": Mapping() as arguments}:
            earlier = sum(len(message.uses) for message in call.messages)
            return ToolUse(f"call_{earlier + 1}", name, arguments)
        case {"answer": answer}:
            return answer
    raise InvalidValue("neither a call of a tool nor an answer")


def answer_so_far(text: str) -> str:
    """Return the part of the answer that an unfinished forced reply contains; empty if the answer is not a text."""
    opening = _ANSWER.match(text)
    if not opening:
        return ""
    written = _CHARACTERS.match(text, opening.end())
    answer: str = json.loads(f'"{written[0] if written else ""}"', strict=False)
    # The second half of a surrogate pair may not have arrived yet.
    return clean(answer[:-1] if answer and "\ud800" <= answer[-1] <= "\udbff" else answer)
