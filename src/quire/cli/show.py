"""`quire show`: show what a document does, without running it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.completers import complete_document, complete_input
from quire.cli.options import require_text
from quire.cli.show_proof import Wanted, proof_data, proof_lines, proof_options, wanted
from quire.cli.stdio import write_json, write_lines, write_text
from quire.errors import BadDocument

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quire.library.document import Document
    from quire.plan.nodes import Plan
    from quire.values import Value


@click.command("show")
@click.argument("file", metavar="FILE|NAME", callback=require_text, shell_complete=complete_document)
@click.option("--graph", type=click.Choice(["mermaid", "svg"]), help="A flowchart instead of the outline.")
@click.option(
    "--prompt",
    metavar="[STEP]",
    is_flag=False,
    flag_value="",
    help="What the model would be told at a step; of a directive, the first message.",
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
@proof_options
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def command(
    context: click.Context, file: str, graph: str | None, prompt: str | None, inputs: tuple[str, ...], as_json: bool
) -> None:
    """Show the outline of a document: first what it can cost at most, writes and asks, in one line; then its inputs,
    steps, tools and prompts, and what it has to be allowed. For a directive: what it is composed from, its capabilities
    and their risks, limits, hooks and signatures; an unsigned one is shown, not refused.

    --bounds adds all numbers: calls, tokens, money and time. They are formulas in the sizes of the inputs, such as
    |readers| items or ‖doc‖ bytes: `≤` is proven, `~` is an estimate under assumptions. --why prints the arithmetic.

    FILE may also be the name of a registered pipeline, a playbook or a directive. With --prompt STEP: the exact
    messages that the model of that step would get. Values that only a run can know have a stand-in in brackets, such
    as [output of step 1]. FREE: starts no process and opens no connection.
    """
    if graph and prompt is not None:
        raise click.UsageError("--graph and --prompt exclude each other")
    if inputs and prompt is None:
        raise click.UsageError("-i is for --prompt")
    asked = wanted(context)
    if asked.given and (graph or prompt is not None):
        raise click.UsageError("--bounds, --why, --assume, --assume-from-runs and --model are for the bounds")
    from quire.library.lookup import document_of

    document = document_of(file)
    if document.plan is None:
        _print_errors(document)
        raise BadDocument(f"{document.name} cannot be shown: see what is wrong with it above")
    plan = document.plan
    if asked.why is not None and not as_json:
        write_lines(proof_lines(document, asked)[0])
    elif plan.thread and not graph:
        _show_directive(document, inputs if prompt is not None else None, as_json, asked)
    elif prompt == "":
        raise click.UsageError("--prompt needs the STEP of a playbook or a pipeline")
    elif prompt is not None:
        from quire.cli.inputs import read_inputs
        from quire.cli.show_prompt import print_prompt
        from quire.runs.prompts import prompt_of_document
        from quire.workspace.configuration import load_settings
        from quire.workspace.locate import find_workspace

        settings = load_settings(find_workspace(Path.cwd()))
        given = read_inputs(inputs, None, plan)
        print_prompt(prompt_of_document(document, prompt, given, settings), as_json)
    elif graph:
        text = _drawn(document, plan, graph)
        write_json({"graph": graph, "text": text}) if as_json else write_text(text)
    else:
        _outline(document, plan, as_json, asked)


def _show_directive(document: Document, prompt_inputs: Sequence[str] | None, as_json: bool, asked: Wanted) -> None:
    """Print the outline, or the messages if `prompt_inputs`, the values of `-i`, is not None."""
    from quire.library.library import Library
    from quire.workspace.configuration import load_settings
    from quire.workspace.locate import find_workspace

    library = Library(load_settings(find_workspace(Path.cwd())))
    if prompt_inputs is None:
        from quire.display.document_json import outlined
        from quire.display.outline_directive import directive_outline
        from quire.library.survey import survey

        if as_json:
            _put_outline(document, outlined(document, library, os.environ), asked)
        else:
            first, proven = proof_lines(document, asked)
            write_lines([*first, *directive_outline(survey(library, os.environ, document, {})), *proven])
        return
    from quire.cli.inputs import read_inputs
    from quire.cli.show_prompt import print_prompt
    from quire.runs.prompts import prompt_of_directive

    print_prompt(prompt_of_directive(library, os.environ, document, read_inputs(prompt_inputs, None)), as_json)


def _drawn(document: Document, plan: Plan, form: str) -> str:
    from quire.display.flowchart_proof import overlay_of
    from quire.library.foresight import Foresight

    overlay = overlay_of(Foresight.here(document.name).proof(plan, document.name))
    if form == "svg":
        from quire.display.flowchart_svg import svg

        return svg(plan, overlay=overlay)
    from quire.display.flowchart import mermaid

    return mermaid(plan, overlay)


def _outline(document: Document, plan: Plan, as_json: bool, asked: Wanted) -> None:
    if as_json:
        from quire.display.document_json import outlined

        _put_outline(document, outlined(document), asked)
        return
    from quire.display.outline import outline

    first, proven = proof_lines(document, asked)
    write_lines([*first, *(_pipeline_lines(document) if plan.format == "pipeline" else outline(plan)), *proven])


def _put_outline(document: Document, outline: dict[str, Value], asked: Wanted) -> None:
    from quire.display.outline import foreseen_data
    from quire.library.foresight import Foresight

    foresight = Foresight.here(document.name)
    foreseen = foreseen_data(*foresight.of(document.runnable(), document.name))
    write_json({"document": document.name, **outline, **foreseen, "proof": proof_data(document, asked)})


def _pipeline_lines(document: Document) -> Iterator[str]:
    from quire.display.outline_pipeline import pipeline_outline
    from quire.formats.pipeline.inputs import further_inputs, needed_inputs
    from quire.library.lookup import tree_of

    tree = tree_of(document)
    return pipeline_outline(document.runnable(), needed_inputs(tree), further_inputs(tree))


def _print_errors(document: Document) -> None:
    from quire.display.diagnostics import Findings, printer

    text = printer("full")([Findings(document.source, document.errors)], sys.stderr.isatty())
    click.echo(text, nl=False, err=True)
