"""Decide which steps of a long document a flowchart draws as one folded node.

A document with few steps, some of them large, has its largest steps folded first. A document with more steps than the
chart may have nodes has them folded in runs of the same length. An opened piece is drawn, and its inside is folded by
the same rule.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from quire.plan.nodes import Step

_RUNS = 40
"""Runs into which a long list of steps is folded."""
SPAN = ".."


class Part(Struct, frozen=True):
    """A step in a list of steps: its path, the name of its nodes in the chart, and the branch that it is."""

    path: str
    name: str
    step: Step
    branch: str = ""


class Piece(Struct, frozen=True):
    """One or more neighbouring steps, drawn or folded."""

    parts: tuple[Part, ...]
    steps: int = 0
    """The number of steps in it, with those inside of others; 0 for a piece that is drawn."""

    @property
    def folded(self) -> bool:
        return self.steps > 0

    @property
    def id(self) -> str:
        return fold_id(self.parts[0].path, self.parts[-1].path)


def fold_id(path: str, until: str) -> str:
    """Return the name under which a folded piece is opened: its path, or its first and its last path."""
    return path if path == until else f"{path}{SPAN}{until}"


class Folding:
    """The folds of one chart. `nodes` are the paths of all nodes that the whole chart has, `steps` those of all
    steps."""

    def __init__(self, nodes: Sequence[str], steps: Sequence[str], most: int, opened: frozenset[str]) -> None:
        self._nodes = sorted(nodes)
        self._steps = sorted(steps)
        self._most = most
        self._opened = opened

    def pieces(self, parts: Sequence[Part]) -> list[Piece]:
        sizes = [_below(self._nodes, part.path) for part in parts]
        if sum(sizes) <= self._most:
            return [Piece((part,)) for part in parts]
        if len(parts) > self._most:
            return self._runs(parts)
        folded = self._largest(parts, sizes)
        return [self._folded((part,)) if part.path in folded else Piece((part,)) for part in parts]

    def _runs(self, parts: Sequence[Part]) -> list[Piece]:
        length = -(-len(parts) // _RUNS)
        pieces: list[Piece] = []
        for at in range(0, len(parts), length):
            run = self._folded(tuple(parts[at : at + length]))
            if run.id not in self._opened and not any(self._is_opened(part.path) for part in run.parts):
                pieces.append(run if len(run.parts) > 1 or run.steps > 1 else Piece(run.parts))
            else:
                pieces += self.pieces(run.parts) if len(run.parts) > 1 else [Piece(run.parts)]
        return pieces

    def _largest(self, parts: Sequence[Part], sizes: Sequence[int]) -> set[str]:
        """Return the paths of the largest steps, as many as it takes to have few enough nodes."""
        total, folded = sum(sizes), set[str]()
        for size, part in sorted(zip(sizes, parts, strict=True), key=lambda sized: -sized[0]):
            if total <= self._most or size < 2:
                break
            if not self._is_opened(part.path):
                folded.add(part.path)
                total -= size - 1
        return folded

    def _is_opened(self, path: str) -> bool:
        """Tell whether a step is opened, or any step inside of it."""
        return path in self._opened or any(opened.startswith(f"{path}/") for opened in self._opened)

    def _folded(self, parts: tuple[Part, ...]) -> Piece:
        return Piece(parts, sum(_below(self._steps, part.path) for part in parts))


def _below(paths: Sequence[str], path: str) -> int:
    """Count the paths that are `path` or below it; `paths` are sorted."""
    own = bisect_right(paths, path) - bisect_left(paths, path)
    return own + bisect_left(paths, f"{path}0") - bisect_left(paths, f"{path}/")
