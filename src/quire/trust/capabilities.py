"""Capabilities: the strings that say what a run may do, the ids behind them, and the matcher.

A capability reads `rye.PRIMARY.TYPE.ID`, the id with dots for its slashes: `rye.execute.tool.rye.file-system.write`. A
grant is such a string with wildcards: `*` stands for any text, dots included, and `X.*` covers `X` too; `?` stands for
one character, `[abc]` and `[!abc]` for one of a set. Ids are escaped (`%2E`) so that the name of a tool cannot contain
a separator or a wildcard: two tools never share a string.

The wildcards are those of fnmatch, with two differences. Matching never takes longer than the product of the two
lengths. And `?` and sets match characters of an id only, never a wildcard: a grant is also compared with other grants,
and there `?` must not take the `*` of a wider one for a letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from quire.errors import Denied
from quire.patterns import late_pattern
from quire.plan.built_in_tools import ALIASES, FORK, RETURN, SEND, canonical_grant
from quire.values import percent_encoded

_WILD = late_pattern(r"[*?\[]")
_PIECE = late_pattern(r"\[(!?+)(\]?+[^\]]*+)\]|(.)", re.DOTALL)
_NO_LETTER = frozenset("*?[]!")

Spot = tuple[bool, frozenset[str]]
"""True if a character has to be in the set, False if it must not be."""


def fixed_head(pattern: str) -> str:
    """Return the text that everything matched by the pattern begins with."""
    match = _WILD.search(pattern)
    return pattern[: match.start()] if match else pattern


def may_begin_with(pattern: str, head: str) -> bool:
    """Tell whether the pattern can match a text with this beginning; True where only its wildcards tell."""
    fixed = fixed_head(pattern)
    return fixed.startswith(head) or (fixed != pattern and head.startswith(fixed))


def has_single(pattern: str) -> bool:
    """Return True if the pattern has a wildcard for one character."""
    return "?" in pattern or "[" in pattern


def glob(pattern: str, text: str) -> bool:
    """Match a text by a leftmost search for each part between stars."""
    if has_single(pattern):
        return _glob_spots(pattern, text)
    if "*" not in pattern:
        return pattern == text
    first, *middle, last = pattern.split("*")
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        place = text.find(part, at, end)
        if place < 0:
            return False
        at = place + len(part)
    return True


def _glob_spots(pattern: str, text: str) -> bool:
    first, *rest = pattern_parts(pattern)
    if not rest:
        return len(text) == len(first) and _fits(first, text, 0)
    *middle, last = rest
    at, end = len(first), len(text) - len(last)
    if end < at or not _fits(first, text, 0) or not _fits(last, text, end):
        return False
    for part in middle:
        while not (at + len(part) <= end and _fits(part, text, at)):
            at += 1
            if at > end:
                return False
        at += len(part)
    return True


def _fits(part: Sequence[Spot], text: str, at: int) -> bool:
    return all((text[at + number] in letters) is belongs for number, (belongs, letters) in enumerate(part))


@lru_cache(maxsize=256)
def pattern_parts(pattern: str) -> tuple[tuple[Spot, ...], ...]:
    """Return the parts of the pattern between its stars, character by character."""
    parts: list[list[Spot]] = [[]]
    for negated, inside, plain in _PIECE.findall(pattern):
        if plain == "*":
            parts.append([])
        elif plain == "?":
            parts[-1].append((False, _NO_LETTER))
        elif plain:
            parts[-1].append((True, frozenset(plain)))
        elif negated:
            parts[-1].append((False, _members(inside) | _NO_LETTER))
        else:
            parts[-1].append((True, _members(inside) - _NO_LETTER))
    return tuple(tuple(part) for part in parts)


def _members(inside: str) -> frozenset[str]:
    """Return the members of a set.

    `a-c` is a range, as is any pair of characters joined by a hyphen; a backward range is empty.
    """
    members: set[str] = set()
    at = 0
    while at < len(inside):
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            members.update(map(chr, range(ord(inside[at]), min(ord(inside[at + 2]), 0x7F) + 1)))
            at += 3
        else:
            members.add(inside[at])
            at += 1
    return frozenset(members)


Primary = Literal["execute", "fetch", "sign"]
ACTIONS: tuple[Primary, ...] = get_args(Primary)
ITEM_TYPES = ("tool", "directive", "knowledge", "pipeline", "playbook", "prompt")

_FRIENDLY = {identity: name for name, identity in ALIASES.items() if "/" not in name and name != "spawn_thread"}
"""The name that people know a tool by."""

ALWAYS = (RETURN, "rye/agent/threads/internal/")
"""Items that a thread may execute without any grant: an id, or the beginning of one."""

_DIRECTIVES = "rye.execute.directive"
_FREE_FOLDERS = tuple(free for free in ALWAYS if free.endswith("/"))
_SEPARATORS = late_pattern(r"[^A-Za-z0-9_]")
_PLAIN = late_pattern(r"[A-Za-z0-9_-]")
_ODD = late_pattern(r"%(?![0-9A-F]{2})|[^A-Za-z0-9_%/-]")
_ODD_IN_PATTERN = late_pattern(r"%(?![0-9A-F]{2})|[^A-Za-z0-9_%/*-]")
_FULL = late_pattern(r"\*$|rye\.(\*|(execute|fetch|sign)(\.|$))")


def escape(name: str) -> str:
    """Return a name as one segment of an id: every byte that is not a letter, digit, `_` or `-` becomes `%XX`."""
    return "".join(part if _PLAIN.fullmatch(part) else percent_encoded(part) for part in name)


def canonical(item_id: str) -> str:
    """Return the one id behind the id that a document wrote. Existing escapes stay."""
    item_id = ALIASES.get(item_id, item_id)
    return _escaped(item_id)


def flat_name(item_id: str) -> str:
    """Return an id as a name that every model's provider accepts."""
    return _SEPARATORS.sub("_", item_id)


