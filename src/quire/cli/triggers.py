"""`quire triggers`: list, check, enable and fire triggers."""

from __future__ import annotations

from typing import Any

import click

from quire.cli.stdio import complain, perform, tell, write_json, write_lines
from quire.cli.terminal import somebody_is_here, yes_or_no
from quire.display.text import one_line, table
from quire.errors import CannotStart, Refused
from quire.runs.outcome import EXIT_FAILED, EXIT_WAITING
from quire.values import encode

_EXITS = {"failed": EXIT_FAILED, "awaiting_input": EXIT_WAITING, "paused": EXIT_WAITING}
_VERBS = ("check", "enable", "disable", "fire", "fires", "backfill", "tick")
_VERBS_OF = {"accept": ("check", "enable"), "yes": ("enable", "backfill"), "state": ("fires",)}
_VERBS_OF |= dict.fromkeys(("since", "until", "dry_run"), ("backfill",))
_COLUMNS = {
    "triggers": ("name", "next", "reason", "last"),
    "fires": ("source", "key", "state", "run", "reason"),
    "runs": ("id", "status"),
}


@click.command("triggers")
@click.argument("words", nargs=-1, metavar=f"[{'|'.join(_VERBS)}] [NAME]")
@click.option("--accept", metavar="CODE", multiple=True, help="check, enable: accept a finding that refuses it.")
@click.option("--yes", is_flag=True, help="enable, backfill: do not ask.")
@click.option("--from", "since", metavar="TIME", default="", help="backfill: the first time, such as 2026-11-01T06:00.")
@click.option("--to", "until", metavar="TIME", default="", help="backfill: the last time.")
@click.option("--dry-run", is_flag=True, help="backfill: show times and cost, and start nothing.")
@click.option("--state", type=click.Choice(["started", "skipped", "missed", "refused"]), help="fires: only these.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def command(
    context: click.Context,
    /,
    words: tuple[str, ...],
    accept: tuple[str, ...],
    yes: bool,
    state: str | None,
    as_json: bool,
    **span: str | bool,
) -> None:
    """Start documents unattended, at times, for webhooks or files: the tables [triggers.NAME] of quire.toml.

    Without a verb: the next time and the last result of each. check: all reasons against one, and the bounds of its
    runs (exit 6 if it is refused). enable: show the same and let it start runs; disable: not any more. fire: start a
    run now. fires: the result of each occurrence. backfill: start what was missed. quire serve and quire worker start
    what is due; tick does it once, for cron and systemd timers.
    """
    from quire.operations import triggers

    verb, names = (words[0], words[1:]) if words and words[0] in _VERBS else ("list", words)
    if len(names) > 1 or (verb == "tick" and names) or (verb not in ("list", "fires", "tick") and not names):
        raise click.UsageError(f"quire triggers {verb}" + " NAME" * (verb != "tick"), context)
    for option, verbs in _VERBS_OF.items():
        if context.params[option] and verb not in verbs:
            raise click.UsageError(f"an option of {' and '.join(verbs)}, given to {verb}", context)
    given: dict[str, Any] = {} if verb == "tick" else {"name": "".join(names)}
    if verb == "fires":
        given["state"] = state or ""
    if verb in ("check", "enable"):
        given["accept"] = list(accept)
        data = perform(triggers.check_trigger, given)
        if data["problems"]:
            raise Refused("\n".join([f"trigger {names[0]} is refused:", *data["problems"]]))
        if verb == "check" and as_json:
            write_json(data)
            return
        if not as_json:
            _show_proposal(data)
        if verb == "check":
            return
        _ask("Let it start runs by itself?", yes)
        given["digest"] = data["digest"]
    if verb == "backfill":
        if not (span["since"] and span["until"]):
            raise click.UsageError("quire triggers backfill NAME needs --from TIME and --to TIME", context)
        given |= span
        data = perform(triggers.backfill_trigger, {**given, "dry_run": True})
        count, most = len(data["due"]), data["most"]
        cost = "of unknown cost" if most is None else f"of at most ${most:.2f} each, ${count * most:.2f} together"
        if as_json and span["dry_run"]:
            write_json(data)
        elif not as_json:
            write_lines([*data["due"], f"{count} runs {cost}"])
        if span["dry_run"] or not count:
            return
        _ask("Start them?", yes)
    work = {"list": triggers.list_triggers, "fires": triggers.list_fires, "tick": triggers.tick_triggers}
    operation: Any = work.get(verb) or getattr(triggers, f"{verb}_trigger")
    data = perform(operation, given)
    part = next((name for name in _COLUMNS if name in data and verb != "fire"), "")
    rows, columns = (data[part], _COLUMNS[part]) if part else ([data], _COLUMNS["fires"])
    if as_json:
        write_json(data)
    elif rows:
        write_lines(table([[_cell(row[name]) for name in columns] for row in rows], [*map(str.upper, columns)]))
    else:
        tell("no triggers: quire.toml has no table [triggers.NAME]" if verb == "list" else "nothing")
    for problem in data.get("problems", ()):
        complain(problem)
    worst = Refused.exit_code if verb == "fire" and not data["run"] else EXIT_FAILED if data.get("problems") else 0
    context.exit(max((_EXITS.get(run["status"], 0) for run in data.get("runs", ())), default=0) or worst)


def _show_proposal(data: dict[str, Any]) -> None:
    """Show what a person agrees to."""
    most, may = data["most"], data["may"] or "nothing but ask its model"
    cost = "not known" if most is None else f"at most ${most:.2f}" if most else "nothing"
    shown = {"next": data["next"], "model": data["model"], "a run costs": cost, "it may": may}
    facts = {**data["settings"], **shown}
    write_lines(one_line(f"{name}: {_cell(value)}") for name, value in facts.items() if value)


def _ask(question: str, yes: bool) -> None:
    if not yes and not somebody_is_here():
        raise CannotStart("a person decides this: look at what is shown, then say --yes")
    if not yes and not yes_or_no(f"{question} yes or no [no]: "):
        raise Refused("nothing was changed")


def _cell(value: Any) -> str:
    if isinstance(value, dict) and "state" in value:
        return one_line(f"{value['state']} {value['run'] or value['reason']}")
    values = value if isinstance(value, list | tuple) else [value]
    texts = [each if isinstance(each, str) else encode(each) for each in values]
    return "–" if value is None else one_line(", ".join(texts))
