"""`quire replay`: use stored runs as tests of an edited document, or ask their prompts of another model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.completion import complete_run
from quire.cli.options import require_text
from quire.cli.stdio import wants_colour, with_runtime, write_json, write_lines

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime

DIFFERENT = 1


@click.command("replay")
@click.argument("runs", metavar="[RUN|last]...", nargs=-1, shell_complete=complete_run, callback=require_text)
@click.option("--document", metavar="FILE", callback=require_text, help="The edited document. FREE.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="The newest N runs of the document, without RUN.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def command(
    context: click.Context, runs: tuple[str, ...], document: str | None, last: int | None, as_json: bool
) -> None:
    """Walk an edited document with the records of stored runs, and say for each whether it comes to the same end.
    FREE: no model is asked, no tool is called, nothing is written.

    RUN is an id, the beginning of one, or `last`. Without RUN, the newest 200 completed runs of the document are
    taken (--last N for another number).

    A recorded effect answers the request that is the same, wherever its step stands now. A person's answer is taken
    where the question is the same, or another wording of the question of the same step. Prompt files, and documents
    that the edited one calls, are read as they are now. Ends with 0 if all runs come to the same end, with 1 if one
    does not.
    """
    if document is None:
        raise click.UsageError("say what is new: --document FILE")
    if runs and last is not None:
        raise click.UsageError("--last is for a call without RUN")
    context.exit(with_runtime(lambda runtime: _replay(runtime, runs, document, last, as_json)))


async def _replay(runtime: Runtime, names: tuple[str, ...], file: str, last: int | None, as_json: bool) -> int:
    from quire.display.replay_page import replay_data, replay_page
    from quire.runs.edited_document import EditedDocument
    from quire.runs.shadow import MOST_RUNS, replay_run, runs_of

    edited = EditedDocument(runtime, Path(file))
    if names:
        found = list(dict.fromkeys([await runtime.find(name) for name in names]))
        count = len(found)
    else:
        found, count = await runs_of(runtime, edited, last or MOST_RUNS)
    replayed = [await replay_run(runtime, run, edited) for run in found]
    if as_json:
        write_json(replay_data(edited.name, replayed, count))
    else:
        write_lines(replay_page(replayed, colour=wants_colour(sys.stdout)))
        if count > len(found):
            click.echo(f"the newest {len(found)} of {count:,} stored runs were replayed: --last {count}", err=True)
    return 0 if all(one.verdict == "same" for one in replayed) else DIFFERENT
