"""Ask at the terminal for the declared inputs of a pipeline that are missing, each by its type.

The TEXT of `quire run DOC TEXT`: the value of the one input that a document needs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import click

from quire.cli.inputs import asked_line, asked_text, read_inputs
from quire.display.text import one_line, pasted, visible
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


def ask_for_fields(plan: Plan, given: dict[str, Value]) -> dict[str, Value]:
    """Ask for the inputs that a run needs. Given ones are checked before the first question."""
    missing = missing_fields(plan, given)
    if not missing:
        return given
    _check(plan, given, {field.name for field in missing})
    try:
        return given | {field.name: _asked(plan, field) for field in missing}
    except KeyboardInterrupt:
        click.echo("\nnothing was started", err=True)
        raise


def _check(plan: Plan, given: dict[str, Value], asked: set[str]) -> None:
    from msgspec.structs import replace

    fields = tuple(replace(field, required=False) if field.name in asked else field for field in plan.declared or ())
    complete_declared(replace(plan, declared=fields), given)


def _asked(plan: Plan, field: Field) -> Value:
    """Ask until the answer fits."""
    click.echo(visible(describe_field(field)), err=True)
    options = _options(field.type)
    for number, option in enumerate(options[:_MOST_LISTED], 1):
        click.echo(f"  {number}. {one_line(option)}", err=True)
    while True:
        text = _answer(field.type, options)
        if not text.strip() and not isinstance(field.type, ListOf):
            click.echo("a value is needed (Ctrl-C gives up)", err=True)
            continue
        chosen = text.strip()
        if chosen not in options and chosen.isascii() and chosen.isdigit() and 1 <= int(chosen) <= len(options):
            text = options[int(chosen) - 1]
        value = typed(field.type, text)
        problem = problem_of(plan, field, value)
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


def text_input(document: Document, text: str, given: Collection[str]) -> dict[str, Value]:
    """Return the input that TEXT is for, with its value. Raises `CannotStart` if that is not clear."""
    name = _meant_input(document, text, given)
    return read_inputs([f"{name}={text}"], None, document.runnable())


def _meant_input(document: Document, text: str, given: Collection[str]) -> str:
    """Return the one required input that is not given. Without required inputs it is the only one without a default,
    or the only one at all. A TEXT that begins like a pair of a known name is a slip."""
    schema = input_schema(document)
    required, properties = schema.get("required", []), schema["properties"]
    assert isinstance(required, list)  # noqa: S101  # as `input_schema` writes them
    assert isinstance(properties, dict)  # noqa: S101
    known = [str(name) for name in properties]
    if text.partition("=")[0] in known and "=" in text:
        raise CannotStart(f"{one_line(text)} is not the value of an input{_with_option(text)}")
    if required:
        fitting = [str(name) for name in required if name not in given]
    else:
        plain = [name for name in known if not _has_default(properties[name])]
        fitting = [name for name in (plain or known) if name not in given]
    if len(fitting) == 1:
        return fitting[0]
    raise CannotStart(_unclear(document, fitting, known) + (_with_option(text) if _PAIR.match(text) else ""))


def _with_option(pair: str) -> str:
    return did_you_mean(f"quire run … -i {pasted(pair)}", lead="; ")


def _has_default(schema: Value) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _unclear(document: Document, fitting: Sequence[str], known: Sequence[str]) -> str:
    name = one_line(document.name)
    if not known:
        return f"TEXT is the value of an input, and {name} declares none: leave it out, or give one as -i NAME=VALUE"
    names = fitting or known
    shown = ", ".join(one_line(one) for one in names[:_SHOWN]) + (" and more" if len(names) > _SHOWN else "")
    if not fitting:
        return f"TEXT is for an input that is not given yet, and {name} has no such: its inputs are {shown}"
    return f"TEXT is for a single input, and {name} has {len(names)} to give: {shown}; give each as -i NAME=VALUE"
