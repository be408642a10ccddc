"""`quire runs why` explains a step: what it read, sent, was answered, and took. `quire runs diff` compares two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quire.cli.completion import complete_run
from quire.cli.options import require_text
from quire.cli.stdio import with_runtime, write_json, write_lines

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


@click.command("why")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=require_text)
@click.argument("step", metavar="STEP")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def why_command(run: str, step: str, as_json: bool) -> None:
    """Say why a step came out as it did: the values that it read and who wrote each, the prompt exactly as it was
    sent, the reply, tool calls with arguments and results, loaded texts, retries, time and cost.

    STEP is a label, or the path of an item or of an effect as `quire runs RUN --journal` shows it. FREE.
    """
    with_runtime(lambda runtime: _why(runtime, run, step, as_json))


async def _why(runtime: Runtime, name: str, step: str, as_json: bool) -> None:
    from quire.display.why import why_data, why_page
    from quire.runs.why import traced, why

    found = why(await traced(runtime, await runtime.find(name)), step)
    write_json(why_data(found)) if as_json else write_lines(why_page(found))


@click.command("diff")
@click.argument("a", metavar="A", shell_complete=complete_run, callback=require_text)
@click.argument("b", metavar="B", shell_complete=complete_run, callback=require_text)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def diff_command(a: str, b: str, as_json: bool) -> None:
    """Show how two runs differ, step by step: the values read, the requests, the answers, and the cost.

    Each is an id, the beginning of one, or `last`. Steps are compared by their place in the document. FREE.
    """
    with_runtime(lambda runtime: _diff(runtime, a, b, as_json))


async def _diff(runtime: Runtime, a: str, b: str, as_json: bool) -> None:
    from quire.display.why import diff_data, diff_page
    from quire.runs.diff import diff
    from quire.runs.why import traced

    of_a, of_b = [await traced(runtime, await runtime.find(name)) for name in (a, b)]
    found = diff(of_a, of_b)
    write_json(diff_data(of_a, of_b, found)) if as_json else write_lines(diff_page(of_a, of_b, found))
