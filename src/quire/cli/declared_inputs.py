"""Declared inputs from the command line: questions at the terminal for missing ones, each by its type; and the TEXT of
`quire run DOC TEXT`, the value of the one input that a document needs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, cast

import click
from msgspec.structs import replace

from quire.cli.inputs import (
    CHOICE,
    NUMBER,
    ask_until_fitting,
    asked_line,
    asked_text,
    asked_yes_or_no,
    read_inputs,
    starts_nothing,
)
from quire.display.text import one_line, pasted
from quire.engine.declared_inputs import complete_declared, describe_field, missing_fields, problem_of, typed
from quire.errors import CannotStart
from quire.library.interface import input_schema
from quire.patterns import late_pattern
from quire.schema import Enum, Field, FieldType, Kind, ListOf, Simple
from quire.values import Value, encode
from quire.wording import did_you_mean

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.plan.nodes import Plan


_MOST_LISTED = 200


def ask_for_fields(plan: Plan, inputs: dict[str, Value]) -> dict[str, Value]:
    """Ask for the inputs that a run needs. Given ones are checked before the first question."""
    missing = missing_fields(plan, inputs)
    if not missing:
        return inputs
    relaxed = tuple(replace(field, required=field.required and field not in missing) for field in plan.declared or ())
    complete_declared(replace(plan, declared=relaxed), inputs)
    with starts_nothing():
        return inputs | {field.name: _ask_field(plan, field) for field in missing}


def _ask_field(plan: Plan, field: Field) -> Value:
    options: tuple[str, ...] = ()
    if isinstance(field.type, Enum):
        options = tuple(value if isinstance(value, str) else encode(value) for value in field.type.distinct())

    def checked(text: str) -> Value:
        value = typed(field.type, text)
        if problem := problem_of(plan, field, value):
            raise ValueError(problem)
        return value

    return ask_until_fitting(
        describe_field(field),
        options,
        lambda: _answer(field.type, options),
        checked,
        may_be_empty=isinstance(field.type, ListOf),
        most_listed=_MOST_LISTED,
    )


def _answer(type: FieldType, options: tuple[str, ...]) -> str:
    match type:
        case Enum():
            return asked_line(CHOICE, options)
        case Simple(kind=Kind.BOOL):
            return asked_yes_or_no()
        case Simple(kind=Kind.NUMBER):
            return asked_line(NUMBER)
        case Simple(max_length=most, pattern=pattern):
            is_short = pattern is not None or (most is not None and most <= _MOST_LISTED)
            return asked_line("> ") if is_short else asked_text()
        case ListOf(of=Simple() | Enum()):
            click.echo("one item on each line", err=True)
        case _:
            click.echo("as JSON", err=True)
    return asked_text()


STDIN = "-"
_PAIR = late_pattern(r"[A-Za-z_]\w*+=")
_SHOWN = 6


def checked_text(words: Sequence[str], inputs: Sequence[str], file: str | None) -> str:
    """Return the TEXT as `-i NAME=TEXT` takes it. Raises a usage error for several words, and if stdin is read
    twice."""
    if len(words) > 1:
        pair = next((word for word in words if _PAIR.match(word)), "")
        hint = _with_option(pair) if pair else f": put it in quotes, {pasted(' '.join(words))}"
        raise click.UsageError(f"the TEXT is one argument{hint}")
    text = f"@{STDIN}" if words[0] == STDIN else words[0]
    if text == f"@{STDIN}" and (file == STDIN or any(pair.endswith(f"=@{STDIN}") for pair in inputs)):
        raise click.UsageError("stdin can be read only once: TEXT and another input cannot both be stdin")
    return text


def text_input(document: Document, text: str, inputs: Collection[str]) -> dict[str, Value]:
    """Return the input that TEXT is for, with its value. Raises `CannotStart` if that is not clear."""
    name = _meant_input(document, text, inputs)
    return read_inputs([f"{name}={text}"], None, document.runnable())


def _meant_input(document: Document, text: str, inputs: Collection[str]) -> str:
    """Return the one required input that is not given. Without required inputs it is the only one without a default,
    or the only one at all. A TEXT that begins like a pair of a known name is a slip."""
    schema = input_schema(document)
    required, properties = schema.get("required", []), schema["properties"]
    assert isinstance(required, list)  # noqa: S101  # as `input_schema` writes them
    assert isinstance(properties, dict)  # noqa: S101
    names = [str(name) for name in properties]
    if text.partition("=")[0] in names and "=" in text:
        raise CannotStart(f"{one_line(text)} is not the value of an input{_with_option(text)}")
    if required:
        fitting = [str(name) for name in required if name not in inputs]
    else:
        plain = [name for name in names if "default" not in cast("dict[str, Value]", properties[name])]
        fitting = [name for name in (plain or names) if name not in inputs]
    if len(fitting) == 1:
        return fitting[0]
    raise CannotStart(_unclear(document, fitting, names) + (_with_option(text) if _PAIR.match(text) else ""))


def _with_option(pair: str) -> str:
    return did_you_mean(f"quire run … -i {pasted(pair)}", lead="; ")


def _unclear(document: Document, fitting: Sequence[str], inputs: Sequence[str]) -> str:
    name = one_line(document.name)
    if not inputs:
        return f"TEXT is the value of an input, and {name} declares none: leave it out, or give one as -i NAME=VALUE"
    names = fitting or inputs
    shown = ", ".join(one_line(input) for input in names[:_SHOWN]) + (" and more" if len(names) > _SHOWN else "")
    if not fitting:
        return f"TEXT is for an input that is not given yet, and {name} has no such: its inputs are {shown}"
    return f"{name} has {len(names)} inputs ({shown}): pass each with -i NAME=VALUE"
