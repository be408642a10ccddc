"""Build the first write of a drive, and apply changes that the user makes on resume.

The first write removes the records of the effects that ended the run, so that they are performed again; or, if the run
stopped at a breakpoint, it records that the breakpoint was passed, with the values that a person set there. Names of
such values must occur in the document, and inputs are checked as at the start.

On resume the user may change budget, limits, model, answers, breakpoints, and `unattended`. Pins never change, so the
change is an effect at the path `terms`, valid until the next one, in whatever process the run goes on. It never
invalidates recorded effects; limits apply only to effects still to be performed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.driver.replay import Begin, expanded, to_perform_again
from quire.engine.inputs import input_value
from quire.engine.records import Batch, EffectRecord, RunRow, RunUpdate, Status, has_shape
from quire.engine.request_hashes import request_hash
from quire.engine.requests import BREAK, Boundary
from quire.errors import BadInputs, RunState
from quire.plan.ways import JOINT
from quire.runs.options import call_limit, checked_budget
from quire.runs.pins import SHAPES, PinnedState
from quire.values import InvalidValue, Value, copy
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.library.document import Document


async def first_batch(
    row: RunRow,
    records: Sequence[EffectRecord],
    begin: Begin,
    overrides: Mapping[str, Value],
    now: float,
    *,
    pure_work: int,
) -> Batch:
    """Return the first write of a drive. Raises `RunState` for `overrides` if the run is not stopped at a boundary."""
    update = RunUpdate(status=Status.RUNNING)
    if row.ended_by and row.ended_by[0].endswith(BREAK):
        return Batch(effects=(boundary_record(row.ended_by[0], row.position, overrides, now),), update=update)
    if overrides:
        raise RunState(
            f"run {row.id} is {row.status.words} and does not stand at the end of a step: values can be set only there"
        )
    again = tuple(expanded(row.ended_by, [record.path for record in records]))
    if row.status in (Status.FAILED, Status.CANCELLED, Status.PAUSED):
        rest = [record for record in records if record.path not in set(again)]
        again += await to_perform_again(begin, rest, pure_work=pure_work)
    return Batch(supersede=again, update=update)


def boundary_record(path: str, label: str, values: Mapping[str, Value], now: float) -> EffectRecord:
    """Return the record of a boundary that a run has passed; `values` are those that a person set there."""
    # Copied as a replay will read it: a terminal may pass text with characters that cannot be stored.
    return EffectRecord(path, "break", "ok", request_hash(Boundary(path, label)), now, copy(dict(values)))


PATH = "terms"
"""The path of the record. No step has this path, and no walk requests it."""

_FURTHER = ("instead", "answers", "unattended", "breakpoints")
"""Pins that are recorded only if they were changed: 0.1.0 recorded limits and the budget alone."""


class Given(Struct, frozen=True):
    """Changes that the user makes when a run goes on. `unlimited` removes its budget; `model` is called in place of
    every other."""

    limits: Mapping[str, Value] = field(default_factory=dict)
    budget: float | None = None
    unlimited: bool = False
    model: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    unattended: bool = False
    says_yes: bool = False
    breakpoints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        call_limit(self.limits)


def apply_amendments(pins: PinnedState, records: Iterable[EffectRecord]) -> PinnedState:
    """Return the pins of a run with the latest recorded changes."""
    found = next((record for record in records if record.path == PATH), None)
    if found is None or not has_shape(found):
        return pins
    given = cast("Mapping[str, Value]", found.value)
    limits = cast("Mapping[str, Value]", given["limits"])
    pins = replace(pins, limits=limits, budget=cast("float | None", given.get("budget")))
    further = {name: given[name] for name in _FURTHER if name in given and SHAPES[name](given[name])}
    if "breakpoints" in further:
        further["breakpoints"] = tuple(cast("list[str]", further["breakpoints"]))
    return replace(pins, **further)  # of the shapes that the pins have


def amend(pins: PinnedState, given: Given) -> PinnedState:
    """Return the pins with new changes. Raises `CannotStart` for a budget that is not an amount."""
    budget = pins.budget if checked_budget(given.budget) is None else given.budget
    return replace(
        pins,
        limits={**pins.limits, **given.limits},
        budget=None if given.unlimited else budget,
        instead=given.model or pins.instead,
        answers={**pins.answers, **given.answers},
        unattended=pins.unattended or given.unattended,
        breakpoints=tuple(dict.fromkeys((*pins.breakpoints, *given.breakpoints))),
    )


def amendment_record(pins: PinnedState, start: PinnedState, now: float) -> EffectRecord:
    """Return the record of the current changes; `start` are the pins of the start. It answers no request, so its
    request hash is empty."""
    value: dict[str, Value] = {"limits": dict(pins.limits), "budget": pins.budget}
    now_and_then = ((name, pins.as_json()[name], start.as_json()[name]) for name in _FURTHER)
    value |= {name: as_now for name, as_now, as_then in now_and_then if as_now != as_then}
    return EffectRecord(PATH, "terms", "ok", "", now, value)


def checked_overrides(document: Document, given: Mapping[str, Value], *, way: str = "") -> dict[str, Value]:
    """Return the values as the run gets them. Raises `BadInputs` with all problems at once. `way` is the position of
    the run: inside a callee the names belong to another document, and are not looked up in this one.

    An input is checked as at the start, and a blank one becomes its default. A kept result may be any text.
    """
    plan, text = document.runnable(), document.source.text
    inside = JOINT in way
    declared = {wanted.name: wanted for wanted in plan.inputs} if plan.format == "playbook" and not inside else {}
    from quire.engine.declared_inputs import problem_of, unwritten_inputs

    fields = {} if inside else unwritten_inputs(plan)
    words = None if inside or reads_any(plan.format, text) else mentioned(text)
    values: dict[str, Value] = {}
    problems: list[str] = []
    for name, value in given.items():
        if words is not None and name not in words:
            problems.append(unknown(name, words, "the document never mentions"))
            continue
        try:
            values[name] = copy(input_value(declared[name], value) if name in declared else value)
            if name in fields and (problem := problem_of(plan, fields[name], value)):
                problems.append(f"--set {problem}")
        except InvalidValue as error:
            problems.append(f"--set {name}: no JSON value: {error}")
        except ValueError as error:
            problems.append(f"--set {name}: {error}")
    if problems:
        raise BadInputs(problems)
    return values


def unknown(name: str, known: Sequence[str], problem: str) -> str:
    return f"--set {name}: {problem} {name}" + did_you_mean(nearest(name, known), lead=" (")


def reads_any(format: str, text: str) -> bool:
    """Tell whether a value has an effect whatever its name: a model is told of it, or a pipeline reads all of its
    stores."""
    return format == "directive" or (format == "pipeline" and re.search(r"\bctx\b(?!\s*\.)", text) is not None)


def mentioned(text: str) -> list[str]:
    """Return all words of a document that may be names; those of pipelines may contain hyphens."""
    return sorted({*re.findall(r"\w+", text), *re.findall(r"[\w-]+", text)})
