"""Find the test files that the arguments of a command mean: files, single cases, folders, globs and documents."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from quire.formats.test.syntax import SUFFIX
from quire.library.collect import glob_files, is_glob, walk_folders
from quire.library.lookup import file_of
from quire.patterns import late_pattern

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
    found: dict[Path, TestTarget] = {}
    problems: list[str] = []
    for argument in arguments:
        targets = list(_expand(argument))
        if not targets:
            problems.append(_nothing(argument))
        for target in targets:
            known = found.get(Path(target.path))
            found[Path(target.path)] = target if known is None else _both(known, target)
    return list(found.values()), problems


def _expand(argument: str) -> Iterator[TestTarget]:
    path = Path(argument)
    if os.path.isdir(path):  # noqa: PTH112  # a name that is too long: False, not an exception
        yield from (TestTarget(str(Path(here, name))) for here, names in walk_folders(path) for name in _tests(names))
        return
    if os.path.isfile(path):  # noqa: PTH113
        test = argument if argument.endswith(SUFFIX) else own_test(argument)
        if os.path.isfile(test):  # noqa: PTH113
            yield TestTarget(test)
        return
    if at := _AT_LINE.fullmatch(argument):
        yield TestTarget(at[1], lines=frozenset({int(at[2])}))
        return
    before, joint, name = argument.partition(SUFFIX + _CASE)
    if joint and name:
        yield TestTarget(before + SUFFIX, names=frozenset({name}))
    elif argument.endswith(SUFFIX) and not is_glob(argument):
        yield TestTarget(argument)
    elif is_glob(argument):
        yield from (TestTarget(str(match)) for match in glob_files(path) if match.name.endswith(SUFFIX))
    elif (file := file_of(argument)) and os.path.isfile(test := own_test(file)):  # noqa: PTH113
        yield TestTarget(test)


def _tests(names: Sequence[str]) -> Iterator[str]:
    return (name for name in names if name.endswith(SUFFIX))


def own_test(document: str) -> str:
    """Return the path of the test that belongs to a document by its name: `x.test.yaml` beside `x.playbook.md`."""
    ending = next((one for one in _DOCUMENTS if document.endswith(one)), "")
    return document.removesuffix(ending) + SUFFIX


def _both(one: TestTarget, other: TestTarget) -> TestTarget:
    if one.is_whole or other.is_whole:
        return TestTarget(one.path)
    return replace(one, names=one.names | other.names, lines=one.lines | other.lines)


def _nothing(argument: str) -> str:
    path = Path(argument)
    if os.path.isdir(path):  # noqa: PTH112
        return f"{argument} holds no tests (files that end in {SUFFIX})"
    if os.path.isfile(path):  # noqa: PTH113
        hint = "; `quire new test` begins one" if argument.endswith(_DOCUMENTS) else ""
        return f"{argument} has no test: {own_test(argument)} does not exist{hint}"
    return f"{argument} matches nothing" if is_glob(argument) else f"{argument} does not exist"
