"""The grammars of documents as resources, and prompts that ask for a document."""

from __future__ import annotations

from collections.abc import Mapping

import mcp_types as types
from mcp.shared.exceptions import MCPError

from quire.formats.grammars import GRAMMARS, Grammar
from quire.wording import did_you_mean, nearest

SCHEME = "quire://grammar/"
MARKDOWN = "text/markdown"
_VERB = "write_"
_TASK = "task"
_BY_URI = {f"{SCHEME}{one.key}": one for one in GRAMMARS}
_BY_PROMPT = {f"{_VERB}{one.key.replace('/', '_')}": one for one in GRAMMARS}

RESOURCES = tuple(
    types.Resource(uri=uri, name=f"{one.key} grammar", description=one.about, mime_type=MARKDOWN)
    for uri, one in _BY_URI.items()
)
PROMPTS = tuple(
    types.Prompt(
        name=name,
        title=f"Write a {one.name}",
        description=f"Asks for a {one.name} that does a task, and says how one is written.",
        arguments=[types.PromptArgument(name=_TASK, description=f"What the {one.name} is to do.", required=True)],
    )
    for name, one in _BY_PROMPT.items()
)


def grammar_resource(uri: str) -> types.ReadResourceResult | None:
    """Return the text of a grammar, or None if the address is not one of a grammar. Raises `MCPError` for an unknown
    grammar."""
    if not uri.startswith(SCHEME):
        return None
    found = _BY_URI.get(uri)
    if found is None:
        raise MCPError(types.INVALID_PARAMS, _unknown("grammar", uri, _BY_URI))
    text = types.TextResourceContents(uri=uri, text=found.text, mime_type=MARKDOWN)
    return types.ReadResourceResult(contents=[text])


def written_prompt(name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Return the messages of a prompt. Raises `MCPError` for an unknown one, and for wrong arguments."""
    found = _BY_PROMPT.get(name)
    if found is None:
        raise MCPError(types.INVALID_PARAMS, _unknown("prompt", name, _BY_PROMPT))
    if unknown := next((one for one in arguments if one != _TASK), ""):
        hint = did_you_mean(nearest(unknown, [_TASK]), f"it takes {_TASK}")
        raise MCPError(types.INVALID_PARAMS, f"{name} has no argument {unknown!r}: {hint}")
    task = arguments.get(_TASK, "").strip()
    if not task:
        raise MCPError(types.INVALID_PARAMS, f"{name} needs {_TASK}: what the {found.name} is to do")
    text = types.TextContent(text=request(found, task))
    return types.GetPromptResult(description=found.about, messages=[types.PromptMessage(role="user", content=text)])


def request(grammar: Grammar, task: str) -> str:
    """Return the message that asks a model for a document."""
    asked = f"Write a {grammar.name} that does this:\n\n{task}\n\nReply with it and nothing else."
    return f"{grammar.text}\n## Task\n\n{asked}\n"


def _unknown(what: str, name: str, known: Mapping[str, Grammar]) -> str:
    hint = did_you_mean(nearest(name, known), f"there are {', '.join(known)}")
    return f"there is no {what} {name}: {hint}"
