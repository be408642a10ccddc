"""Find the tests and cases that a command means: files, single cases, folders, globs, documents, words and tags; and
make the bench on which the cases of a file run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from quire.errors import CannotStart
from quire.formats import TEST_SUFFIX
from quire.library.collect import glob_files, is_glob, walk_folders
from quire.library.library import Library
from quire.library.lookup import file_of
from quire.library.tested_document import find_tested
from quire.patterns import late_pattern
from quire.source import real_path
from quire.testing.case_run import Bench
from quire.testing.virtual_loop import VirtualLoop
from quire.testing.world.workspace import rehearsal_settings

if TYPE_CHECKING:
    from quire.formats.test.syntax import Case, TestFile
    from quire.library.document import Document
    from quire.source import Source
    from quire.workspace.settings import Settings


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
        return self._joined("or", self._all, any)

    def _all(self) -> Test:
        return self._joined("and", self._one, all)

    def _joined(self, word: str, part: Callable[[], Test], join: Callable[[Iterable[bool]], bool]) -> Test:
        tests = [part()]
        while self._take(word):
            tests.append(part())
        return tests[0] if len(tests) == 1 else lambda name: join(test(name) for test in tests)

    def _one(self) -> Test:
        negated = False
        while self._take("not"):
            negated = not negated
        if self._take("("):
            self.depth += 1
            if self.depth > DEEPEST_EXPRESSION:
                raise self._error("too many brackets")
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
        part = " ".join(words).lower()
        if not part.strip():
            raise self._error("a part of a name is missing")
        return lambda name: part in name

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
    """The number of a process and the number of processes: process K of N takes every N-th of the wanted cases."""

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
    names: set[str] = set()
    for line in lines:
        before = [name for start, name in starts if start <= line]
        names.update(before[-1:] or [name for _, name in starts])
    return frozenset(names)


_AT_LINE = late_pattern(r"(.*\.test\.yaml):([0-9]{1,7})")
_CASE = "::"
_DOCUMENTS = (".playbook.md", ".md", ".yaml", ".yml")


class TestTarget(Struct, frozen=True):
    """A test file, and the cases of it that are meant: all unless names or lines are given."""

    __test__ = False
    path: str
    """As the user would type it."""
    names: frozenset[str] = frozenset()
    lines: frozenset[int] = frozenset()

    @property
    def is_whole(self) -> bool:
        return not self.names and not self.lines


def find_tests(arguments: Sequence[str]) -> tuple[list[TestTarget], list[str]]:
    """Return the test files, each once and in the order of the arguments, and a line for every argument without any.

    `PATH::NAME` means one case, `PATH:LINE` the case at that line, and a document the test with its name beside it.
    """
    tests: dict[Path, TestTarget] = {}
    problems: list[str] = []
    for argument in arguments:
        targets = list(_expand(argument))
        if not targets:
            problems.append(_nothing(argument))
        for target in targets:
            before = tests.get(Path(target.path), target)
            if before.is_whole or target.is_whole:
                before = target = TestTarget(before.path)
            both = replace(before, names=before.names | target.names, lines=before.lines | target.lines)
            tests[Path(target.path)] = both
    return list(tests.values()), problems


def _expand(argument: str) -> Iterator[TestTarget]:
    path = Path(argument)
    if os.path.isdir(path):  # noqa: PTH112  # a name that is too long: False, not an exception
        for here, names in walk_folders(path):
            yield from (TestTarget(str(Path(here, name))) for name in names if name.endswith(TEST_SUFFIX))
        return
    if os.path.isfile(path):  # noqa: PTH113
        test = argument if argument.endswith(TEST_SUFFIX) else own_test(argument)
        if os.path.isfile(test):  # noqa: PTH113
            yield TestTarget(test)
        return
    if at := _AT_LINE.fullmatch(argument):
        yield TestTarget(at[1], lines=frozenset({int(at[2])}))
        return
    before, joint, name = argument.partition(TEST_SUFFIX + _CASE)
    if joint and name:
        yield TestTarget(before + TEST_SUFFIX, names=frozenset({name}))
    elif argument.endswith(TEST_SUFFIX) and not is_glob(argument):
        yield TestTarget(argument)
    elif is_glob(argument):
        yield from (TestTarget(str(match)) for match in glob_files(path) if match.name.endswith(TEST_SUFFIX))
    elif (file := file_of(argument)) and os.path.isfile(test := own_test(file)):  # noqa: PTH113
        yield TestTarget(test)


def own_test(document: str) -> str:
    """Return the path of the test that belongs to a document by its name: `x.test.yaml` beside `x.playbook.md`."""
    ending = next((suffix for suffix in _DOCUMENTS if document.endswith(suffix)), "")
    return document.removesuffix(ending) + TEST_SUFFIX


def _nothing(argument: str) -> str:
    path = Path(argument)
    if os.path.isdir(path):  # noqa: PTH112
        return f"{argument} holds no tests (files that end in {TEST_SUFFIX})"
    if os.path.isfile(path):  # noqa: PTH113
        hint = "; `quire new test` begins one" if argument.endswith(_DOCUMENTS) else ""
        return f"{argument} has no test: {own_test(argument)} does not exist{hint}"
    return f"{argument} matches nothing" if is_glob(argument) else f"{argument} does not exist"


def open_document(source: Source, file: TestFile, *, shell: bool = False) -> Bench:
    """Return the bench of a test file. Raises `QuireError` if its document cannot be found or read."""
    folder = real_path(Path(source.name)).parent
    settings = _settings(str(folder))
    document = find_tested(source, file, Library(settings))
    document.runnable()
    return Bench(document, settings, folder, _loop(), shell)


def bench_for(document: Document) -> Bench:
    """Return a bench for a document that has no test yet. Raises `QuireError` if it cannot run."""
    document.runnable()
    folder = real_path(Path(document.source.name)).parent
    return Bench(document, _settings(str(folder)), folder, _loop())


@lru_cache(maxsize=8)
def _settings(folder: str) -> Settings:
    """Read the settings once for all files of a folder."""
    return rehearsal_settings(Path(folder))


@lru_cache(maxsize=1)
def _loop() -> VirtualLoop:
    """Return the one loop of this process: it serves all cases, one after the other."""
    return VirtualLoop()
