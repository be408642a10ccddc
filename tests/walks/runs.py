"""Runs of plans without a store: what a pinned run is, from a plan, its inputs and its environment alone."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from quire.engine.interpreter.callees import Environment
from quire.library.document import Document
from quire.plan.nodes import Plan
from quire.runs.pins import PinnedRun, PinnedState
from quire.source import Source
from quire.testing.case_run import ChangedRun
from quire.values import Value


def run_of(plan: Plan, inputs: Mapping[str, Value] | None = None, setting: Environment | None = None) -> PinnedRun:
    """Return a run of a plan. The permissions of a directive are those of the plan alone."""
    pins = PinnedState("", None, "", inputs or {})
    return ChangedRun(pins, Document(Source.of(""), plan.format, plan, ()), setting or Environment())


def with_inputs(run: PinnedRun, inputs: Mapping[str, Value]) -> PinnedRun:
    return replace(run, pins=replace(run.pins, inputs=inputs))
