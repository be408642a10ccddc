"""Dispatch a command line: find and call the verb, and turn every failure into a message and an exit code."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise

import click

from quire.cli import BROKEN_PIPE, INTERRUPTED
from quire.cli.verbs import VERBS
from quire.display.visible import PLAINER, visible
from quire.errors import CannotStart, QuireError
from quire.os_flags import IS_WINDOWS, WINDOWS_VERBS
from quire.wording import did_you_mean, nearest

USAGE = 2
CLOSED: set[int] = set()
"""File descriptors of the standard streams that the caller had closed."""
MEANT = {
    "validate": "check",
    "lint": "check",
    "init": "new",
    "create": "new",
    "start": "run",
    "exec": "run",
    "execute": "run",
    "logs": "runs",
    "history": "runs",
    "status": "runs",
    "ps": "runs",
    "stop": "runs cancel",
    "continue": "resume",
    "retry": "resume",
    "models": "model list",
    "login": "doctor",
}
"""Verbs of other tools, and the command to suggest for each."""
_ON_WINDOWS = frozenset({*WINDOWS_VERBS, "parse", "eval", "can", "doctor", "completion", "help", "version", "tools"})
_DOCUMENT = (".md", ".markdown", ".yaml", ".yml")
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class Verbs(click.Group):
    """A click group that lists the verbs from their table and imports only the invoked one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [
            name for name, verb in VERBS.items() if verb.group != "Older" and find_spec(verb.place.partition(":")[0])
        ]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "help":
            return help_command
        module, _, attribute = VERBS[cmd_name].place.partition(":") if cmd_name in VERBS else ("", "", "")
        if not module or not find_spec(module):
            return None
        command: object = getattr(import_module(module), attribute or "command")
        return with_help(command) if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not name.startswith("-"):
            close = _close_verb(name, [*VERBS, "help", "version"])
            raise click.UsageError(f"unknown verb {name!r}" + did_you_mean(close, lead="; ", form="{!r}"), ctx)
        if IS_WINDOWS and name in VERBS and name not in _ON_WINDOWS:
            raise CannotStart(f"quire {name} is not supported on Windows yet: use WSL")
        return (name, command, args[1:]) if command else super().resolve_command(ctx, args)


