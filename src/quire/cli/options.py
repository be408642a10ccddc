"""Parameter types, options and checks that several verbs share: finite amounts, budgets, arguments that must not be
empty; and options whose values are kept in the context, for a command with more of them than a function should have
parameters.

`nan` is neither above nor below a bound, so it cannot be a limit. An empty argument is most often an unset shell
variable; taken literally, `''` would mean the current folder, a default or nothing at all.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from msgspec import Struct

    from quire.workspace.settings import Settings


def _log_as_json(context: click.Context, parameter: click.Parameter, form: str | None) -> None:
    if form and not context.resilient_parsing:
        from quire.telemetry.logs import JsonLines

        sys.stderr = JsonLines(sys.stderr)


_JSON = click.Choice(["json"])
log_option = click.option("--log", type=_JSON, expose_value=False, callback=_log_as_json, help="Report as JSON lines.")


class Amount(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert the text of the command line, or a default."""
        try:
            float(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is not a number: write an amount such as 0.50", param, ctx)
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


NO_BUDGET = math.inf
"""Value of `--budget none`: remove the budget of the run."""


class Budget(Amount):
    """An amount in dollars, or `none`."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if str(value).strip().lower() == "none" or value is NO_BUDGET:
            return NO_BUDGET
        return super().convert(value, param, ctx)


def budget_of(amount: float | None) -> float | None:
    """Return the given amount; None for `--budget none`."""
    return None if amount == NO_BUDGET else amount


T = TypeVar("T")


def require_text(context: click.Context, parameter: click.Parameter, value: T) -> T:
    """Reject empty texts. For `callback=`; checks each text of a tuple."""
    for text in value if isinstance(value, tuple) else (value,):
        if isinstance(text, str) and not text.strip():
            if isinstance(parameter, click.Option):
                raise click.UsageError(f"{parameter.opts[0]} is empty", context)
            raise click.UsageError(f"the argument {parameter.make_metavar(context).strip('[]….')} is empty", context)
    return value


def require_known(allow: Sequence[str], settings: Settings) -> None:
    """Raise `BadInputs` for values of `--allow` that are neither a tool nor a capability."""
    if allow:
        from quire.runs import allowed_names

        allowed_names.require_known(allow, settings)


def named_file(path: str) -> str:
    """Return the file of a document that the user named; any other argument as it is."""
    if os.path.lexists(path):
        return path
    from quire.library.lookup import file_of

    return file_of(path) or path


def check_exclusive(context: click.Context) -> None:
    """Raise a usage error for options of a verb that drives runs which exclude each other."""
    params = context.params
    if params.get("model") and params.get("script"):
        raise click.UsageError("--model and --script exclude each other")
    if params.get("detach") and (params.get("out") or params.get("as_json")):
        raise click.UsageError("--detach has no output of its own: see `quire runs RUN --output`")


Verb = TypeVar("Verb", bound=Callable[..., object])


def unattended_option(help: str) -> Callable[[Verb], Verb]:
    """Add `--unattended` and `--unattended=yes`. Click would take the next argument for the value of an option that may
    have none, so the second is a flag of its own, which `Unattended` puts in its place."""

    def add(verb: Verb) -> Verb:
        verb = click.option("--unattended-yes", "says_yes", is_flag=True, hidden=True)(verb)
        return click.option("--unattended", is_flag=True, help=help)(verb)

    return add


class Unattended(click.Command):
    """A command that takes `--unattended=yes`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        yes = ["--unattended", "--unattended-yes"]
        return super().parse_args(
            ctx, [word for argument in args for word in (yes if argument == "--unattended=yes" else [argument])]
        )


def force_option(verb: Verb) -> Verb:
    """Add the option of verbs that start a run."""
    return click.option("--force", is_flag=True, help="Start despite near misses that `quire check` finds.")(verb)


def driving_options(verb: Verb) -> Verb:
    """Add the options that all verbs have which drive a run."""
    for option in (
        click.option("-q", "--quiet", is_flag=True, help="Print only the output and errors."),
        click.option("--json", "as_json", is_flag=True, help="Events as JSON lines; the last line is the result."),
        click.option(
            "--out", metavar="FILE", callback=require_text, help="Write the output to a file, or into a FOLDER/."
        ),
        click.option(
            "--limit",
            "limits",
            metavar="NAME=VALUE",
            multiple=True,
            help="calls=N: most model calls (0: no limit); for a directive also turns=N, …",
        ),
        click.option("--budget", type=Budget(min=0), metavar="USD|none", help="Never spend more than this."),
        click.option("--script", metavar="FILE", callback=require_text, help="Replies from a file instead of a model."),
    ):
        verb = option(verb)
    return verb


_HERE_ALONE = ("detach", "hold", "quiet", "out", "as_json")


def options_again(context: click.Context) -> list[str]:
    """Return the options of this call for the separate process that resumes the run."""
    options: list[str] = []
    for param in context.command.params:
        value = context.params.get(param.name or "")
        # Not by equality: a budget of 0 equals False.
        if not isinstance(param, click.Option) or param.name in _HERE_ALONE or value is None or value is False:
            continue
        for word in value if isinstance(value, tuple) else (value,):
            options.append(param.opts[-1])
            if word is not True:
                options.append("none" if word == NO_BUDGET else str(word))
    return options


Command = TypeVar("Command", bound=Callable[..., Any])
Kept = TypeVar("Kept", bound="Struct")
_Check = Callable[[click.Context, click.Parameter, Any], Any]


def kept_option(kind: type[Struct], *names: str, check: _Check | None = None, **settings: Any) -> Callable[..., Any]:
    """Return an option whose value goes into the field of its name. `check` is a callback of click that looks at the
    value before."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if parameter.name:
            setattr(kept(context, kind), parameter.name, check(context, parameter, value) if check else value)

    return click.option(*names, callback=keep, expose_value=False, **settings)


def kept(context: click.Context, kind: type[Kept]) -> Kept:
    """Return the values that were given, and the defaults of the struct for all others."""
    values: Kept = context.meta.setdefault(f"quire.cli.{kind.__name__}", kind())
    return values


def with_options(command: Command, options: Sequence[Callable[..., Any]]) -> Command:
    """Add options to a command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command
