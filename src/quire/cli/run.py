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
@click.argument("document", metavar="DOC", callback=require_text, shell_complete=complete_document)
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
    help="Take the model's replies of an earlier run where the same is asked.",
)
@force_option
@unattended_option("Never ask; use defaults, else the first option, empty text, and yes where nothing is written.")
@click.option("--detach", is_flag=True, help="Leave the run to a process of its own; print its id.")
@click.option("--cluster", is_flag=True, help="Hand the run to the workers of a cluster, and watch it.")
@driving_options
@click.pass_context
def command(context: click.Context, /, **given: object) -> None:
    """Run a document. PAID: calls a model (free with --script or a local one); WRITES the run's journal.

    DOC is a file, or the name of a registered pipeline, a playbook or a directive, here or in your own space; user:NAME
    is one of your own. TEXT is the value of its one required input, as in -i NAME=TEXT; - is stdin. The final output
    goes to stdout, everything else to stderr. NAME=@FILE reads an input from a file, NAME=@- from stdin, NAME=@@x is
    the text @x. For a pipeline, an input that is JSON becomes that value: -i n=5 is a number, -i n='"5"' a text. Ctrl-C
    pauses the run, `quire resume` goes on. The limits of a directive are turns, tokens, spend, spawns, depth and
    duration_seconds. STEP is a label, or the way into a callee: '3>1' is step 1 of the document that step 3 calls.

    An unattended run does not start if a playbook asks for a yes without a default before a step that writes:
    --unattended=yes gives it. A confirm of a pipeline without a default fails its step.

    --reuse takes replies of another run of this document, edited or not, at every call whose path, request and model
    are the same; `last` is its last run. Tools are called and people are asked again. Replies that are taken cost
    nothing; a table at the end says what they saved.
    """
    check_exclusive(context)
    from quire.cli.start import Order, run_document  # the engine: not for --help

    context.exit(run_document(Order(**context.params)))
