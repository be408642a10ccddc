"""Selection of cases: by words of their names, by tags, by exact names, and by the share of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from quire.errors import CannotStart
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.formats.test.syntax import Case, TestFile
    from quire.source import Source
    from quire.testing.discovery import TestTarget

LONGEST_EXPRESSION = 1000
DEEPEST_EXPRESSION = 50

_TOKENS = late_pattern(r"""[()]|"[^"]*"|'[^']*'|[^\s()"'][^\s()]*|["']""")
_QUOTES = ('"', "'")
_OPERATORS = ("and", "or", "not")

Test: TypeAlias = Callable[[str], bool]
"""Tells whether a name in lower case is meant."""


class Keyword(Struct, frozen=True):
    """An expression of `-k`: texts, of which names contain one, joined by `and`, `or`, `not` and brackets.

    Words that stand side by side are one text. A text in quotes may contain the words of the expression itself.
    """

    text: str
    test: Test

    def __reduce__(self) -> tuple[Callable[[str], Keyword], tuple[str]]:
        """Send only the text to another process."""
        return keyword, (self.text,)


def keyword(text: str) -> Keyword:
    """Read an expression of `-k`. Raises `CannotStart`."""
    if len(text) > LONGEST_EXPRESSION:
        raise CannotStart(f"-k: the expression is longer than {LONGEST_EXPRESSION:,} characters")
    return Keyword(text, _Reader(text).read())


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = _TOKENS.findall(text)
        self.at = self.depth = 0

    def read(self) -> Test:
        test = self._any()
        if self.at < len(self.tokens):
            raise self._error(f"{self.tokens[self.at]} is not expected")
        return test

    def _any(self) -> Test:
        tests = [self._all()]
        while self._take("or"):
            tests.append(self._all())
        return tests[0] if len(tests) == 1 else lambda name: any(test(name) for test in tests)

    def _all(self) -> Test:
        tests = [self._one()]
        while self._take("and"):
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda name: all(test(name) for test in tests)

    def _one(self) -> Test:
        negated = False
        while self._take("not"):
            negated = not negated
        if self._take("("):
            self.depth += 1
            if self.depth > DEEPEST_EXPRESSION:
                raise self._error("there are too many brackets")
            test = self._any()
            if not self._take(")"):
                raise self._error("a bracket is not closed")
            self.depth -= 1
        else:
            test = self._contains()
        return (lambda name: not test(name)) if negated else test

    def _contains(self) -> Test:
        words: list[str] = []
        while self.at < len(self.tokens) and self.tokens[self.at] not in ("(", ")", *_OPERATORS):
            word = self.tokens[self.at]
            if word in _QUOTES:
                raise self._error("a quote is not closed")
            words.append(word[1:-1] if word[0] in _QUOTES else word)
            self.at += 1
        wanted = " ".join(words).lower()
        if not wanted.strip():
            raise self._error("a part of a name is missing")
        return lambda name: wanted in name

    def _take(self, token: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] == token:
            self.at += 1
            return True
        return False

    def _error(self, reason: str) -> CannotStart:
        return CannotStart(f"-k {self.text}: {reason}")


class Selection(Struct, frozen=True):
    """The cases of one file that are wanted: those for which everything given holds."""

    keyword: Keyword | None = None
    tags: tuple[str, ...] = ()
    """A case needs one of them."""
    names: frozenset[str] | None = None
    """Exact names: of cases, `rows`, or of one row, `rows[row 3]`. None for all."""
    share: tuple[int, int] = (0, 1)
    """The number of a process and the number of processes: each takes every so many-th of the wanted cases."""

    def of(self, target: TestTarget, source: Source, file: TestFile) -> Selection:
        """Return the selection of the cases that a target means, of a file that was read."""
        names = None if target.is_whole else target.names | names_at(source, file, target.lines)
        return self if names is None else replace(self, names=names)

    def wants(self, case: Case, name: str, file: str = "") -> bool:
        """Tell whether a case is wanted; `name` is its name with the row. A keyword may also mean the file."""
        if self.names is not None and case.name not in self.names and name not in self.names:
            return False
        if self.tags and not any(tag in self.tags for tag in case.tags):
            return False
        return self.keyword is None or self.keyword.test(f"{file} {name}".lower())

    def takes(self, number: int) -> bool:
        """Tell whether a wanted case, by its number among them, belongs to the share of this process."""
        mine, of = self.share
        return number % of == mine

    @property
    def is_everything(self) -> bool:
        """Tell whether no case of the file is left out, in this process or another one."""
        return self.keyword is None and not self.tags and self.names is None

    @property
    def is_whole(self) -> bool:
        """Tell whether this process runs every case of the file."""
        return self.is_everything and self.share == (0, 1)


EVERYTHING = Selection()


def names_at(source: Source, file: TestFile, lines: Iterable[int]) -> frozenset[str]:
    """Return the names of the cases that stand at some lines. A line before the first case means all."""
    starts = [(source.position(case.span.start).line, case.name) for case in file.cases]
    return frozenset(name for line in lines for name in _at(starts, line))


def _at(starts: Sequence[tuple[int, str]], line: int) -> list[str]:
    before = [name for start, name in starts if start <= line]
    return before[-1:] or [name for _, name in starts]
