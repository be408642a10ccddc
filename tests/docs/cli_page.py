"""Prints `docs/reference/cli.md` from the verbs themselves, so that the page cannot say what the program does not.

python tests/docs/cli_page.py > docs/reference/cli.md
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click

from quire import errors
from quire.cli.app import group
from quire.cli.help import all_verbs, help_text

WIDTH = 100


def cli_page() -> str:
    parts = [
        "# Commands",
        "Made from the program by `python tests/docs/cli_page.py > docs/reference/cli.md`.\n"
        "FREE calls no model and changes nothing, PAID may call a model, WRITES changes files.",
        "## Errors for programs",
        "With `--json` (or `--format json`) a failure before the start, usage errors included, prints one line on "
        "stdout. stderr has\nthe same for people, as without `--json`.",
        "```text\n" + _error("run nosuch.md --json") + "\n```",
        "`code` is one of `usage`, "
        + ", ".join(f"`{code}`" for code in _codes())
        + ".\n`hint` may be empty, `exit` is "
        "the exit code.",
    ]
    for path, context in _commands(_context(group, None, "quire")):
        parts += [f"## {path}", f"```text\n{help_text(context)}\n```"]
    parts += ["## quire help all", f"```text\n{all_verbs()}\n```"]
    return "\n\n".join(parts) + "\n"


def _error(line: str) -> str:
    done = subprocess.run([sys.executable, "-m", "quire", *line.split()], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _codes() -> list[str]:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.QuireError)]
    return sorted({kind.code for kind in kinds} | {"unreadable"})


def _commands(context: click.Context) -> Iterator[tuple[str, click.Context]]:
    """A command with its help, then those below it, in the order of the program's own list."""
    yield context.command_path, context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None:
                yield from _commands(_context(command, context, name))


def _context(command: click.Command, parent: click.Context | None, name: str) -> click.Context:
    return click.Context(
        command, parent, name, terminal_width=WIDTH, max_content_width=WIDTH, help_option_names=["-h", "--help"]
    )


if __name__ == "__main__":
    print(cli_page(), end="")
