"""Check that a directive may be signed, and list all problems, one per line. Good practice is not required."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Severity
from quire.formats.directive.findings import shown
from quire.formats.directive.limits import conflicting_limits, cost_values, limit_problem
from quire.formats.directive.parse import parse
from quire.formats.directive.syntax import Directive, Parameter, text_of
from quire.plan.vocabulary import LIMIT_ALIASES, LIMITS
from quire.wording import Suggestions, did_you_mean

if TYPE_CHECKING:
    from quire.source import Source, Span

SNAKE_CASE = re.compile(r"[a-z][a-z0-9_]*")
VERSION = re.compile(r"\d+\.\d+\.\d+", re.ASCII)


class Problem(Struct, frozen=True):
    """A reason why a file cannot be signed."""

    kind: str
    """One of form, place, version and parallel."""
    message: str
    span: Span
    help: str = ""


def issues(source: Source, path: PurePath) -> list[str]:
    """Return the reasons why a directive cannot be signed; empty if it can.

    `path` is the file's path below `.ai/directives`.
    """
    reading = parse(source)
    wrong = reading.of(Severity.ERROR)
    if wrong:
        return [f"line {source.position(one.span.start).line}: {one.message}" for one in wrong]
    directive = reading.partial
    identity = (one.message for one in identity_problems(directive, path))
    return [*identity, *_missing(directive), *_values(directive)]


def missing_fields(directive: Directive) -> list[str]:
    """Return the names of the required fields that are missing."""
    texts = ("name", "version", "description", "author")
    missing = [name for name in texts if not text_of(getattr(directive, name))]
    if directive.category is None:
        missing.append("category")
    model = {name for name, value in directive.model or () if value.text}
    if not model & {"tier", "id"}:
        missing.append("model")
    if directive.permissions is None and directive.extends is None:
        missing.append("permissions")
    return missing


def identity_problems(directive: Directive, path: PurePath | None) -> Iterator[Problem]:
    """Yield what is wrong with name, version and category.

    `path` is the file's path below `.ai/directives`. Without it, only problems that do not depend on the path are
    found.
    """
    name, version, category = directive.name, directive.version, directive.category
    if name and not SNAKE_CASE.fullmatch(name.text):
        message = f"the name '{shown(name.text)}' must be in snake_case: small letters, digits and _, a letter first"
        yield Problem("form", message, name.span, "begin with a verb, such as deploy_staging")
    if name and path and name.text != path.stem:
        message = f"the name '{shown(name.text)}' must equal the name of the file, '{path.stem}'"
        yield Problem("place", message, name.span, f'write name="{path.stem}", or rename the file')
    if version and not VERSION.fullmatch(version.text):
        message = f"the version '{shown(version.text)}' must be three numbers, such as 1.0.0"
        yield Problem("version", message, version.span, 'write version="1.0.0"')
    if category is None or path is None:
        return
    folder = path.parent.as_posix().strip("/")
    folder = "" if folder == "." else folder
    if category.text.strip("/") != folder:
        where = f"'{folder}'" if folder else "'', the root"
        message = f"the category '{shown(category.text)}' must equal the folder below .ai/directives, {where}"
        yield Problem("place", message, category.span, f"write <category>{folder}</category>, or move the file")


def parallel_problem(directive: Directive) -> Problem | None:
    for name, value in directive.model or ():
        if name == "parallel" and value.text not in ("true", "false"):
            message = f"model.parallel must be true or false, not '{shown(value.text)}'"
            return Problem("parallel", message, value.span, 'write parallel="true", or leave it out')
    return None


def _missing(directive: Directive) -> Iterator[str]:
    yield from (f"missing required field: {name}" for name in missing_fields(directive))


def _values(directive: Directive) -> Iterator[str]:
    suggestions = Suggestions()
    for name, value in directive.limits or ():
        if LIMIT_ALIASES.get(name, name) not in LIMITS:
            close = suggestions.nearest(name, LIMITS)
            yield f"limits.{shown(name)} is not a limit" + did_you_mean(close, lead=": ")
        elif problem := limit_problem(name, value.text):
            yield f"limits.{name} {problem}"
    yield from (f"limits: {message}" for message, _ in conflicting_limits(directive))
    if directive.cost:
        for name, cost in cost_values(directive.cost):
            if problem := limit_problem(name, cost.text):
                yield f"the cost for {name} {problem}"
    if wrong := parallel_problem(directive):
        yield wrong.message
    yield from _parameters("inputs", directive.inputs)
    yield from _parameters("outputs", directive.outputs)


def _parameters(where: str, declared: tuple[Parameter, ...]) -> Iterator[str]:
    seen: set[str] = set()
    for at, one in enumerate(declared, 1):
        if not one.name:
            yield f"missing required field: name of number {at} of the {where}"
        elif one.name in seen:
            yield f"{where}: '{shown(one.name)}' is declared twice"
        seen.add(one.name)
