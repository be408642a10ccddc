"""Conversations with models, for people and for programs: transcripts of threads, and the messages sent at a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.display.text import duration, one_line
from quire.values import InvalidValue, Value, decode, encode, pretty

if TYPE_CHECKING:
    from quire.engine.conversation import Message
    from quire.engine.requests import ModelRequest
    from quire.engine.thread_progress import HookView
    from quire.runs.outcome import RunView
    from quire.runs.transcript import Transcript, TranscriptCall, Turn

_DEEPEST = 6


def transcript_markdown(view: RunView, transcripts: Sequence[Transcript]) -> str:
    lines = [f"# {one_line(view.row.title)}", ""]
    lines += [f"- run: {view.row.id}", f"- document: {one_line(view.row.document)}"]
    lines += [f"- model: {one_line(view.pins.model)}"] if view.pins.model else []
    lines += [f"- status: {view.row.status}"]
    for transcript in transcripts:
        lines += ["", *_thread(transcript, 2)]
    return "\n".join(lines) + "\n"


def transcript_data(view: RunView, transcripts: Sequence[Transcript]) -> dict[str, Value]:
    return {
        "run": view.row.id,
        "document": view.row.document,
        "model": view.pins.model,
        "status": str(view.row.status),
        "threads": [_thread_data(transcript) for transcript in transcripts],
    }


def _thread(transcript: Transcript, level: int) -> Iterator[str]:
    yield _heading(level, f"thread {one_line(transcript.thread)}")
    if transcript.tools:
        yield from ("", f"tools: {', '.join(map(one_line, transcript.tools))}")
    if transcript.system:
        yield from ("", _heading(level + 1, "system"), "", *_fenced(transcript.system))
    if transcript.message:
        yield from ("", _heading(level + 1, "first message"), "", *_fenced(transcript.message))
    for turn in transcript.turns:
        yield from ("", *_turn(turn, level + 1))
    for hook in transcript.hooks:
        yield from ("", *_hook(hook))
    yield from ("", _heading(level + 1, "end"), "", *_end(transcript.ended))


def _turn(turn: Turn, level: int) -> Iterator[str]:
    for message in turn.before:
        yield from ("**told**", "", *_quoted(message), "")
    yield _heading(level, f"turn {turn.number}")
    if turn.text.strip():
        yield from ("", *_quoted(turn.text))
    for call in turn.calls:
        yield from ("", *_call(call, level))
    for hook in turn.hooks:
        yield from ("", *_hook(hook))
    for thread in turn.threads:
        yield from ("", *_thread(thread, level + 1))


def _call(call: TranscriptCall, level: int) -> Iterator[str]:
    yield f"**calls** `{one_line(call.name)}`"
    yield from ("", *_fenced(pretty(dict(call.arguments)), "json"))
    for thread in call.threads:
        yield from ("", *_thread(thread, level + 1))
    if call.result is not None:
        word = "denied" if call.error == "denied" else "failed" if call.error else "result"
        yield from ("", f"**{word}**", "", *_fenced(_pretty(call.result), "json"))


def _hook(hook: HookView) -> Iterator[str]:
    yield f"**hook** {one_line(hook.hook) or 'without a name'} on {one_line(hook.event)}: `{one_line(hook.item_id)}`"
    if hook.parameters:
        yield from ("", *_fenced(pretty(dict(hook.parameters)), "json"))


def _end(ended: Mapping[str, Value]) -> Iterator[str]:
    if not ended:
        yield "It has not ended."
        return
    yield f"- status: {ended.get('status')}"
    for name in ("error", "limit_type", "closing_message"):
        if ended.get(name):
            yield f"- {name.replace('_', ' ')}: {one_line(str(ended[name]))}"
    cost = ended.get("cost")
    if isinstance(cost, Mapping):
        spend, elapsed = cost.get("spend"), cost.get("elapsed_seconds")
        money = "unknown" if spend is None else f"${spend:.4f}" if isinstance(spend, int | float) else str(spend)
        took = duration(elapsed) if isinstance(elapsed, int | float) else ""
        yield f"- used: {cost.get('turns')} turns, {cost.get('tokens')} tokens, {money}, {took}"
    if ended.get("outputs"):
        yield from ("", "**outputs**", "", *_fenced(pretty(ended["outputs"]), "json"))


def _heading(level: int, text: str) -> str:
    return f"{'#' * min(level, _DEEPEST)} {text}"


def _fenced(text: str, language: str = "text") -> list[str]:
    """Put a text between fences that nothing in it can close."""
    fence = "`" * 3
    while fence in text:
        fence += "`"
    return [f"{fence}{language}", *text.strip("\n").split("\n"), fence]


def _quoted(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in text.strip("\n").split("\n")]


def _pretty(text: str) -> str:
    try:
        return pretty(decode(text))
    except InvalidValue:
        return text


def _thread_data(transcript: Transcript) -> dict[str, Value]:
    return {
        "thread": transcript.thread,
        "path": transcript.path,
        "system": transcript.system,
        "message": transcript.message,
        "tools": list(transcript.tools),
        "turns": [_turn_data(turn) for turn in transcript.turns],
        "hooks": [_hook_data(hook) for hook in transcript.hooks],
        "ended": dict(transcript.ended) or None,
    }


def _turn_data(turn: Turn) -> dict[str, Value]:
    return {
        "turn": turn.number,
        "told": list(turn.before),
        "text": turn.text,
        "calls": [
            {
                "name": call.name,
                "arguments": dict(call.arguments),
                "result": call.result,
                "error": call.error or None,
                "threads": [_thread_data(thread) for thread in call.threads],
            }
            for call in turn.calls
        ],
        "hooks": [_hook_data(hook) for hook in turn.hooks],
        "threads": [_thread_data(thread) for thread in turn.threads],
    }


def _hook_data(hook: HookView) -> Value:
    return {
        "hook": hook.hook,
        "event": hook.event,
        "item_id": hook.item_id,
        "parameters": dict(hook.parameters),
        "path": hook.path,
    }


def prompt_text(request: ModelRequest) -> str:
    """Return the messages, each under a line that names its role."""
    messages = [("system", request.system)] if request.system else []
    messages += [(message.role, _message_text(message)) for message in request.messages]
    return "\n\n".join(f"--- {role} ---\n{content}" for role, content in messages) + "\n"


def prompt_data(request: ModelRequest) -> dict[str, Value]:
    data: dict[str, Value] = {
        "system": request.system,
        "messages": [_message_data(message) for message in request.messages],
        "closing": request.closing,
    }
    if request.schema is not None:
        data["schema"] = request.schema
    if request.tools:
        data["tools"] = [tool.name for tool in request.tools]
    return data


def _message_text(message: Message) -> str:
    """Return the content with the tool calls of the model."""
    calls = [f"[calls {use.name} {encode(dict(use.arguments))}]" for use in message.uses]
    return "\n".join(filter(None, [message.content, *calls]))


def _message_data(message: Message) -> Value:
    data: dict[str, Value] = {"role": message.role, "content": message.content}
    if message.uses:
        data["calls"] = [{"id": use.id, "name": use.name, "arguments": dict(use.arguments)} for use in message.uses]
    if message.answers:
        data["answers"] = message.answers
    return data
