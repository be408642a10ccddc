"""`quire runs label` names a run and notes something about it; `quire runs --by` and `--pulse` add runs up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from quire.cli.options import require_text
from quire.cli.shell_completion import complete_run
from quire.cli.stdio import tell, with_runtime, write_json, write_lines
from quire.wording import counted

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


@click.command("label")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=require_text)
@click.option("--name", metavar="TEXT", help="Name in place of the subject; an empty text removes it.")
@click.option("--note", metavar="TEXT", help="Note for people; an empty text removes it.")
@click.option("--seen/--unseen", default=None, help="Mark a failed run as seen, or not.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def label_command(run: str, name: str | None, note: str | None, seen: bool | None, as_json: bool) -> None:
    """Give a run a name and a note, also while it runs.

    They are for people: nothing else of the run changes, and its seals do not cover them.
    """
    given = {"name": name, "note": note, "seen": seen}
    changes = {key: value for key, value in given.items() if value is not None}
    if not changes:
        raise click.UsageError("say what to set: --name, --note, --seen or --unseen")
    row = with_runtime(lambda runtime: _performed(runtime, "label_run", {"run": run, **changes}))
    if as_json:
        write_json(row)
    else:
        tell(f"run {row['id']}: {row['label']}")


def add_up(by: str | None, status: str | None, as_json: bool) -> None:
    """Print runs in groups, or the runs of each of the last days."""
    from quire.display.run_page import group_table, pulse_table

    given = {"by": by, **({"status": [status]} if status else {})} if by else {}
    data = with_runtime(lambda runtime: _performed(runtime, "group_runs" if by else "pulse", given))
    if as_json:
        write_json(data)
        return
    write_lines(group_table(data["groups"]) if by else pulse_table(data["days"]))
    if by and data["more"]:
        tell(f"and {counted(data['more'], 'group')} more")
    if not by:
        waited = f", waited for {data['waited']:,.0f} s (median)" if data["waited"] is not None else ""
        tell(f"{counted(data['waiting'], 'open question')}{waited}")


async def _performed(runtime: Runtime, name: str, given: Mapping[str, Any]) -> Any:
    """Return the answer of an operation on the list of runs. Raises `CannotStart` for values that do not fit."""
    from quire.errors import CannotStart
    from quire.operations import run_list
    from quire.operations.field_types import errors_of, schema_of
    from quire.operations.host import Caller, Host

    work = getattr(run_list, name)
    if problems := errors_of(schema_of(work.input), dict(given)):
        raise CannotStart("; ".join(f"{where.lstrip('/')}: {problem}" for where, problem in problems))
    return await work.run(Host(runtime, Caller()), work.read(given))
