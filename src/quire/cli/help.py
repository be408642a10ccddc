"""Help pages: the first page of `quire`, the list of all verbs, and the help of one verb with its examples."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import click

from quire.cli.verbs import COSTS, RUNS, VERBS, examples_of
from quire.patterns import late_pattern

TITLE = "Runs AI workflows written as documents."
FIRST_GROUPS = ("Write", "Run", "Share")
FIRST_COMMANDS = ("quire new playbook hello", "quire run hello.playbook.md", "quire test")
FURTHER = "quire help VERB · quire help all · quire docs · something wrong: quire doctor"

_DRIVING = {
    "Input": (
        "--input",
        "--inputs",
        "--set",
        "--document",
        "--from",
        "--answer",
        "--script",
        "--model",
        "--reuse",
        "--like",
        "--id",
    ),
    "Limits": ("--allow", "--budget", "--limit", "--break", "--force", "--unattended"),
    "Output": ("--out", "--json", "--quiet", "--detach", "--hold", "--dry-run", "--cluster"),
}
SECTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("run", "resume", "answer", "fork"), _DRIVING),
    "test": {
        "Cases": ("-k", "--tag", "--failed", "-x", "-j", "--watch"),
        "Output": ("--format", "--json", "--junit", "--schema"),
        "Snapshots and recordings": ("--update", "--keep", "--record"),
        "Quality of the tests": (
            *("--cov", "--cov-fail-under", "--lcov", "--mutate", "--mutate-fail-under", "--explore", "--seed"),
        ),
        "Real models (PAID)": (
            *("--live", "--model", "--repeat", "--budget", "--each", "--baseline", "--chart"),
            *("--judge-model", "--calibrate", "--status", "--allow"),
        ),
    },
    "show": {
        "View": ("--graph", "--prompt", "--input", "--tree", "--can", "--allow", "--json"),
        "Bounds": ("--bounds", "--why", "--assume", "--assume-from-runs", "--model"),
    },
    "serve": {
        "Runs": ("--allow", "--model", "--budget"),
        "Address": ("--port", "--host", "--allow-host", "--base-path", "--proxy", "--uds", "--url"),
    },
}
"""Sections of the options of verbs that have many. Those that are not named here come last, as `Options`."""
_RANGE = late_pattern(r"(?:; |  \[)?(?:-?[\d.]+<=?)?x(?:[<>]=?-?[\d.]+)?(\])$")


def first_page() -> str:
    """Return the page of `quire --help`, which fits a terminal of 80 columns and 24 rows."""
    columns = terminal_width()
    usage, commands = f"Usage: quire VERB …        {TITLE}", f"  {'      '.join(FIRST_COMMANDS)}"
    if columns < len(commands) + 2:
        usage, commands = f"Usage: quire VERB …\n{TITLE}", "\n".join(f"  {command}" for command in FIRST_COMMANDS)
    return "\n".join([usage, "", *_rows(FIRST_GROUPS, columns), "", commands, _fitting(FURTHER, columns)])


def all_verbs() -> str:
    """Return the page of `quire help all`."""
    return "\n".join([TITLE, "", *_rows((*FIRST_GROUPS, "More", "Older"), terminal_width())])


def terminal_width() -> int:
    """Return the columns of the terminal, at most 80, as pages are written for. `shutil` takes long to load."""
    try:
        return min(80, int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns))
    except (OSError, ValueError):
        return 80


def _fitting(text: str, columns: int, further: str = "") -> str:
    if len(text) <= columns:
        return text
    from quire.display.text import folded

    return folded(text, columns, further)


def _rows(groups: Iterable[str], columns: int) -> Iterator[str]:
    names = [name for name, verb in VERBS.items() if verb.group in groups]
    widest = max(map(len, names))
    for group in groups:
        lead = group
        for name in names:
            if VERBS[name].group == group:
                line = _fitting(VERBS[name].line, columns - widest - 9)
                yield f"{lead:<6} {name:<{widest}}  {line}".replace("\n", f"\n{'':{widest + 9}}")
                lead = ""


def help_text(context: click.Context) -> str:
    """Return the help of the command of a context: usage, description, examples, options by section, and the page to
    read."""
    command, path = context.command, context.command_path.split()[1:]
    if not path:
        return first_page()
    if path == ["runs"]:
        command = getattr(command, "listing", command)
    verb = RUNS[path[1]] if path[0] == "runs" and len(path) > 1 else VERBS[path[0]]
    columns = context.terminal_width or terminal_width() - 2
    formatter = click.HelpFormatter(width=max(columns, 30))
    command.format_usage(context, formatter)
    command.format_help_text(context, formatter)
    if verb.group == "Older":
        _paragraph(formatter, f"The same as {verb.line}.")
    elif len(path) == 1 or path[0] == "runs":
        _paragraph(formatter, COSTS[verb.cost])
    if examples := examples_of(verb.line.removeprefix("quire ") if verb.group == "Older" else " ".join(path)):
        with formatter.section("Examples"):
            formatter.write("".join(f"  {example}\n" for example in examples))
    _write_options(path[-1], command.get_params(context), context, formatter)
    rows = [(name, entry.line) for name, entry in RUNS.items()] if path == ["runs"] else []
    if isinstance(command, click.Group):
        below = ((name, command.get_command(context, name)) for name in command.list_commands(context))
        rows = [(name, verb.get_short_help_str(formatter.width)) for name, verb in below if verb is not None]
    if rows:
        with formatter.section("Verbs"):
            formatter.write_dl(rows)
    return f"{formatter.getvalue()}\nMore: quire docs {verb.page}"


def _paragraph(formatter: click.HelpFormatter, text: str) -> None:
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(text)


def _write_options(
    verb: str, params: Iterable[click.Parameter], context: click.Context, formatter: click.HelpFormatter
) -> None:
    rows = {}
    for param in params:
        record = param.get_help_record(context) if isinstance(param, click.Option) else None
        if record and "--help" not in param.opts:
            rows[tuple(param.opts)] = (record[0], _RANGE.sub(lambda end: end[1] * (";" in end[0]), record[1]))
    for title, names in SECTIONS.get(verb, {}).items():
        if inside := [rows.pop(opts) for name in names for opts in tuple(rows) if name in opts]:
            with formatter.section(title):
                formatter.write_dl(inside)
    if rows:
        with formatter.section("Options"):
            formatter.write_dl(list(rows.values()))
