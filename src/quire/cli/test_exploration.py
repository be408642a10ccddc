"""The options of `quire test` about exploring: how many drawn runs of each document, and from which seed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from quire.cli.options import Command, kept, kept_option, with_options

if TYPE_CHECKING:
    from quire.testing.exploration.explore import DocumentExploration


class ExplorationWish(Struct):
    """The exploring that a user asks for."""

    explore: int | None = None
    seed: int | None = None


def exploration_options(command: Command) -> Command:
    """Add the options to the command. `exploration_wish` returns their values."""
    options = (
        kept_option(
            ExplorationWish,
            "--explore",
            type=click.IntRange(1, 1_000_000),
            metavar="N",
            help="Run each document N times with drawn inputs, replies and answers, and show broken promises.",
        ),
        kept_option(
            ExplorationWish,
            "--seed",
            type=click.IntRange(0, 2**62),
            metavar="S",
            help="With --explore: draw from this seed again.",
        ),
    )
    return with_options(command, options)


def exploration_wish(context: click.Context) -> ExplorationWish:
    """Return the values of the options. Raises `click.UsageError` for a seed that nothing is drawn from."""
    found = kept(context, ExplorationWish)
    if found.seed is not None and found.explore is None:
        raise click.UsageError("--seed is for exploring: add --explore N", context)
    return found


def explore_documents(wish: ExplorationWish, paths: Sequence[str], processes: int | None) -> list[DocumentExploration]:
    """Explore the documents of all test files, in several processes where that pays."""
    import secrets

    from quire.testing.exploration.explore import explore_file
    from quire.testing.worker_processes import in_order, usable_processes

    seed = secrets.randbelow(1_000_000_000) if wish.seed is None else wish.seed
    work = partial(explore_file, count=wish.explore or 0, seed=seed)
    found = in_order(list(dict.fromkeys(paths)), work, usable_processes(processes))
    return [one for one in found if one is not None]
