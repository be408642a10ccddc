"""Tool calling for models without native support: describe the tools in the prompt and force the reply into one shape.

    {"tool": NAME, "args": {…}}    the model wants that tool called
    {"answer": …}                  the model is done

Earlier turns are written in the same shape, results as messages of the user: a small model continues in the style in
which the conversation began.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.engine.conversation import Message, Offered, ToolUse
from quire.values import InvalidValue, Value, clean, decode, encode

if TYPE_CHECKING:
    from quire.engine.ports import ModelCall

Turn = dict[str, str]

_ANSWER = re.compile(r'\s*\{\s*"answer"\s*:\s*"')
_CHARACTERS = re.compile(r'(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')


def turns(call: ModelCall) -> list[Turn]:
    """Return the messages in the three roles that every chat template knows."""
    told: list[Turn] = []
    system = "\n\n".join(part for part in (call.system, _instruction(call)) if part)
    if system:
        told.append({"role": "system", "content": system})
    names: dict[str, str] = {}
    result_before = False
    for message in call.messages:
        names.update((use.id, use.name) for use in message.uses)
        role = "assistant" if message.role == "assistant" else "user"
        content = _content(message, names, in_shape=bool(call.tools))
        result = message.role == "tool"
        if result_before and role == "user":
            told[-1]["content"] += f"\n\n{content}"
        else:
            told.append({"role": role, "content": content})
        result_before = role == "user" and (result or result_before)
    return told


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
    said: str = json.loads(f'"{written[0] if written else ""}"', strict=False)
    # The second half of a surrogate pair may not have arrived yet.
    return clean(said[:-1] if said and "\ud800" <= said[-1] <= "\udbff" else said)
