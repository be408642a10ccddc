"""`quire show`: show what a document does, without running it: its outline, the numbers that are proven before a run
with their arithmetic, and the messages that a model gets at a step."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from quire.cli.completers import complete_document, complete_input
from quire.cli.options import Command, kept, kept_option, require_text, with_options
from quire.cli.stdio import complain, write_json, write_lines, write_text
from quire.errors import BadDocument
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from quire.analysis.approvals import Gate
    from quire.analysis.assumptions import Assumptions
    from quire.analysis.proof import Proof
    from quire.analysis.quantities import Quantity
    from quire.engine.interpreter.preview import Preview
    from quire.library.document import Document
    from quire.plan.nodes import Plan
    from quire.runs.earlier_runs import UsageSeen
    from quire.runs.proven import ProvenDocument
    from quire.values import Value
    from quire.workspace.settings import Settings


_ALL = "all"


class ProofOptions(Struct):
    """The options about proofs, as they were given."""

    why: str | None = None
    assume: tuple[str, ...] = ()
    assume_from_runs: bool = False
    model: str = ""
    bounds: bool = False

    @property
    def are_given(self) -> bool:
        return self != ProofOptions()


def proof_options(command: Command) -> Command:
    """Add the options about proofs to the command."""
    option = partial(kept_option, ProofOptions)
    options = (
        option("--bounds", is_flag=True, help="All numbers that are proven, with their premises."),
        option(
            "--why",
            metavar="[NUMBER]",
            is_flag=False,
            flag_value=_ALL,
            help="The arithmetic of a number: model_calls, money, …; of all without one.",
        ),
        option("--assume", metavar="NAME=N", multiple=True, help="A size, for an estimate: readers=20, doc=40KB."),
        option("--assume-from-runs", is_flag=True, help="Take the sizes of the inputs of earlier runs."),
        option("--model", metavar="MODEL", default="", help="The model whose price is counted."),
    )
    return with_options(command, options)


def proof_lines(document: Document, options: ProofOptions) -> tuple[list[str], list[str]]:
    """Return the line to begin with, and approvals, data flows and needed permissions, with options about bounds these
    too; with `why` the arithmetic of numbers and nothing else.

    Raises `UsageError` for options that cannot be meant, so it comes before anything is printed.
    """
    from quire.analysis.flow_paths import flows_of
    from quire.display.outline import envelope_lines
    from quire.display.preflight_line import summary_line
    from quire.display.proof import Seen, bound_lines, flow_lines, gate_lines, why_lines
    from quire.library.foresight import Foresight

    settings = _settings(document)
    proven, assumed, usage = _looked_up(document, settings, options)
    if options.why is not None:
        return [
            line
            for quantity in _named(proven, options.why)
            for line in why_lines(quantity, proven.shares(quantity.name))
        ], []
    envelope = Foresight(settings).envelope(document.runnable(), document.name)
    shown = Seen(usage.runs, {name: spread.p95 for name, spread in usage.amounts.items()})
    return [summary_line(proven.quantities, envelope), ""], [
        *(bound_lines(proven.quantities, assumed, shown) if options.are_given else ()),
        *gate_lines(_gates(proven.proof)),
        *flow_lines(flows_of(proven.proof)),
        *envelope_lines(envelope),
    ]


def proof_data(document: Document, options: ProofOptions) -> Mapping[str, Value]:
    """Return the same for programs."""
    from quire.analysis.flow_paths import flows_of
    from quire.display.document_json import flows_data, gates_data
    from quire.display.proof import quantity_data, shares_data

    proven, assumed, usage = _looked_up(document, _settings(document), options)
    sizes = assumed.sizes(size for quantity in proven.quantities for size in quantity.most.sizes) if assumed else {}
    data: dict[str, Value] = {
        "model": proven.model or None,
        "numbers": {quantity.name: quantity_data(quantity, sizes) for quantity in proven.quantities},
        "assumed": dict(sizes),
        "gates": gates_data(_gates(proven.proof)),
        "flows": flows_data(flows_of(proven.proof)),
    }
    if options.why is not None:
        data["why"] = {
            quantity.name: shares_data(proven.shares(quantity.name)) for quantity in _named(proven, options.why)
        }
    if usage.runs:
        amounts: dict[str, Value] = {
            name: {"p50": spread.p50, "p95": spread.p95, "most": spread.most} for name, spread in usage.amounts.items()
        }
        data["seen"] = {"runs": usage.runs, **amounts}
    return data


def _named(document: ProvenDocument, why: str) -> list[Quantity]:
    """Return the numbers whose arithmetic is asked for. Raises `UsageError` if there is no such number."""
    named = [quantity for quantity in document.quantities if why in (_ALL, quantity.name)]
    if not named:
        names = [quantity.name for quantity in document.quantities]
        raise click.UsageError(f"--why {why}: {did_you_mean(nearest(why, names), 'one of ' + ', '.join(names))}")
    return named


def _gates(proof: Proof) -> tuple[Gate, ...]:
    if not proof.effects:
        return ()  # and the expressions, by which gates are judged, are not loaded
    from quire.analysis.approvals import gates_of

    return gates_of(proof)


def _looked_up(
    document: Document, settings: Settings | None, options: ProofOptions
) -> tuple[ProvenDocument, Assumptions | None, UsageSeen]:
    """Return the proof, the assumptions if there are any, and the usage of earlier runs."""
    import datetime

    from quire.runs.earlier_runs import UsageSeen
    from quire.runs.proven import assumed_sizes, prove_document, seen_in_runs

    today = datetime.datetime.now(datetime.UTC).date()
    proven = prove_document(document, settings, model=options.model, today=today, environ=os.environ)
    usage = UsageSeen()
    if settings is not None:
        usage = seen_in_runs(document, settings, os.environ, ask_server=options.assume_from_runs)
    if options.assume_from_runs and not usage.runs:
        raise click.UsageError("--assume-from-runs: no run of this document has completed here")
    if not (options.assume or options.assume_from_runs or (settings and settings.assume)):
        return proven, None, usage
    from quire.analysis.assumptions import contradictions

    assumed = assumed_sizes(settings, options.assume, usage if options.assume_from_runs else None)
    problems = [*contradictions(assumed, document.runnable())]
    problems += assumed.unused(size for quantity in proven.quantities for size in quantity.most.sizes)
    if problems:
        raise click.UsageError(problems[0])
    return proven, assumed, usage


def _settings(document: Document) -> Settings | None:
    """Return the settings of the document's workspace; None, and a line on stderr, if they cannot be read."""
    from quire.errors import BadConfiguration
    from quire.library.library import Library
    from quire.workspace.configuration import settings_here

    try:
        return Library(settings_here()).of(document.name).settings
    except BadConfiguration as error:
        complain(str(error))
        return None


