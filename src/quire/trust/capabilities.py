"""One vocabulary for what a run may do: capability strings, the ids behind them, and the matcher.

A capability reads `rye.PRIMARY.TYPE.ID`, the id with dots for its slashes:
`rye.execute.tool.rye.file-system.write`. A grant is such a string in which `*` stands for any text, dots
included; `X.*` covers `X` too. Nothing else is special, and ids are escaped (`%2E`) so that no name of a
tool can contain a separator or a wildcard: two tools never share a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from quire.errors import Denied

Primary = Literal["execute", "fetch", "sign"]

ALIASES = {
    "file__read": "rye/file-system/read",
    "file__write": "rye/file-system/write",
    "file__edit": "rye/file-system/edit",
    "file__list": "rye/file-system/list",
    "file__glob": "rye/file-system/glob",
    "file__grep": "rye/file-system/grep",
    "rye/file-system/fs_write": "rye/file-system/write",
    "http__get": "rye/web/fetch",
    "shell": "rye/bash",
    "thread_directive": "rye/agent/threads/thread_directive",
    "spawn_thread": "rye/agent/threads/thread_directive",
    "rye/agent/threads/spawn_thread": "rye/agent/threads/thread_directive",
}
"""Other names of a tool and the one id it is known by."""

_FRIENDLY = {identity: name for name, identity in ALIASES.items() if "/" not in name and name != "spawn_thread"}
"""The name that people know a tool by."""

ALWAYS = ("directive_return", "rye/agent/threads/internal/")
"""What a thread may execute without any grant: an id, or the beginning of one."""

_PLAIN = re.compile(r"[A-Za-z0-9_-]")
_ODD = re.compile(r"%(?![0-9A-F]{2})|[^A-Za-z0-9_%/-]")
_FULL = re.compile(r"\*$|rye\.(\*|(execute|fetch|sign)(\.|$))")


def escape(name: str) -> str:
    """A name as one segment of an id: every byte that is no letter, digit, `_` or `-` becomes `%XX`."""
    return "".join(part if _PLAIN.fullmatch(part) else _bytes(part) for part in name)


def canonical(item_id: str) -> str:
    """The one id behind the id that a document wrote. Escapes that are already there stay."""
    item_id = ALIASES.get(item_id, item_id)
    return _ODD.sub(lambda found: _bytes(found.group()), item_id)


def mcp_tool(server: str, tool: str) -> str:
    return f"mcp/{escape(server)}/{escape(tool)}"


def python_tool(name: str) -> str:
    return f"python/{escape(name)}"


def capability(primary: Primary, item_type: str, item_id: str) -> str:
    """What is needed to do this with that item; an empty id (a query) needs the type alone."""
    head = f"rye.{primary}.{item_type}"
    return f"{head}.{canonical(item_id).replace('/', '.')}" if item_id else head


@dataclass(frozen=True, slots=True)
class Grants:
    """What somebody may do. Build with `Grants.of`, which brings every way to write a grant to one form."""

    patterns: frozenset[str] = frozenset()

    @classmethod
    def of(cls, patterns: Iterable[str]) -> Grants:
        return cls(frozenset(_normal(pattern) for pattern in patterns))

    def covers(self, needed: str) -> bool:
        return any(_matches(pattern, needed) for pattern in self.patterns)

    def narrow(self, parent: Grants) -> Grants:
        """What is left of these under a parent: never more than either of the two.

        Grants that end in `*` or have none are always nested or disjoint, and then the result is exact. Two
        that only overlap (`*.write` and `rye.file-system.*`) leave nothing: too little is safe.
        """
        mine = {pattern for pattern in self.patterns if any(_contains(other, pattern) for other in parent.patterns)}
        theirs = {pattern for pattern in parent.patterns if any(_contains(other, pattern) for other in self.patterns)}
        return Grants(frozenset(mine | theirs))

    def allows(self, primary: Primary, item_type: str, item_id: str) -> bool:
        """Whether a request by a document goes through, with what is always allowed and what a query needs."""
        identity = canonical(item_id)
        if primary == "execute" and item_type == "tool" and _always(identity):
            return True
        needed = capability(primary, item_type, item_id)
        if self.covers(needed):
            return True
        # A search of a type may see what any fetch of that type may see.
        return primary == "fetch" and not item_id and any(grant.startswith(f"{needed}.") for grant in self.patterns)

    def require(self, primary: Primary, item_type: str, item_id: str) -> None:
        """Raises `Denied` unless allowed, with the capability that is missing and the way to grant it."""
        if self.allows(primary, item_type, item_id):
            return
        needed = capability(primary, item_type, item_id)
        name = item_id or item_type
        why = f"{name} needs the capability {needed}"
        if not self.patterns:
            why += ", and there are no capabilities at all"
        name_to_allow = _FRIENDLY.get(item_id, item_id) if primary == "execute" and item_type == "tool" else needed
        raise Denied(
            f"permission denied: {why}; grant it with --allow {name_to_allow}, "
            "or under [tools] allow in the quire.toml of your own space"
        )


def grant_for(name: str) -> str:
    """The grant that `--allow NAME` or `[tools] allow` means: a capability, an id, or another name of a tool."""
    if _FULL.match(name):
        return _normal(name)
    if name.startswith("rye."):
        name = name.replace(".", "/")
    stem, star = (name[:-1], "*") if name.endswith("*") else (name, "")
    return f"rye.execute.tool.{canonical(stem).replace('/', '.')}{star}"


def _bytes(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _always(item_id: str) -> bool:
    return any(item_id.startswith(free) if free.endswith("/") else item_id == free for free in ALWAYS)


def _normal(pattern: str) -> str:
    """Dots for slashes, one `*` for a run of them, and the id of today for an old one."""
    pattern = re.sub(r"\*+", "*", pattern.strip().replace("/", "."))
    stem, tail = (pattern[:-2], ".*") if pattern.endswith(".*") else (pattern, "")
    return _OLD_GRANTS.get(stem, stem) + tail


def _matches(pattern: str, text: str) -> bool:
    return _glob(pattern, text) or (pattern.endswith(".*") and _glob(pattern[:-2], text))


def _contains(outer: str, inner: str) -> bool:
    """Whether all that `inner` matches is matched by `outer`; a `*` of the inner one is only met by a `*`."""
    return _matches(outer, inner) and (not inner.endswith(".*") or _matches(outer, inner[:-2]))


def _glob(pattern: str, text: str) -> bool:
    """Leftmost search for each fixed part: linear, whatever the pattern."""
    if "*" not in pattern:
        return pattern == text
    first, *middle, last = pattern.split("*")
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


_OLD_GRANTS = {
    f"rye.execute.tool.{old.replace('/', '.')}": f"rye.execute.tool.{new.replace('/', '.')}"
    for old, new in ALIASES.items()
}
