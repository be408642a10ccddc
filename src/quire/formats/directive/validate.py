"""Check that a directive may be signed, and find where it departs from good practice.

All findings about good practice are notes and lints: signing does not require it, and none of them stops a directive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Diagnostic, Severity
from quire.formats.directive import codes
from quire.formats.directive.item_references import calls_of, calls_of_hooks
from quire.formats.directive.parse import parse
from quire.formats.directive.syntax import (
    Directive,
    Parameter,
    conflicting_limits,
    cost_values,
    limit_problem,
    shown,
    text_of,
)
from quire.formats.markdown import Fence, find_fence
from quire.plan.vocabulary import LIMIT_ALIASES, LIMITS
from quire.source import Span
from quire.wording import Suggestions, did_you_mean

if TYPE_CHECKING:
    from quire.formats.directive.syntax import Grant
    from quire.source import Source


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
        return [f"line {source.position(finding.span.start).line}: {finding.message}" for finding in wrong]
    directive = reading.partial
    identity = (problem.message for problem in identity_problems(directive, path))
    missing = (f"missing required field: {name}" for name in missing_fields(directive))
    return [*identity, *missing, *_values(directive)]


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


def _values(directive: Directive) -> Iterator[str]:
    suggestions = Suggestions()
    for name, value in directive.limits or ():
        if LIMIT_ALIASES.get(name, name) not in LIMITS:
            close = suggestions.nearest(name, LIMITS)
            yield f"limits.{shown(name)} is not a limit" + did_you_mean(close, lead=": ")
        elif problem := limit_problem(name, value.text):
            yield f"limits.{name} {problem}"
    yield from (f"limits: {message}" for message, _ in conflicting_limits(directive))
    for name, cost in cost_values(directive.cost) if directive.cost else ():
        if problem := limit_problem(name, cost.text):
            yield f"the cost for {name} {problem}"
    if wrong := parallel_problem(directive):
        yield wrong.message
    yield from _parameters("inputs", directive.inputs)
    yield from _parameters("outputs", directive.outputs)


def _parameters(where: str, declared: tuple[Parameter, ...]) -> Iterator[str]:
    names: set[str] = set()
    for at, parameter in enumerate(declared, 1):
        if not parameter.name:
            yield f"missing required field: name of number {at} of the {where}"
        elif parameter.name in names:
            yield f"{where}: '{shown(parameter.name)}' is declared twice"
        names.add(parameter.name)


_COMPARISONS = 20_000
_GRANTS = 200
_CRITERION = re.compile(r"<criterion>([^<]*+)")
_VAGUE = re.compile(
    r"\b(good|nice|nicely|better|best|properly|appropriate|appropriately|reasonable|reasonably|adequate|great"
    r"|successful|successfully|user-friendly|intuitive|as needed|high[- ]quality|makes sense|looks right)\b",
    re.IGNORECASE,
)
_ITEMS = re.compile(r"\.ai/(?:directives|knowledge|tools)/")
_THING = re.compile(r"\w+(?:ment|tion|sion|ness|ity|ing|er|or)")
_VERBS = re.compile(
    "answer|order|render|monitor|filter|register|gather|mirror|refactor|enter|offer|deliver|(?:dis|re|un)?cover|consider"
    "|mention|position|implement|document|comment|caption|partition|bring|ping|trigger|transfer|alter|author|anchor"
    "|buffer|number|administer|lower|remember|tailor|experiment|augment|segment|fragment"
)
_THINGS = frozenset(("handler", "manager", "helper", "helpers", "utils", "util", "processor"))


def practice(directive: Directive) -> Iterator[Diagnostic]:
    """Yield all findings about good practice."""
    yield from _name(directive)
    yield from _permissions(directive)
    yield from _second_fence(directive)
    yield from _criteria(directive)
    yield from _sign_last(directive)
    for section in directive.sections:
        if section.tag == "process":
            message, help = "the process stands inside the fence", "put it after the fence, where it needs no escapes"
            yield Diagnostic(codes.INSIDE, message, section.span, "", help)


def _name(directive: Directive) -> Iterator[Diagnostic]:
    if directive.name is None:
        return
    words = [word for word in directive.name.text.lower().replace("-", "_").split("_") if word]
    if not words:
        return
    first = words[0]
    a_thing = _THING.fullmatch(first) is not None and not _VERBS.fullmatch(first)
    if a_thing or words[-1] in _THINGS:
        message = f"the name {shown(directive.name.text)} does not say what is done"
        help = "begin with a verb, such as deploy_staging"
        yield Diagnostic(codes.ACTION_NAME, message, directive.name.span, "", help)


def _permissions(directive: Directive) -> Iterator[Diagnostic]:
    """Report grants that no call uses, and calls that no grant covers."""
    grants = directive.permissions.grants if directive.permissions else ()
    instructions = calls_of(directive)
    calls = [*instructions, *calls_of_hooks(directive)]
    if directive.permissions is None or len(grants) * len(calls) > _COMPARISONS:
        return
    for call in calls:
        if not call.always_allowed and not any(call.covered_by(grant.capability) for grant in grants):
            message = f"no permission covers {shown(call.needs)}, which this calls for"
            help = "grant it in <permissions>, or leave the call out"
            yield Diagnostic(codes.UNGRANTED, message, call.span, "", help)
    if not instructions or len(grants) > _GRANTS:
        return
    text = " ".join([directive.body, *(section.text for section in directive.sections)]).lower()
    for grant in grants:
        if any(call.covered_by(grant.capability) for call in calls) or _spoken_of(grant, text):
            continue
        message = f"no step seems to use {shown(grant.capability)}"
        yield Diagnostic(codes.LEAST_PRIVILEGE, message, grant.span, "", "ask only for what the steps need")


def _spoken_of(grant: Grant, text: str) -> bool:
    """Tell whether the instructions mention the words of a grant: they need not spell out a call."""
    segments = grant.capability.lower().split(".")
    named = [part for part in segments[3:] if part and not any(sign in part for sign in "*?[")]
    if not named:
        return any(part in text for part in segments[2:3] if part != "*")
    last = named[-1]
    return last in text or last.replace("_", " ") in text or last.replace("-", " ") in text


def _second_fence(directive: Directive) -> Iterator[Diagnostic]:
    second = find_fence(directive.body, "xml") if "<directive" in directive.body else None
    if isinstance(second, Fence):
        content = directive.body[second.content.start : second.content.end]
        if content.lstrip().startswith("<directive"):
            start = directive.body_span.start + second.whole.start
            message = "a second fence holds a directive, which is only text for the model"
            help = "one file is one directive; show an example in a fence of four backticks"
            yield Diagnostic(codes.SECOND_FENCE, message, Span(start, start + 6), "", help)


def _criteria(directive: Directive) -> Iterator[Diagnostic]:
    sections = {section.tag: section for section in directive.sections}
    texts = [(directive.body, directive.body_span.start)]
    if criteria := sections.get("success_criteria"):
        texts.append((criteria.raw, criteria.span.start))
    for text, base in texts:
        for match in _CRITERION.finditer(text):
            vague = _VAGUE.search(match[1])
            if vague or not match[1].strip():
                why = f"{vague[0]} cannot be measured" if vague else "a criterion is empty"
                span = Span(base + match.start(1), base + match.end(1))
                yield Diagnostic(codes.VAGUE, why, span, "", "say what can be seen: a file, a number, a text")
    at = directive.body.find("<process>")
    process = sections.get("process")
    if (at >= 0 or process) and "success_criteria" not in directive.body and criteria is None:
        start = directive.body_span.start + at
        span = Span(start, start + len("<process>")) if at >= 0 or process is None else process.span
        yield Diagnostic(codes.NO_CRITERIA, "the process has no success criteria", span, "", _CRITERIA)


def _sign_last(directive: Directive) -> Iterator[Diagnostic]:
    """Report an item of a space that is written after the last signing, and so is not signed."""
    text = directive.body
    inside = "".join(section.raw for section in directive.sections)
    if not _ITEMS.search(text) and not _ITEMS.search(inside):
        return
    calls = sorted(calls_of(directive), key=lambda call: call.span.start)
    writes = [call for call in calls if call.needs.endswith("file-system.write")]
    signs = [call.span.start for call in calls if call.primary == "sign"]
    if writes and (not signs or signs[-1] < writes[-1].span.start):
        message = "values written here are not signed afterwards"
        yield Diagnostic(codes.SIGN_LAST, message, writes[-1].span, "", "make rye_sign the last step")


_CRITERIA = "add <success_criteria> with a <criterion> for each thing that can be checked"