def from_flat_name(name: str) -> str:
    """Return the id behind the name that a model used: a flat one, an id, or another name of a tool."""
    return _flat_names().get(name) or canonical(name)


def mcp_tool(server: str, tool: str) -> str:
    return f"mcp/{escape(server)}/{escape(tool)}"


def python_tool(name: str) -> str:
    return f"python/{escape(name)}"


def capability(primary: Primary, item_type: str, item_id: str) -> str:
    """Return the capability needed for an action on an item; an empty id (a query) needs the type alone."""
    head = f"rye.{primary}.{item_type}"
    return f"{head}.{_identity(item_type, item_id).replace('/', '.')}" if item_id else head


def pattern_for(primary: Primary, item_type: str, item_id: str) -> str:
    """Return the capability pattern for an id in which `*` stands for any text."""
    return canonical_grant(
        f"rye.{primary}.{item_type}.{_ODD_IN_PATTERN.sub(lambda match: percent_encoded(match.group()), item_id)}"
    )


class Grants(Struct, frozen=True, eq=False):
    """A set of granted capabilities. Build with `Grants.of`, which brings every way to write a grant to one form."""

    patterns: frozenset[str] = frozenset()
    declared: str = ""
    """Where the grants are written, such as `.ai/directives/x.md:12`: a denial sends the reader there."""
    _exact: frozenset[str] = frozenset()
    _prefixes: tuple[str, ...] = ()
    _globs: tuple[str, ...] = ()
    _heads: tuple[str, ...] = ()
    _tails: tuple[str, ...] = ()
    _searched: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Sort the patterns by how they are looked up: nearly all are fixed, or fixed except for a `*` at the end."""
        exact, prefixes, globs = set(), [], []
        for pattern in self.patterns:
            head = fixed_head(pattern)
            if head == pattern:
                exact.add(pattern)
            elif pattern != f"{head}*":
                globs.append(pattern)
            else:
                prefixes.append(head)
                if pattern.endswith(".*"):
                    exact.add(pattern[:-2])
        fetched = (pattern.split(".", 3) for pattern in self.patterns if pattern.startswith("rye.fetch."))
        force_setattr(self, "_exact", frozenset(exact))
        force_setattr(self, "_prefixes", tuple(prefixes))
        force_setattr(self, "_globs", tuple(globs))
        force_setattr(self, "_heads", tuple({fixed_head(pattern) for pattern in globs}))
        force_setattr(self, "_tails", tuple({_fixed_tail(pattern) for pattern in globs}))
        force_setattr(self, "_searched", frozenset(".".join(parts[:3]) for parts in fetched if len(parts) == 4))

    def __eq__(self, other: object) -> bool:
        """Compare the patterns alone."""
        return isinstance(other, Grants) and self.patterns == other.patterns

    __ne__ = object.__ne__  # follows `==`; that of a Struct compares identities

    def __hash__(self) -> int:
        return hash(self.patterns)

    def __repr__(self) -> str:
        return f"Grants(patterns={self.patterns!r}, declared={self.declared!r})"

    @classmethod
    def of(cls, patterns: Iterable[str], declared: str = "") -> Grants:
        return _grants(frozenset(patterns), declared)

    def covers(self, needed: str) -> bool:
        if needed in self._exact or needed.startswith(self._prefixes):
            return True
        if not needed.startswith(self._heads) or not needed.endswith(self._tails):
            return False
        return any(matches(pattern, needed) for pattern in self._globs)

    def narrow(self, parent: Grants) -> Grants:
        """Return the part of these grants that remains under a parent: never more than either of the two.

        Grants that end in `*` or have none are always nested or disjoint, and then the result is exact. Two that only
        overlap (`*.write` and `rye.file-system.*`) leave nothing: too little is safe.
        """
        return _narrowed(self, parent, self.declared)

    def with_directives(self) -> Grants:
        """Add every directive to grants that hold the tool that starts threads and name no directive.

        A thread that names directives may start only these. Compare grants of threads after this, so that a child
        which holds the tool alone does not start more than its parent.
        """
        named = any(may_begin_with(pattern, f"{_DIRECTIVES}.") for pattern in self.patterns)
        if named or not self.covers(capability("execute", "tool", FORK)):
            return self
        return Grants.of((*self.patterns, f"{_DIRECTIVES}.*"), self.declared)

    def includes(self, pattern: str) -> bool:
        """Tell whether everything that the pattern matches is covered; a `*` in it is only matched by a `*`.

        A pattern with a `?` or a set is covered only by itself and by a grant that ends in `*` before that place: too
        little is safe.
        """
        if has_single(pattern):
            return pattern in self.patterns or fixed_head(pattern).startswith(self._prefixes)
        return self.covers(pattern) and (not pattern.endswith(".*") or self.covers(pattern[:-2]))

    def allows(self, primary: Primary, item_type: str, item_id: str) -> bool:
        """Tell whether a request by a document is allowed: granted, always allowed, or a permitted query."""
        if _climbs(item_id):
            return False
        identity = _identity(item_type, item_id)
        if primary == "execute" and item_type == "tool" and _always(identity):
            return True
        if item_id:
            return self.covers(f"rye.{primary}.{item_type}.{identity.replace('/', '.')}")
        needed = capability(primary, item_type, "")
        # A search of a type is allowed if any fetch of that type is granted.
        return self.covers(needed) or (primary == "fetch" and needed in self._searched)

    @property
    def place(self) -> str:
        """Return the file and line where the grants are written, without the bounds that follow."""
        return self.declared.partition(",")[0]

    def has_any(self, primary: str) -> bool:
        """Return True if any grant could apply to this kind of action."""
        return any(may_begin_with(pattern, f"rye.{primary}.") for pattern in self.patterns)

    def require(self, primary: Primary, item_type: str, item_id: str) -> None:
        """Raise `Denied` unless allowed, with the missing capability and the way to grant it."""
        if self.allows(primary, item_type, item_id):
            return
        if _climbs(item_id):
            raise Denied(f"permission denied: {item_id} is not an item's id: no part of it may be . or ..")
        needed = capability(primary, item_type, item_id)
        name = item_id or item_type
        why = f"{name} needs the capability {needed}"
        if not self.patterns:
            why += ", and it has no capabilities at all"
        if self.declared:
            raise Denied(
                f"permission denied: {why}, which the permissions at {self.declared} do not cover; "
                "add it there and sign the file again"
            )
        name_to_allow = _FRIENDLY.get(item_id, item_id) if primary == "execute" and item_type == "tool" else needed
        if name_to_allow not in (item_id, needed):
            why = f"{name_to_allow} ({why.replace(' ', ') ', 1)}"
        if _identity(item_type, item_id) == SEND:
            name_to_allow += "=HOST"
        raise Denied(
            f"permission denied: {why}; grant it with --allow {name_to_allow}, "
            "or under [tools] allow in the quire.toml of your user folder"
        )


@lru_cache(maxsize=64)
def _grants(patterns: frozenset[str], declared: str) -> Grants:
    return Grants(frozenset(map(canonical_grant, patterns)), declared)


@lru_cache(maxsize=64)
def _narrowed(grants: Grants, parent: Grants, declared: str) -> Grants:
    mine = {pattern for pattern in grants.patterns if parent.includes(pattern)}
    theirs = {pattern for pattern in parent.patterns if grants.includes(pattern)}
    return Grants(frozenset(mine | theirs), declared)


def grant_for(name: str) -> str:
    """Return the grant that `--allow NAME` or `[tools] allow` means: a capability, an id, or another name of a tool."""
    if _FULL.match(name):
        return canonical_grant(name)
    if name.startswith("rye."):
        name = name.replace(".", "/")
    stem, star = (name[:-1], "*") if name.endswith("*") else (name, "")
    return f"rye.execute.tool.{canonical(stem).replace('/', '.')}{star}"


def _identity(item_type: str, item_id: str) -> str:
    """Return the canonical id. Only tools have other names: a knowledge item called `shell` is just that."""
    return canonical(item_id) if item_type == "tool" else _escaped(item_id)


def _escaped(item_id: str) -> str:
    """Return an id with escapes for everything odd. Nearly all ids have nothing odd, and need no pattern."""
    if item_id.isascii() and item_id.replace("/", "").replace("_", "").replace("-", "").isalnum():
        return item_id
    return _ODD.sub(lambda match: percent_encoded(match.group()), item_id)


def _climbs(item_id: str) -> bool:
    """Return True if an id has a segment `.` or `..`, which leads out of its place; grants never cover such an id."""
    return "." in item_id and not {".", ".."}.isdisjoint(item_id.split("/"))


def _always(item_id: str) -> bool:
    return item_id in ALWAYS or item_id.startswith(_FREE_FOLDERS)


def _fixed_tail(pattern: str) -> str:
    """Return the text that everything matched by the pattern ends in; empty for `X.*`, which covers `X` too."""
    return "" if pattern.endswith(".*") or has_single(pattern) else pattern.rpartition("*")[2]


def matches(pattern: str, text: str) -> bool:
    """Tell whether a grant covers a capability: `X.*` covers `X` too."""
    return glob(pattern, text) or (pattern.endswith(".*") and glob(pattern[:-2], text))


@cache
def _flat_names() -> dict[str, str]:
    """Return ids by their flat names, including ids that a thread is not offered, so that a denial can name the denied
    tool."""
    current = {flat_name(identity): identity for identity in (*ALIASES.values(), "rye/agent/threads/orchestrator")}
    return current | {flat_name(old): new for old, new in ALIASES.items() if "/" in old}


_NEEDED = late_pattern(r"needs the capability ([A-Za-z0-9_.%*-]+)")


def denied_capability(message: str) -> str:
    """Return the capability that a refusal names, from its text; empty if it names none."""
    match = _NEEDED.search(message)
    return match[1].rstrip(".") if match else ""
