"""Find the calls that instructions spell out, `rye_execute(item_type="tool", …)`, also half typed, and describe them.

A call continues to its closing parenthesis, else to the end of its backticks or to an empty line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.lsp.answers import code
from quire.lsp.directive.item_words import path_of_item, schema_lines
from quire.lsp.tool_arguments import Schema, meaning_of, properties_of, required_in
from quire.plan.built_in_tools import FORK, built_in_tool
from quire.source import Span
from quire.trust.capabilities import canonical

if TYPE_CHECKING:
    from quire.lsp.document_view import View
    from quire.values import Value

CALL = re.compile(r"\brye_(execute|fetch|sign)(?=\()")
_TOKEN = re.compile(
    r"\"(?:[^\"\\\n`]|\\.)*\"?|'(?:[^'\\\n`]|\\.)*'?|[A-Za-z_]\w*+|[(){}\[\],:=]|`|\n[ \t]*+\n",
)
_OPENS, _CLOSES = "({[", ")}]"
LONGEST = 4_000
"""Characters of one call. A longer one is read up to there."""


class Argument(Struct, frozen=True):
    """An argument of a call, or a key of its parameters."""

    name: str
    name_span: Span
    value: str = ""
    """The text, if the value begins with one."""
    value_span: Span | None = None
    """The text without its quotes; None if the value does not begin with a text."""
    within: str = ""
    """The keys around it, joined by dots: empty for an argument, `parameters` for a key of them."""


class SpelledCall(Struct, frozen=True):
    """A call in a text."""

    primary: str
    name_span: Span
    """The name of the function."""
    open: int
    """The offset behind the opening parenthesis."""
    end: int
    arguments: tuple[Argument, ...]
    commas: tuple[int, ...]
    """The offsets of the commas between arguments."""
    levels: int
    """How many parentheses and braces are open at its end; 0 for a call that is closed."""

    def argument(self, name: str, within: str = "") -> Argument | None:
        return next(
            (argument for argument in self.arguments if argument.name == name and argument.within == within), None
        )

    def value(self, name: str, within: str = "") -> str:
        argument = self.argument(name, within)
        return argument.value if argument else ""

    @property
    def item_type(self) -> str:
        return self.value("item_type") or self.value("scope") or ("tool" if self.primary == "execute" else "")


@lru_cache(maxsize=32)
def spelled_calls(text: str, start: int, end: int) -> tuple[SpelledCall, ...]:
    """Return the calls in a part of a text."""
    calls: list[SpelledCall] = []
    while match := CALL.search(text, start, end):
        calls.append(call_at(text, match, min(end, match.end() + LONGEST)))
        start = max(calls[-1].end, match.end())
    return tuple(calls)


def call_at(text: str, match: re.Match[str], end: int) -> SpelledCall:
    """Read the call whose name was matched."""
    reader = _Reader(text)
    stop = reader.read(match.end(), end)
    parts = tuple(reader.arguments), tuple(reader.commas), reader.levels
    return SpelledCall(match[1], Span(*match.span()), match.end() + 1, stop, *parts)


class _Reader:
    """Reads the tokens of one call."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.arguments: list[Argument] = []
        self.commas: list[int] = []
        self._keys: list[str] = []
        """The key of each level that is open: the first is that of the parenthesis."""
        self._pending: tuple[str, Span] | None = None
        self._word: tuple[str, Span] | None = None

    def read(self, at: int, end: int) -> int:
        for token in _TOKEN.finditer(self._text, at, end):
            sign = token[0]
            if sign == "`" or sign[0] == "\n":
                self._flush()
                return token.start()
            if sign in _OPENS:
                name = self._pending[0] if self._pending else ""
                self._flush()
                self._keys.append(name)
            elif sign in _CLOSES:
                self._flush()
                if self._keys:
                    self._keys.pop()
                if not self._keys:
                    return token.end()
            elif sign in "=:":
                is_key = sign == ("=" if len(self._keys) == 1 else ":")
                self._pending, self._word = (self._word if is_key else None), None
            elif sign == ",":
                self._flush()
                if len(self._keys) == 1:
                    self.commas.append(token.start())
            else:
                self._take(token)
        self._flush()
        return end

    def _take(self, token: re.Match[str]) -> None:
        """Take a word or a text: the value of the key before it, or else a key itself, perhaps."""
        text, span = token[0], Span(token.start(), token.end())
        if text[0] in "\"'":
            closed = len(text) > 1 and text[-1] == text[0]
            text, span = text[1 : -1 if closed else None], Span(span.start + 1, span.end - closed)
            if self._pending:
                name, where = self._pending
                self.arguments.append(Argument(name, where, text, span, self._within))
                self._pending = None
                return
        self._word = (text, span)

    def _flush(self) -> None:
        if self._pending:
            name, where = self._pending
            self.arguments.append(Argument(name, where, "", None, self._within))
        self._pending = self._word = None

    @property
    def levels(self) -> int:
        return len(self._keys)

    @property
    def _within(self) -> str:
        return ".".join(key for key in self._keys[1:] if key)


def action_schema(primary: str) -> tuple[str, dict[str, Schema], tuple[str, ...]]:
    """Return description, arguments and required arguments of an action."""
    from quire.library.item_tools.connection import ACTIONS

    spec = ACTIONS[primary]
    return spec.description, properties_of(spec.schema), required_in(spec.schema)


def call_markdown(primary: str, call: SpelledCall | None = None, argument: Argument | None = None) -> str:
    """Return what a call does, or the meaning of one of its arguments."""
    description, properties, required = action_schema(primary)
    if argument is None or call is None:
        schema: dict[str, Value] = {"properties": properties, "required": list(required)}
        return "\n".join([f"{code(f'rye_{primary}')} — {description}", "", *schema_lines(schema)])
    item_id = call.value("item_id")
    owner, about = f"rye_{primary}", properties.get(argument.name, {})
    if argument.within:
        named = parameters_of_tool(item_id) if argument.within == "parameters" else {}
        if argument.name not in named:
            return ""
        owner, about = item_id, named[argument.name]
    text = about.get("description")
    return f"{code(argument.name)} of {code(owner)}" + (f" — {text}" if isinstance(text, str) else "")


def parameters_of_tool(item_id: str) -> dict[str, Schema]:
    """Return the arguments of a tool of Quire by name; empty for another tool."""
    if canonical(item_id) == FORK:
        from quire.engine.interpreter.thread.setup import FORKING

        return properties_of(FORKING.schema)
    tool = built_in_tool(item_id)
    return properties_of(tool.schema) if tool else {}


def parameters_of(view: View, item_type: str, item_id: str) -> dict[str, str]:
    """Return the parameters that an item takes, with their meanings."""
    if item_type == "tool":
        return {name: meaning_of(about) for name, about in parameters_of_tool(item_id).items()}
    path = path_of_item(view.folder, item_type, item_id)
    home = view.folder.view(path) if path else None
    if home is None:
        return {}
    if home.format == "directive":
        return {input.name: " ".join(input.description.split()) for input in home.reading.partial.inputs if input.name}
    return {input.name: input.description for input in home.plan.inputs} if home.plan else {}
