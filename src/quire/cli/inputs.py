"""Inputs of a run from the command line: `-i`, `--inputs`, and questions at the terminal for missing ones."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec.structs import replace

from quire.cli.app import CLOSED
from quire.cli.stdio import tell
from quire.display.keyboard import STDIN
from quire.display.text import one_line, visible
from quire.engine.inputs import checked_input, complete_inputs, describe, missing_inputs
from quire.errors import BadInputs, CannotStart
from quire.formats import FORMATS
from quire.plan.vocabulary import CALLS
from quire.source import read_bytes, read_to_end
from quire.values import InvalidValue, Value, decode, value_of
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.cli.line_editor import Field
    from quire.plan.nodes import Input, Plan

T = TypeVar("T")


def read_inputs(pairs: Sequence[str], file: str | None, plan: Plan | None = None) -> dict[str, Value]:
    """Return all given inputs; `-i` overrides the file, and a later `-i` an earlier one.

    For a plan with JSON inputs a text becomes the value that `value_of` makes of it; the text of a declared input
    becomes a value of its type. Raises `BadInputs` with all problems.
    """
    types = {field.name: field.type for field in (plan.declared if plan else None) or ()}
    as_json = plan is not None and FORMATS[plan.format].json_inputs
    sources = [pair.partition("=")[2] for pair in pairs] + ([f"@{file}"] if file is not None else [])
    if sum(source == "@-" for source in sources) > 1:
        raise click.UsageError("stdin can be read only once: only one input can be @-")
    inputs: dict[str, Value] = {}
    problems: list[str] = []
    if file is not None:
        try:
            inputs = _from_file(file)
        except CannotStart as error:
            problems.append(str(error))
    for name, text in parse_pairs(pairs, "-i").items():
        try:
            value = text_value(name, text)
        except CannotStart as error:
            problems.append(str(error))
            continue
        if name in types:
            from quire.engine.declared_inputs import typed

            inputs[name] = typed(types[name], value)
        else:
            inputs[name] = value_of(value) if as_json and not text.startswith("@@") else value
    if problems:
        raise BadInputs(problems)
    return inputs


def warn_of_missing(names: Sequence[str], inputs: Mapping[str, Value]) -> str:
    """Return one line about the inputs that a pipeline reads and that are not given; empty if there are none."""
    missing = [name for name in names if name not in inputs]
    if not missing:
        return ""
    listed = ", ".join(missing)
    return f"warning: nothing is given for {listed}: a step that reads it fails (-i {missing[0]}=…)"


def warn_of_unread(names: Sequence[str], read: Sequence[str]) -> list[str]:
    """Return a line for each given input that no step reads, with the near one of those that are read."""
    hints = [(one_line(name), nearest(name, read)) for name in names]
    return [f"warning: no step reads {name}" + did_you_mean(hint, lead="; ") for name, hint in hints]


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    """Split `k=v` texts at their first `=` into a mapping."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{option} {one_line(pair)}: write NAME=VALUE")
        values[name.strip()] = text
    return values


def given_limits(pairs: Sequence[str], format: str = "directive") -> dict[str, Value]:
    """Return the values of `--limit`; `none` lifts a limit. Raises a usage error for a wrong value, before anything is
    started."""
    if not pairs:
        return {}
    from quire.engine.interpreter.thread.budgets import resolve_limits
    from quire.runs.options import call_limit

    limits: dict[str, Value] = {}
    for name, text in parse_pairs(pairs, "--limit").items():
        if format != "directive" and name != CALLS:
            raise click.UsageError(f"--limit is for directives, except calls=N, and this is a {format}: see --budget")
        limits[name] = None if text.strip().lower() == "none" else text.strip()
        try:
            resolve_limits({}, {name: limits[name]}, None)
            if name == CALLS:
                limits[name] = call_limit(limits)
        except CannotStart as error:
            reason = str(error).replace(" in the overrides", "").replace(", spend_currency", "")
            raise click.UsageError(f"--limit {one_line(f'{name}={text}')}: {reason}") from None
    return limits


def ask_for_missing(plan: Plan, inputs: dict[str, Value]) -> dict[str, Value]:
    """Ask the user at the terminal for missing inputs. Given inputs are checked before the first question."""
    missing = missing_inputs(plan, inputs)
    if plan.thread:
        # For a directive an empty text is a value.
        missing = [input for input in missing if inputs.get(input.name) is None]
    if not missing:
        return inputs
    relaxed = (replace(input, required=input.required and input not in missing) for input in plan.inputs)
    complete_inputs(replace(plan, inputs=tuple(relaxed)), inputs)
    with starts_nothing():
        return inputs | {input.name: _ask_input(input) for input in missing}


