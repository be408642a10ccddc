"""`quire show`: what a document does, without doing any of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.looking import put, put_json, put_lines
from quire.errors import BadDocument

if TYPE_CHECKING:
    from quire.documents import Document


@click.command("show")
@click.argument("file", metavar="FILE|NAME")
@click.option("--graph", type=click.Choice(["mermaid"]), help="A flowchart instead of the outline.")
@click.option("--prompt", metavar="STEP", help="What the model would be told at a step.")
@click.option("-i", "--input", "inputs", metavar="NAME=VALUE", multiple=True, help="An input, for --prompt.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(file: str, graph: str | None, prompt: str | None, inputs: tuple[str, ...], as_json: bool) -> None:
    """Show the outline of a document: its inputs, steps, branches, tools and prompts.

    FILE may also be the name of a registered pipeline. With --prompt STEP: the exact messages that the model of that
    step would get. What only a run can know has a stand-in in brackets, such as [output of step 1]. FREE: starts no
    process and opens no connection.
    """
    if graph and prompt is not None:
        raise click.UsageError("--graph and --prompt exclude each other")
    if inputs and prompt is None:
        raise click.UsageError("-i is for --prompt")
    from quire.cli.named import document_of

    document = document_of(file)
    if document.plan is None:
        _print_errors(document)
        raise BadDocument(f"{document.name} cannot be shown: see what is wrong with it above")
    plan = document.plan
    if prompt is not None:
        from quire.cli.inputs import given_inputs
        from quire.cli.prompting import print_prompt, prompt_of_document
        from quire.workspace.configuration import load_settings
        from quire.workspace.find import find_workspace

        settings = load_settings(find_workspace(Path.cwd()))
        given = given_inputs(inputs, None, as_json=plan.format == "pipeline")
        print_prompt(prompt_of_document(document, prompt, given, settings), as_json)
    elif graph:
        from quire.plan.graph import mermaid

        text = mermaid(plan)
        put_json({"graph": graph, "text": text}) if as_json else put(text)
    elif plan.format == "pipeline":
        _outline_pipeline(document, as_json)
    else:
        from quire.render.outline import outline, outline_data

        if as_json:
            put_json({"document": document.name, **outline_data(plan)})
            return
        put_lines(outline(plan))


def _outline_pipeline(document: Document, as_json: bool) -> None:
    from quire.cli.named import tree_of
    from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs
    from quire.render.pipeline_outline import pipeline_data, pipeline_outline

    plan, tree = document.runnable(), tree_of(document)
    needed, optional = inferred_inputs(tree), optional_inputs(tree)
    if as_json:
        put_json({"document": document.name, **pipeline_data(plan, needed, optional)})
    else:
        put_lines(pipeline_outline(plan, needed, optional))


def _print_errors(document: Document) -> None:
    from quire.render.diagnostics import Findings, printer

    text = printer("full")([Findings(document.source, document.errors)], sys.stderr.isatty())
    click.echo(text, nl=False, err=True)