def with_help(command: click.Command) -> click.Command:
    """Give a command, and those below it, the option `--help`. That of click looks for a translation of its text, and
    loads `locale`."""
    for part in command.commands.values() if isinstance(command, click.Group) else ():
        with_help(part)
    if command.add_help_option:
        command.add_help_option = False
        command.params.append(
            click.Option(
                ["-h", "--help"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                help="Show this message and exit.",
                callback=_show_help,
            )
        )
    return command


def _show_help(context: click.Context, parameter: click.Parameter, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        from quire.cli.help import help_text

        click.echo(help_text(context), color=context.color)
        context.exit()


@click.command("help", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1)
def help_command(words: tuple[str, ...]) -> None:
    """Print the help of a verb, the first page without one, or the list of all verbs."""
    if words == ("all",):
        from quire.cli.help import all_verbs

        click.echo(all_verbs())
        return
    with group.make_context("quire", [*(word for word in words if not word.startswith("-")), "--help"]) as asked:
        group.invoke(asked)


group = Verbs(
    "quire",
    help="Runs AI workflows that are written as documents.",
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[click.Option(["-V", "--version"], is_flag=True, help="Show the version and exit.")],
)
with_help(group)


def enter(arguments: list[str]) -> int:
    _open_streams()
    if not (sys.stderr.encoding or "").lower().startswith("utf") and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors=PLAINER)
    if "_QUIRE_COMPLETE" in os.environ:
        from quire.cli.shell_completion import install

        install()
        group.main(arguments, prog_name="quire", standalone_mode=False)
        return 0
    try:
        with group.make_context("quire", list(arguments or ["--help"])) as context:
            result: object = group.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has closed the pipe.
        _drop_output()
        return BROKEN_PIPE
    except OSError as error:
        if isinstance(error, FileNotFoundError) and _nowhere():
            from quire.workspace.locate import GONE

            return _fail(arguments, "cannot_start", GONE)
        # Only an error of a stream has no file name. Any other is a file access without error handling: a bug.
        if error.filename is not None or error.errno not in _NO_ROOM:
            raise
        _drop_output()
        return _fail([], "", f"the output could not be written: {error.strerror}")
    except click.exceptions.NoArgsIsHelpError as error:
        from quire.cli.help import help_text

        click.echo(help_text(error.ctx), err=True)
        return USAGE
    except click.ClickException as error:
        status = USAGE if isinstance(error, click.UsageError) else error.exit_code
        return _fail(arguments, "usage", *_usage(error), status=status)
    except QuireError as error:
        return _fail([] if error.is_printed else arguments, error.code, str(error), status=error.exit_code)
    return result if isinstance(result, int) else 0


def _fail(arguments: Sequence[str], code: str, message: str, hint: str = "", *, status: int = USAGE) -> int:
    """Report a failure before the start: on stderr, and with `--json` or `--format json` as one JSON line on stdout.
    Return the exit code."""
    say(f"{message} ({hint})" if hint else message)
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if {"--json", "--format=json"} & set(options) or ("--format", "json") in pairwise(options):
        import json

        if not hint and code != "bad_inputs":
            message, _, hint = message.partition("\n" if "\n" in message else "; ")
        print(json.dumps({"type": "error", "code": code, "message": message, "hint": hint, "exit": status}))
    return status


def _open_streams() -> None:
    """Open replacements for standard streams that the caller closed.

    Python has no stream object for a closed descriptor, and the next opened file (a database, for example) would get
    its number.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(spare)
    CLOSED.update(number for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)) if stream is None)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _nowhere() -> bool:
    """Return True if the current folder has been removed. Every access to it, or to a relative path, then fails."""
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return True
    return False


def _drop_output() -> None:
    """Redirect stdout to the null device, because Python would report the failure again when it closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(message: str) -> None:
    from quire.cli.stdio import tell

    first, *rest = message.split("\n")
    tell("\n".join([f"quire: {visible(first)}", *(f"  {visible(line)}" for line in rest)]))


def _usage(error: click.ClickException) -> tuple[str, str]:
    """Return one line that says what is wrong with the command line, and the help to see."""
    if isinstance(error, click.NoSuchOption):
        options = [name for param in error.ctx.command.params for name in param.opts] if error.ctx else []
        close = nearest(error.option_name, options)
        message = f"unknown option {error.option_name}" + did_you_mean(close, lead="; ")
    else:
        text = " ".join(error.format_message().split()).rstrip(".")
        message = (text if text[1:2].isupper() else text[:1].lower() + text[1:]) + _instead(error, text)
    context = error.ctx if isinstance(error, click.UsageError) else None
    where = context.command_path if context else "quire"
    return message, f"see {where} --help"


def _instead(error: click.ClickException, text: str) -> str:
    """Return the correct form of a surplus argument: `NAME=VALUE` is an input. Empty for any other argument."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    extra = re.match(r"got unexpected extra argument(s?) \((.*)\)", text, re.IGNORECASE | re.DOTALL)
    if context is None or extra is None or not re.match(r"[A-Za-z_]\w*+=", extra[2]):
        return ""
    if not any("-i" in param.opts for param in context.command.params):
        return ""
    from quire.display.text import pasted

    # click joins several arguments by spaces, so only a single one is certain to be complete.
    first = extra[2].split(" ", 1)[0] if extra[1] else extra[2]
    return did_you_mean(f"{context.command_path} … -i {pasted(first)}", lead="; ")


def _close_verb(name: str, verbs: Sequence[str]) -> str:
    """Return the command that a word that is not a verb probably means; empty if nothing is close."""
    import difflib

    from quire.display.text import pasted

    if name.lower() in MEANT:
        return MEANT[name.lower()]
    if name.lower().endswith(_DOCUMENT) or os.path.isfile(name):  # noqa: PTH113  # a long name is not an exception
        return f"quire {'test' if name.lower().endswith('.test.yaml') else 'run'} {pasted(name)}"
    # `nearest` does not find a short verb with two letters swapped.
    swapped = [verb for verb in verbs if sorted(verb) == sorted(name.lower())]
    close = swapped or difflib.get_close_matches(name.lower(), verbs, n=1, cutoff=0.65)
    return close[0] if close else ""
