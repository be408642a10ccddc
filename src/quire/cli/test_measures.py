"""The options of `quire test` about measures beside the cases: coverage, mutants, and explored runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from quire.cli.options import Command, kept, kept_option, with_options
from quire.cli.output import require_writable, write_report

if TYPE_CHECKING:
    from quire.cli.test import Report
    from quire.display.test_report import FormatName

_ASKED = ""
"""The value of `--cov` without a gate."""


class MeasureWish(Struct):
    """The measures that a user asks for."""

    gates: tuple[str, ...] = ()
    """Gates of coverage; and words after `--cov` that are not gates: `quire test --cov examples` names a folder."""
    under: float | None = None
    """The share of all decisions in percent below which the command fails."""
    lcov: str | None = None
    mutate: bool = False
    least: float | None = None
    """The score of mutants in percent below which the command fails."""
    explore: int | None = None
    seed: int | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(gate for gate in self.gates if gate != _ASKED and "=" not in gate)

    @property
    def shows_coverage(self) -> bool:
        return bool(self.gates) or self.under is not None

    @property
    def covers(self) -> bool:
        return self.shows_coverage or self.lcov is not None

    def least_coverage(self) -> dict[str, float]:
        """Return the gates of coverage. Raises `CannotStart` for one that cannot be meant."""
        if not self.shows_coverage:
            return {}
        from quire.testing.coverage.report import read_gates

        return read_gates([gate for gate in self.gates if "=" in gate], self.under)


def measure_options(command: Command) -> Command:
    """Add the options to the command. `measure_wish` returns their values."""
    option, percent = partial(kept_option, MeasureWish), click.FloatRange(0, 100)
    options = (
        option(
            "--cov",
            "gates",
            multiple=True,
            is_flag=False,
            flag_value=_ASKED,
            metavar="[KIND=N]",
            help="Show untested decisions; arms=100: fail below 100 %.",
        ),
        option(
            "--cov-fail-under",
            "under",
            type=percent,
            metavar="N",
            help="Fail if the coverage is below N %.",
        ),
        option("--lcov", metavar="FILE", check=require_writable, help="Write the coverage as LCOV too."),
        option(
            "--mutate",
            is_flag=True,
            help="Show small changes that no case notices.",
        ),
        option(
            "--mutate-fail-under",
            "least",
            type=percent,
            metavar="N",
            help="Fail if the mutation score is below N %.",
        ),
        option(
            "--explore",
            type=click.IntRange(1, 1_000_000),
            metavar="N",
            help="Run N times with random inputs, replies and answers.",
        ),
        option(
            "--seed",
            type=click.IntRange(0, 2**62),
            metavar="S",
            help="With --explore: the seed of an earlier run.",
        ),
    )
    return with_options(command, options)


def measure_wish(context: click.Context) -> MeasureWish:
    """Return the values of the options. Raises `CannotStart` for a gate that cannot be meant, and `click.UsageError`
    for a seed that nothing is drawn from."""
    wish = kept(context, MeasureWish)
    wish.least_coverage()
    if wish.seed is not None and wish.explore is None:
        raise click.UsageError("--seed is for exploring: add --explore N", context)
    return wish


def add_measures(
    wish: MeasureWish, report: Report, paths: Sequence[str], processes: int | None, form: FormatName
) -> None:
    """Measure the documents of all test files, in several processes where that pays, and report the results."""
    tests = list(dict.fromkeys(paths))
    if wish.covers:
        _add_coverage(wish, report, form)
    if wish.mutate or wish.least is not None:
        _add_mutants(wish, report, tests, processes, form)
    if wish.explore is not None:
        _add_exploration(wish, report, tests, processes, form)


def _add_coverage(wish: MeasureWish, report: Report, form: FormatName) -> None:
    from quire.display.test_measures import coverage_measure
    from quire.source import NOWHERE
    from quire.testing.case_results import FileResult
    from quire.testing.coverage.report import gate_problems, lcov, merged

    documents = merged(result.coverage for result in report.results if result.coverage is not None)
    gates = wish.least_coverage()
    for document in documents:
        if below := gate_problems(document, gates, NOWHERE):
            report.add(FileResult(document.path, document.source, document.path, problems=below))
    if wish.shows_coverage:
        report.print(coverage_measure(documents).text(form))
    if wish.lcov is not None:
        write_report(wish.lcov, lcov(documents))


def _add_mutants(wish: MeasureWish, report: Report, tests: list[str], processes: int | None, form: FormatName) -> None:
    from quire.display.test_measures import mutation_measure
    from quire.testing.case_results import FileResult, Problem
    from quire.testing.mutation.mutation_run import below, mutate_files
    from quire.testing.worker_processes import usable_processes

    documents = mutate_files(tests, usable_processes(processes))
    for document in documents:
        if wish.least is not None and (low := below(document, wish.least)):
            report.add(
                FileResult(document.source.name, document.source, document.source.name, problems=(Problem(low),))
            )
    report.print(mutation_measure(documents).text(form))


def _add_exploration(
    wish: MeasureWish, report: Report, tests: list[str], processes: int | None, form: FormatName
) -> None:
    import secrets

    from quire.display.test_measures import exploration_measure
    from quire.testing.exploration.explore import explore_file
    from quire.testing.worker_processes import in_order, usable_processes

    seed = secrets.randbelow(1_000_000_000) if wish.seed is None else wish.seed
    work = partial(explore_file, count=wish.explore or 0, seed=seed)
    documents = [
        exploration for exploration in in_order(tests, work, usable_processes(processes)) if exploration is not None
    ]
    for failure in filter(None, (document.failure() for document in documents)):
        report.add(failure)
    report.print(exploration_measure(documents).text(form))
