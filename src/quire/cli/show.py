"""`quire show`: show what a document does, without running it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.completers import complete_document, complete_input
from quire.cli.options import filled
from quire.cli.stdio import put, put_json, put_lines
from quire.errors import BadDocument

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quire.library.document import Document
    from quire.plan.nodes import Plan
    from quire.values import Value


@click.command("show")
@click.argument("file", metavar="FILE|NAME", callback=filled, shell_complete=complete_document)
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
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(file: str, graph: str | None, prompt: str | None, inputs: tuple[str, ...], as_json: bool) -> None:
    """Show the outline of a document: its inputs, steps, tools and prompts, how much it can ask for at most, and what
    it has to be allowed. For a directive: what it is composed from, its capabilities and their risks, limits, hooks
    and signatures; an unsigned one is shown, not refused.

    FILE may also be the name of a registered pipeline, a playbook or a directive. With --prompt STEP: the exact
    messages that the model of that step would get. Values that only a run can know have a stand-in in brackets, such
    as [output of step 1]. FREE: starts no process and opens no connection.
    """
    if graph and prompt is not None:
        raise click.UsageError("--graph and --prompt exclude each other")
    if inputs and prompt is None:
        raise click.UsageError("-i is for --prompt")
    from quire.library.lookup import document_of

    document = document_of(file)
    if document.plan is None:
        _print_errors(document)
        raise BadDocument(f"{document.name} cannot be shown: see what is wrong with it above")
    plan = document.plan
    if plan.format == "directive" and not graph:
        _show_directive(document, inputs if prompt is not None else None, as_json)
    elif prompt == "":
        raise click.UsageError("--prompt needs the STEP of a playbook or a pipeline")
    elif prompt is not None:
        from quire.cli.inputs import given_inputs
        from quire.cli.show_prompt import print_prompt, prompt_of_document
        from quire.workspace.configuration import load_settings
        from quire.workspace.locate import find_workspace

        settings = load_settings(find_workspace(Path.cwd()))
        given = given_inputs(inputs, None, as_json=plan.format == "pipeline")
        print_prompt(prompt_of_document(document, prompt, given, settings), as_json)
    elif graph:
        text = _drawn(plan, graph)
        put_json({"graph": graph, "text": text}) if as_json else put(text)
    else:
        _outline(document, plan, as_json)


def _show_directive(document: Document, prompt_inputs: Sequence[str] | None, as_json: bool) -> None:
    """Print the outline, or the messages if `prompt_inputs`, the values of `-i`, is not None."""
    from quire.cli.inputs import given_inputs
    from quire.display.outline import foreseen_data
    from quire.display.outline_directive import directive_data, directive_outline
    from quire.library.foresight import foreseen
    from quire.library.library import Library
    from quire.library.survey import survey
    from quire.workspace.configuration import load_settings
    from quire.workspace.locate import find_workspace

    library = Library(load_settings(find_workspace(Path.cwd())))
    given = given_inputs(prompt_inputs or (), None)
    seen = survey(library, os.environ, document, given)
    if prompt_inputs is None:
        if as_json:
            put_json(
                {"document": document.name, **directive_data(seen), **foreseen_data(*foreseen(document.runnable()))}
            )
        else:
            put_lines(directive_outline(seen))
        return
    from quire.cli.show_prompt import print_prompt
    from quire.engine.conversation import Message
    from quire.engine.interpreter.preview import Preview
    from quire.engine.requests import ModelRequest

    notes = [f"no value for {name}: its name in brackets stands for it (-i {name}=…)" for name in seen.missing]
    notes += seen.composed.warnings
    request = ModelRequest(
        "thread/turn[1]/model", "turn 1", seen.composed.system, (Message("user", seen.composed.message),)
    )
    print_prompt(Preview(request, tuple(notes)), as_json)


def _drawn(plan: Plan, form: str) -> str:
    if form == "svg":
        from quire.display.flowchart_svg import svg

        return svg(plan)
    from quire.display.flowchart import mermaid

    return mermaid(plan)


def _outline(document: Document, plan: Plan, as_json: bool) -> None:
    from quire.display.outline import foreseen_data, foreseen_lines
    from quire.library.foresight import foreseen

    data, lines = _outline_pipeline(document) if plan.format == "pipeline" else _outline_text(plan)
    ahead = foreseen(plan)
    if as_json:
        put_json({"document": document.name, **data, **foreseen_data(*ahead)})
    else:
        put_lines(lines)
        put_lines(foreseen_lines(*ahead))


def _outline_text(plan: Plan) -> tuple[dict[str, Value], Iterator[str]]:
    from quire.display.outline import outline, outline_data

    return outline_data(plan), outline(plan)


def _outline_pipeline(document: Document) -> tuple[dict[str, Value], Iterator[str]]:
    from quire.display.outline_pipeline import pipeline_data, pipeline_outline
    from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs
    from quire.library.lookup import tree_of

    plan, tree = document.runnable(), tree_of(document)
    needed, optional = inferred_inputs(tree), optional_inputs(tree)
    return pipeline_data(plan, needed, optional), pipeline_outline(plan, needed, optional)


def _print_errors(document: Document) -> None:
    from quire.display.diagnostics import Findings, printer

    text = printer("full")([Findings(document.source, document.errors)], sys.stderr.isatty())
    click.echo(text, nl=False, err=True)
