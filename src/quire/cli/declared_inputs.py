"""Ask at the terminal for the declared inputs of a pipeline that are missing, each by its type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quire.cli.inputs import asked_line, asked_text
from quire.display.text import one_line, visible
from quire.engine.declared_inputs import complete_declared, describe_field, missing_fields, problem_of, typed
from quire.schema import Enum, Field, FieldType, Kind, ListOf, Simple
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.plan.nodes import Plan

_MOST_LISTED = 200


def ask_for_fields(plan: Plan, given: dict[str, Value]) -> dict[str, Value]:
    """Ask for the inputs that a run needs. Given ones are checked before the first question."""
    missing = missing_fields(plan, given)
    if not missing:
        return given
    _check(plan, given, {one.name for one in missing})
    try:
        return given | {one.name: _asked(plan, one) for one in missing}
    except KeyboardInterrupt:
        click.echo("\nnothing was started", err=True)
        raise


def _check(plan: Plan, given: dict[str, Value], asked: set[str]) -> None:
    from msgspec.structs import replace

    fields = tuple(replace(one, required=False) if one.name in asked else one for one in plan.declared or ())
    complete_declared(replace(plan, declared=fields), given)


def _asked(plan: Plan, wanted: Field) -> Value:
    """Ask until the answer fits."""
    click.echo(visible(describe_field(wanted)), err=True)
    options = _options(wanted.type)
    for number, option in enumerate(options[:_MOST_LISTED], 1):
        click.echo(f"  {number}. {one_line(option)}", err=True)
    while True:
        text = _answer(wanted.type, options)
        if not text.strip() and not isinstance(wanted.type, ListOf):
            click.echo("a value is needed (Ctrl-C gives up)", err=True)
            continue
        chosen = text.strip()
        if chosen not in options and chosen.isascii() and chosen.isdigit() and 1 <= int(chosen) <= len(options):
            text = options[int(chosen) - 1]
        value = typed(wanted.type, text)
        problem = problem_of(plan, wanted, value)
        if not problem:
            return value
        click.echo(visible(problem), err=True)


def _options(type: FieldType) -> tuple[str, ...]:
    if not isinstance(type, Enum):
        return ()
    return tuple(value if isinstance(value, str) else encode(value) for value in type.distinct())


def _answer(type: FieldType, options: tuple[str, ...]) -> str:
    match type:
        case Enum():
            return asked_line("a number or an option: ", options)
        case Simple(kind=Kind.BOOL):
            text = asked_line("y or n: ", ("yes", "no"))
            return {"y": "yes", "n": "no"}.get(text.strip().lower(), text)
        case Simple(kind=Kind.NUMBER):
            return asked_line("a number: ", ())
        case Simple(max_length=most, pattern=pattern):
            is_short = pattern is not None or (most is not None and most <= _MOST_LISTED)
            return asked_line("> ", ()) if is_short else asked_text()
        case ListOf(of=Simple() | Enum()):
            click.echo("one item on each line", err=True)
        case _:
            click.echo("as JSON", err=True)
    return asked_text()
