"""Read the scripted replies of a model, by step or in a list, and the scripted behaviour of tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from quire.formats.test import codes
from quire.formats.test.syntax import Entry as Reply
from quire.formats.test.syntax import Script, ScriptedError, ToolScript, When
from quire.formats.yaml import Entry, Mapping, Node, Scalar, Sequence, describe
from quire.plan.vocabulary import typed_way
from quire.values import Value, encode
from quire.wording import quoted

if TYPE_CHECKING:
    from quire.formats.test.fields import TestFields
    from quire.source import Span


Entries: TypeAlias = dict[str, Entry]

MOMENTS = ("before", "after")


class ScriptParts:
    """Reads the parts that scripts of models and of tools share: errors, crashes, delays, and how often an entry
    answers. With `shared` they belong to the defaults, and a case does not have to use them."""

    def __init__(self, fields: TestFields, *, shared: bool = False) -> None:
        self.fields = fields
        self.shared = shared

    def error(self, entry: Entry, what: str, kind: str) -> ScriptedError | None:
        node = entry.value
        if not isinstance(node, Mapping):
            text = self.fields.text_of(node, what, entry.visible)
            return ScriptedError(kind, text) if text is not None else None
        entries = self.fields.keys(node, "cases.-.model.-.error", what)
        kind = (self.fields.text(entries["kind"], "kind") if "kind" in entries else None) or kind
        message = self.fields.text(entries["message"], "message") if "message" in entries else None
        transient = self.fields.flag(entries["transient"], "transient") if "transient" in entries else False
        return ScriptedError(kind, message or f"a scripted failure of kind {kind}", transient is True)

    def crash(self, entry: Entry | None) -> When | None:
        return cast("When | None", self.fields.choice(entry, MOMENTS, "crash")) if entry else None

    def delay(self, entry: Entry | None) -> float:
        return (self.fields.number(entry, "delay_ms", 1e12) or 0.0) / 1000 if entry else 0.0

    def times(self, entry: Entry | None, otherwise: int | None) -> int | None:
        if entry is None:
            return otherwise
        if isinstance(entry.value, Scalar) and entry.value.value == "any":
            return None
        node = entry.value
        if isinstance(node, Scalar) and type(node.value) is int and 1 <= node.value <= 10**9:
            return node.value
        self.fields.wrong("times", "a whole number of at least 1, or any", node, entry.visible)
        return otherwise


CALL_KEYS = ("path", "contains", "turn", "thread", "item")
"""The keys that say which call an entry answers, beside its step."""
FINISH_REASONS = ("stop", "length", "repetition", "content_filter", "tool_calls")
DEFAULT = "default"
_SAYS = ("reply", DEFAULT, "error", "tool_calls")


class ModelReader(ScriptParts):
    """Reads `model`."""

    def model(self, entry: Entry) -> Script | None:
        node = entry.value
        if isinstance(node, Mapping):
            replies = [
                reply
                for label, part in self.fields.named(node, "the label of a step")
                for reply in self._step(label, part)
            ]
            return Script(tuple(replies), True, node.span)
        if isinstance(node, Sequence):
            entries = (self._listed(item) for item in node.items)
            return Script(tuple(reply for reply in entries if reply is not None), False, node.span)
        self.fields.wrong("model", "a mapping by step, or a list of replies", node, entry.visible)
        return None

    def _step(self, label: str, entry: Entry) -> list[Reply]:
        """Read the replies to one step; those of the label `default` answer every call that nothing else answers."""
        nodes = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
        replies = []
        step = typed_way(label)
        for node in nodes:
            reply: Reply | None
            if isinstance(node, Mapping):
                help = "a JSON object as a reply is written reply: {…}"
                reply = self._reply(self.fields.keys(node, "cases.-.model.STEP", "a reply", help), node)
            else:
                reply = self._bare(node, entry.visible if node is entry.value else node.span)
            if reply is None:
                continue
            if label == DEFAULT:
                unlimited = not (isinstance(node, Mapping) and node.find("times"))
                replies.append(replace(reply, is_default=True, times=None if unlimited else reply.times))
            else:
                replies.append(replace(reply, step=step))
        return replies

    def _listed(self, node: Node) -> Reply | None:
        if not isinstance(node, Mapping):
            return self._bare(node, node.span)
        return self._reply(self.fields.keys(node, "cases.-.model.-", "a reply"), node)

    def _bare(self, node: Node, span: Span) -> Reply | None:
        if isinstance(node, Scalar) and isinstance(node.value, str) and not node.tag:
            return Reply(node.span, reply=node.value, shared=self.shared)
        help = "a list or a number as a reply is written {reply: …}"
        if isinstance(node, Scalar) and node.text and not node.tag:
            help = f'write "{node.text}" for text, or {{reply: {node.text}}} for JSON' if len(node.text) < 60 else help
        self.fields.wrong("a reply", "text or a mapping", node, span, help)
        return None

    def _reply(self, entries: Entries, node: Mapping) -> Reply | None:
        fields = self.fields
        says = [key for key in _SAYS if key in entries]
        if len(says) > 1:
            message = f"a reply has both {says[0]} and {says[1]}"
            fields.report(codes.SYNTAX, message, entries[says[1]].key.span, "write two entries, one after the other")
            return None
        if "text" in entries and "tool_calls" not in entries:
            place = entries["text"].key.span
            fields.report(codes.SYNTAX, "text goes with tool_calls", place, "a text alone is a reply: write reply")
            return None
        if not says and "crash" not in entries:
            help = "a call needs one of reply, tool_calls, error, default or crash"
            fields.missing("the entry has no reply", node, entries, help)
            return None
        is_default = DEFAULT in entries
        picks = next((key for key in ("step", *CALL_KEYS) if key in entries), "")
        if is_default and picks:
            message = f"a default answers every call, so it cannot have {picks}"
            fields.report(codes.SYNTAX, message, entries[picks].key.span, "write reply instead of default")
            return None
        return self._with(entries, node, is_default)

    def _with(self, entries: Entries, node: Mapping, is_default: bool) -> Reply:
        fields, get = self.fields, entries.get
        texts = {key: fields.label(entries[key], key) or "" for key in ("step", "path", "thread") if key in entries}
        contains = fields.text(entry, "contains") if (entry := get("contains")) else None
        sent = get("reply") or get(DEFAULT) or get("text")
        finish = get("finish_reason")
        finish_reason = fields.choice(finish, FINISH_REASONS, "finish_reason") if finish else None
        return Reply(
            node.span,
            step=typed_way(texts.get("step", "")),
            path=texts.get("path", ""),
            contains=contains or "",
            turn=fields.count(entry, "turn") if (entry := get("turn")) else None,
            thread=texts.get("thread", ""),
            item=fields.count(entry, "item", 0) if (entry := get("item")) else None,
            is_default=is_default,
            reply=self._sent(sent) if sent else "",
            is_json=sent is not None and not _is_text(sent.value),
            calls=self._calls(entry) if (entry := get("tool_calls")) else (),
            error=self.error(entry, "error", "model") if (entry := get("error")) else None,
            crash=self.crash(get("crash")),
            delay=self.delay(get("delay_ms")),
            usage=self._usage(entry) if (entry := get("usage")) else {},
            finish_reason=finish_reason or "",
            times=self.times(get("times"), None if is_default else 1),
            shared=self.shared,
        )

    def _sent(self, entry: Entry) -> str:
        """Return a reply as the model sends it: a text as it is, any other value as JSON."""
        node = entry.value
        value = self.fields.value(node)
        return value if isinstance(value, str) and _is_text(node) else encode(value)

    def _calls(self, entry: Entry) -> tuple[tuple[str, dict[str, Value]], ...]:
        fields = self.fields
        calls: list[tuple[str, dict[str, Value]]] = []
        nodes = fields.items(entry, "tool_calls")
        for node in nodes:
            if not isinstance(node, Mapping):
                fields.wrong("a tool call", "a mapping with name and input", node)
                continue
            entries = fields.keys(node, "cases.-.model.-.tool_calls.-", "a tool call")
            if "name" not in entries:
                fields.missing("a tool call needs a name", node, entries, "write {name: …, input: {…}}")
                continue
            name = fields.text(entries["name"], "the name of a tool")
            arguments = fields.values(entries["input"], "input") if "input" in entries else {}
            if name is not None:
                calls.append((name, arguments))
        if not nodes and isinstance(entry.value, Sequence):
            fields.report(codes.SYNTAX, "tool_calls is empty", entry.value.span, "a reply without calls is a reply")
        return tuple(calls)

    def _usage(self, entry: Entry) -> dict[str, float]:
        node = self.fields.mapping(entry, "usage")
        if node is None:
            return {}
        entries = self.fields.keys(node, "cases.-.model.-.usage", "usage")
        numbers = {key: self.fields.number(part, key) for key, part in entries.items()}
        return {key: number for key, number in numbers.items() if number is not None}


def _is_text(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, str) and not node.tag


Effect: TypeAlias = Literal["read", "idempotent", "write"]

EFFECTS = ("read", "idempotent", "write")
_BEHAVES = ("returns", "echo", "raises", "sequence", "when", "real")


class ToolReader(ScriptParts):
    """Reads `tools`."""

    def tools(self, entry: Entry) -> dict[str, ToolScript]:
        node = self.fields.mapping(entry, "tools", "write the name of each tool before what it does")
        if node is None:
            return {}
        scripts = {name: self._tool(part.value, name) for name, part in self.fields.named(node, "the name of a tool")}
        return {name: script for name, script in scripts.items() if script is not None}

    def _tool(self, node: Node, name: str, *, when: bool = False) -> ToolScript | None:
        fields = self.fields
        if isinstance(node, Scalar) and node.value == "real" and not node.tag:
            return ToolScript(node.span, real=True, shared=self.shared)
        if not isinstance(node, Mapping):
            help = "a list of results is written sequence: […]" if isinstance(node, Sequence) else ""
            help = help or "a result is written {returns: …}"
            message = f"the tool {quoted(name)} is real or a mapping, not {describe(node)}"
            fields.report(codes.SYNTAX, message, node.span, help)
            return None
        place = "cases.-.tools.NAME.when.-" if when else "cases.-.tools.NAME"
        entries = fields.keys(node, place, f"the tool {quoted(name)}")
        does = [key for key in _BEHAVES if key in entries]
        if len(does) > 1:
            message = f"the tool {quoted(name)} has both {does[0]} and {does[1]}"
            fields.report(codes.SYNTAX, message, entries[does[1]].key.span, "use sequence, or when and else")
            return None
        if not does and "crash" not in entries:
            help = "write returns, echo, raises, sequence or when"
            fields.missing(f"the tool {quoted(name)} does nothing", node, entries, help)
            return None
        if "else" in entries and "when" not in entries:
            fields.report(codes.SYNTAX, "else goes with when", entries["else"].key.span)
        return self._behaviour(entries, node, name)

    def _behaviour(self, entries: Entries, node: Mapping, name: str) -> ToolScript:
        fields, get = self.fields, entries.get
        returns: Value | UnsetType = fields.value(entry.value) if (entry := get("returns")) else UNSET
        effect = cast("Effect | None", fields.choice(entry, EFFECTS, "class")) if (entry := get("class")) else None
        return ToolScript(
            node.span,
            real=self._true(get("real"), "real"),
            returns=returns,
            echo=self._true(get("echo"), "echo"),
            raises=self.error(entry, "raises", "tool") if (entry := get("raises")) else None,
            sequence=self._sequence(entry, name) if (entry := get("sequence")) else (),
            when=self._when(entry, name) if (entry := get("when")) else (),
            otherwise=self._tool(entry.value, name) if (entry := get("else")) else None,
            delay=self.delay(get("delay_ms")),
            crash=self.crash(get("crash")),
            times=self.times(get("times"), None),
            effect=effect,
            shared=self.shared,
        )

    def _true(self, entry: Entry | None, what: str) -> bool:
        if entry is None:
            return False
        if self.fields.flag(entry, what) is False:
            self.fields.report(codes.SYNTAX, f"{what} can only be true", entry.visible, f"leave {what} out")
        return True

    def _sequence(self, entry: Entry, name: str) -> tuple[ToolScript, ...]:
        nodes = self.fields.items(entry, "sequence")
        if not nodes and isinstance(entry.value, Sequence):
            self.fields.report(codes.SYNTAX, "sequence is empty", entry.value.span)
        scripts = (self._tool(node, name) for node in nodes)
        return tuple(script for script in scripts if script is not None)

    def _when(self, entry: Entry, name: str) -> tuple[tuple[dict[str, Value], ToolScript], ...]:
        cases: list[tuple[dict[str, Value], ToolScript]] = []
        for node in self.fields.items(entry, "when"):
            args = node.find("args") if isinstance(node, Mapping) else None
            if args is None:
                help = "write {args: {…}, returns: …}"
                self.fields.report(codes.SYNTAX, "each entry of when needs args", node.span, help)
                continue
            script = self._tool(node, name, when=True)
            arguments = self.fields.values(args, "args")
            if script is not None:
                cases.append((arguments, script))
        return tuple(cases)
