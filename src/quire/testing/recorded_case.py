"""Make a test case of a run: its inputs, replies, answers and results of tools, with its result as expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.engine.conversation import uses_of
from quire.engine.interpreter.until import is_within
from quire.engine.requests import ToolRequest
from quire.plan.built_in_tools import ALIASES
from quire.testing.case_run import CaseRun
from quire.testing.drafts import Draft, DraftReply, expectations
from quire.testing.world.model import ModelAsked
from quire.trust.capabilities import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quire.engine.records import EffectRecord
    from quire.runs.outcome import RunView
    from quire.testing.case_run import Bench
    from quire.values import Value

MOST_ROUNDS = 10


def recorded_case(bench: Bench, view: RunView, origin: RunView) -> Draft:
    """Return a case with expectations that hold. For a try, `origin` is the run that it was made from: the case has the
    replies of the try at its step, and those of the run elsewhere. Raises `QuireError` if the case cannot be run."""
    until = view.row.until or ""
    records = [record for record in origin.effects if not until or not is_within(record.path, until)]
    if until:
        records += [record for record in view.effects if is_within(record.path, until)]
    asked = {**origin.replay.asked, **view.replay.asked}
    number = view.pins.origin.get("try")
    name = f"try {number} of {view.pins.origin.get('step')}: {origin.row.label}" if number else origin.row.label
    draft = Draft(name[:120], dict(view.pins.inputs), allow=[*origin.pins.allow])
    draft.answers = {way: str(record.value) for way, record in origin.answers}
    draft.unattended = origin.pins.unattended
    for record in records:
        request = asked.get(record.path)
        if request is None or record.kind != "model" or record.state == "intent":
            continue
        call = ModelAsked(record.path, request.label, "")
        value: Mapping[str, Value] = record.value if isinstance(record.value, dict) else {}
        uses = tuple((use.name, use.arguments) for use in uses_of(value))
        error = record.failure.message if record.failure else ""
        reply = DraftReply(call.way, str(value.get("text", "")), call.item, uses, error=error)
        draft.replies[call.way, call.item, record.path] = reply
    for _ in range(MOST_ROUNDS):
        run = CaseRun(bench, draft.case)
        seen = run.play()[-1].observation
        missing = [unscripted.tool for unscripted in run.world.tools.unscripted if unscripted.tool not in draft.tools]
        for tool in missing:
            draft.tools[tool] = _result(tool, records, asked)
        if not missing:
            break
    draft.expect = expectations(bench.document.runnable(), seen, [])
    return draft


def _result(tool: str, records: Sequence[EffectRecord], asked: Mapping[str, object]) -> Value:
    """Return the first recorded result of a tool."""
    for record in records:
        request = asked.get(record.path)
        named = request.tool if isinstance(request, ToolRequest) else ""
        if named and tool in (named, canonical(named), ALIASES.get(named)) and record.state == "ok":
            return record.value
    return ""
