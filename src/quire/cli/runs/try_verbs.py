"""`quire runs try` asks the model of one step again, with another prompt, model or value; `quire runs test` makes a
test case of a run or of a try."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from quire.cli.fork import values_for
from quire.cli.inputs import parse_pairs, text_value
from quire.cli.options import Budget, budget_of, require_text
from quire.cli.shell_completion import complete_run
from quire.cli.stdio import look_at_runs, perform, tell, wants_colour, write_json, write_lines, write_text
from quire.display.text import one_line
from quire.runs.scripts import pinned_spec

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.runs.stored import StoredRuns
    from quire.values import Value

FAILED, BUDGET_REACHED = 3, 5


@click.command("try")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=require_text)
@click.argument("step", metavar="STEP", callback=require_text)
@click.option("--prompt", metavar="TEXT|@FILE", help="The prompt of the step, with its references.")
@click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="Another value that the step reads.")
@click.option("--model", metavar="SPEC", callback=require_text, help="Another model.")
@click.option("--temperature", type=click.FloatRange(0, 2), metavar="N", help="Another temperature.")
@click.option("-n", "count", type=click.IntRange(min=1), default=1, metavar="N", help="Number of tries, at most 20.")
@click.option("--budget", type=Budget(min=0), metavar="USD|none", help="Never spend more than this on all of them.")
@click.option("--dry-run", is_flag=True, help="Only show the receipt. FREE.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def try_command(
    context: click.Context,
    run: str,
    step: str,
    prompt: str | None,
    sets: tuple[str, ...],
    model: str | None,
    temperature: float | None,
    count: int,
    budget: float | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Ask the model of one step of a run again, in runs of their own that end after the step.

    STEP is a label or a path of a model call. Everything recorded before it is kept, and nothing changes in the run or
    in the world: a step whose tools do more than read is refused. Exit 3: all tries failed, 5: at the budget, 6:
    refused. Tries are hidden in lists, and removed after a week.
    """
    from quire.display.try_json import receipt_line, try_lines
    from quire.operations.run_tries import try_step

    given: dict[str, Value] = {
        "path": step,
        "n": count,
        "prompt": None if prompt is None else text_value("prompt", prompt),
        "model": pinned_spec(model) if model else None,
        "temperature": temperature,
        **({"budget": budget_of(budget)} if budget is not None else {}),
    }

    async def row_of(runs: StoredRuns) -> RunRow:
        return await runs.row(await runs.find(run))

    row = look_at_runs(row_of)
    given |= {"run": row.id, "set": dict(values_for(row, parse_pairs(sets, "--set")))}
    receipt = perform(try_step, {**given, "dry_run": True})["receipt"]
    if dry_run:
        return write_json(receipt) if as_json else write_text(receipt_line(receipt))
    if not as_json:
        tell(receipt_line(receipt))
    tries = perform(try_step, given)["tries"]
    if as_json:
        write_json({"receipt": receipt, "tries": tries})
    else:
        write_lines(line for tried in tries for line in try_lines(tried, receipt, colour=wants_colour(sys.stdout)))
    kinds = [tried["error"]["kind"] if tried["error"] else "" for tried in tries]
    if all(kinds):
        context.exit(BUDGET_REACHED if "limit" in kinds else FAILED)


@click.command("test")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=require_text)
@click.option("--write", is_flag=True, help="Add the case to the test of the document.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def test_command(run: str, write: bool, as_json: bool) -> None:
    """Make a test case of a run: its inputs, replies and answers, and its result as it is expected.

    The case of a try has the reply of the try at its step. It is printed, or with --write added to the test of the
    document.
    """
    from quire.operations.run_tries import draft_test

    case = perform(draft_test, {"run": run, "write": write})
    if as_json:
        write_json(case)
    elif write:
        tell(f'{one_line(case["file"])}: added "{one_line(case["case"])}"; run it: quire test {one_line(case["file"])}')
    else:
        write_text(case["text"])
