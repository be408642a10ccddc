"""`quire run`: start a document and drive it until it ends or waits. The work itself is in `cli/start`."""

from __future__ import annotations

import click

from quire.cli.completers import complete_document, complete_input, complete_model, complete_run
from quire.cli.options import (
    Unattended,
    check_exclusive,
    driving_options,
    force_option,
    require_text,
    unattended_option,
)


@click.command("run", cls=Unattended)
@click.argument("document", metavar="DOC", required=False, callback=require_text, shell_complete=complete_document)
@click.argument("text", metavar="[TEXT]", nargs=-1, callback=require_text)
@click.option(
    "-i",
    "--input",
    "inputs",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=complete_input,
    help="An input; NAME=@FILE reads a file.",
)
@click.option("--inputs", "inputs_file", metavar="FILE", help="Inputs from a JSON object.")
@click.option(
    "--model", metavar="SPEC", callback=require_text, shell_complete=complete_model, help="The model, as PROVIDER:NAME."
)
@click.option("--answer", "answers", metavar="STEP=VALUE", multiple=True, help="Answer a step's question beforehand.")
@click.option("--break", "breaks", metavar="STEP", multiple=True, help="Pause after a step.")
@click.option("--allow", metavar="TOOL", multiple=True, callback=require_text, help="Grant a tool to this run.")
@click.option(
    "--reuse",
    metavar="RUN|last",
    callback=require_text,
    shell_complete=complete_run,
    help="Reuse replies from an earlier run for identical calls.",
)
@click.option(
    "--like",
    metavar="RUN|last",
    callback=require_text,
    shell_complete=complete_run,
    help="In place of DOC: an earlier run, with its inputs and options.",
)
@click.option(
    "--id", "key", metavar="KEY", callback=require_text, help="One run for this key: again, it means that run."
)
@force_option
@unattended_option("Never ask; use defaults (else yes, the first option, empty text).")
@click.option("--detach", is_flag=True, help="Run in the background; print the run's id.")
@click.option("--cluster", is_flag=True, help="Run on the workers of a cluster, and watch it.")
@driving_options
@click.pass_context
def command(context: click.Context, /, **given: object) -> None:
    """Run a document and print its output.

    DOC is a file or a name (see quire list). TEXT is the value of its one required input, - is stdin. NAME=@FILE reads
    an input from a file. STEP is a label; '3>1' is step 1 of the document that step 3 calls. Ctrl-C pauses the run.
    """
    check_exclusive(context)
    document, like = context.params["document"], context.params["like"]
    if (document is None) == (like is None):
        problem = "missing argument 'DOC', or --like RUN" if like is None else "DOC cannot be given with --like"
        raise click.UsageError(problem, context)
    from quire.cli.start import Order, run_document  # the engine: not for --help

    context.exit(run_document(Order(**context.params)))