@contextlib.contextmanager
def starts_nothing() -> Iterator[None]:
    """Say that nothing was started if the user ends the questions about inputs."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("\nnothing was started", err=True)
        raise


def _ask_input(input: Input) -> str:
    options = input.options if input.type == "enum" else ()

    def read() -> str:
        match input.type:
            case "text":
                return asked_text()
            case "boolean":
                return asked_yes_or_no()
        return asked_line({"enum": CHOICE, "number": NUMBER}.get(input.type, "> "), options)

    return ask_until_fitting(describe(input), options, read, partial(checked_input, input))


NUMBER = "a number: "
CHOICE = "a number or an option: "


def ask_until_fitting(
    description: str,
    options: Sequence[str],
    read: Callable[[], str],
    checked: Callable[[str], T],
    *,
    may_be_empty: bool = False,
    most_listed: int | None = None,
) -> T:
    """Ask until the answer fits: `checked` returns the value, or raises `ValueError`. An option may be chosen by its
    number."""
    tell(visible(description))
    for number, option in enumerate(options[:most_listed], 1):
        tell(f"  {number}. {one_line(option)}")
    while True:
        text = read()
        chosen = text.strip()
        if not chosen and not may_be_empty:
            tell("a value is needed (Ctrl-C gives up)")
            continue
        if options and chosen not in options and chosen.isascii() and chosen.isdigit():
            text = options[int(chosen) - 1] if 1 <= int(chosen) <= len(options) else text
        try:
            return checked(text)
        except ValueError as error:
            tell(visible(str(error)))


def asked_yes_or_no() -> str:
    text = asked_line("y or n: ", ("yes", "no"))
    return {"y": "yes", "n": "no"}.get(text.strip().lower(), text)


def asked_line(prompt: str, options: tuple[str, ...] = ()) -> str:
    """Read one line. The end of input counts as Ctrl-C."""
    from quire.cli import line_editor

    if line_editor.usable():
        return _edited(line_editor.Field(prompt, options, keep_typed=True))
    click.echo(prompt, nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line.rstrip("\r\n")


def asked_text() -> str:
    """Read lines until a line with only a dot, or the end of input. Empty lines are kept, because a text has
    paragraphs."""
    from quire.cli import line_editor

    if line_editor.usable():
        keys = "(several lines; Ctrl-X Ctrl-E opens $EDITOR; a line with only . or Ctrl-D ends)\n"
        return _edited(line_editor.Field(keys, paragraphs=True, keep_typed=True))
    tell("(several lines; a line with only . or Ctrl-D ends)")
    lines = []
    while line := sys.stdin.readline():
        if line.strip() == ".":
            break
        lines.append(line.rstrip("\r\n"))
    if not lines and not line:
        raise KeyboardInterrupt
    return "\n".join(lines)


def _edited(field: Field) -> str:
    import asyncio

    from quire.cli import line_editor

    text = asyncio.run(line_editor.edit(field))
    if text is None:
        raise KeyboardInterrupt
    return text


def text_value(name: str, text: str) -> str:
    if text.startswith("@@"):
        return text[1:]
    if text == "@-":
        return _decoded(stdin_bytes(f"-i {name}=@-"), f"-i {name}=@-: stdin")
    if text.startswith("@"):
        return _read(text[1:], f"-i {name}={text}", " (a value that begins with @ is written @@)")
    return text


def stdin_bytes(where: str) -> bytes:
    """Read all of stdin. Raises `CannotStart` if it is closed, which is not the same as empty."""
    if STDIN in CLOSED:
        raise CannotStart(f"{where}: stdin is closed")
    try:
        return read_to_end(sys.stdin.buffer)
    except OSError as error:
        raise CannotStart(f"{where}: stdin cannot be read: {error.strerror or error}") from None


def _read(path: str, where: str, hint: str = "") -> str:
    try:
        data = read_bytes(Path(path), pipes=True)
    except FileNotFoundError:
        raise CannotStart(f"{where}: the file {path} does not exist{hint}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotStart(f"{where}: {path} cannot be read: {reason}") from None
    return _decoded(data, where)


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CannotStart(f"{where} is not UTF-8 text (byte {error.start})") from None


def _from_file(file: str) -> dict[str, Value]:
    where = f"--inputs {file}"
    text = _decoded(stdin_bytes(where), where) if file == "-" else _read(file, where)
    try:
        inputs = decode(text)
    except InvalidValue as error:
        raise CannotStart(f"{where} is not JSON: {error}") from None
    if not isinstance(inputs, dict):
        raise CannotStart(f"{where} is not a JSON object of names and values: {json.dumps(inputs)[:40]}")
    return inputs
