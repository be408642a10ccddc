"""`quire triggers`: list, check, enable and fire triggers."""

from __future__ import annotations

from typing import Any

import click

from quire.cli.stdio import perform, tell, write_json, write_lines
from quire.cli.terminal import somebody_is_here, yes_or_no
from quire.display.text import one_line, table
from quire.errors import CannotStart, Refused
from quire.runs.outcome import EXIT_FAILED, EXIT_WAITING

_EXITS = {"failed": EXIT_FAILED, "awaiting_input": EXIT_WAITING, "paused": EXIT_WAITING}
_VERBS = ("check", "enable", "disable", "fire", "fires", "tick")


@click.command("triggers")
@click.argument("words", nargs=-1, metavar=f"[{'|'.join(_VERBS)}] [NAME]")
@click.option("--accept", metavar="CODE", multiple=True, help="check, enable: accept a finding that stops other runs.")
@click.option("--yes", is_flag=True, help="enable: do not ask.")
@click.option("--state", type=click.Choice(["started", "skipped", "missed", "refused"]), help="fires: only these.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def command(
    context: click.Context, words: tuple[str, ...], accept: tuple[str, ...], yes: bool, state: str | None, as_json: bool
) -> None:
    """Start documents at times, unattended: the tables [triggers.NAME] of quire.toml.

    Without a verb: the next time and the last result of each. check: all reasons against one, and the bounds of its
    runs (exit 6 if it is refused). enable: show the same and let it start runs; disable: not any more. fire: start a
    run now. fires: the result of each occurrence. quire serve and quire worker start what is due; tick does it once,
    for cron and systemd timers.
    """
    from quire.operations import triggers

    verb, rest = (words[0], words[1:]) if words and words[0] in _VERBS else ("list", words)
    if len(rest) > 1 or (bool(rest) if verb == "tick" else not rest and verb not in ("list", "fires")):
        raise click.UsageError(f"{verb} takes no name" if verb == "tick" else f"quire triggers {verb} NAME", context)
    name = rest[0] if rest else ""
    given: dict[str, Any] = {} if verb == "tick" else {"name": name}
    if verb in ("check", "enable"):
        given["accept"] = list(accept)
        data = perform(triggers.check_trigger, given)
        if verb == "check" and as_json:
            write_json(data)
        if data["problems"]:
            raise Refused("\n".join([f"trigger {name} is refused:", *data["problems"]]))
        if not as_json:
            write_lines(map(one_line, _proposed(name, data)))
        if verb == "check":
            return
        if not yes and not somebody_is_here():
            raise CannotStart("a person enables a trigger: look at what check shows, then say --yes")
        if not yes and not yes_or_no("Let it start runs by itself? yes or no [no]: "):
            raise Refused(f"trigger {name} is not enabled")
        given["digest"] = data["digest"]
    elif verb == "fires":
        given["state"] = state or ""
    work = {"list": triggers.list_triggers, "fires": triggers.list_fires, "tick": triggers.tick_triggers}
    operation: Any = work.get(verb) or getattr(triggers, f"{verb}_trigger")
    data = perform(operation, given)
    if as_json:
        write_json(data)
    else:
        _print(data)
    runs = data.get("runs", ())
    refused = Refused.exit_code if verb == "fire" and not data["run"] else 0
    context.exit(max((_EXITS.get(run["status"], 0) for run in runs), default=refused))


def _proposed(name: str, data: Any) -> list[str]:
    settings, most = data["settings"], "not known" if data["most"] is None else f"${data['most']:.2f}"
    budgets = f"budget: {settings.get('budget', 'none')}, of a day: {settings.get('day_budget', 'none')}"
    return [
        f"{name}: {settings['run']}, {_when(settings)}; next: {', '.join(data['next'])}",
        f"model: {data['model'] or 'none'}; the most that a run costs: {most}; {budgets}",
        *(f"may {capability}" for capability in data["may"]),
    ]


def _when(settings: Any) -> str:
    return f"every {settings['every']:g} s" if "every" in settings else str(settings.get("cron", ""))


def _told(start: Any) -> str:
    return f"{start['state']} {start['run'] or start['reason']}" if start else ""


def _print(data: Any) -> None:
    """Print the answer of an operation: triggers, claims, runs, or one claim."""
    header, rows = ["STATE"], list[list[str]]()
    if "state" in data:
        rows = [[_told(data)]]
    elif "triggers" in data:
        header = ["NAME", "WHEN", "NEXT", "LAST"]
        rows = [
            [each["name"], _when(each["settings"] or {}), *(each["next"] or [each["reason"]]), _told(each["last"])]
            for each in data["triggers"]
        ]
    elif "fires" in data:
        header = ["TRIGGER", "OCCURRENCE", "STATE"]
        rows = [[each["source"].partition(":")[2], each["key"], _told(each)] for each in data["fires"]]
    elif "runs" in data:
        header, rows = ["RUN", "STATUS"], [[run["id"], run["status"]] for run in data["runs"]]
    if rows:
        write_lines(table([[*map(one_line, row)] for row in rows], header))
    else:
        tell("nothing: quire.toml has no table [triggers.NAME]" if "triggers" in data else "nothing")
