"""Documents that are walked by hand and watched: their decisions, and those that walks took."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace
from tests.testing.scripted import Scripted, start_of
from tests.walks.pure_walk import run_pure
from tests.walks.runs import with_inputs

from quire.engine.interpreter.callees import Environment
from quire.engine.premises import PureWork
from quire.engine.requests import Walk
from quire.runs.pins import PinnedRun
from quire.source import Source
from quire.testing.coverage.decisions import Decision, decisions_of
from quire.testing.coverage.taken import watch
from quire.testing.coverage.watched_documents import WatchedDocument, watched
from quire.values import Value

Case = tuple[Mapping[str, Value], Scripted]
"""Inputs, and the answers of the world."""


def decisions(text: str) -> tuple[Decision, ...]:
    return decisions_of(start_of(text).plan, Source.of(text, "p"))


def labels(text: str, kind: str) -> list[str]:
    return [one.label for one in decisions(text) if one.kind == kind]


def taken(text: str, *cases: Case, environment: Environment | None = None) -> set[str]:
    """The ids that some walks of a document take together. Each of them is one of its decisions."""
    start = start_of(text)
    document = watched(start.plan)
    found: set[str] = set()
    for inputs, script in cases:
        given = replace(with_inputs(start, inputs), setting=environment or start.setting)
        document.begin()
        run_pure(partial(walk_of, document, given), script)
        found |= document.taken
    unknown = found - {one.id for one in decisions(text)}
    assert unknown == set()
    return found


def walk_of(document: WatchedDocument, start: PinnedRun, work: PureWork) -> Walk:
    return watch(document, document.walk(start, work))


def missing(text: str, kind: str, *cases: Case, environment: Environment | None = None) -> list[str]:
    """The labels of the decisions of a kind that none of some walks takes."""
    done = taken(text, *cases, environment=environment)
    return [one.label for one in decisions(text) if one.kind == kind and one.id not in done]
