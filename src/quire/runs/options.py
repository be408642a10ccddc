"""Options of a new run, besides its inputs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Set
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.errors import CannotStart
from quire.plan.vocabulary import CALLS, LARGEST_LIMIT

if TYPE_CHECKING:
    from quire.engine.proven_bounds import ProvenBounds
    from quire.trust.capabilities import Grants
    from quire.values import Value


class RunOptions(Struct, frozen=True):
    """The options with which a run is started."""

    model: str | None = None
    breakpoints: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    """Answers by the label of a step."""
    unattended: bool = False
    says_yes: bool = False
    """True if an unattended run says yes also where that may write something (`--unattended=yes`)."""
    allow: tuple[str, ...] = ()
    budget: float | None = None
    reply_to: str = ""
    limits: Mapping[str, Value] = field(default_factory=dict)
    """Limits of the thread, and of the model calls of the run (`calls`)."""
    within: Grants | None = None
    """The upper bound of the run's grants, if another run launches it."""
    door: str = ""
    """The door through which a program started the run; `serve` continues its own after a crash."""
    reuse: str = ""
    """A run, or `last`, whose model replies are taken where the new run asks the same."""
    out: str = ""
    """The file, or the folder with a slash at its end, into which the command line writes the output."""
    proven: ProvenBounds | None = None
    """The most that the run can do with its inputs, as far as that was proven. The driver compares it with what it
    sees."""
    force: bool = False
    """True to start although a document has findings that stop a run. Only a person, or a person's program, sets it."""
    accepted: tuple[str, ...] = ()
    """Codes of such findings that the user has accepted for an earlier run."""

    def __post_init__(self) -> None:
        checked_budget(self.budget)
        call_limit(self.limits)
        _check_names("allow", self.allow)
        _check_names("breakpoints", self.breakpoints)
        if not isinstance(self.reuse, str):
            raise CannotStart(f"reuse is the id of a run, or last, and {self.reuse!r} is not")
        for label, answer in self.answers.items():
            if not isinstance(label, str) or not isinstance(answer, str):
                raise CannotStart(f"answers are texts by the label of their step, and {label!r}: {answer!r} is not")


def name_list(what: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the names of any collection as a tuple; those of a set are sorted. Raises `CannotStart` for anything
    else."""
    _check_names(what, names)
    if not isinstance(names, Iterable):
        raise CannotStart(f"{what} is a list of names, not {names!r}")
    return tuple(sorted(names) if isinstance(names, Set) else names)


def _check_names(what: str, names: object) -> None:
    """Raise `CannotStart` unless `names` is a list of texts. A single text is rejected explicitly, because it is a
    sequence of texts too."""
    if isinstance(names, str):
        raise CannotStart(f"{what} is a list of names, not a text: [{names!r}]")
    for name in names if isinstance(names, Iterable) else [names]:
        if not isinstance(name, str):
            raise CannotStart(f"{what} is a list of names, and {name!r} is not a text")


def call_limit(limits: Mapping[str, Value]) -> int | None:
    """Return how many model calls the user allows a run, 0 for any number; None if the user says nothing about it.
    Raises `CannotStart` for anything else."""
    if CALLS not in limits:
        return None
    from quire.engine.inputs import converted

    given = limits[CALLS]
    try:
        calls = 0 if given is None else converted("integer", given)
    except ValueError:
        calls = None
    if not isinstance(calls, int) or not 0 <= calls <= LARGEST_LIMIT:
        raise CannotStart(f"the limit of calls is a whole number, 0 for no limit, and {given!r} is not")
    return calls


def checked_budget(budget: float | None) -> float | None:
    """Return the budget. Raises `CannotStart` if it is not a finite amount of 0 or more."""
    if budget is None:
        return None
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not math.isfinite(budget) or budget < 0:
        raise CannotStart(f"a budget is an amount in dollars, 0 or more, and {budget!r} is not")
    return budget
