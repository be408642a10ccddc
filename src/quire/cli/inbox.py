"""`quire inbox`: list the open questions of runs, and the notices about launched runs that have ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from quire.cli.stdio import look_at_runs, tell, write_json, write_lines
from quire.wording import counted, cut

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.runs.stored import StoredRuns

QUESTIONS = 100
LETTERS = 20
LETTER_LINES = 6
LETTER_WIDTH = 200


@click.command("inbox")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(as_json: bool) -> None:
    """Show questions that wait for an answer, and notices; the oldest first.

    A notice says [pipeline] and arrives when a launched run has ended that no caller waited for.
    """
    look_at_runs(lambda runs: _show(runs, as_json))


async def _show(runs: StoredRuns, as_json: bool) -> None:
    from quire.display.inbox_json import letter_data
    from quire.display.run_json import name_data, question_data
    from quire.display.run_page import question_lines
    from quire.display.text import age, one_line
    from quire.stores.contract import MOST_QUESTIONS

    questions, total = await runs.store.oldest_questions(MOST_QUESTIONS if as_json else QUESTIONS)
    letters = (await runs.store.letters())[-LETTERS:]
    asking = {question.run for question in questions}
    rows = {row.id: row for row in await runs.store.named(list(asking))}
    if as_json:
        open_ones = (question_data(question, name_data(rows.get(question.run))) for question in questions)
        write_json([*open_ones, *map(letter_data, letters)])
        return
    now = time.time()
    lines = []
    for question in questions:
        lines.append(f"{click.style(question.run, bold=True)}  {_names(rows.get(question.run))}")
        lines += (f"  {line}" for line in question_lines(question, now))
    write_lines(lines)
    for letter in letters:
        came = f"for {one_line(letter.recipient)}, {age(now - letter.at)} ago"
        write_lines([f"{click.style(letter.run, bold=True)}  {came}"])
        # A letter contains the whole output of its run; its beginning is enough to recognise it.
        write_lines(f"  {cut(one_line(line), LETTER_WIDTH)}" for line in letter.text.splitlines()[:LETTER_LINES])
    if total > len(questions):
        tell(f"the oldest {len(questions)} of {open_questions(total)}")
    hint = "answer with: quire answer RUN [STEP] VALUE" if questions else "nothing waits for an answer"
    tell(hint)


def open_questions(total: int) -> str:
    """Return the number of open questions in words. Beyond a limit they are not counted."""
    from quire.stores.contract import MOST_QUESTIONS

    return f"{MOST_QUESTIONS:,}+ open questions" if total > MOST_QUESTIONS else counted(total, "open question")


def _names(row: RunRow | None) -> str:
    """Return the title of a run's document and the label of the run."""
    from quire.display.text import one_line

    if row is None:
        return ""
    return one_line(row.label if row.label.startswith(row.title) else f"{row.title}: {row.label}")
