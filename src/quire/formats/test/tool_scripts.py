"""Read the scripted behaviour of tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from msgspec import UNSET, UnsetType

from quire.formats.test import codes
from quire.formats.test.fields import shown, visible
from quire.formats.test.script_parts import Entries, ScriptParts
from quire.formats.test.syntax import ToolScript
from quire.formats.yaml import Entry, Mapping, Node, Scalar, Sequence, describe

if TYPE_CHECKING:
    from quire.values import Value

Effect: TypeAlias = Literal["read", "idempotent", "write"]

EFFECTS = ("read", "idempotent", "write")
_BEHAVES = ("returns", "echo", "raises", "sequence", "when", "real")


class ToolReader(ScriptParts):
    """Reads `tools`."""

    def tools(self, entry: Entry) -> dict[str, ToolScript]:
        node = self.fields.mapping(entry, "tools", "write the name of each tool before what it does")
        if node is None:
            return {}
        found = {name: self._tool(one.value, name) for name, one in self.fields.named(node, "the name of a tool")}
        return {name: script for name, script in found.items() if script is not None}

    def _tool(self, node: Node, name: str, *, when: bool = False) -> ToolScript | None:
        fields = self.fields
        if isinstance(node, Scalar) and node.value == "real" and not node.tag:
            return ToolScript(node.span, real=True, shared=self.shared)
        if not isinstance(node, Mapping):
            help = "a list of results is written sequence: […]" if isinstance(node, Sequence) else ""
            help = help or "a result is written {returns: …}"
            fields.report(
                codes.SYNTAX, f"the tool {shown(name)} is real or a mapping, not {describe(node)}", node.span, help
            )
            return None
        place = "cases.-.tools.NAME.when.-" if when else "cases.-.tools.NAME"
        entries = fields.keys(node, place, f"the tool {shown(name)}")
        does = [key for key in _BEHAVES if key in entries]
        if len(does) > 1:
            message = f"the tool {shown(name)} has both {does[0]} and {does[1]}"
            fields.report(codes.SYNTAX, message, entries[does[1]].key.span, "use sequence, or when and else")
            return None
        if not does and "crash" not in entries:
            help = "write returns, echo, raises, sequence or when"
            fields.missing(f"the tool {shown(name)} does nothing", node, entries, help)
            return None
        if "else" in entries and "when" not in entries:
            fields.report(codes.SYNTAX, "else goes with when", entries["else"].key.span)
        return self._behaviour(entries, node, name)

    def _behaviour(self, entries: Entries, node: Mapping, name: str) -> ToolScript:
        fields, get = self.fields, entries.get
        returns: Value | UnsetType = fields.value(one.value) if (one := get("returns")) else UNSET
        effect = cast("Effect | None", fields.choice(one, EFFECTS, "class")) if (one := get("class")) else None
        return ToolScript(
            node.span,
            real=self._true(get("real"), "real"),
            returns=returns,
            echo=self._true(get("echo"), "echo"),
            raises=self.error(one, "raises", "tool") if (one := get("raises")) else None,
            sequence=self._sequence(one, name) if (one := get("sequence")) else (),
            when=self._when(one, name) if (one := get("when")) else (),
            otherwise=self._tool(one.value, name) if (one := get("else")) else None,
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
            self.fields.report(codes.SYNTAX, f"{what} can only be true", visible(entry), f"leave {what} out")
        return True

    def _sequence(self, entry: Entry, name: str) -> tuple[ToolScript, ...]:
        nodes = self.fields.items(entry, "sequence")
        if not nodes and isinstance(entry.value, Sequence):
            self.fields.report(codes.SYNTAX, "sequence is empty", entry.value.span)
        found = (self._tool(node, name) for node in nodes)
        return tuple(script for script in found if script is not None)

    def _when(self, entry: Entry, name: str) -> tuple[tuple[dict[str, Value], ToolScript], ...]:
        found: list[tuple[dict[str, Value], ToolScript]] = []
        for node in self.fields.items(entry, "when"):
            args = node.find("args") if isinstance(node, Mapping) else None
            if args is None:
                help = "write {args: {…}, returns: …}"
                self.fields.report(codes.SYNTAX, "each entry of when needs args", node.span, help)
                continue
            script = self._tool(node, name, when=True)
            arguments = self.fields.values(args, "args")
            if script is not None:
                found.append((arguments, script))
        return tuple(found)
