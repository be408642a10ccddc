"""The expectations of a case: checks of one thing each, and the matchers that they apply to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from quire.source import NOWHERE, Span

if TYPE_CHECKING:
    from quire.plan.pipeline_work import Formula
    from quire.values import Value

Subject = Literal[
    "status",
    "exit",
    "output",
    "artifact",
    "error",
    "named",
    "stores",
    "outputs",
    "steps",
    "prompts",
    "asked",
    "calls",
    "refused",
    "hooks",
    "files",
    "events",
    "warnings",
    "used",
    "that",
]

TESTS = ("contains", "not_contains", "matches", "json", "schema", "most", "least", "any", "all", "absent")
"""The keys that make a mapping a matcher."""

EXPRESSION_NAMES = ("value", "row", "inputs", "named", "stores", "outputs", "output", "calls")
"""The names that an expression of a test can read."""

STATUSES = ("completed", "failed", "awaiting_input", "paused", "cancelled", "expired", "interrupted", "not_started")
STEP_STATUSES = ("completed", "skipped", "failed", "waiting", "pending")


class Equal(Struct, frozen=True):
    """Holds for exactly this value."""

    value: Value
    span: Span = NOWHERE


class Contains(Struct, frozen=True):
    """Holds for a text with all these parts, a list with all these items, a mapping with all these keys."""

    parts: tuple[Value, ...]
    negated: bool = False
    """True for `not_contains`: then none of the parts may occur."""
    span: Span = NOWHERE


class Matches(Struct, frozen=True):
    """Holds for a text in which an RE2 pattern is found."""

    pattern: str
    span: Span = NOWHERE


class JsonAt(Struct, frozen=True):
    """Holds if the values at dotted paths match. A text is read as JSON first, with or without a fence."""

    paths: tuple[tuple[str, Matcher], ...]
    span: Span = NOWHERE


class FitsSchema(Struct, frozen=True):
    """Holds for a value that fits a JSON Schema; a text is read as in `JsonAt`."""

    schema: Mapping[str, Value]
    span: Span = NOWHERE


class Limit(Struct, frozen=True):
    """Holds for a number that is at most, or at least, this one."""

    bound: float
    least: bool = False
    span: Span = NOWHERE


class OneOf(Struct, frozen=True):
    """Holds if one of the matchers does."""

    matchers: tuple[Matcher, ...]
    span: Span = NOWHERE


class AllOf(Struct, frozen=True):
    """Holds if all of the matchers do: a mapping with several keys, or `all` with a list."""

    matchers: tuple[Matcher, ...]
    span: Span = NOWHERE


class Items(Struct, frozen=True):
    """Holds for a list of which some item (`any: M`), or every item (`all: M`), matches."""

    matcher: Matcher
    every: bool
    span: Span = NOWHERE


class Listed(Struct, frozen=True):
    """Holds for a list as long as this one whose items match one by one."""

    matchers: tuple[Matcher, ...]
    span: Span = NOWHERE


class Fields(Struct, frozen=True):
    """Holds for a mapping with exactly these keys whose values match."""

    fields: tuple[tuple[str, Matcher], ...]
    span: Span = NOWHERE


class Absent(Struct, frozen=True):
    """Holds without a value (`absent: true`), or with one (`absent: false`)."""

    wanted: bool = True
    span: Span = NOWHERE


class Holds(Struct, frozen=True):
    """Holds if an expression over `value`, `row`, `inputs`, `named`, `stores` and `calls` is true."""

    formula: Formula
    span: Span = NOWHERE


class Snapshot(Struct, frozen=True):
    """Holds if the value equals the one that is kept beside the test."""

    span: Span = NOWHERE


Matcher: TypeAlias = (
    Equal
    | Contains
    | Matches
    | JsonAt
    | FitsSchema
    | Limit
    | OneOf
    | AllOf
    | Items
    | Listed
    | Fields
    | Absent
    | Holds
    | Snapshot
)


class Check(Struct, frozen=True):
    """One expectation: `named: {best: M}` is a check of `named` under the name `best`.

    Lists (`refused`, `events`, `warnings`) and whole subjects (`prompts: !snapshot`) have an empty name; each entry of
    `that` is a check of its own. The matcher of `refused` is an `Equal` with a list of texts, that of
    `events` and `warnings` a `Listed` unless a tag or a matcher stands instead of the list.

    The matcher of `calls` looks at the number of calls if it `counts`; a `Listed` looks at the arguments of all calls,
    one by one, and any other matcher at those of some call.
    """

    subject: Subject
    matcher: Matcher
    name: str = ""
    span: Span = NOWHERE
    """The span of the name, or of the key of the subject."""


def counts(matcher: Matcher) -> bool:
    """Tell whether a matcher of `calls` looks at their number: it is a number, or limits of one."""
    match matcher:
        case Equal(value=value):
            return isinstance(value, int) and not isinstance(value, bool)
        case Limit():
            return True
        case AllOf(matchers=matchers):
            return all(isinstance(part, Limit) for part in matchers)
        case _:
            return False


class Expect(Struct, frozen=True):
    """The expectations of a case or an act, in the order of the file."""

    checks: tuple[Check, ...] = ()
    span: Span = NOWHERE

    def of(self, subject: Subject) -> list[Check]:
        return [check for check in self.checks if check.subject == subject]
