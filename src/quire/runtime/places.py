"""The places that a run can be forked from: which of its records lie before one, and where values can be set there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quire.engine.records import Event
from quire.engine.requests import BREAK
from quire.engine.thread.interpret import PATH
from quire.errors import CannotStart
from quire.plan.nodes import Plan
from quire.wording import nearest

_TURN = re.compile(rf"{PATH}/turn\[(\d+)\](?=/|$)")
_NAMED_TURN = re.compile(r"(?:turn )?([0-9]{1,6})")
_ENDINGS = ("step_completed", "step_failed", "step_skipped", "thread_ended")


@dataclass(frozen=True, slots=True)
class Place:
    """`order` has the number of every step by its path, so that of two steps the earlier one is known.

    `before` is the path and the label of the step at whose end values can be set for this one; None where there is no
    such end, because it is the `first` of all or the first of its arm."""

    path: str
    label: str
    before: tuple[str, str] | None
    order: Mapping[str, int]
    first: bool

    def keeps(self, path: str) -> bool:
        """Whether an effect was asked for before the run came here."""
        if path.startswith(f"{PATH}/"):
            turn = _TURN.match(path)
            return int(turn[1]) < self._turn if turn else not path.startswith(f"{PATH}/end")
        owner = self._owner(path)
        if owner is None or self.order[owner] >= self.order[self.path]:
            return False
        return not (self._around(owner) and path == f"{owner}{BREAK}")

    def keeps_event(self, event: Event) -> bool:
        if event.path == PATH and self._turn:
            return event.type not in _ENDINGS
        return self.keeps(event.path) and not (self._around(event.path) and event.type in _ENDINGS)

    @property
    def _turn(self) -> int:
        found = _TURN.match(self.path)
        return int(found[1]) if found else 0

    def _around(self, path: str) -> bool:
        return self.path.startswith(f"{path}/")

    def _owner(self, path: str) -> str | None:
        while path and path not in self.order:
            path = path.rpartition("/")[0]
        return path or None


def find_place(plan: Plan, named: str) -> Place:
    """By label or by path: a step of a playbook, one at the top of a pipeline, a turn of a directive.

    Raises `CannotStart` with the nearest one that there is."""
    wanted = named.strip()
    if plan.format == "directive":
        return _turn(wanted)
    steps = dict(_top(plan) if plan.format == "pipeline" else _all(plan))
    found = [path for path, label in steps.items() if label.lower() == wanted.lower()] or [wanted] * (wanted in steps)
    if not found:
        _refuse(plan, wanted, steps)
    if len(found) > 1:
        raise CannotStart(f"several steps are called {wanted}: say which by its place ({', '.join(found)})")
    (path,) = found
    order = {one: number for number, one in enumerate(steps)}
    above, _, _ = path.rpartition("/")
    siblings = [one for one in steps if one.rpartition("/")[0] == above]
    at = siblings.index(path)
    before = (siblings[at - 1], steps[siblings[at - 1]]) if at else None
    return Place(path, steps[path], before, order, first=not above and at == 0)


def _turn(named: str) -> Place:
    found = _NAMED_TURN.fullmatch(named.lower()) or _TURN.fullmatch(named)
    number = int(found[1]) if found else 0
    if not number:
        raise CannotStart(f"{named!r} is not a turn of a directive: write 'turn 3', or just 3")
    before = (f"{PATH}/turn[{number - 1}]", f"turn {number - 1}") if number > 1 else None
    return Place(f"{PATH}/turn[{number}]", f"turn {number}", before, {}, first=number == 1)


def _refuse(plan: Plan, named: str, steps: Mapping[str, str]) -> None:
    labels = list(dict.fromkeys(steps.values()))
    if plan.format == "pipeline":
        inside = next((path for path, step in plan.steps() if named in (path, step.label)), None)
        if inside is not None:
            top = inside.partition("/")[0]
            raise CannotStart(f"step {named} is inside of step {top}: a pipeline is forked between its own steps")
    close = nearest(named, labels)
    known = f"did you mean {close}?" if close else f"the steps are {', '.join(labels)}"
    raise CannotStart(f"there is no step {named}: {known}")


def _top(plan: Plan) -> Iterator[tuple[str, str]]:
    return ((str(step.position), step.label) for step in plan.body.steps)


def _all(plan: Plan) -> Iterator[tuple[str, str]]:
    return ((path, step.label) for path, step in plan.steps())
