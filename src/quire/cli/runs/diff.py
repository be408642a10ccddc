"""`quire runs diff`: compare two runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quire.cli.completion import complete_run
from quire.cli.options import filled
from quire.cli.stdio import look, put_json, put_lines

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


@click.command("diff")
@click.argument("a", metavar="A", shell_complete=complete_run, callback=filled)
@click.argument("b", metavar="B", shell_complete=complete_run, callback=filled)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(a: str, b: str, as_json: bool) -> None:
    """Show how two runs differ, step by step: the values read, the requests, the answers, and the cost.

    Each is an id, the beginning of one, or `last`. Steps are compared by their place in the document. FREE.
    """
    look(lambda runtime: _diff(runtime, a, b, as_json))


async def _diff(runtime: Runtime, a: str, b: str, as_json: bool) -> None:
    from quire.display.why import diff_data, diff_page
    from quire.runs.diff import diff
    from quire.runs.why import traced

    of_a, of_b = [await traced(runtime, await runtime.find(name)) for name in (a, b)]
    found = diff(of_a, of_b)
    put_json(diff_data(of_a, of_b, found)) if as_json else put_lines(diff_page(of_a, of_b, found))
