"""`quire inbox`: what runs wait for people to answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quire.cli.looking import look, put_json, put_lines

if TYPE_CHECKING:
    from quire.runtime import Runtime


@click.command("inbox")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(as_json: bool) -> None:
    """Show the open questions of all runs, the oldest first.

    FREE: reads the store only.
    """
    look(lambda runtime: _show(runtime, as_json))


async def _show(runtime: Runtime, as_json: bool) -> None:
    from quire.render.run_data import question_data
    from quire.render.run_page import question_lines
    from quire.render.text import one_line

    questions = await runtime.store.questions()
    titles = {run: (await runtime.row(run)).title for run in dict.fromkeys(question.run for question in questions)}
    if as_json:
        put_json([question_data(question, titles[question.run]) for question in questions])
        return
    now = runtime.clock.now()
    for question in questions:
        put_lines([f"{click.style(question.run, bold=True)}  {one_line(titles[question.run])}"])
        put_lines(f"  {line}" for line in question_lines(question, now))
    if questions:
        click.echo("answer with: quire answer RUN [STEP] VALUE", err=True)
    else:
        click.echo("nothing waits for an answer", err=True)
