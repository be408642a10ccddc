"""The options of `quire test` about exploring: how many drawn runs of each document, and from which seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

if TYPE_CHECKING:
    from quire.testing.exploration.report import DocumentExploration

_Command = TypeVar("_Command", bound=Callable[..., Any])
_KEY = "quire.cli.test_exploration"


class ExplorationWish(Struct):
    """The exploring that a user asks for."""

    explore: int | None = None
    seed: int | None = None


def exploration_options(command: _Command) -> _Command:
    """Add the options to the command. Their values are kept in the context: `exploration_wish` returns them."""
    options = (
        click.option(
            "--explore",
            type=click.IntRange(1, 1_000_000),
            metavar="N",
            callback=_keep,
            expose_value=False,
            help="Run each document N times with drawn inputs, replies and answers, and show broken promises.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**62),
            metavar="S",
            callback=_keep,
            expose_value=False,
            help="With --explore: draw from this seed again.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if parameter.name:
        setattr(exploration_wish(context), parameter.name, value)


def exploration_wish(context: click.Context) -> ExplorationWish:
    """Return the values of the options."""
    found: ExplorationWish = context.meta.setdefault(_KEY, ExplorationWish())
    return found


def explore_documents(wish: ExplorationWish, paths: Sequence[str], processes: int | None) -> list[DocumentExploration]:
    """Explore the documents of all test files, in several processes where that pays."""
    import secrets

    from quire.testing.exploration.report import explore_file
    from quire.testing.worker_processes import in_order, usable_processes

    seed = secrets.randbelow(1_000_000_000) if wish.seed is None else wish.seed
    work = partial(explore_file, count=wish.explore or 0, seed=seed)
    found = in_order(list(dict.fromkeys(paths)), work, usable_processes(processes))
    return [one for one in found if one is not None]
