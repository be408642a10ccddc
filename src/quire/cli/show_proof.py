"""The sections of `quire show` that are proven before a run: bounds, money, envelope; and `--why` for each number."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from quire.cli.options import Command, kept, kept_option, with_options
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quire.analysis.assumptions import Assumptions
    from quire.analysis.gates import Gate
    from quire.analysis.proof import Proof
    from quire.analysis.quantities import Quantity
    from quire.library.document import Document
    from quire.runs.proven import ProvenDocument
    from quire.runs.usage_seen import UsageSeen
    from quire.values import Value
    from quire.workspace.settings import Settings

_ALL = "all"


class Wanted(Struct):
    """The options about proofs, as they were given."""

    why: str | None = None
    assume: tuple[str, ...] = ()
    assume_from_runs: bool = False
    model: str = ""
    bounds: bool = False

    @property
    def given(self) -> bool:
        return self != Wanted()


def proof_options(command: Command) -> Command:
    """Add the options about proofs to the command."""
    return with_options(
        command,
        [
            kept_option(Wanted, "--bounds", is_flag=True, help="All numbers that are proven, with their premises."),
            kept_option(
                Wanted,
                "--why",
                metavar="[NUMBER]",
                is_flag=False,
                flag_value=_ALL,
                help="The arithmetic of a number: model_calls, money, …; of all without one.",
            ),
            kept_option(
                Wanted,
                "--assume",
                metavar="NAME=N",
                multiple=True,
                help="A size, for an estimate: readers=20, doc=40KB.",
            ),
            kept_option(
                Wanted, "--assume-from-runs", is_flag=True, help="Take the sizes of the inputs of earlier runs."
            ),
            kept_option(Wanted, "--model", metavar="MODEL", default="", help="The model whose price is counted."),
        ],
    )


def wanted(context: click.Context) -> Wanted:
    return kept(context, Wanted)


def proof_lines(document: Document, options: Wanted) -> tuple[list[str], list[str]]:
    """Return the line to begin with, and gates, flows and the envelope, with options about bounds these too; with `why`
    the arithmetic of numbers and nothing else.

    Raises `UsageError` for options that cannot be meant, so it comes before anything is printed.
    """
    from quire.analysis.flow_paths import flows_of
    from quire.display.outline import envelope_lines
    from quire.display.preflight_line import summary_line
    from quire.display.proof_lines import Seen, bound_lines, flow_lines, gate_lines, why_lines
    from quire.library.foresight import Foresight

    settings = _settings(document)
    found, assumed, seen = _looked_up(document, settings, options)
    if options.why is not None:
        return [
            line for quantity in _named(found, options.why) for line in why_lines(quantity, found.shares(quantity.name))
        ], []
    envelope = Foresight(settings).envelope(document.runnable(), document.name)
    shown = Seen(seen.runs, {name: spread.p95 for name, spread in seen.amounts.items()})
    return [summary_line(found.quantities, envelope), ""], [
        *(bound_lines(found.quantities, assumed, shown) if options.given else ()),
        *gate_lines(_gates(found.proof)),
        *flow_lines(flows_of(found.proof)),
        *envelope_lines(envelope),
    ]


def proof_data(document: Document, options: Wanted) -> Mapping[str, Value]:
    """Return the same for programs."""
    from quire.analysis.flow_paths import flows_of
    from quire.display.proof_json import flows_data, gates_data
    from quire.display.proof_lines import quantity_data, shares_data

    found, assumed, seen = _looked_up(document, _settings(document), options)
    sizes = assumed.sizes(size for one in found.quantities for size in one.most.sizes) if assumed else {}
    data: dict[str, Value] = {
        "model": found.model or None,
        "numbers": {one.name: quantity_data(one, sizes) for one in found.quantities},
        "assumed": dict(sizes),
        "gates": gates_data(_gates(found.proof)),
        "flows": flows_data(flows_of(found.proof)),
    }
    if options.why is not None:
        data["why"] = {one.name: shares_data(found.shares(one.name)) for one in _named(found, options.why)}
    if seen.runs:
        amounts: dict[str, Value] = {
            name: {"p50": spread.p50, "p95": spread.p95, "most": spread.most} for name, spread in seen.amounts.items()
        }
        data["seen"] = {"runs": seen.runs, **amounts}
    return data


def _named(found: ProvenDocument, why: str) -> list[Quantity]:
    """Return the numbers whose arithmetic is asked for. Raises `UsageError` if there is no such number."""
    named = [one for one in found.quantities if why in (_ALL, one.name)]
    if not named:
        names = [one.name for one in found.quantities]
        raise click.UsageError(f"--why {why}: {did_you_mean(nearest(why, names), 'one of ' + ', '.join(names))}")
    return named


def _gates(proof: Proof) -> tuple[Gate, ...]:
    if not proof.effects:
        return ()  # and the expressions, by which gates are judged, are not loaded
    from quire.analysis.gates import gates_of

    return gates_of(proof)


def _looked_up(
    document: Document, settings: Settings | None, options: Wanted
) -> tuple[ProvenDocument, Assumptions | None, UsageSeen]:
    """Return the proof, the assumptions if there are any, and the usage of earlier runs."""
    import datetime

    from quire.runs.proven import assumed_sizes, prove_document, seen_in_runs
    from quire.runs.usage_seen import UsageSeen

    today = datetime.datetime.now(datetime.UTC).date()
    found = prove_document(document, settings, model=options.model, today=today, environ=os.environ)
    seen = UsageSeen()
    if settings is not None:
        seen = seen_in_runs(document, settings, os.environ, ask_server=options.assume_from_runs)
    if options.assume_from_runs and not seen.runs:
        raise click.UsageError("--assume-from-runs: no run of this document has completed here")
    if not (options.assume or options.assume_from_runs or (settings and settings.assume)):
        return found, None, seen
    from quire.analysis.assumptions import contradictions

    assumed = assumed_sizes(settings, options.assume, seen if options.assume_from_runs else None)
    problems = [*contradictions(assumed, document.runnable())]
    problems += assumed.unused(size for one in found.quantities for size in one.most.sizes)
    if problems:
        raise click.UsageError(problems[0])
    return found, assumed, seen


def _settings(document: Document) -> Settings | None:
    """Return the settings of the document's workspace; None, and a line on stderr, if they cannot be read."""
    from quire.display.visible import visible
    from quire.errors import BadConfiguration
    from quire.library.library import Library
    from quire.workspace.configuration import load_settings
    from quire.workspace.locate import find_workspace

    try:
        return Library(load_settings(find_workspace(Path.cwd()))).of(document.name).settings
    except BadConfiguration as error:
        click.echo(f"quire: {visible(str(error))}", err=True)
        return None
