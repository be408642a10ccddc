"""The house is as CONTRIBUTING.md and the page on extending the code say: rooms, names and sizes, docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import quire

SOURCE = Path(quire.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
LISTS = CONTRIBUTING.parent / "docs" / "internals/extending-the-code.md"

LONGEST = 600
TABLES = ("codes", "functions")
"""Folders and modules of data, which may be longer."""

OPAQUE = re.compile(
    "agreed|allowing|aside|asking|called|certain|clustered|detached|door|driving|ends|filled|foreseen|found|hooking|"
    "importing|keeping|late|loading|looking|named|opening|places|prompting|reading|resolving|resting|signing|starting|"
    "stopped|surroundings|told|trusting|unsigned|verified|words"
)
"""Names of modules that told a stranger nothing."""

SHARED = re.compile(
    "actions|app|approvals|bounds|callees|check|check_calls|codes|completion|connection|database|"
    "declared_inputs|decorations|diagnostics|doctor|documents|drive|errors|expectations|expressions|fields|"
    "fixes|fork|formatting|grants|hooks|hover|index|inputs|interpret|lower|model|naming|nodes|options|parse|"
    "prompts|proof|reader|runs|runtime|scripts|secrets|shadow|sign|start|statements|steps|store|syntax|"
    "test_live|test_measures|tools|transcript|triggers|values|why|workspace|write|writer"
)
"""Names of modules that stand in several rooms: for one thing at several layers, or in several formats or stores."""

_RIDDLE = re.compile(r"(?:What|Who|Those|Whether)\b")


def test_the_rooms_are_those_of_the_list() -> None:
    listed = set(re.findall(r"`([a-z_]+(?:/|\.py))`", _ownership()))
    there = {f"{path.name}/" for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    there |= {path.name for path in SOURCE.glob("*.py") if not path.name.startswith("__")}
    assert listed == there


def test_how_to_add_names_what_is_there() -> None:
    """ "`NAME` in `FILE`" in the lists: the file is there, and the name is in it."""
    pairs = re.findall(r"((?:`\w+`(?:,| and)?\s)+)(?:in|of)\s`((?:src/|tests/)?[\w/]+\.py)`", _how_to_add())
    pairs += [(f"`{name}`", file) for name, file in re.findall(r"`(\w+)` \(`([\w/]+/\w+\.py)`\)", _how_to_add())]
    assert len(pairs) > 20
    wrong = [(names, file) for names, file in pairs if not _holds(file, re.findall(r"`(\w+)`", names))]
    assert wrong == []


def _how_to_add() -> str:
    example = CONTRIBUTING.read_text(encoding="utf-8").partition("## A change, by example")[2]
    return example.partition("## Commits")[0] + LISTS.read_text(encoding="utf-8").partition("## How to add")[2]


def _holds(file: str, names: list[str]) -> bool:
    roots = (SOURCE, SOURCE / "models", CONTRIBUTING.parent)  # `open.py` stands in the list about models
    texts = [(root / file).read_text(encoding="utf-8") for root in roots if (root / file).is_file()]
    return any(all(re.search(rf"\b{name}\b", text) for name in names) for text in texts)


def test_no_module_is_too_long() -> None:
    long = {_name(path) for path in MODULES if len(path.read_text().splitlines()) > LONGEST}
    assert {name for name in long if not any(part in TABLES for part in Path(name).with_suffix("").parts)} == set()


def test_module_names_say_something() -> None:
    assert [_name(path) for path in MODULES if OPAQUE.fullmatch(path.stem)] == []


def test_a_name_of_a_module_means_one_thing() -> None:
    stems = [path.stem for path in MODULES if not path.stem.startswith("__")]
    assert {stem for stem in stems if stems.count(stem) > 1 and not SHARED.fullmatch(stem)} == set()


def test_docstrings_say_what_things_do() -> None:
    texts = [text for path in MODULES for text in _docstrings(path)]
    assert [text for text in texts if _RIDDLE.match(text)] == []


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def _ownership() -> str:
    text = LISTS.read_text(encoding="utf-8").partition("keeps this list equal to the tree:")[2]
    return text.partition("## The long tests")[0]


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def _docstrings(path: Path) -> Iterator[str]:
    for node in _nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
