"""From the arguments of `sign` and `verify` to the files that are meant: what `check` finds, and what `.ai` holds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quire.cli.collect import collect
from quire.errors import CannotStart, Unreadable
from quire.trust.signable import ITEM_FOLDERS, Signable, signable
from quire.workspace.find import find_workspace


@dataclass(frozen=True, slots=True)
class Found:
    """`named` is False for a file that a search of a folder came upon, `by_name` where a glob did as well: then nobody
    has written its whole name."""

    item: Signable
    named: bool
    by_name: bool = False


def find_signables(arguments: Sequence[str]) -> tuple[list[Found], list[str]]:
    """The files, each once and in the order of the arguments, and a line for every argument that gave none."""
    found: dict[Path, Found] = {}
    problems: list[str] = []
    for argument in arguments:
        folder = Path(argument)
        if os.path.isdir(folder):  # noqa: PTH112  # a name that is too long is no folder, and no exception
            here = _in_folder(folder)
            problems += [] if here else [f"{argument} holds nothing that can be signed"]
        else:
            wanted, wrong = collect([argument])
            missing = [one.path for one in wanted if not os.path.lexists(one.path)]
            wrong += [_missing(path) for path in missing]
            wanted = [one for one in wanted if one.path not in missing]
            by_name = not set(argument) & set("*?[") or os.path.lexists(argument)
            here, wrong_kind = _signables([one.path for one in wanted], named=True, by_name=by_name)
            problems += wrong + wrong_kind
        for one in here:
            if one.by_name or one.item.path not in found:
                found[one.item.path] = one
    return list(found.values()), problems


def _missing(path: Path) -> str:
    from quire.workspace.near_file import with_near_file

    return str(with_near_file(Unreadable(path, "does not exist")))


def _in_folder(folder: Path) -> list[Found]:
    files = list(_items(folder))
    if not _in_ai(folder):
        files += [one.path for one in collect([str(folder)])[0]]
    return _signables(files, named=False)[0]


def _signables(paths: Sequence[Path], *, named: bool, by_name: bool = False) -> tuple[list[Found], list[str]]:
    found, problems = [], []
    for path in paths:
        try:
            found.append(Found(signable(path, find_workspace(path).folder), named, by_name))
        except CannotStart as error:
            problems.append(str(error))
    return found, problems


def _items(folder: Path) -> Iterator[Path]:
    """Directives and knowledge below a folder. Folders behind links, and hidden ones but for `.ai`, are not entered."""
    for here, folders, files in os.walk(folder, followlinks=False):
        at = Path(here)
        if at.name == ".ai":
            folders[:] = [name for name in folders if name in ITEM_FOLDERS]
        folders[:] = sorted(name for name in folders if name == ".ai" or not name.startswith((".", "__")))
        if _in_ai(at) and at.name != ".ai":
            yield from (at / name for name in sorted(files) if not name.startswith("."))


def _in_ai(folder: Path) -> bool:
    return ".ai" in folder.absolute().parts