@click.command("show")
@click.argument("file", metavar="FILE|NAME", callback=require_text, shell_complete=complete_document)
@click.option("--graph", type=click.Choice(["mermaid", "svg"]), help="A flowchart instead of the outline.")
@click.option(
    "--prompt",
    metavar="[STEP]",
    is_flag=False,
    flag_value="",
    help="The prompt of a step; of a directive, its first message.",
)
@click.option(
    "-i",
    "--input",
    "inputs",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=complete_input,
    help="An input, for --prompt.",
)
@click.option("--tree", is_flag=True, help="The syntax tree as JSON.")
@click.option("--can", metavar="QUESTION", help="Check that it may do this: 'execute tool rye/bash'.")
@click.option("--allow", metavar="TOOL", multiple=True, help="With --can: assume that this is granted.")
@proof_options
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def command(
    context: click.Context,
    file: str,
    graph: str | None,
    prompt: str | None,
    inputs: tuple[str, ...],
    tree: bool,
    can: str | None,
    allow: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show what a document does, costs at most, writes and asks.

    FILE is a file or a name (see quire list). Values that only a run knows are shown as [output of step 1]. With
    --bounds, ≤ is proven and ~ is an estimate; they are formulas in the sizes of the inputs: |readers| items, ‖doc‖
    bytes.
    """
    views = {"--graph": graph, "--prompt": prompt is not None, "--tree": tree, "--can": can is not None}
    if len(chosen := [name for name, value in views.items() if value]) > 1:
        raise click.UsageError(f"{chosen[0]} and {chosen[1]} exclude each other")
    if allow and can is None:
        raise click.UsageError("--allow is for --can")
    if inputs and prompt is None:
        raise click.UsageError("-i is for --prompt")
    options = kept(context, ProofOptions)
    if options.are_given and chosen:
        raise click.UsageError("--bounds, --why, --assume, --assume-from-runs and --model are for the bounds")
    if tree:
        from quire.cli.syntax import parse_command

        context.invoke(parse_command, file=file, as_json=True)
        return
    if can is not None:
        _answer_can(context, [file, *can.split()], allow, as_json)
        return
    from quire.library.lookup import document_of

    document = document_of(file)
    if document.plan is None:
        from quire.display.diagnostics import Findings, printer

        text = printer("full")([Findings(document.source, document.errors)], sys.stderr.isatty())
        click.echo(text, nl=False, err=True)
        raise BadDocument(f"{document.name} cannot be shown: see what is wrong with it above")
    plan = document.plan
    if options.why is not None and not as_json:
        write_lines(proof_lines(document, options)[0])
    elif plan.thread and not graph:
        _show_directive(document, inputs if prompt is not None else None, as_json, options)
    elif prompt == "":
        raise click.UsageError("--prompt needs the STEP of a playbook or a pipeline")
    elif prompt is not None:
        from quire.cli.inputs import read_inputs
        from quire.runs.prompts import prompt_of_document
        from quire.workspace.configuration import settings_here

        settings = settings_here()
        values = read_inputs(inputs, None, plan)
        print_prompt(prompt_of_document(document, prompt, values, settings), as_json)
    elif graph:
        text = _drawn(document, plan, graph)
        write_json({"graph": graph, "text": text}) if as_json else write_text(text)
    else:
        _outline(document, plan, as_json, options)


def _answer_can(context: click.Context, words: list[str], allow: tuple[str, ...], as_json: bool) -> None:
    from quire.cli.can import command as can_command

    options = [word for tool in allow for word in ("--allow", tool)] + ["--json"] * as_json
    try:
        with can_command.make_context("--can", [*options, "--", *words], parent=context) as asked:
            can_command.invoke(asked)
    except click.UsageError as error:
        raise click.UsageError(f"--can takes 'ACTION TYPE [ID]': {error.format_message()}", context) from None


def _show_directive(
    document: Document, prompt_inputs: Sequence[str] | None, as_json: bool, options: ProofOptions
) -> None:
    """Print the outline, or the messages if `prompt_inputs`, the values of `-i`, is not None."""
    from quire.library.library import Library
    from quire.workspace.configuration import settings_here

    library = Library(settings_here())
    if prompt_inputs is None:
        from quire.display.document_json import outlined
        from quire.display.outline_directive import directive_outline
        from quire.library.survey import survey

        if as_json:
            _put_outline(document, outlined(document, library, os.environ), options)
        else:
            first, proven = proof_lines(document, options)
            write_lines([*first, *directive_outline(survey(library, os.environ, document, {})), *proven])
        return
    from quire.cli.inputs import read_inputs
    from quire.runs.prompts import prompt_of_directive

    print_prompt(prompt_of_directive(library, os.environ, document, read_inputs(prompt_inputs, None)), as_json)


def _drawn(document: Document, plan: Plan, form: str) -> str:
    from quire.display.flowchart_drawing import mermaid, svg
    from quire.display.flowchart_marks import overlay_of
    from quire.library.foresight import Foresight

    overlay = overlay_of(Foresight.here(document.name).proof(plan, document.name))
    return svg(plan, overlay=overlay) if form == "svg" else mermaid(plan, overlay)


def _outline(document: Document, plan: Plan, as_json: bool, options: ProofOptions) -> None:
    if as_json:
        from quire.display.document_json import outlined

        _put_outline(document, outlined(document), options)
        return
    from quire.display.outline import outline

    first, proven = proof_lines(document, options)
    write_lines([*first, *(_pipeline_lines(document) if plan.format == "pipeline" else outline(plan)), *proven])


def _put_outline(document: Document, outline: dict[str, Value], options: ProofOptions) -> None:
    from quire.display.outline import foreseen_data
    from quire.library.foresight import Foresight

    foresight = Foresight.here(document.name)
    foreseen = foreseen_data(*foresight.of(document.runnable(), document.name))
    write_json({"document": document.name, **outline, **foreseen, "proof": proof_data(document, options)})


def _pipeline_lines(document: Document) -> Iterator[str]:
    from quire.display.outline_pipeline import pipeline_outline
    from quire.formats.pipeline.inputs import further_inputs, needed_inputs
    from quire.library.lookup import tree_of

    tree = tree_of(document)
    return pipeline_outline(document.runnable(), needed_inputs(tree), further_inputs(tree))


def print_prompt(preview: Preview, as_json: bool) -> None:
    from quire.display.text import one_line
    from quire.display.transcript import prompt_data, prompt_text

    for note in preview.notes:
        click.echo(f"note: {one_line(note)}", err=True)
    if as_json:
        write_json(prompt_data(preview.request))
    else:
        write_text(prompt_text(preview.request))
