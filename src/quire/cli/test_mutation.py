"""The options of `quire test` about mutants of documents: whether to try them, and the least score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from quire.cli.options import Command, kept, kept_option, with_options

if TYPE_CHECKING:
    from quire.display.test_report import FormatName
    from quire.testing.mutation.run import DocumentMutation
    from quire.testing.results import FileResult


class MutationWish(Struct):
    """The mutants that a user asks for."""

    mutate: bool = False
    least: float | None = None
    """The score in percent below which the command fails."""

    @property
    def wanted(self) -> bool:
        return self.mutate or self.least is not None


def mutation_options(command: Command) -> Command:
    """Add the options to the command. `mutation_wish` returns their values."""
    options = (
        kept_option(
            MutationWish,
            "--mutate",
            is_flag=True,
            help="Change the documents in many small ways, and show the changes that no case notices.",
        ),
        kept_option(
            MutationWish,
            "--mutate-fail-under",
            "least",
            type=click.FloatRange(0, 100),
            metavar="N",
            help="Fail if the cases notice less than so many percent of the changes of a document.",
        ),
    )
    return with_options(command, options)


def mutation_wish(context: click.Context) -> MutationWish:
    return kept(context, MutationWish)


def try_mutants(paths: Sequence[str], processes: int | None) -> list[DocumentMutation]:
    """Try the mutants of the documents of all test files, in several processes where that pays."""
    from quire.testing.mutation.run import mutate_files
    from quire.testing.worker_processes import usable_processes

    return mutate_files(list(dict.fromkeys(paths)), usable_processes(processes))


def mutation_failures(documents: Sequence[DocumentMutation], least: float | None) -> list[FileResult]:
    """Return a result for each document whose score is too low."""
    from quire.testing.mutation.run import below
    from quire.testing.results import FileResult, Problem

    found = ((one, below(one, least)) for one in documents if least is not None)
    return [
        FileResult(one.source.name, one.source, one.source.name, problems=(Problem(low),)) for one, low in found if low
    ]


def mutation_report(documents: Sequence[DocumentMutation], form: FormatName) -> str:
    from quire.display.test_mutation import mutation_text

    return mutation_text(documents, form)
